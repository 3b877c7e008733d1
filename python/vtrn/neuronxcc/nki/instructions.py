"""nki.isa of NKI 0.1: each function makes one instruction of the table and returns the tile it writes."""

import numpy as np

from vtrn import _vtrn
from vtrn.neuronxcc.nki import maths
from vtrn.neuronxcc.nki.maths import named, op_name, tile
from vtrn.neuronxcc.nki.memory import constant_tile
from vtrn.neuronxcc.nki.tile import (
    Tensor,
    boxes_of,
    check,
    compute,
    dtype_name,
    emit,
    emit_compute,
    fail,
    in_sbuf,
    isa,
    on_chip,
    part,
    plain,
    produce,
    spread,
)
from vtrn.nki.isa.constants import engine as _engine
from vtrn.nki.isa.constants import matmul_perf_mode
from vtrn.nki.isa.constants import oob_mode as _oob
from vtrn.nki.isa.constants import reduce_cmd as _reduce_cmd
from vtrn.nki.language import tiles

_UNKNOWN = _engine.unknown
_DOUBLE_ROW = ("double_row_gen3", "double_row")


def _known(engine):
    return _UNKNOWN if engine is None else engine


def _result(what, x, dtype):
    x = tile("nisa." + what, x)
    return x, named(dtype, x.data.dtype)


# ---- element by element ----


def tensor_tensor(data1, data2, op, *, dtype=None, mask=None, engine=_UNKNOWN, **_options):
    """op(data1, data2)"""
    data1, data2 = tile("nisa.tensor_tensor", data1), tile("nisa.tensor_tensor", data2)
    shape = maths.broadcast_shape("nisa.tensor_tensor", data1, data2)
    dtype = named(dtype, None) or _vtrn.promoted(data1.data.dtype, data2.data.dtype)
    return compute(shape, dtype, [data1, data2], lambda d, a, b: isa["tensor_tensor"](d, a, b, op, engine=_known(engine)), mask)


def tensor_scalar(
    data,
    op0,
    operand0,
    reverse0=False,
    op1=None,
    operand1=None,
    reverse1=False,
    *,
    dtype=None,
    mask=None,
    engine=_UNKNOWN,
    **_options,
):
    """op1(op0(data, operand0), operand1)"""
    data, dtype = _result("tensor_scalar", data, dtype)

    def make(d, a, first, second=None):
        isa["tensor_scalar"](d, a, op0, first, reverse0, op1, second, reverse1, engine=_known(engine))

    columns = [operand0] if op1 is None else [operand0, operand1]
    return compute(data.shape, dtype, [data], make, mask, columns)


def scalar_tensor_tensor(*, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None, mask=None, **_options):
    """op1(op0(data, operand0), operand1), operand1 a full tile"""
    data, dtype = _result("scalar_tensor_tensor", data, dtype)
    operand1 = tile("nisa.scalar_tensor_tensor", operand1)

    def make(d, a, b, first):
        isa["scalar_tensor_tensor"](d, a, op0, first, op1, b, reverse0, reverse1)

    shape = maths.broadcast_shape("nisa.scalar_tensor_tensor", data, operand1)
    return compute(shape, dtype, [data, operand1], make, mask, [operand0])


def reciprocal(data, *, dtype=None, mask=None, **_options):
    """1 / data"""
    data, dtype = _result("reciprocal", data, dtype)
    return compute(data.shape, dtype, [data], lambda d, a: isa["reciprocal"](d, a), mask)


def tensor_copy(src, *, mask=None, dtype=None, engine=_UNKNOWN, **_options):
    """src, in another dtype or memory"""
    src, dtype = _result("tensor_copy", src, dtype)
    return compute(src.shape, dtype, [src], lambda d, a: isa["tensor_copy"](d, a, engine=_known(engine)), mask)


tensor_copy_dynamic_src = tensor_copy


