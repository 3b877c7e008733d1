"""Functions on tiles, with dtype= and mask=: one instruction each where the chip has one, else those of vtrn.nki.language."""

import math

import numpy as np

from vtrn import _vtrn
from vtrn.neuronxcc.nki.tile import (
    Tensor,
    boxes_of,
    compute,
    dtype_name,
    emit_compute,
    fail,
    in_sbuf,
    isa,
    on_chip,
    plain,
    produce,
)
from vtrn.nki.language import maths as new
from vtrn.nki.language import tiles

_WEAK = ((bool, "uint8"), (int, "int32"), (float, "float32"))  # dtypes of Python's numbers ("Weakly Typed Scalar Type Inference")


def tile(what, value):
    """A tile on chip, or an error."""
    if not isinstance(value, Tensor):
        fail(what, f"{type(value).__name__} is not a tile", _vtrn.NkiTypeError)
    if value.par < 0:
        fail(what, f"{value!r} is in HBM; load it first", _vtrn.NkiTypeError)
    if value.par > 0:
        fail(what, f"{value!r} has block dimensions before the partition dimension; use one block at a time")
    return value


def number(what, value):
    if isinstance(value, (bool, int, float, np.generic)):
        return value
    return fail(what, f"{type(value).__name__} is neither a tile nor a number", _vtrn.NkiTypeError)


def scalar_dtype(value):
    """The dtype that a number counts as."""
    if isinstance(value, np.generic) and value.dtype.itemsize <= 4:
        return dtype_name(value.dtype)
    value = plain(value)
    return next(name for kind, name in _WEAK if isinstance(value, kind))


def broadcast_shape(what, *tiles_):
    """The shape that tiles have together; dimensions behind the partition are matched from the last one."""
    rank = max(t.ndim for t in tiles_)
    shape = [1] * rank
    for t in tiles_:
        sizes = tuple(t.shape)
        sizes = (sizes[0], *(1,) * (rank - len(sizes)), *sizes[1:])
        for d, n in enumerate(sizes):
            if n != 1 and shape[d] not in (1, n):
                fail(what, f"shapes {' and '.join(str(tuple(t.shape)) for t in tiles_)} do not broadcast")
            shape[d] = max(n, shape[d])
    return tuple(shape)


def named(dtype, default):
    return default if dtype is None else dtype_name(dtype)


# ---- element by element ----


def is_column(y, x):
    """y is one number for each partition of x: the engines have that as an operand of its own."""
    return (
        y.data.ndim == 2
        and y.data.shape[1] == 1
        and y.data.dtype == "float32"
        and x.data.shape[0] == y.data.shape[0]
        and x.size > y.size
    )


def binary(name, x, y, dtype=None, mask=None):
    """``op(x, y)`` of two tiles, or a tile and a number."""
    what, op = "nl." + name, _vtrn.ops[name]
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        fail(what, "two numbers; at least one argument must be a tile", _vtrn.NkiTypeError)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        x, y = tile(what, x), tile(what, y)
        dtype = named(dtype, None) or _quotient(name, _vtrn.promoted(x.data.dtype, y.data.dtype))
        shape = broadcast_shape(what, x, y)
        takes_column = new._is_alu(name) and "bitwise" not in name and "shift" not in name
        if takes_column and is_column(y, x) and tuple(x.shape) == shape:
            return compute(shape, dtype, [x], lambda d, a, s: isa["tensor_scalar"](d, a, op, s), mask, [y])
        if takes_column and is_column(x, y) and tuple(y.shape) == shape:
            return compute(shape, dtype, [y], lambda d, a, s: isa["tensor_scalar"](d, a, op, s, True), mask, [x])
        return compute(shape, dtype, [x, y], lambda d, a, b: isa["tensor_tensor"](d, a, b, op), mask)
    reverse = not isinstance(x, Tensor)
    x, y = (y, x) if reverse else (x, y)
    x = tile(what, x)
    dtype = named(dtype, None) or _quotient(name, _vtrn.promoted(x.data.dtype, scalar_dtype(number(what, y))))
    value = plain(y)
    return compute(x.shape, dtype, [x], lambda d, a: isa["tensor_scalar"](d, a, op, value, reverse), mask)


