"""Puts vtrn's NKI modules under their own names (``nki``, ``nki.language``, ...) into ``sys.modules``."""

import importlib
import importlib.util
import sys

MODULES = (
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
)


def _foreign_nki():
    """Where an ``nki`` that is not vtrn's would come from; None: there is none."""
    loaded = sys.modules.get("nki")
    if loaded is not None:
        return None if loaded.__name__.startswith("vtrn.") else getattr(loaded, "__file__", "sys.modules")
    try:
        spec = importlib.util.find_spec("nki")
    except (ImportError, ValueError):
        return None
    return spec and (spec.origin or "a namespace package")


def install_nki(replace: bool = False) -> None:
    """Makes ``import nki`` find vtrn's. An installed AWS package is replaced only when ``replace`` says so."""
    foreign = _foreign_nki()
    if foreign and not replace:
        raise ImportError(
            f"nki is installed already ({foreign}); vtrn does not hide it silently: use install_nki(replace=True), "
            "`python -m vtrn run --replace-nki`, or `import vtrn.nki as nki`"
        )
    if foreign:
        for name in [name for name in sys.modules if name == "nki" or name.startswith("nki.")]:
            del sys.modules[name]
    for suffix in MODULES:
        sys.modules["nki" + suffix] = importlib.import_module("vtrn.nki" + suffix)
