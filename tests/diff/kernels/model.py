"""What each NKI instruction means, in plain NumPy: the other side of the differential tests.

Written from the nki.isa reference (Neuron SDK 2.32), not from vtrn's sources, and as directly as possible: one function
per instruction, values in fp32, conversion on read and write. Tiles are NumPy arrays of shape (P, ...); a function returns
the new value of its destination in the destination's dtype.
"""

import ml_dtypes
import numpy as np

F32 = np.float32
E4M3FN = np.dtype(ml_dtypes.float8_e4m3fn)


def is_int(dtype):
    return np.dtype(dtype).kind in "iu"


def to_f32(x):
    """Any dtype to fp32 (32-bit integers round to nearest even)."""
    return x.astype(F32)


def from_f32(x, dtype):
    """fp32 to a dtype as the engines write it: nearest even, integers saturate, NaN to integer gives 0."""
    dtype = np.dtype(dtype)
    x = np.asarray(x, dtype=F32)
    if dtype == F32:
        return x
    if is_int(dtype):
        info = np.iinfo(dtype)
        wide = np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        return np.clip(wide, info.min, info.max).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == E4M3FN:  # no infinity: saturates
            return np.where(np.isnan(x), F32(np.nan), np.clip(x, F32(-448), F32(448))).astype(dtype)
        return x.astype(dtype)


def convert(x, dtype):
    """Copies keep the bits when the dtype stays, else pass through fp32."""
    return x.copy() if x.dtype == np.dtype(dtype) else from_f32(to_f32(x), dtype)


def _nan_max(a, b):
    return np.maximum(a, b)


def _nan_min(a, b):
    return np.minimum(a, b)


def _truth(x):
    return x.astype(F32)


ARITH = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": _nan_max,
    "minimum": _nan_min,
    "equal": lambda a, b: _truth(a == b),
    "not_equal": lambda a, b: _truth(a != b),
    "greater_equal": lambda a, b: _truth(a >= b),
    "greater": lambda a, b: _truth(a > b),
    "less_equal": lambda a, b: _truth(a <= b),
    "less": lambda a, b: _truth(a < b),
    "logical_and": lambda a, b: _truth((a != 0) & (b != 0)),
    "logical_or": lambda a, b: _truth((a != 0) | (b != 0)),
    "logical_xor": lambda a, b: _truth((a != 0) ^ (b != 0)),
}
REDUCE = ("add", "subtract", "multiply", "maximum", "minimum")
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


def shift(name, a, b):
    """Shifts are logical; a count of at least the width gives 0."""
    bits = a.dtype.itemsize * 8
    raw = a.view(f"u{a.dtype.itemsize}")
    count = np.broadcast_to(np.asarray(b).astype(a.dtype).view(raw.dtype), raw.shape)
    safe = np.minimum(count, raw.dtype.type(bits - 1))
    moved = raw << safe if name == "left_shift" else raw >> safe
    return np.where(count >= bits, raw.dtype.type(0), moved).astype(raw.dtype).view(a.dtype)


def alu(name, a, b):
    with np.errstate(all="ignore"):
        return ARITH[name](np.asarray(a, dtype=F32), np.asarray(b, dtype=F32)).astype(F32)


def flat(x):
    return x.reshape(x.shape[0], -1)


def column(value, partitions):
    """A number or a (P,1) tile as an fp32 column."""
    if isinstance(value, np.ndarray):
        return to_f32(value).reshape(partitions, 1)
    return np.full((partitions, 1), value, dtype=F32)


# ---- element by element -------------------------------------------------------------------------------------------------


def tensor_tensor(a, b, op, dtype):
    a, b = flat(a), flat(b)
    if op in BITS:
        return BITS[op](a, b).astype(dtype)
    if op in ("left_shift", "right_shift"):
        return shift(op, a, b)
    return from_f32(alu(op, to_f32(a), to_f32(b)), dtype)


def tensor_tensor_int32(a, b, op, dtype):
    """GpSimd's exact 32-bit path: wraps around."""
    a, b = flat(a), flat(b)
    with np.errstate(over="ignore"):
        wide = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[op](a.astype(np.int64), b.astype(np.int64))
    return wide.astype(np.uint64).astype(np.uint32).view(dtype) if dtype == np.uint32 else wide.astype(np.int32)


def tensor_scalar(data, op0, operand0, reverse0, op1, operand1, reverse1, dtype):
    p = data.shape[0]
    value = to_f32(flat(data))
    for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
        if op is not None:
            c = column(operand, p)
            value = alu(op, c, value) if reverse else alu(op, value, c)
    return from_f32(value, dtype)


