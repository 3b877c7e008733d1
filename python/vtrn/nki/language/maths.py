"""Functions on tiles: each returns a new SBUF tile and is a few instructions. They give nl.add, nl.exp, ... a meaning when
they are called; as values for op= those objects go to the instructions unchanged. The chip does all arithmetic."""

import math
import numbers

from vtrn import _vtrn
from vtrn.nki import isa as nisa
from vtrn.nki.language.memory import broadcast_to, copied, in_sbuf, ndarray
from vtrn.nki.language.tiles import is_psum, sbuf

_ops = _vtrn.ops


def _is_number(value):
    return isinstance(value, numbers.Number) or (hasattr(value, "dtype") and not isinstance(value, _vtrn.NkiTensor))


def _need_tile(what, value):
    if not isinstance(value, _vtrn.NkiTensor):
        raise _vtrn.NkiTypeError(f"nl.{what}: {type(value).__name__} is not a tile")
    return value


def _tile_like(x, dtype=None, shape=None):
    return ndarray(x.shape if shape is None else shape, dtype=dtype or x.dtype, buffer=sbuf)


def _is_column(x, other):
    return x.ndim == 2 and x.shape[1] == 1 and other.shape[0] == x.shape[0] and other.size != x.size


def _match(what, x, y):
    """Both tiles with the same shape: views with stride 0 in the free dimensions."""
    if x.shape == y.shape:
        return x, y
    if x.ndim != y.ndim:
        raise _vtrn.NkiValueError(f"nl.{what}: shapes {x.shape} and {y.shape} have different ranks")
    shape = tuple(b if a == 1 else a for a, b in zip(x.shape, y.shape, strict=True))
    for side in (x, y):
        if any(size not in (1, wanted) for size, wanted in zip(side.shape, shape, strict=True)):
            raise _vtrn.NkiValueError(f"nl.{what}: shapes {x.shape} and {y.shape} do not broadcast")
    return _stretched(x, shape), _stretched(y, shape)


def _stretched(x, shape):
    if x.shape[0] != shape[0]:
        return broadcast_to(x, shape)
    for dim in range(1, x.ndim):
        if x.shape[dim] != shape[dim]:
            x = x.broadcast(dim, shape[dim])
    return x


def _binary(name, x, y, dtype):
    op = _ops[name]
    if _is_number(x) and _is_number(y):
        raise _vtrn.NkiTypeError(f"nl.{name}: two numbers; at least one argument must be a tile")
    if _is_number(y) or (isinstance(y, _vtrn.NkiTensor) and isinstance(x, _vtrn.NkiTensor) and _use_column(name, y, x)):
        x = _need_tile(name, x)
        out = _tile_like(x, dtype)
        nisa.tensor_scalar(out, x, op, y)
        return out
    if _is_number(x) or _use_column(name, _need_tile(name, x), _need_tile(name, y)):
        y = _need_tile(name, y)
        out = _tile_like(y, dtype)
        nisa.tensor_scalar(out, y, op, x, reverse0=True)
        return out
    x, y = _match(name, _need_tile(name, x), _need_tile(name, y))
    if is_psum(x.buffer) and (is_psum(y.buffer) or name == "power"):
        x = in_sbuf(x)
    out = _tile_like(x, dtype)
    nisa.tensor_tensor(out, x, in_sbuf(y) if name == "power" else y, op)
    return out


def _use_column(name, column, other):
    """A (P, 1) fp32 operand can be a tensor_scalar's vector operand."""
    return _is_column(column, other) and column.dtype == "float32" and not name.startswith("bitwise") and "shift" not in name


def _compare(name, x, y, dtype):
    return _binary(name, x, y, dtype)._mark_truth()


def _activation(name, x, dtype):
    out = _tile_like(_need_tile(name, x), dtype)
    nisa.activation(out, _ops[name], x)
    return out


def _unary_integer(name, x, dtype):
    out = _tile_like(_need_tile(name, x), dtype)
    nisa.tensor_scalar(out, x, _ops[name], None)
    return out


# ---- functions with a lowering of their own ----


def reciprocal(x, dtype=None):
    """1 / x."""
    out = _tile_like(_need_tile("reciprocal", x), dtype)
    nisa.reciprocal(out, x)
    return out


def rsqrt(x, dtype=None):
    """1 / sqrt(x), on GpSimd."""
    out = _tile_like(_need_tile("rsqrt", x), dtype)
    nisa.tensor_scalar(out, in_sbuf(x), _ops["rsqrt"], 0.0, engine=nisa.engine.gpsimd)
    return out


def copy(x, dtype=None):
    """A new SBUF tile with the values of ``x``."""
    return copied(_need_tile("copy", x), dtype)