def tensor_copy_dynamic_dst(*, dst, src, mask=None, dtype=None, engine=_UNKNOWN, **_options):
    """dst = src, where dst has a dynamic index"""
    dst.note_write()
    emit_compute(lambda d, a: isa["tensor_copy"](d, a, engine=_known(engine)), dst, [src], src.shape, boxes_of(mask, src.shape))


def tensor_copy_predicated(*, src, dst, predicate, reverse_pred=False, mask=None, dtype=None, **_options):
    """dst = src where the predicate is not 0 (or is 0, reversed)"""
    dst.note_write()
    sources = [predicate, *([src] if isinstance(src, Tensor) else [])]

    def make(d, chosen, value=None):
        if value is not None and value.dtype != d.dtype:
            same = _vtrn.ndarray(value.shape, dtype=d.dtype)
            isa["tensor_copy"](same, value)
            value = same
        isa["tensor_copy_predicated"](d, plain(src) if value is None else value, chosen, reverse_pred)

    emit_compute(make, dst, sources, dst.shape, boxes_of(mask, dst.shape))


def memset(shape, value, dtype, *, mask=None, engine=_UNKNOWN, **_options):
    """value everywhere"""
    shape = tuple(int(n) for n in shape)
    shape = shape if len(shape) > 1 else (*shape, 1)
    value = plain(value)
    return compute(shape, dtype_name(dtype), [], lambda d: isa["memset"](d, value, engine=_known(engine)), mask)


def _reduction(reduce_op, reduce_res, command):
    """Keyword arguments of an instruction's running reduction, and the tile of its result as a column."""
    if reduce_op is None and command in (None, _reduce_cmd.idle):
        return {}, []
    options = {"reduce_op": reduce_op} if reduce_op is not None else {}
    if command is not None:
        options["reduce_cmd"] = command
    if isinstance(reduce_res, Tensor):
        reduce_res.note_write()
    return options, [] if reduce_res is None else [reduce_res]


def activation(
    op,
    data,
    *,
    bias=None,
    scale=1.0,
    reduce_op=None,
    reduce_res=None,
    reduce_cmd=_reduce_cmd.idle,
    dtype=None,
    mask=None,
    **_options,
):
    """op(data * scale + bias), with an optional running sum per partition"""
    data, dtype = _result("activation", data, dtype)
    options, result = _reduction(reduce_op, reduce_res, reduce_cmd)

    def make(d, a, add, factor, total=None):
        isa["activation"](d, op, a, add, factor, reduce_res=total, **options)

    made = compute(data.shape, dtype, [data], make, mask, [_scalar(bias), _scalar(scale, 1.0), *result])
    if options:
        made.redo = None  # it changes the engine's accumulators
    return made


def _scalar(value, missing=None):
    return missing if value is None else value


def activation_reduce(op, data, *, reduce_op, reduce_res, bias=None, scale=1.0, dtype=None, mask=None, **_options):
    """op(data * scale + bias), and its reduction over the free dimensions in reduce_res"""
    data, dtype = _result("activation_reduce", data, dtype)
    reduce_res.note_write()

    def make(d, a, total, add, factor):
        isa["activation_reduce"](d, op, a, reduce_op, total, add, factor)

    return compute(data.shape, dtype, [data], make, mask, [reduce_res, _scalar(bias), _scalar(scale, 1.0)])


def dropout(data, prob, *, mask=None, dtype=None, **_options):
    """data, each element 0 with probability prob"""
    return maths.dropout(data, prob, dtype=dtype, mask=mask)


def tensor_scalar_reduce(*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None, **_options):
    """op0(data, operand0), and its reduction in reduce_res"""
    data, dtype = _result("tensor_scalar_reduce", data, dtype)
    reduce_res.note_write()

    def make(d, a, first, total):
        isa["tensor_scalar_reduce"](d, a, op0, first, reduce_op, total, reverse0)

    return compute(data.shape, dtype, [data], make, mask, [operand0, reduce_res])


