"""nki.isa: one function per instruction. The functions are made in C from the instruction table; here they get signatures."""

import inspect as _inspect

from vtrn import _vtrn
from vtrn._vtrn import (
    NkiIndexError,
    NkiInstruction,
    NkiTypeError,
    NkiValidationError,
    NkiValueError,
    VirtualRegister,
    register_alloc,
)
from vtrn.nki.isa import constants
from vtrn.nki.isa.constants import *  # noqa: F403
from vtrn.nki.isa.constants import dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd  # noqa: F401
from vtrn.nki.language.objects import NKIObject
from vtrn.settings import current_target as _current_target

# Instructions of the table that are not functions of nki.isa: the sequencer's, and nl.device_print.
_NOT_ISA = ("device_print", "loop_begin", "loop_end", "register_alu", "while_begin")
_FUNCTIONS = {name: function for name, function in _vtrn.functions.items() if name not in _NOT_ISA}


def _signature(name):
    kind = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters, all_required = [], True
    for operand, required, default in _vtrn.operands(name):
        all_required = all_required and required
        default = _inspect.Parameter.empty if all_required else default
        parameters.append(_inspect.Parameter(operand, kind, default=default))
    parameters.append(_inspect.Parameter("name", kind, default=None))
    return _inspect.Signature(parameters)


for _name, _function in _FUNCTIONS.items():
    _function.__signature__ = _signature(_name)
    globals()[_name] = _function

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_version():
    """The NeuronCore generation of the target."""
    return nc_version(_vtrn.target_size(_current_target(), "nc_version"))


def get_nc_sub_version():
    """The silicon revision within a generation: 0, the first."""
    return 0


__all__ = [
    "NKIObject",
    "NkiIndexError",
    "NkiInstruction",
    "NkiTypeError",
    "NkiValidationError",
    "NkiValueError",
    "VirtualRegister",
    "constants",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "register_alloc",
    "scalar_engine",
    "tensor_engine",
    "unknown_engine",
    "vector_engine",
    *constants.__all__,
    *_FUNCTIONS,
]