def negative(x, dtype=None):
    """-x."""
    return _binary("multiply", _need_tile("negative", x), -1.0, dtype)


def logical_not(x, dtype=None):
    """x xor 1: for values 0 and 1."""
    out = _tile_like(_need_tile("logical_not", x), dtype)
    nisa.tensor_scalar(out, x, _ops["logical_xor"], 1.0)
    return out


_TWO_PI_HIGH = 6.28125  # 2 pi in two parts: the high one has few bits, so that k * high is exact
_TWO_PI_LOW = 2 * math.pi - _TWO_PI_HIGH


def _reduced_angle(x, shift):
    """x + shift, less the nearest multiple of 2 pi, in fp32 and clipped to what the engine's sin takes."""
    turns = _tile_like(x, "int32")
    nisa.tensor_scalar(turns, x, "multiply", 1 / (2 * math.pi), op1="add", operand1=shift / (2 * math.pi))
    angle = _tile_like(x, "float32")
    nisa.scalar_tensor_tensor(angle, turns, "multiply", -_TWO_PI_HIGH, "add", in_sbuf(x))
    nisa.scalar_tensor_tensor(angle, turns, "multiply", -_TWO_PI_LOW, "add", angle)
    if shift:
        nisa.tensor_scalar(angle, angle, "add", shift)
    nisa.tensor_scalar(angle, angle, "minimum", 3.1415925, op1="maximum", operand1=-3.1415925)
    return angle


def _sine(name, x, shift, dtype):
    out = _tile_like(_need_tile(name, x), dtype)
    nisa.activation(out, _ops["sin"], _reduced_angle(x, shift))
    return out


def sin(x, dtype=None):
    """Sine, with range reduction."""
    return _sine("sin", x, 0.0, dtype)


def cos(x, dtype=None):
    """Cosine, with range reduction."""
    return _sine("cos", x, math.pi / 2, dtype)


def tan(x, dtype=None):
    """sin / cos."""
    return _binary(
        "multiply", _sine("tan", x, 0.0, "float32"), reciprocal(_sine("tan", x, math.pi / 2, "float32")), dtype or x.dtype
    )


def _rounded(name, x, compare, change, dtype):
    """The nearest integer, corrected by one where it lies on the wrong side; large values are integers already."""
    whole = _tile_like(_need_tile(name, x), "int32")
    nisa.tensor_copy(whole, x)
    result = copied(whole, "float32")
    wrong = _tile_like(x, "float32")
    nisa.tensor_tensor(wrong, result, x, _ops[compare])
    nisa.tensor_tensor(result, result, wrong, _ops[change])
    out = copied(x, "float32")
    small = _tile_like(x, "uint8")
    nisa.tensor_scalar(small, x, "abs", None, op1="less", operand1=2.0**30)
    nisa.tensor_copy_predicated(out, result, small)
    return out if dtype in ("float32",) or (dtype is None and x.dtype == "float32") else copied(out, dtype or x.dtype)


def floor(x, dtype=None):
    """The largest integer not above x."""
    return _rounded("floor", x, "greater", "subtract", dtype)


def ceil(x, dtype=None):
    """The smallest integer not below x."""
    return _rounded("ceil", x, "less", "add", dtype)


def trunc(x, dtype=None):
    """The integer part of x."""
    whole = floor(_activation("abs", _need_tile("trunc", x), "float32"))
    return _binary("multiply", whole, _activation("sign", x, "float32"), dtype or x.dtype)


def dropout(x, rate, dtype=None):
    """Each element becomes 0 with probability ``rate``."""
    out = _tile_like(_need_tile("dropout", x))
    nisa.dropout(out, x, rate)
    return out if dtype in (None, x.dtype) else copied(out, dtype)


def where(condition, x, y, dtype=None):
    """Elements of x where the condition is not 0, else of y."""
    condition = _need_tile("where", condition)
    like = next((t for t in (x, y) if isinstance(t, _vtrn.NkiTensor)), condition)
    dtype = dtype or like.dtype
    mask = _tile_like(condition, "uint8")
    nisa.tensor_scalar(mask, condition, "not_equal", 0.0)
    out = _tile_like(condition, dtype)
    if isinstance(y, _vtrn.NkiTensor):
        nisa.tensor_copy(out, _stretched(y, condition.shape))
    else:
        nisa.memset(out, y)
    if isinstance(x, _vtrn.NkiTensor):
        x = _stretched(x, condition.shape)
        x = x if x.dtype == dtype else copied(x, dtype)
    nisa.tensor_copy_predicated(out, x, mask)
    return out


# ---- reductions over trailing free dimensions ----