def scalar_tensor_tensor(data, op0, operand0, op1, operand1, reverse0, reverse1, dtype):
    value, c = to_f32(flat(data)), column(operand0, data.shape[0])
    value = alu(op0, c, value) if reverse0 else alu(op0, value, c)
    other = to_f32(flat(operand1))
    return from_f32(alu(op1, other, value) if reverse1 else alu(op1, value, other), dtype)


def reciprocal(data, dtype):
    with np.errstate(divide="ignore"):
        return from_f32(F32(1) / to_f32(flat(data)), dtype)


EXACT_ACTIVATIONS = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, F32(0))),
    "sign": np.sign,
    "abs": np.abs,
}


def activation(op, data, bias, scale, dtype):
    """Returns the destination and the fp32 values before the conversion (for the accumulators)."""
    p = data.shape[0]
    with np.errstate(all="ignore"):
        x = (to_f32(flat(data)) * column(scale, p)).astype(F32) + column(bias, p)
        y = EXACT_ACTIVATIONS[op](x.astype(F32)).astype(F32)
    return from_f32(y, dtype), y


def reduce_in_order(values, op, start=None):
    """op over axis 1, left to right, in fp32."""
    acc = values[:, 0].copy() if start is None else alu(op, start, values[:, 0])
    for i in range(1, values.shape[1]):
        acc = alu(op, acc, values[:, i])
    return acc


IDENTITY = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def tensor_reduce(data, op, kept, negate, dtype):
    """Reduces all but the first `kept` dims of data."""
    rows = int(np.prod(data.shape[:kept]))
    start = None if op == "subtract" else np.full(rows, IDENTITY[op], dtype=F32)
    acc = reduce_in_order(to_f32(data).reshape(rows, -1), op, start)
    return from_f32(-acc if negate else acc, dtype).reshape(data.shape[0], -1)


def tensor_scalar_reduce(data, op0, operand0, reduce_op, reverse0, dtype, res_dtype):
    value = to_f32(flat(data))
    c = column(operand0, data.shape[0])
    value = alu(op0, c, value) if reverse0 else alu(op0, value, c)
    start = np.full(value.shape[0], IDENTITY[reduce_op], dtype=F32)
    acc = reduce_in_order(value, reduce_op, start)
    return from_f32(value, dtype), from_f32(acc, res_dtype).reshape(-1, 1)


def tensor_scalar_cumulative(src, op0, op1, imm0, dtype):
    value = alu(op0, to_f32(flat(src)), column(imm0, src.shape[0]))
    state = np.full(value.shape[0], IDENTITY[op1], dtype=F32)
    out = np.empty_like(value)
    for i in range(value.shape[1]):
        state = alu(op1, value[:, i], state)
        out[:, i] = state
    return from_f32(out, dtype)


def tensor_tensor_scan(data0, data1, initial, op0, op1, reverse0, reverse1, dtype):
    a, b = to_f32(flat(data0)), to_f32(flat(data1))
    state = column(initial, a.shape[0])[:, 0]
    out = np.empty_like(a)
    for i in range(a.shape[1]):
        t = alu(op0, state, a[:, i]) if reverse0 else alu(op0, a[:, i], state)
        state = alu(op1, b[:, i], t) if reverse1 else alu(op1, t, b[:, i])
        out[:, i] = state
    return from_f32(out, dtype)


def tensor_copy_predicated(dst, src, predicate, reverse):
    take = (flat(predicate) != 0) ^ reverse
    source = flat(src) if isinstance(src, np.ndarray) else from_f32(np.full(flat(dst).shape, src, F32), dst.dtype)
    return np.where(take, source, flat(dst)).astype(dst.dtype)


def select_reduce(predicate, on_true, on_false, reverse, dtype):
    take = (flat(predicate) != 0) ^ reverse
    return from_f32(np.where(take, to_f32(flat(on_true)), column(on_false, on_true.shape[0])), dtype)


COMPARE = {k: ARITH[k] for k in ("equal", "not_equal", "greater_equal", "greater", "less_equal", "less")}


def range_select(on_true, op0, op1, bound0, bound1, start, dtype):
    x = to_f32(flat(on_true))
    index = (np.arange(x.shape[1], dtype=F32) + F32(start))[None, :]
    inside = (COMPARE[op0](index, column(bound0, x.shape[0])) != 0) & (COMPARE[op1](index, column(bound1, x.shape[0])) != 0)
    value = np.where(inside, x, F32(-3.4028234663852886e38))
    return from_f32(value, dtype), value