def _quotient(name, dtype):
    """Integers divide to fp32, as NumPy's do to a float: kernels write nl.floor(index / width)."""
    return "float32" if name == "divide" and "int" in dtype else dtype


def compare(name, x, y, dtype=None, mask=None):
    return binary(name, x, y, bool if dtype is None else dtype, mask)


def activation(name, x, dtype=None, mask=None):
    x, op = tile("nl." + name, x), _vtrn.ops[name]
    return compute(x.shape, named(dtype, x.data.dtype), [x], lambda d, a: isa["activation"](d, op, a), mask)


def integer(name, x, dtype=None, mask=None):
    x, op = tile("nl." + name, x), _vtrn.ops[name]
    return compute(x.shape, named(dtype, x.data.dtype), [x], lambda d, a: isa["tensor_scalar"](d, a, op, None), mask)


def composite(function, x, shape, dtype, mask, *more):
    """A function of vtrn.nki.language that is several instructions."""
    if mask is None:
        return Tensor(function(x.checked().data, *(m.checked().data for m in more), dtype), 0)
    return compute(shape, dtype, [x, *more], lambda d, *parts: isa["tensor_copy"](d, function(*parts, dtype)), mask)


def own(name):
    """A function of one tile, of which vtrn.nki.language has the instructions."""
    source = getattr(new, name)

    def function(x, dtype=None, mask=None):
        x = tile("nl." + name, x)
        return composite(lambda a, to: source(a, dtype=to), x, x.shape, named(dtype, x.data.dtype), mask)

    return function


def copy(x, dtype=None, mask=None):
    x = tile("nl.copy", x)
    return compute(x.shape, named(dtype, x.data.dtype), [x], lambda d, a: isa["tensor_copy"](d, a), mask)


def reciprocal(x, dtype=None, mask=None):
    x = tile("nl.reciprocal", x)
    return compute(x.shape, named(dtype, x.data.dtype), [x], lambda d, a: isa["reciprocal"](d, a), mask)


def negative(x, dtype=None, mask=None):
    x = tile("nl.negative", x)
    return compute(x.shape, named(dtype, x.data.dtype), [x], lambda d, a: isa["tensor_scalar"](d, a, "multiply", -1.0), mask)


def logical_not(x, dtype=None, mask=None):
    x = tile("nl.logical_not", x)
    return compute(x.shape, named(dtype, "bool_"), [x], lambda d, a: isa["tensor_scalar"](d, a, "equal", 0.0), mask)


def dropout(x, rate, *, dtype=None, mask=None, **_options):
    """Each element becomes 0 with probability ``rate``, a number or a (P, 1) tile."""
    x = tile("nl.dropout", x)
    name = named(dtype, x.data.dtype)
    return compute(x.shape, name, [x], lambda d, a, p: isa["dropout"](d, a, p), mask, [rate])


def where(condition, x, y, *, dtype=None, mask=None, **_options):
    """Elements of x where the condition is not 0, else of y."""
    condition = tile("nl.where", condition)
    parts = [t for t in (condition, x, y) if isinstance(t, Tensor)]
    shape = broadcast_shape("nl.where", *parts)
    names = [t.data.dtype if isinstance(t, Tensor) else scalar_dtype(number("nl.where", t)) for t in (x, y)]
    name = named(dtype, None) or _vtrn.promoted(*names)

    def choose(dst, chosen, *tensors):
        rest = list(tensors)
        yes = rest.pop(0) if isinstance(x, Tensor) else plain(x)
        no = rest.pop(0) if isinstance(y, Tensor) else plain(y)
        predicate = _vtrn.ndarray(dst.shape, dtype="uint8")
        isa["tensor_scalar"](predicate, chosen, "not_equal", 0.0)
        made = _vtrn.ndarray(dst.shape, dtype=dst.dtype)
        isa["tensor_copy"](made, no) if isinstance(y, Tensor) else isa["memset"](made, no)
        if isinstance(x, Tensor) and yes.dtype != dst.dtype:
            same = _vtrn.ndarray(dst.shape, dtype=dst.dtype)
            isa["tensor_copy"](same, yes)
            yes = same
        isa["tensor_copy_predicated"](made, yes, predicate)
        isa["tensor_copy"](dst, made)

    return compute(shape, name, parts, choose, mask)