def tensor_scalar_cumulative(*, src, dst, op0, op1, imm0, imm1=None, reduce_cmd=_reduce_cmd.reset_reduce, mask=None, **_options):
    """acc = op1(op0(src[i], imm0), acc); dst[i] = acc"""
    dst.note_write()
    columns = [imm0, imm1] if imm1 is not None and reduce_cmd == _reduce_cmd.load_reduce else [imm0]  # else it has no effect

    def make(d, a, first, second=None):
        isa["tensor_scalar_cumulative"](d, a, op0, op1, first, second, reduce_cmd)

    columns = [maths_column(c, src) for c in columns]
    emit_compute(make, dst, [src], src.shape, boxes_of(mask, src.shape), columns)


def maths_column(value, like):
    if not isinstance(value, Tensor):
        return plain(value)
    return spread(value, like.shape[0]) if value.data.shape[0] == 1 and like.shape[0] > 1 else value


def tensor_tensor_scan(data0, data1, initial, op0, op1, reverse0=False, reverse1=False, *, dtype=None, mask=None, **_options):
    """r = op1(op0(data0[i], r), data1[i])"""
    data0, data1 = tile("nisa.tensor_tensor_scan", data0), tile("nisa.tensor_tensor_scan", data1)
    shape = maths.broadcast_shape("nisa.tensor_tensor_scan", data0, data1)
    dtype = named(dtype, None) or _vtrn.promoted(data0.data.dtype, data1.data.dtype)

    def make(d, a, b, first):
        isa["tensor_tensor_scan"](d, a, b, first, op0, op1, reverse0, reverse1)

    return compute(shape, dtype, [data0, data1], make, mask, [initial])


# ---- selection by index ----


def _select_pattern(index, shape):
    """(pattern, channel multiplier, offset) of an index expression over a tile; None: it is not affine."""
    strides = index.strides
    if strides is None:
        return None
    own = tuple(index.shape)
    while len(own) > len(shape) and own[-1] == 1:
        own, strides = own[:-1], strides[:-1]
    lead = len(shape) - len(own)
    if lead < 0 or any(n not in (1, m) for n, m in zip(own, shape[lead:], strict=True)):
        fail("nisa", f"an index expression of shape {tuple(index.shape)} for a tile of {tuple(shape)}")
    steps = [0] * lead + [s if n > 1 else 0 for s, n in zip(strides, own, strict=True)]
    return [[step, n] for step, n in zip(steps[1:], shape[1:], strict=True)], steps[0], index.base


def affine_select(pred, on_true_tile, on_false_value, *, mask=None, dtype=None, **_options):
    """on_true_tile where the comparison of index expressions holds, else on_false_value"""
    data, dtype = _result("affine_select", on_true_tile, dtype)
    shape, value = tuple(data.shape), plain(on_false_value)
    if isinstance(pred, (bool, np.bool_)):
        return tensor_copy(data, dtype=dtype, mask=mask) if pred else memset(shape, value, dtype, mask=mask)
    if not isinstance(pred, _vtrn.Mask):
        fail(
            "nisa.affine_select", f"pred is {type(pred).__name__}; a comparison of index expressions is needed", _vtrn.NkiTypeError
        )
    data = in_sbuf(data)
    for one in _vtrn.mask_conjuncts(pred)[:-1]:
        data = _select(one, data, value, dtype, None)
    return _select(_vtrn.mask_conjuncts(pred)[-1], data, value, dtype, mask)


def _select(pred, data, value, dtype, mask):
    shape = tuple(data.shape)
    compared = _vtrn.mask_compare(pred)
    pattern = _select_pattern(compared[0], shape) if compared else None
    if pattern is None:  # not affine: false everywhere, the data where the mask holds
        made = memset(shape, value, dtype)
        emit_compute(lambda d, a: isa["tensor_copy"](d, a), made, [data], shape, _vtrn.boxes(pred, shape))
        return made if mask is None else tensor_copy(made, mask=mask)
    steps, channel, offset = pattern
    if len(steps) > 4 or mask is not None:
        pass

    def make(d, a):
        isa["affine_select"](d, steps, channel, a, value, compared[1], offset)

    if mask is None:
        return compute(shape, dtype, [data], make)
    whole = compute(shape, dtype, [data], make)
    return tensor_copy(whole, mask=mask)


