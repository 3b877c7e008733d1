"""Tensors of the old namespace, and moves between HBM and the chip."""

import math

import numpy as np

from vtrn import _vtrn
from vtrn.neuronxcc.nki.blocks import Blocks
from vtrn.neuronxcc.nki.launch import instance
from vtrn.neuronxcc.nki.tile import (
    Redo,
    Tensor,
    boxes_of,
    check,
    compute,
    copy_into,
    dtype_name,
    emit,
    fail,
    fill,
    in_sbuf,
    isa,
    on_chip,
    part,
    plain,
    spread,
    whole,
)
from vtrn.nki.language import tiles
from vtrn.nki.language.memory import par_dim

_BANK_BYTES = "psum_bank_bytes"


def _partition_dim(shape):
    marked = [d for d, n in enumerate(shape) if getattr(n, "is_partition_dim", False)]
    if len(marked) > 1:
        fail("nl.ndarray", "shape: more than one nl.par_dim")
    return marked[0] if marked else 0


def _moved(par, ndim):
    """The order of a view whose partition dimension is ``par``, of a tensor that has it first."""
    return [d + 1 if d < par else 0 if d == par else d for d in range(ndim)]


def _in_banks(rows, blocks, free, dtype):
    """Blocks of PSUM, each in banks of its own where it would else cross from one to the next."""
    limit = _vtrn.target_size(_vtrn.current_target(), _BANK_BYTES) // _vtrn.dtypes[dtype]
    elems = math.prod(free)
    if limit % elems == 0 or elems % limit == 0:
        return _vtrn.ndarray((rows, *blocks, *free), dtype=dtype, buffer=tiles.psum)
    count = math.prod(blocks)
    data = _vtrn.ndarray((rows, count, -(-elems // limit) * limit), dtype=dtype, buffer=tiles.psum)
    data = data[:, :, 0:elems]
    if len(free) != 1:
        data = data.reshape_dim(2, free)
    return data.reshape_dim(1, blocks) if len(blocks) != 1 else data


def _is_too_large(count, free, dtype, buffer):
    """The blocks together are more than the memory: AWS's compiler keeps those that are in use."""
    block = math.prod(free) * _vtrn.dtypes[dtype]
    if not tiles.is_psum(buffer):
        return count * block > tiles.tile_size.sbuf_fmax_bytes
    bank = tiles.tile_size.psum_bank_fmax_bytes
    return count * max(block, bank if bank % block else block) > bank * tiles.tile_size.psum_num_banks


def ndarray(shape, dtype, *, buffer=None, name="", **_options):
    """An uninitialised tensor; ``nl.par_dim`` marks the partition dimension, dimensions before it are blocks."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    dtype = dtype_name(dtype)
    par = _partition_dim(shape)
    shape = tuple(whole("nl.ndarray: shape", n) for n in shape)
    if hasattr(buffer, "place"):
        return buffer.place(shape, dtype, par, name)
    buffer = tiles.sbuf if buffer is None else buffer
    if tiles.is_hbm(buffer):
        return Tensor(instance().declare(shape, dtype, buffer, name), -1)
    if len(shape) == 1:
        shape = (*shape, 1)
    rows, blocks, free = shape[par], shape[:par], shape[par + 1 :]
    if par and not free:
        free, shape = (1,), (*shape, 1)
    if blocks and _is_too_large(math.prod(blocks), free, dtype, buffer):
        tile_shape = (rows, *free)
        return Blocks(blocks, tile_shape, lambda _index: Tensor(_vtrn.ndarray(tile_shape, dtype=dtype, buffer=buffer), 0))
    if tiles.is_psum(buffer) and blocks:
        data = _in_banks(rows, blocks, free, dtype)
    else:
        data = _vtrn.ndarray((rows, *blocks, *free), dtype=dtype, buffer=buffer, name=name)
    return Tensor(_vtrn.permuted(data, _moved(par, len(shape))) if par else data, par)


def full(shape, fill_value, dtype, *, buffer=None, name="", **options):
    """A tensor with the same value everywhere."""
    tensor = ndarray(shape, dtype, buffer=buffer, name=name, **options)
    fill(tensor, fill_value)
    return tensor


def zeros(shape, dtype, *, buffer=None, name="", **options):
    """A tensor of zeros."""
    tensor = full(shape, 0, dtype, buffer=buffer, name=name, **options)
    if tiles.is_psum(tensor.buffer):
        tensor.root.filled.clear()  # a first product may overwrite zeros
    return tensor


def ones(shape, dtype, *, buffer=None, name="", **options):
    """A tensor of ones."""
    return full(shape, 1, dtype, buffer=buffer, name=name, **options)


def _shape_like(a):
    return tuple(par_dim(n) if d == a.par and a.par > 0 else n for d, n in enumerate(a.shape))


def empty_like(a, dtype=None, *, buffer=None, name="", **options):
    """An uninitialised tensor like ``a``."""
    return ndarray(_shape_like(a), dtype or a.dtype, buffer=buffer or a.buffer, name=name, **options)


def zeros_like(a, dtype=None, *, buffer=None, name="", **options):
    """A tensor of zeros like ``a``."""
    return zeros(_shape_like(a), dtype or a.dtype, buffer=buffer or a.buffer, name=name, **options)


def shared_constant(constant, dtype=None, **_options):
    """A tensor in HBM that holds a NumPy array."""
    array = np.ascontiguousarray(constant if dtype is None else np.asarray(constant).astype(dtype))
    data = _vtrn.constant(array.shape or (1,), dtype_name(array.dtype), array.reshape(-1).view(np.uint8), "")
    return Tensor(data, -1)


def shared_identity_matrix(n, dtype=np.uint8, **_options):
    """An identity matrix of (n, n) in HBM."""
    return shared_constant(np.identity(n), dtype)


def constant_tile(array):
    """A tile on chip with the values of a NumPy array."""
    return load(shared_constant(array))


# ---- moves ----


def _tile_shape(tensor):
    shape = tuple(tensor.shape)
    return shape if len(shape) > 1 else (*shape, 1)


def load(src, *, mask=None, dtype=None, **_options):
    """A new tile in SBUF with the values of a tensor in HBM."""
    if not isinstance(src, Tensor):
        fail("nl.load", f"{type(src).__name__} is not a tensor", _vtrn.NkiTypeError)
    if src.par > 0:
        fail("nl.load", "src has block dimensions; load one block at a time")
    dtype = dtype_name(dtype) if dtype is not None else src.data.dtype
    return compute(
        _tile_shape(src), dtype, [in_sbuf(src) if src.par == 0 else src], isa["dma_copy"], mask, moves=True, here=tiles.sbuf
    )


def store(dst, value, *, mask=None, **_options):
    """Copies a tile, or a number, to a tensor in HBM."""
    if not isinstance(dst, Tensor) or dst.par >= 0:
        fail("nl.store", "dst must be in HBM", _vtrn.NkiTypeError)
    if not isinstance(value, Tensor):
        fill(dst, value, mask)
        return
    if mask is None:
        copy_into(dst, value)
        return
    if value.data.shape[0] != dst.shape[0] and value.data.shape[0] == 1 and value.size != dst.size:
        value = spread(value, dst.shape[0])
    shape = tuple(value.shape)
    try:
        boxes = boxes_of(mask, shape)
    except _vtrn.NkiValueError:
        shape = tuple(dst.shape)
        boxes = boxes_of(mask, shape)
    emit(isa["dma_copy"], dst, [in_sbuf(value)], shape, boxes)


def load_transpose2d(src, *, mask=None, dtype=None, **_options):
    """A new tile in SBUF with the transpose of a 2-D tensor in HBM."""
    if src.ndim < 2 or any(n != 1 for n in src.shape[2:]):
        fail("nl.load_transpose2d", f"src has {src.ndim} dimensions, not 2")
    rows, columns = src.shape[:2]
    boxes = boxes_of(mask, (rows, columns))
    result = on_chip((columns, rows), dtype_name(dtype) if dtype is not None else src.data.dtype)

    def make(dst):
        for box in (None,) if boxes is None else boxes:
            check(src, box)
            turned = None if box is None else (box[0][1::-1], box[1][1::-1])
            source = _vtrn.permuted(part(src, (rows, columns), box), [1, 0])
            isa["dma_copy"](part(dst, (columns, rows), turned), source)

    mark = _vtrn.mark()
    make(result)
    result.redo = Redo(mark, make, [], False, tiles.sbuf, False)
    result.valid = None if boxes is None else [(s[1::-1], c[1::-1]) for s, c in boxes]
    return result


def atomic_rmw(dst, value, op, *, mask=None, **_options):
    """``dst = op(dst, value)`` in HBM."""
    emit(
        lambda to, new: isa["dma_compute"](to, [new, to], op),
        dst,
        [in_sbuf(value)],
        tuple(value.shape),
        boxes_of(mask, value.shape),
    )


def gather_flattened(data, indices, *, mask=None, dtype=None, **_options):
    """``out[p, i] = data[p, indices[p, i]]``, the free dimensions of ``data`` flattened."""
    source, wanted = in_sbuf(data.checked()), in_sbuf(indices.checked())
    name = dtype_name(dtype) if dtype is not None else data.data.dtype
    if data.ndim > 2:
        source = source.reshape((data.shape[0], data.size // data.shape[0]))

    def gather(dst, index):
        rows = source.data if index.shape[0] == source.shape[0] else source.data[0 : index.shape[0]]
        if dst.dtype == rows.dtype:
            isa["nc_n_gather"](dst, rows, index)
            return
        found = _vtrn.ndarray(index.shape, dtype=rows.dtype)
        isa["nc_n_gather"](found, rows, index)
        isa["tensor_copy"](dst, found)

    return compute(indices.shape, name, [wanted], gather, mask)


def rand(shape, dtype=np.float32, **_options):
    """Uniform random values in [0, 1)."""
    from vtrn.nki.language import memory

    shape = tuple(int(n) for n in shape)
    return Tensor(memory.rand(shape if len(shape) > 1 else (*shape, 1), dtype_name(dtype)), 0)


def random_seed(seed, *, mask=None, **_options):
    """Seeds nl.rand and nl.dropout with a (1, 1) tile or a number."""
    if boxes_of(mask, (1, 1)) == []:
        return
    if not isinstance(seed, Tensor):
        seed = full((1, 1), plain(seed), np.int32)
    isa["set_rng_seed"](in_sbuf(seed.checked()).data)