# ---- reductions ----


def axes_of(what, x, axis):
    axes = [axis] if not isinstance(axis, (tuple, list)) else axis
    if not all(isinstance(a, (int, np.integer)) for a in axes):
        fail(what, f"axis {axis!r}; an integer or a list of integers is needed", _vtrn.NkiTypeError)
    axes = sorted(int(a) + x.ndim if a < 0 else int(a) for a in axes)
    if not axes or axes[0] < 1 or axes[-1] >= x.ndim:
        fail(
            what,
            f"axis {axis} of {tuple(x.shape)}: only free dimensions can be reduced;"
            " for partitions use nisa.tensor_partition_reduce",
        )
    return axes


def reduced_shape(x, axes, keepdims):
    kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return kept if len(kept) > 1 else (*kept, 1)


_IDENTITY = {"add": 0.0, "maximum": -3.4028234663852886e38, "minimum": 3.4028234663852886e38, "multiply": 1.0}


def identity(what, op):
    """The number that changes nothing in a reduction."""
    if op not in _IDENTITY:
        fail(what, f"{op} with a mask that is not a rectangle")
    return _IDENTITY[op]


def _masked_to_identity(x, boxes, op):
    """A copy of x that has the operator's identity where the mask does not hold."""
    whole = on_chip(x.shape, "float32")
    isa["memset"](whole.data, identity("nl." + op, op))
    emit_compute(lambda d, a: isa["tensor_copy"](d, a), whole, [x], x.shape, boxes)
    return whole


def op_name(op):
    """The name of an operator: nl.*, NumPy's, or a string."""
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    return {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "prod": "multiply"}.get(
        name, name
    )


def reduce(what, op, x, axis, dtype=None, mask=None, keepdims=False, negate=False):
    """Reduces free dimensions; a mask says which elements count."""
    x = tile(what, x)
    axes = axes_of(what, x, axis)
    boxes = boxes_of(mask, x.shape)
    if boxes is not None and len(boxes) > 1:
        x, boxes = _masked_to_identity(x, boxes, op_name(op)), None
    kept = [d for d in range(x.ndim) if d not in axes]
    order = kept + axes
    shape = reduced_shape(x, axes, False)
    dims = tuple(x.shape[d] for d in order)
    last = [len(kept) + i for i in range(len(axes))]
    result_shape = reduced_shape(x, axes, keepdims)

    def make(dst):
        source = x.data if x.said is None else _vtrn.tile_part(x.data, x.shape, None, None)
        source = _vtrn.permuted(source, order) if order != list(range(x.ndim)) else source
        target = dst.data if dst.data.shape == shape else _vtrn.tile_part(dst.data, shape, None, None)
        if boxes is None:
            x.checked()
            isa["tensor_reduce"](target, op, source, last, negate)
            return
        for starts, counts in boxes:
            start, count = [tuple(v[d] for d in order) for v in (starts, counts)]
            if x.checks:
                _vtrn.tile_check(x.data, x.checks, starts, counts)
            some = _vtrn.tile_part(source, dims, start, count)
            n = len(kept)
            to = _vtrn.tile_part(target, shape, (*start[:n], 0)[: len(shape)], (*count[:n], 1)[: len(shape)])
            isa["tensor_reduce"](to, op, some, last, negate)

    made = produce(result_shape, named(dtype, x.data.dtype), [x], make)
    made.valid = None if boxes is None else [_kept_box(b, axes, keepdims) for b in boxes]
    return made


