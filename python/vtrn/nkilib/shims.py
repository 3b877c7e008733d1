"""Modules that a public nki-library checkout imports and does not hold, supplied at import time.

Each entry says why it is needed. Nothing here changes what a kernel computes: kernels and goldens run as they are.
"""

import builtins
import enum
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from unittest import mock

# Clients of AWS services, remote hosts and terminals: imported by the harness, never called in its CPU mode.
# A package that is installed is used; only an absent one is replaced.
UNUSED_CLIENTS = (
    "aws_embedded_metrics",
    "boto3",
    "botocore",
    "fabric2",
    "filelock",
    "paramiko",
    "plotext",
    "pytest_html",
)

# The checkout's files that do not parse as published: (end of path, reason). The loader cuts the offending lines.
BROKEN_SOURCES = (("nkilib/core/mlp/mlp.py", "a docstring's tail is repeated after the docstring's end"),)

# What the harness appends to the name of an input that an output aliases.
ALIAS_SUFFIX = ".must_alias_input"

# Packages that a test imports by a name that the checkout no longer has: (name, where its modules are).
MOVED_PACKAGES = (("nkilib.experimental.subkernels", "nkilib.experimental.collectives"),)


class _ClientModule(types.ModuleType):
    """A module whose every attribute is a mock; exception names are real exception types so that ``except`` works."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Exception,), {}) if name.endswith(("Error", "Exception")) else mock.MagicMock(name=name)
        setattr(self, name, made)
        return made


class _ClientFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _ClientModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


class _MovedFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of a package of :data:`MOVED_PACKAGES` where they live now; one module under both names."""

    def find_spec(self, fullname, path=None, target=None):
        for old, new in MOVED_PACKAGES:
            parent, found, rest = fullname.partition(old)
            if not found or rest[:1] not in ("", "."):
                continue
            if not rest and importlib.machinery.PathFinder.find_spec(fullname, path) is not None:
                continue  # the checkout has the package
            if importlib.util.find_spec(parent + new + rest) is not None:
                return importlib.machinery.ModuleSpec(fullname, self, origin=parent + new + rest, is_package=not rest)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(module.__spec__.origin)


class _RepairingLoader(importlib.machinery.SourceFileLoader):
    """Loads a source file of :data:`BROKEN_SOURCES` without the lines that keep it from parsing."""

    def source_to_code(self, data, path, *, _optimize=-1):
        return super().source_to_code(repair_docstring_tail(data), path, _optimize=_optimize)

    def get_code(self, fullname):  # never from a cache: the file on disk does not compile
        return self.source_to_code(self.get_data(self.path), self.path)


def repair_docstring_tail(source: bytes) -> bytes:
    """Blanks a docstring tail that stands a second time after its docstring's end; line numbers stay.

    Only acts when the text does not parse, and only on lines that repeat the end of the docstring before them.
    """
    try:
        compile(source, "<source>", "exec", dont_inherit=True)
        return source
    except SyntaxError:
        pass
    lines = source.decode().split("\n")
    fences = [i for i, line in enumerate(lines) if line.strip() == '"""']
    for fence, end in zip(fences, fences[1:]):
        tail = [line for line in lines[fence + 1 : end] if line.strip()]
        above = [line for line in lines[:fence] if line.strip()]
        if tail and above[-len(tail) :] == tail:
            lines[fence + 1 : end + 1] = [""] * (end - fence)
            return "\n".join(lines).encode()
    return source


class _RepairFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        ending = "/".join(fullname.split(".")[-3:]) + ".py"
        if not any(name.endswith(ending) for name, _ in BROKEN_SOURCES):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin and any(spec.origin.endswith(name) for name, _ in BROKEN_SOURCES):
            spec.loader = _RepairingLoader(fullname, spec.origin)
        return spec


def _module(name, **attributes):
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return module


class LockStatus(enum.Enum):
    """States of a remote core lock; only named by the harness, never reached without a remote host."""

    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"


class LockResult:
    """Result of a remote core lock; never made without a remote host."""

    def __init__(self, status, **fields):
        self.status = status
        self.__dict__.update(fields)


def _no_trace_analysis(*_args, **_kwargs):
    raise NotImplementedError("performance analysis of a hardware trace is not part of the public checkout")