def _axes(what, x, axis):
    axes = [axis] if isinstance(axis, int) else list(axis)
    axes = sorted(a + x.ndim if a < 0 else a for a in axes)
    if not axes or axes != list(range(axes[0], x.ndim)) or axes[0] < 1:
        raise _vtrn.NkiValueError(f"nl.{what}: axis {axis} of {x.shape}: only the last dimensions, not the partition dimension")
    return axes


def _reduced_shape(x, axes, keepdims):
    kept = x.shape[: axes[0]] + (1,) * (len(axes) if keepdims else 0)
    return kept if len(kept) > 1 else kept + (1,)


def _reduce(what, op, x, axis, dtype, keepdims):
    axes = _axes(what, _need_tile(what, x), axis)
    out = ndarray(_reduced_shape(x, axes, keepdims), dtype=dtype or x.dtype, buffer=sbuf)
    nisa.tensor_reduce(out, _ops[op], x, axes, keepdims=keepdims)
    return out


def sum(x, axis, dtype=None, keepdims=False):
    """Sum over the last dimensions."""
    return _reduce("sum", "add", x, axis, dtype, keepdims)


def max(x, axis, dtype=None, keepdims=False):
    """Maximum over the last dimensions."""
    return _reduce("max", "maximum", x, axis, dtype, keepdims)


def min(x, axis, dtype=None, keepdims=False):
    """Minimum over the last dimensions."""
    return _reduce("min", "minimum", x, axis, dtype, keepdims)


def prod(x, axis, dtype=None, keepdims=False):
    """Product over the last dimensions."""
    return _reduce("prod", "multiply", x, axis, dtype, keepdims)


def all(x, axis, dtype=None):
    """1 where every element of the last dimensions is true."""
    return _reduce("all", "logical_and", x, axis, dtype, False)._mark_truth()


def _count(x, axes):
    return math.prod(x.shape[a] for a in axes)


def mean(x, axis, dtype=None, keepdims=False):
    """Mean over the last dimensions, summed in fp32."""
    total = _reduce("mean", "add", x, axis, "float32", keepdims)
    out = _tile_like(total, dtype or x.dtype)
    nisa.tensor_scalar(out, total, "multiply", 1.0 / _count(x, _axes("mean", x, axis)))
    return out


def var(x, axis, dtype=None, keepdims=False):
    """Population variance over the last dimensions; the result keeps them with size 1, whatever ``keepdims`` says."""
    centred = _binary("subtract", x, _stretched(mean(x, axis, "float32", keepdims=True), x.shape), "float32")
    square = _binary("multiply", centred, centred, "float32")
    return mean(square, axis, dtype or x.dtype, keepdims=True)


def softmax(x, axis=-1, dtype=None):
    """exp(x - max) / sum, over the last dimensions."""
    _axes("softmax", _need_tile("softmax", x), axis)
    largest = max(x, axis, "float32", keepdims=True)
    exponent = _binary("subtract", x, _stretched(largest, x.shape), "float32")
    powers = _activation("exp", exponent, "float32")
    scale = reciprocal(sum(powers, axis, "float32", keepdims=True))
    return _binary("multiply", powers, _stretched(scale, x.shape), dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None):
    """x / sqrt(sum(x * x) / n + epsilon) * w."""
    compute = compute_dtype or "float32"
    squares = sum(_binary("multiply", _need_tile("rms_norm", x), x, compute), axis, "float32", keepdims=True)
    nisa.tensor_scalar(squares, squares, "multiply", 1.0 / n, op1="add", operand1=epsilon)
    scaled = _binary("multiply", x, _stretched(rsqrt(squares), x.shape), compute)
    return _binary("multiply", *_match("rms_norm", scaled, w), dtype or x.dtype)


# ---- giving the operator objects their functions ----


def _two(name, maker):
    def function(x, y, dtype=None):
        return maker(name, x, y, dtype)

    return function


def _one(name, maker):
    def function(x, dtype=None):
        return maker(name, x, dtype)

    return function


_OWN = {"copy": copy, "reciprocal": reciprocal, "rsqrt": rsqrt, "sin": sin}
_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
_UNARY_ACTIVATIONS = ("abs", "relu", "square")  # also ALU operators, which not every generation has
_OP_ONLY = ("average", "bypass", "prelu")


def _attach():
    for name, op in _ops.items():
        if name in _OP_ONLY:
            continue
        if name in _OWN:
            function = _OWN[name]
        elif name in _COMPARISONS:
            function = _two(name, _compare)
        elif name == "invert":
            function = _one(name, _unary_integer)
        elif name in _UNARY_ACTIVATIONS or not _is_alu(name):
            function = _one(name, _activation)
        else:
            function = _two(name, _binary)
        if name not in _OWN:
            function.__doc__ = f"Element by element: {op.__doc__}."
            function.__name__ = function.__qualname__ = name
        op.function = function


def _is_alu(name):
    return _ops[name].is_alu


_attach()