def iota(expr, dtype, *, mask=None, **_options):
    """The values of an index expression"""
    if not isinstance(expr, _vtrn.IndexExpression):
        fail("nisa.iota", f"expr is {type(expr).__name__}; an index expression (nl.arange, nl.mgrid) is needed", _vtrn.NkiTypeError)
    shape = tuple(expr.shape)
    shape = shape if len(shape) > 1 else (*shape, 1)
    pattern = _select_pattern(expr if expr.ndim > 1 else expr[:, None], shape)
    if pattern is None:
        values = np.full(shape, expr.base, np.int32)
        for d, n in enumerate(shape):
            at = [0] * len(shape)
            line = []
            for i in range(n):
                at[d] = i
                line.append(expr[tuple(at)].base - expr.base)
            values = values + np.array(line, np.int32).reshape([-1 if k == d else 1 for k in range(len(shape))])
        return tensor_copy(constant_tile(values.astype(np.int32)), dtype=dtype, mask=mask)
    steps, channel, offset = pattern
    name = dtype_name(dtype)
    if mask is None:
        return compute(shape, name, [], lambda d: isa["iota"](d, steps, offset, channel))
    whole = compute(shape, name, [], lambda d: isa["iota"](d, steps, offset, channel))
    return tensor_copy(whole, mask=mask)


def range_select(
    *,
    on_true_tile,
    comp_op0,
    comp_op1,
    bound0,
    bound1,
    reduce_cmd=_reduce_cmd.idle,
    reduce_res=None,
    reduce_op=np.amax,
    range_start=0,
    on_false_value=-3.4028234663852886e38,
    mask=None,
    dtype=None,
    **_options,
):
    """on_true_tile where both comparisons of the element's index with the bounds hold, else on_false_value"""
    data, dtype = _result("range_select", on_true_tile, dtype)
    options, result = _reduction(reduce_op, reduce_res, reduce_cmd)

    def make(d, a, low, high, start, total=None):
        isa["range_select"](
            d,
            a,
            comp_op0,
            comp_op1,
            low,
            high,
            range_start=start,
            reduce_res=total,
            on_false_value=plain(on_false_value),
            **options,
        )

    made = compute(data.shape, dtype, [data], make, mask, [bound0, bound1, range_start, *result])
    if reduce_cmd != _reduce_cmd.idle:
        made.redo = None
    return made


def select_reduce(
    *,
    dst,
    predicate,
    on_true,
    on_false,
    reduce_res=None,
    reduce_cmd=_reduce_cmd.idle,
    reduce_op=np.amax,
    reverse_pred=False,
    mask=None,
    dtype=None,
    **_options,
):
    """dst = predicate ? on_true : on_false, with an optional maximum per partition"""
    dst.note_write()
    options, result = _reduction(reduce_op, reduce_res, reduce_cmd)

    def make(d, chosen, yes, no, total=None):
        isa["select_reduce"](d, chosen, yes, no, total, reverse_pred=reverse_pred, **options)

    columns = [maths_column(c, dst) for c in (on_false, *result)]
    emit_compute(make, dst, [predicate, on_true], dst.shape, boxes_of(mask, dst.shape), columns)


# ---- reductions ----


def tensor_reduce(op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False, **_options):
    """Reduces free dimensions"""
    return maths.reduce("nisa.tensor_reduce", op, data, axis, dtype, mask, keepdims, negate)


def tensor_partition_reduce(op, data, *, mask=None, dtype=None, **_options):
    """Reduces over the partitions"""
    data, dtype = _result("tensor_partition_reduce", data, dtype)
    source = in_sbuf(data.checked())
    boxes = boxes_of(mask, data.shape)
    shape = (1, *data.shape[1:])

    def make(dst):
        for box in (None,) if boxes is None else boxes:
            to = dst.data if box is None else _vtrn.tile_part(dst.data, shape, (0, *box[0][1:]), (1, *box[1][1:]))
            isa["tensor_partition_reduce"](to, op, part(source, tuple(data.shape), box))

    return produce(shape, dtype, [source], make, here=tiles.sbuf)