def install(checkout_root: str) -> None:
    """Makes the modules importable; call before pytest imports the checkout's conftest."""
    absent = {name for name in UNUSED_CLIENTS if importlib.util.find_spec(name) is None}
    if absent:
        sys.meta_path.append(_ClientFinder(absent))
    sys.meta_path.insert(0, _RepairFinder())
    sys.meta_path.insert(0, _MovedFinder())

    from vtrn.nkilib import neuron_dtypes

    sys.modules["neuron_dtypes"] = neuron_dtypes
    _install_simulator()
    _install_neuronxcc(neuron_dtypes)
    _install_harness_modules()
    if checkout_root not in sys.path:
        sys.path.insert(0, checkout_root)


def _install_simulator():
    """``nki_cpu_simulator``: the package that the harness's CPU mode imports, here vtrn's nki under that name."""
    import vtrn
    from vtrn.nkilib import frontend

    vtrn.install_nki()
    nki = sys.modules["nki"]
    root = _module("nki_cpu_simulator", nki=nki)
    root.__path__ = []
    for name in ("", ".isa", ".isa.constants", ".language", ".typing", ".compiler", ".tensor", ".collectives"):
        module = importlib.import_module("nki" + name)
        sys.modules["nki_cpu_simulator.nki" + name] = module
    dtypes = importlib.import_module("nki.dtype")
    sys.modules["nki_cpu_simulator.nki.language.dtypes"] = dtypes
    nki.language.dtypes = dtypes
    sys.modules["nki.compiler.frontend"] = nki.compiler.frontend = frontend
    builtin = _module("nki_cpu_simulator.nki.builtin")
    nki.builtin = builtin
    builtins.builtin = builtin


def _install_neuronxcc(neuron_dtypes):
    """``neuronxcc``: two kernels import its typing module, three tests its static_cast."""
    if importlib.util.find_spec("neuronxcc") is None:
        root = _module("neuronxcc")
        root.__path__ = []
        nki = _module("neuronxcc.nki")
        nki.__path__ = []
        typing = importlib.import_module("nki.typing")
        sys.modules["neuronxcc.nki.typing"] = typing
        nki.typing = typing
    for name in ("neuronxcc.starfish", "neuronxcc.starfish.support"):
        _module(name).__path__ = []
    _module("neuronxcc.starfish.support.dtype", static_cast=neuron_dtypes.static_cast)


def _install_harness_modules():
    """Two modules of the harness that the public checkout lacks, and a name that one test file forgets to import."""
    _module("test.utils.perf_analysis_private", analyze_trace=_no_trace_analysis)
    _module("test.utils.scripts").__path__ = []
    _module("test.utils.scripts.remote_lock_scripts", LockResult=LockResult, LockStatus=LockStatus)


def finish(checkout_root: str) -> None:
    """What can only be set once the checkout's own modules are importable."""
    orchestrator = importlib.import_module("test.utils.test_orchestrator").Orchestrator
    if not hasattr(orchestrator, "_compiled_kernel"):
        orchestrator._compiled_kernel = None  # read after a CPU run, set only by a hardware compile
    builtins.Platforms = importlib.import_module("test.utils.common_dataclasses").Platforms  # test_qkv_tkg forgets it
    framework = importlib.import_module("test.utils.unit_test_framework").UnitTestFramework
    framework.__init__ = _with_plain_names(framework.__init__)


class _Inputs(dict):
    """Kernel inputs by key; an input that an output aliases is found by its plain name too."""

    def __missing__(self, name):
        if name.endswith(ALIAS_SUFFIX) or name + ALIAS_SUFFIX not in self:
            raise KeyError(name)
        return self[name + ALIAS_SUFFIX]


def _with_plain_names(initialise):
    """``output_tensor_descriptor`` gets :class:`_Inputs`: a test of gen_mask_tkg asks for an aliased input without suffix."""

    @functools.wraps(initialise)
    def wrapper(self, *args, **kwargs):
        initialise(self, *args, **kwargs)
        descriptor = self.output_tensor_descriptor
        self.output_tensor_descriptor = lambda inputs: descriptor(_Inputs(inputs))

    return wrapper
