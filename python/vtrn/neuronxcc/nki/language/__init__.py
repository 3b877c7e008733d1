"""nki.language of NKI 0.1: tensors, index expressions, loops, and functions that return tiles."""
# ruff: noqa: A001, F401 - the names are NKI's, imported to be found here

import ml_dtypes as _ml_dtypes
import numpy as _np

from vtrn import _vtrn
from vtrn._vtrn import IndexExpression as _IndexExpression
from vtrn._vtrn import ds
from vtrn.neuronxcc.nki import maths as _maths
from vtrn.neuronxcc.nki.index import arange, mgrid
from vtrn.neuronxcc.nki.keywords import check_all as _check_all
from vtrn.neuronxcc.nki.launch import num_programs, program_id, program_ndim
from vtrn.neuronxcc.nki.loops import affine_range, loop_reduce, sequential_range, static_range
from vtrn.neuronxcc.nki.maths import dropout, matmul, mean, rms_norm, softmax, transpose, var, where
from vtrn.neuronxcc.nki.memory import (
    atomic_rmw,
    empty_like,
    full,
    gather_flattened,
    load,
    load_transpose2d,
    ndarray,
    ones,
    par_dim,
    rand,
    random_seed,
    shared_constant,
    shared_identity_matrix,
    store,
    zeros,
    zeros_like,
)
from vtrn.neuronxcc.nki.tile import Moved as _Moved
from vtrn.neuronxcc.nki.tile import Tensor as _Tensor
from vtrn.neuronxcc.nki.tile import numpy_dtype as _numpy_dtype
from vtrn.nki.language.loops import no_reorder
from vtrn.nki.language.tiles import hbm, private_hbm, psum, sbuf, shared_hbm, tile_size

float32, float16 = _np.float32, _np.float16
int8, int16, int32 = _np.int8, _np.int16, _np.int32
uint8, uint16, uint32 = _np.uint8, _np.uint16, _np.uint32
bool_ = _np.bool_
bfloat16, float8_e4m3, float8_e5m2 = (_numpy_dtype(_name) for _name in ("bfloat16", "float8_e4m3", "float8_e5m2"))
tfloat32 = _numpy_dtype("tfloat32")
tensor = _Tensor
dslice = ds


class _Limits:
    def __init__(self, dtype):
        found = _ml_dtypes.finfo(dtype)
        self.min, self.max = float(found.min), float(found.max)


fp32, bfp16 = _Limits(_np.float32), _Limits(_ml_dtypes.bfloat16)


def finfo(dtype):
    """Limits of a floating-point dtype."""
    return _Limits(dtype)


class nc(int):  # noqa: N801
    """Marks the sizes of a launch grid that AWS's compiler spreads over cores; ``nl.nc(2) * 4`` is 8 program instances."""


def spmd_dim(*sizes):
    """The product of the sizes of one dimension of a launch grid."""
    product = 1
    for size in sizes:
        product *= int(size)
    return product


def static_cast(input_data, dtype):
    """A NumPy array converted to a dtype."""
    from vtrn.neuronxcc.starfish.support.dtype import static_cast as cast

    return cast(input_data, dtype)


def device_print(prefix, x, *, mask=None, **_options):
    """Prints a tile when the chip reaches this."""
    _vtrn.functions["device_print"](prefix, x.checked().data)


def broadcast_to(src, shape, *_args, **_options):
    """A tile in a larger shape; partitions are copied, free dimensions are a view."""
    return src.broadcast_to(shape)


def expand_dims(data, axis):
    """A view with a dimension of size 1 at ``axis``."""
    return data.expand_dims(axis)


# ---- functions on tiles ----


def _two(name, maker):
    def function(x, y, dtype=None, mask=None, **_options):
        return maker(name, x, y, dtype, mask)

    return function


def _one(maker, *name):
    def function(x, dtype=None, mask=None, **_options):
        return maker(*name, x, dtype, mask)

    return function


def _copy(src, dtype=None, mask=None, **_options):
    return _maths.copy(src, dtype, mask)