def _of_rows(name, what, tiles_, shape, dtype, mask, more=()):
    """An instruction whose result has another free size: a mask limits the partitions and what is read."""
    boxes = boxes_of(mask, tiles_[0].shape)
    if boxes is not None and len(boxes) != 1:
        fail(what, "the mask must be one rectangle")

    def make(dst):
        box = boxes[0] if boxes else None
        for t in tiles_:
            check(t, box if t is tiles_[0] else None)
        first = part(tiles_[0], tuple(tiles_[0].shape), box)
        rest = [t.data if box is None else _vtrn.tile_rows(t.data, box[0][0], box[1][0]) for t in tiles_[1:]]
        to = dst.data if box is None else _vtrn.tile_rows(dst.data, box[0][0], box[1][0])
        isa[name](to, first, *rest, *more)

    return produce(shape, dtype, tiles_, make)


def bn_stats(data, *, mask=None, dtype=None, **_options):
    """(count, mean, sum of squared deviations) of even and odd elements"""
    data, dtype = _result("bn_stats", data, dtype)
    return _of_rows("bn_stats", "nisa.bn_stats", [data], (data.shape[0], 6), dtype, mask)


def bn_aggr(data, *, mask=None, dtype=None, **_options):
    """(mean, variance) from what bn_stats gives"""
    data, dtype = _result("bn_aggr", data, dtype)
    return _of_rows("bn_aggr", "nisa.bn_aggr", [data], (data.shape[0], 2), dtype, mask)


def max8(*, src, mask=None, dtype=None, **_options):
    """The eight largest per partition, descending"""
    src, dtype = _result("max8", src, dtype)
    return _of_rows("max8", "nisa.max8", [src], (src.shape[0], 8), dtype, mask)


def nc_find_index8(*, data, vals, mask=None, dtype=None, **_options):
    """The index of each of eight values"""
    data = tile("nisa.nc_find_index8", data)
    return _of_rows("nc_find_index8", "nisa.nc_find_index8", [data, vals], (data.shape[0], 8), named(dtype, "uint32"), mask)


def nc_match_replace8(*, data, vals, imm, dst_idx=None, mask=None, dtype=None, **_options):
    """data with the first occurrence of each of eight values set to imm"""
    data, dtype = _result("nc_match_replace8", data, dtype)
    if dst_idx is not None:
        dst_idx.note_write()

    def make(d, a, values, index=None):
        isa["nc_match_replace8"](d, a, values, plain(imm), index)

    columns = [vals] if dst_idx is None else [vals, dst_idx]
    return compute(data.shape, dtype, [data], make, mask, columns)


