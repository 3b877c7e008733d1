"""Stand-ins for ``torch_xla`` and ``torch_neuronx`` where they are missing, so that scripts for a Neuron device run as they are.

Tensors stay on the CPU: a kernel call runs on the virtual chip when it is made, so there is no graph to cut and nothing
to synchronise. Installed by ``vtrn run`` only, and only when no real ``torch_xla`` can be imported.
"""

import importlib.machinery
import importlib.util
import sys
import types


def _device(*_args, **_kwargs):
    import torch

    return torch.device("cpu")


def _nothing(*_args, **_kwargs):
    return None


def _nki_jit(function=None, **options):
    """``torch_neuronx.nki_jit``: a kernel of the old namespace that writes to its arguments."""
    from vtrn.neuronxcc import nki

    return nki.jit(function, **options)


_XLA_MODEL = {
    "xla_device": _device,
    "mark_step": _nothing,
    "wait_device_ops": _nothing,
    "master_print": print,
    "is_master_ordinal": lambda *_args, **_kwargs: True,
    "get_ordinal": lambda *_args, **_kwargs: 0,
    "get_local_ordinal": lambda *_args, **_kwargs: 0,
    "xrt_world_size": lambda *_args, **_kwargs: 1,
}
_MODULES = {
    "torch_xla": {"device": _device, "sync": _nothing},
    "torch_xla.core": {},
    "torch_xla.core.xla_model": _XLA_MODEL,
    "torch_xla.runtime": {
        "world_size": lambda: 1,
        "global_ordinal": lambda: 0,
        "local_ordinal": lambda: 0,
    },
    "torch_neuronx": {"nki_jit": _nki_jit},
}


class _StandIn(types.ModuleType):
    def __getattr__(self, name):
        raise AttributeError(
            f"{self.__name__}.{name} is not in vtrn's stand-in for {self.__name__.partition('.')[0]}, which only places tensors on "
            f"the CPU; install {self.__name__.partition('.')[0]} to use it"
        )


def install() -> None:
    """Puts the modules into ``sys.modules`` where the real package is not there."""
    there = {package for package in ("torch_xla", "torch_neuronx") if package in sys.modules or importlib.util.find_spec(package)}
    for name, attributes in _MODULES.items():
        if name.partition(".")[0] in there:
            continue
        module = _StandIn(name)
        module.__dict__.update(attributes)
        module.__path__ = []
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)  # programs ask find_spec for the package
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