def _reduction(name, op, default=None):
    def function(x, axis, dtype=None, mask=None, keepdims=False, **_options):
        return _maths.reduce("nl." + name, op, x, axis, default if dtype is None else dtype, mask, keepdims)

    return function


_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor")
_SEVERAL = ("ceil", "cos", "floor", "rsqrt", "sin", "tan", "trunc")
_ACTIVATIONS = ("abs", "relu", "square")
_REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def _functions():
    made = {name: _one(_maths.own(name)) for name in _SEVERAL}
    made.update({name: _one(getattr(_maths, name)) for name in ("reciprocal", "negative", "logical_not")})
    made["copy"] = _copy
    made.update({name: _reduction(name, op) for name, op in _REDUCTIONS.items()})
    made["all"] = _reduction("all", "logical_and", bool)
    for name, op in _vtrn.ops.items():
        if name in made or name in ("average", "bypass", "prelu"):
            continue
        if name in _COMPARISONS:
            made[name] = _two(name, _maths.compare)
        elif name == "invert":
            made[name] = _one(_maths.integer, name)
        elif name in _ACTIVATIONS or not op.is_alu:
            made[name] = _one(_maths.activation, name)
        else:
            made[name] = _two(name, _maths.binary)
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = __name__
        function.__doc__ = f"nl.{name}, element by element." if name not in _REDUCTIONS else f"nl.{name} over free dimensions."
    return made


_FUNCTIONS = _functions()
globals().update(_FUNCTIONS)

_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "mod": "mod",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARED = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}


def _is_operand(value):
    return isinstance(value, (_Tensor, bool, int, float, _np.generic))


def _sum(x, y):
    if isinstance(y, _IndexExpression):
        return _Moved(x, y)
    return _FUNCTIONS["add"](x, y) if _is_operand(y) else NotImplemented


def _give_operators():
    for short, name in _OPERATORS.items():
        function = _FUNCTIONS[name]
        setattr(_Tensor, f"__{short}__", lambda x, y, f=function: f(x, y) if _is_operand(y) else NotImplemented)
        setattr(_Tensor, f"__r{short}__", lambda x, y, f=function: f(y, x) if _is_operand(y) else NotImplemented)
    for short, name in _COMPARED.items():
        setattr(_Tensor, f"__{short}__", lambda x, y, f=_FUNCTIONS[name]: f(x, y) if _is_operand(y) else NotImplemented)
    _Tensor.__add__ = _Tensor.__radd__ = _sum
    _Tensor.__neg__ = lambda x: _FUNCTIONS["negative"](x)
    _Tensor.__invert__ = lambda x: _FUNCTIONS["invert"](x)
    _Tensor.__abs__ = lambda x: _FUNCTIONS["abs"](x)
    _Tensor.__matmul__ = lambda x, y: matmul(x, y)


_give_operators()
_check_all("nl", globals())

__all__ = [
    *(name for name in _FUNCTIONS if name not in ("abs", "all", "max", "min", "sum")),
    *("affine_range", "arange", "atomic_rmw", "bfloat16", "bfp16", "bool_", "broadcast_to", "device_print", "dropout", "ds"),
    *("dslice", "empty_like", "expand_dims", "finfo", "float16", "float32", "float8_e4m3", "float8_e5m2", "fp32", "full"),
    *("gather_flattened", "hbm", "int16", "int32", "int8", "load", "load_transpose2d", "loop_reduce", "matmul", "mean"),
    *("mgrid", "nc", "ndarray", "no_reorder", "num_programs", "ones", "par_dim", "private_hbm", "program_id"),
    *("program_ndim", "psum", "rand", "random_seed", "rms_norm", "sbuf", "sequential_range", "shared_constant", "shared_hbm"),
    *("shared_identity_matrix", "softmax", "spmd_dim", "static_cast", "static_range", "store", "tensor", "tfloat32"),
    *("tile_size", "transpose", "uint16", "uint32", "uint8", "var", "where", "zeros", "zeros_like"),
]