def affine_value(partitions, pattern, offset, channel_multiplier):
    value = np.int64(offset) + np.arange(partitions, dtype=np.int64)[:, None] * channel_multiplier
    grid = np.zeros([count for _, count in pattern], dtype=np.int64)
    for axis, (step, count) in enumerate(pattern):
        shape = [1] * len(pattern)
        shape[axis] = count
        grid = grid + (np.arange(count) * step).reshape(shape)
    return value + grid.reshape(1, -1)


def iota(partitions, pattern, offset, channel_multiplier, dtype):
    value = affine_value(partitions, pattern, offset, channel_multiplier)
    if is_int(dtype) and np.dtype(dtype).itemsize == 4:  # 32-bit arithmetic, the bits stay
        return value.astype(np.int32).view(dtype)
    if is_int(dtype):
        info = np.iinfo(dtype)
        return np.clip(value, info.min, info.max).astype(dtype)
    return from_f32(value.astype(F32), dtype)


def affine_select(on_true, pattern, channel_multiplier, on_false, cmp_op, offset, dtype):
    value = affine_value(on_true.shape[0], pattern, offset, channel_multiplier)
    take = {
        "equal": value == 0,
        "not_equal": value != 0,
        "greater_equal": value >= 0,
        "greater": value > 0,
        "less_equal": value <= 0,
        "less": value < 0,
    }[cmp_op]
    return from_f32(np.where(take, to_f32(flat(on_true)), F32(on_false)), dtype)


# ---- matrix unit --------------------------------------------------------------------------------------------------------


def fused_multiply_add(a, b, c):
    """a * b + c of fp32 values, rounded once. The product is exact in 80 bits, the sum is rounded to odd there (the lost bits
    stay visible in the last one), so that the rounding to fp32 is that of the exact sum."""
    a, b, c = (np.asarray(v, dtype=np.longdouble) for v in (a, b, c))
    product = a * b
    total = product + c
    back = total - product
    lost = (product - (total - back)) + (c - back)
    even = np.ascontiguousarray(total).view(np.uint64).reshape(*total.shape, 2)[..., 0] % 2 == 0
    inexact = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & even
    return np.where(inexact, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total).astype(F32)


def nc_matmul(stationary, moving, start):
    """start[m,n] + sum over k in order, each step one fused multiply-add in fp32."""
    s, x = flat(stationary), flat(moving)
    acc = np.zeros((s.shape[1], x.shape[1]), dtype=F32)
    with np.errstate(all="ignore"):
        for k in range(s.shape[0]):
            acc = fused_multiply_add(s[k][:, None], x[k][None, :], acc)
        return acc if start is None else (start + acc).astype(F32)


# ---- moving data --------------------------------------------------------------------------------------------------------


def nc_stream_shuffle(dst, src, mask):
    out = dst.copy()
    for quadrant in range(0, dst.shape[0], 32):
        for i in range(min(32, dst.shape[0] - quadrant)):
            if mask[i] != 255:
                out[quadrant + i] = src[quadrant + mask[i]]
    return out


def max8(src):
    """NaN ranks above every number; equal values (+0 and -0 too) keep their order."""
    x = to_f32(flat(src))
    order = np.lexsort((np.where(np.isnan(x), F32(0), -x), ~np.isnan(x)), axis=1)
    return np.take_along_axis(x, order[:, :8], axis=1)


def nc_find_index8(data, vals, dtype):
    data, vals = to_f32(flat(data)), to_f32(flat(vals))
    out = np.full((data.shape[0], 8), np.iinfo(dtype).max, dtype=dtype)
    for p in range(data.shape[0]):
        used = {}
        for j in range(8):
            where = np.nonzero(data[p] == vals[p, j])[0]
            turn = used.get(float(vals[p, j]), 0)
            if turn < len(where):
                out[p, j] = where[turn]
            used[float(vals[p, j])] = turn + 1
    return out


def local_gather(src, index, elems, partitions_per_core=16):
    src = flat(src)
    n = index.shape[1] * partitions_per_core
    out = np.zeros((src.shape[0], n * elems), dtype=src.dtype)
    for core in range(src.shape[0] // partitions_per_core):
        rows = slice(core * partitions_per_core, (core + 1) * partitions_per_core)
        flat_index = index[rows].T.reshape(-1)
        for j, start in enumerate(flat_index):
            out[rows, j * elems : (j + 1) * elems] = src[rows, start : start + elems]
    return out
