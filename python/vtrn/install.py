"""Puts vtrn's NKI modules under their own names (``nki``, ``nki.language``, ... and ``neuronxcc.nki``) into ``sys.modules``."""

import importlib
import importlib.util
import sys

MODULES = {
    "nki": (
        "",
        ".collectives",
        ".compiler",
        ".dtype",
        ".isa",
        ".isa.constants",
        ".language",
        ".language.dtypes",
        ".tensor",
        ".typing",
    ),
    "neuronxcc": (
        "",
        ".nki",
        ".nki.compiler",
        ".nki.isa",
        ".nki.isa.constants",
        ".nki.language",
        ".nki.typing",
        ".starfish",
        ".starfish.support",
        ".starfish.support.dtype",
        ".starfish.support.util",
    ),
}


def _foreign(package):
    """Where a package that is not vtrn's would come from; None: there is none."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return None if loaded.__name__.startswith("vtrn.") else getattr(loaded, "__file__", None) or "sys.modules"
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return spec and (spec.origin or "a namespace package")


def _install(package, replace):
    if _foreign(package) and replace:
        for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
            del sys.modules[name]
    for suffix in MODULES[package]:
        sys.modules[package + suffix] = importlib.import_module("vtrn." + package + suffix)


def install_nki(replace: bool = False) -> None:
    """Makes ``import nki`` and ``import neuronxcc.nki`` find vtrn's.

    AWS's packages, when they are installed, are replaced only when ``replace`` says so: an installed ``nki`` is an error; of
    an installed ``neuronxcc``, which is the compiler and more than NKI, nothing is touched.
    """
    foreign = _foreign("nki")
    if foreign and not replace:
        raise ImportError(
            f"nki is installed already ({foreign}); vtrn does not hide it silently: use install_nki(replace=True), "
            "`python -m vtrn run --replace-nki`, or `import vtrn.nki as nki`"
        )
    _install("nki", replace)
    if replace or not _foreign("neuronxcc"):
        _install("neuronxcc", replace)