def _kept_box(box, axes, keepdims):
    starts = [0 if d in axes else n for d, n in enumerate(box[0])]
    counts = [1 if d in axes else n for d, n in enumerate(box[1])]
    if not keepdims:
        starts = [n for d, n in enumerate(starts) if d not in axes]
        counts = [n for d, n in enumerate(counts) if d not in axes]
    if len(starts) == 1:
        starts, counts = [*starts, 0], [*counts, 1]
    return tuple(starts), tuple(counts)


def mean(x, axis, *, dtype=None, mask=None, keepdims=False, **_options):
    """Mean over free dimensions, summed in fp32."""
    x = tile("nl.mean", x)
    total = reduce("nl.mean", "add", x, axis, "float32", mask, keepdims)
    count = math.prod(x.shape[a] for a in axes_of("nl.mean", x, axis))
    if mask is not None:
        ones = compute(x.shape, "float32", [x], lambda d, _a: isa["memset"](d, 1.0))
        return binary("divide", total, reduce("nl.mean", "add", ones, axis, "float32", mask, keepdims), dtype or x.dtype)
    return binary("multiply", total, 1.0 / count, dtype or x.dtype)


def _over(x, axes, value):
    """A reduced value in the shape that broadcasts over x."""
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return value if tuple(value.shape) == shape else value.reshape(shape)


def var(x, axis, *, dtype=None, mask=None, keepdims=True, **_options):
    """Population variance over free dimensions."""
    x = tile("nl.var", x)
    axes = axes_of("nl.var", x, axis)
    centred = binary("subtract", x, _over(x, axes, mean(x, axis, dtype="float32", mask=mask, keepdims=True)), "float32")
    return mean(binary("multiply", centred, centred, "float32"), axis, dtype=dtype or x.dtype, mask=mask, keepdims=keepdims)


def softmax(x, axis=-1, *, dtype=None, compute_dtype=None, mask=None, **_options):
    """exp(x - max) / sum over free dimensions."""
    x = tile("nl.softmax", x)
    compute_dtype = compute_dtype or "float32"
    axes = axes_of("nl.softmax", x, axis)
    largest = _over(x, axes, reduce("nl.softmax", "maximum", x, axes, "float32", mask, True))
    powers = activation("exp", binary("subtract", x, largest, compute_dtype, mask), compute_dtype, mask)
    total = _over(x, axes, reduce("nl.softmax", "add", powers, axes, "float32", mask, True))
    return binary("multiply", powers, reciprocal(total), dtype or x.dtype, mask)


def rms_norm(x, w, axis, n=None, epsilon=1e-6, *, dtype=None, compute_dtype=None, mask=None, **_options):
    """x / sqrt(sum(x * x) / n + epsilon) * w."""
    x = tile("nl.rms_norm", x)
    compute_dtype = compute_dtype or "float32"
    axes = axes_of("nl.rms_norm", x, axis)
    squares = reduce("nl.rms_norm", "add", binary("multiply", x, x, "float32", mask), axes, "float32", mask, True)
    count = n or math.prod(x.shape[a] for a in axes)
    scale = own("rsqrt")(binary("add", binary("multiply", squares, 1.0 / count, "float32"), float(epsilon), "float32"))
    scaled = binary("multiply", x, _over(x, axes, scale), compute_dtype, mask)
    return binary("multiply", scaled, w, dtype or x.dtype, mask) if w is not None else copy(scaled, dtype or x.dtype)


# ---- products and transposes ----


def flat(x):
    """A tile with one free dimension."""
    return x if x.data.ndim == 2 else x.reshape((x.shape[0], math.prod(x.shape[1:])))