def sequence_bounds(*, segment_ids, dtype=None, **_options):
    """Start and end of the run that holds each element"""
    data, dtype = _result("sequence_bounds", segment_ids, dtype)
    source = in_sbuf(data.checked())
    shape = (data.shape[0], 2, data.shape[-1])
    return produce(shape, dtype, [source], lambda d: isa["sequence_bounds"](d.data, source.data), here=tiles.sbuf)


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, *, mask=None, **_options):
    """Elements of the free dimension, gathered by one index list for each 16 partitions"""
    source, wanted = in_sbuf(src_buffer.checked()), in_sbuf(index.checked())
    per_list = num_valid_indices or 16 * (wanted.size // wanted.shape[0])
    shape = (source.shape[0], per_list) if num_elem_per_idx == 1 else (source.shape[0], per_list, num_elem_per_idx)
    more = [int(num_elem_per_idx)] + ([int(num_valid_indices)] if num_valid_indices is not None else [])
    return produce(
        shape,
        source.data.dtype,
        [source, wanted],
        lambda d: isa["local_gather"](d.data, source.data, wanted.data, *more),
        here=tiles.sbuf,
    )


def nc_stream_shuffle(src, dst, shuffle_mask, *, dtype=None, mask=None, **_options):
    """Within 32 partitions: dst partition i = src partition shuffle_mask[i]"""
    dst.note_write()
    order = [int(i) for i in shuffle_mask]
    emit(lambda d, a: isa["nc_stream_shuffle"](d, a, order), dst, [src], dst.shape, boxes_of(mask, dst.shape))


# ---- tensor engine ----


def nc_matmul(
    stationary,
    moving,
    *,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    tile_position=(),
    tile_size=(),
    mask=None,
    perf_mode=None,
    **_options,
):
    """stationary.T @ moving, in PSUM; `psum[...] += nisa.nc_matmul(...)` accumulates"""
    stationary, moving = tile("nisa.nc_matmul", stationary), tile("nisa.nc_matmul", moving)
    options = {"is_stationary_onezero": is_stationary_onezero, "is_moving_onezero": is_moving_onezero, "is_transpose": is_transpose}
    if tile_position:
        options["tile_position"] = list(tile_position)
    if tile_size:
        options["tile_size"] = list(tile_size)
    if perf_mode:
        options["perf_mode"] = matmul_perf_mode.double_row if perf_mode in _DOUBLE_ROW else perf_mode
    return maths.product(stationary, moving, mask, moving.data.dtype if is_transpose else "float32", **options)


def nc_transpose(data, *, mask=None, dtype=None, engine=_UNKNOWN, **_options):
    """The transpose of a tile"""
    data = tile("nisa.nc_transpose", data)
    boxes = boxes_of(mask, data.shape)
    if boxes == []:
        made = on_chip(data.shape[::-1], data.data.dtype, tiles.psum)
    else:
        made = maths.turned(data, None, None if _known(engine) is _UNKNOWN else engine)
    if dtype is not None:
        made = tensor_copy(made, dtype=dtype)
    made.valid = None if boxes is None else [(starts[::-1], counts[::-1]) for starts, counts in boxes]
    if boxes is not None:
        made.redo = None  # where the mask does not hold, a destination keeps its values
    return made


# ---- DMA ----


def dma_copy(*, dst, src, mask=None, dst_rmw_op=None, oob_mode=_oob.error, **_options):
    """dst = src, or dst = op(dst, src)"""
    dst.note_write()
    shape = tuple(src.shape if src.ndim > 1 else dst.shape)
    if dst_rmw_op is None:
        make = lambda d, s: isa["dma_copy"](d, s, oob_mode=oob_mode)  # noqa: E731
    else:
        make = lambda d, s: isa["dma_compute"](d, [s, d], op_name(dst_rmw_op), oob_mode=oob_mode)  # noqa: E731
    emit(make, dst, [in_sbuf(src) if src.par == 0 else src], shape, boxes_of(mask, shape))


def dma_transpose(src, *, axes=None, mask=None, dtype=None, **_options):
    """The transpose of a tensor, by DMA"""
    src.checked()
    axes = axes or {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(src.ndim)
    if axes is None or sorted(axes) != list(range(src.ndim)):
        fail("nisa.dma_transpose", f"axes {axes} of {tuple(src.shape)}")
    source = in_sbuf(src) if src.par == 0 else src
    shape = tuple(src.shape[a] for a in axes)
    name = named(dtype, src.data.dtype)
    turned = _vtrn.permuted(source.data, list(axes)) if source.par < 0 else None

    def make(dst):
        if turned is not None and name != source.data.dtype:
            isa["dma_copy"](dst.data, turned)
        else:
            isa["dma_transpose"](dst.data, source.data, list(axes))

    if boxes_of(mask, src.shape) not in (None,):
        fail("nisa.dma_transpose", "mask=; slice the source")
    return produce(shape, name, [source], make, here=tiles.sbuf)


def builtin_custom_op(*_args, **_options):
    """Custom operators are programs of AWS's runtime."""
    fail("nisa.builtin_custom_op", "custom operators are libraries of AWS's runtime, which is not here", _vtrn.NkiUnsupported)


__all__ = [
    name
    for name, value in list(globals().items())
    if getattr(value, "__module__", "") == __name__ and not name.startswith("_") and name != "maths_column"
]