def product(stationary, moving, mask=None, dtype="float32", **options):
    """``stationary.T @ moving`` in PSUM. A mask limits what is computed, or where it has an operand's shape, that operand."""
    stationary, moving = in_sbuf(stationary.checked()), in_sbuf(moving.checked())
    if options.get("perf_mode") in (None, "none"):
        stationary = flat(stationary)
    rows, columns = stationary.data.shape[-1], moving.data.shape[1:]
    if options.get("perf_mode") not in (None, "none"):
        columns = columns[-1:]
    shape = (rows, *columns)
    k_boxes, boxes = _product_boxes(mask, stationary, moving, shape)
    if boxes == [] or k_boxes == []:
        made = on_chip(shape, dtype, tiles.psum)
        made.valid = []
        return made

    def one(dst, box, accumulate):
        left, right = stationary.data, moving.data
        if k_boxes:
            left, right = (_vtrn.tile_rows(t, k_boxes[0][0][0], k_boxes[0][1][0]) for t in (left, right))
        if box is not None:
            starts, counts = box
            left = _vtrn.tile_part(left, left.shape, (0, starts[0]), (left.shape[0], counts[0]))
            right = _vtrn.tile_part(right, right.shape, (0, *starts[1:]), (right.shape[0], *counts[1:]))
        isa["nc_matmul"](dst, left, right, accumulate=accumulate, **options)

    def make(dst, accumulate=False):
        accumulate = None if accumulate == "first" else accumulate
        for box in (None,) if boxes is None else boxes:
            starts, counts = box or (None, None)
            one(_vtrn.tile_part(dst.data, shape, starts, counts) if box or dst.data.shape != shape else dst.data, box, accumulate)

    made = produce(shape, dtype, [stationary, moving], make, tiles.psum, tiles.psum, accumulates=True)
    made.valid = boxes
    return made


def _product_boxes(mask, stationary, moving, shape):
    """(boxes of the contraction, boxes of the result)."""
    whole = boxes_of(mask, ()) if mask in (None, True, False) else 0
    if whole != 0:
        return whole, None
    for tensor, of_result in ((None, True), (stationary, False), (moving, False)):
        try:
            boxes = _vtrn.boxes(mask, tuple(shape if of_result else tensor.data.shape))
        except _vtrn.NkiValueError:
            continue
        if boxes is None or of_result:
            return None, boxes
        if len(boxes) != 1:
            fail("nl.matmul", "a mask of an operand that is not a rectangle")
        return boxes, None
    return fail("nl.matmul", f"the mask has neither the shape of the result {shape} nor of an operand")


def matmul(x, y, *, transpose_x=False, mask=None, **_options):
    """``x @ y`` (``x.T @ y`` with transpose_x), fp32 in PSUM."""
    x, y = tile("nl.matmul", x), tile("nl.matmul", y)
    if x.data.dtype != y.data.dtype and "float32" in (x.data.dtype, y.data.dtype):  # the engine takes fp32 in pairs only
        x, y = (t if t.data.dtype == "float32" else copy(t, "float32") for t in (x, y))
    return product(x if transpose_x else in_sbuf(turned(x)), y, mask)


def turned(x, dtype=None, engine=None):
    """The transpose of a tile: up to 32x32 on the vector engine into SBUF, else on the tensor engine into PSUM."""
    source = flat(in_sbuf(x.checked()))
    rows, columns = source.data.shape
    engine = engine or ("vector" if rows <= 32 and columns <= 32 else "tensor")
    buffer = tiles.sbuf if getattr(engine, "name", engine) == "vector" else tiles.psum

    def make(dst):
        isa["nc_transpose"](dst.data, source.data, engine)

    made = produce((columns, rows), source.data.dtype, [source], make, buffer, buffer)
    return made if dtype is None or dtype_name(dtype) == source.data.dtype else copy(made, dtype)


def transpose(x, *, dtype=None, mask=None, **_options):
    """The transpose of a 2-D tile."""
    return turned(tile("nl.transpose", x), dtype)
