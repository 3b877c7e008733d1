"""Tensors with contents, and moves between memories. Each is a few nisa calls."""

import os

import numpy as np

from vtrn import _vtrn, arrays
from vtrn.nki import isa as nisa
from vtrn.nki.language.tiles import is_hbm, is_psum, psum, sbuf

ndarray = _vtrn.ndarray


class par_dim(int):  # noqa: N801 - a function to its users
    """Marks the partition dimension in a shape, as in NKI 0.1: ``n`` itself, and only the first dimension can be it."""

    is_partition_dim = True


def _fill(dst, value):
    """The same value everywhere; in HBM one element of SBUF, copied to every element of ``dst``."""
    if not is_hbm(dst.buffer):
        nisa.memset(dst, value)
        return
    one = ndarray((1, 1), dtype=dst.dtype, buffer=sbuf)
    nisa.memset(one, value)
    dst = dst.reshape((1, dst.size)) if dst.is_contiguous() else dst.expand_dim(0)
    nisa.dma_copy(dst, one.ap([[1, 1], *([0, count] for count in dst.shape[1:])]))


def full(shape, fill_value, dtype, buffer=sbuf, name=""):
    """A tensor with the same value everywhere."""
    tensor = ndarray(shape, dtype=dtype, buffer=buffer, name=name)
    _fill(tensor, fill_value)
    return tensor


def zeros(shape, dtype, buffer=sbuf, name=""):
    """A tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=sbuf, name=""):
    """A tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    """An uninitialised tensor like ``x``."""
    return ndarray(x.shape, dtype=dtype or x.dtype, buffer=buffer or x.buffer, name=name)


def zeros_like(x, dtype=None, buffer=None, name=""):
    """A tensor of zeros like ``x``."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def random_seed(seed):
    """Seeds nl.rand: ``seed`` is a (1, 1) tile with a 32-bit value."""
    nisa.set_rng_seed(seed)


def rand(shape, dtype, buffer=sbuf, name=""):
    """Uniform random values in [0, 1): 24 random bits scaled to fp32."""
    tensor = ndarray(shape, dtype=dtype, buffer=buffer, name=name)
    tile = ndarray(shape, dtype=dtype, buffer=sbuf) if is_hbm(buffer) else tensor
    bits = ndarray(shape, dtype="uint32", buffer=sbuf)
    nisa.rng(bits, engine=nisa.engine.vector)
    nisa.tensor_scalar(bits, bits, "right_shift", 8)
    nisa.tensor_scalar(tile, bits, "multiply", 2.0**-24, engine=nisa.engine.vector)
    if is_hbm(buffer):
        nisa.dma_copy(tensor, tile)
    return tensor


def shared_constant(constant, name=""):
    """A tensor in shared HBM that holds a NumPy array, or the array of a ``.npy`` file."""
    data = np.load(constant) if isinstance(constant, (str, os.PathLike)) else np.asarray(constant)
    data = np.ascontiguousarray(data)
    return _vtrn.constant(data.shape or (1,), data.dtype, data.reshape(-1).view(np.uint8), name)


def shared_identity_matrix(n, dtype="uint8", dst=None):
    """An identity matrix of (n, n) in SBUF."""
    matrix = ndarray((n, n), dtype=dtype, buffer=sbuf) if dst is None else dst
    nisa.memset(matrix, 1)
    nisa.affine_select(matrix, [[-1, n]], 1, matrix, 0, cmp_op="equal")
    return matrix


# ---- moves ----


def _as_tile(x):
    """A 1-D tensor in HBM as a column: on chip there are at least two dimensions."""
    return x.reshape((x.shape[0], 1)) if x.ndim == 1 else x


def in_sbuf(x):
    """``x``, or a copy of it where only SBUF will do."""
    return copied(x) if is_psum(x.buffer) else x


def copied(x, dtype=None):
    """A new SBUF tile with the values of an on-chip ``x``."""
    tile = ndarray(x.shape, dtype=dtype or x.dtype, buffer=sbuf)
    nisa.tensor_copy(tile, x)
    return tile


def load(src, dtype=None):
    """A new SBUF tile with the values of a tensor in HBM."""
    src = _as_tile(src)
    tile = ndarray(src.shape, dtype=dtype or src.dtype, buffer=sbuf)
    nisa.dma_copy(tile, src)
    return tile


def store(dst, value):
    """Copies an on-chip tile to a tensor in HBM."""
    nisa.dma_copy(dst, in_sbuf(value))


def load_transpose2d(src, dtype=None):
    """A new SBUF tile with the transpose of a 2-D tensor in HBM; dimensions of size 1 behind those two are dropped."""
    if src.ndim < 2 or any(size != 1 for size in src.shape[2:]):
        raise _vtrn.NkiValueError(f"nl.load_transpose2d: src has {src.ndim} dimensions, not 2")
    for dim in range(src.ndim - 1, 1, -1):
        src = src.squeeze_dim(dim)
    return load(src.permute((1, 0)), dtype)


def gather_flattened(data, indices, axis=0, dtype=None):
    """``out[p, i] = data[p, indices[p, i]]``, the free dimensions of ``data`` flattened."""
    out = ndarray(indices.shape, dtype=data.dtype, buffer=sbuf)
    nisa.nc_n_gather(out, data, indices)
    return out if dtype in (None, data.dtype) else copied(out, dtype)


def broadcast_to(x, shape, dtype=None):
    """A tile of ``shape``; dimensions of size 1 are repeated. ``x`` itself when nothing changes."""
    shape = tuple(shape)
    if len(shape) != x.ndim:
        raise _vtrn.NkiValueError(f"nl.broadcast_to: {tuple(x.shape)} to {shape}: the ranks differ")
    if shape == tuple(x.shape) and dtype in (None, x.dtype):
        return x
    view = x
    for dim in range(1, x.ndim):
        if view.shape[dim] != shape[dim]:
            view = view.broadcast(dim, shape[dim])
    tile = ndarray(shape, dtype=dtype or x.dtype, buffer=sbuf)
    if shape[0] == x.shape[0]:
        nisa.tensor_copy(tile, view)
        return tile
    if x.shape[0] != 1:
        raise _vtrn.NkiValueError(f"nl.broadcast_to: {tuple(x.shape)} to {shape}: dimension 0 is not 1")
    # Compute engines do not move data across partitions; DMA reads the one partition for each.
    source = in_sbuf(view)
    nisa.dma_copy(tile, source.ap([[0, shape[0]], *source.get_pattern()[1:]]))
    return tile


def expand_dims(x, axis):
    """A view with a size-1 dimension at ``axis``."""
    return x.expand_dim(axis)


def transpose(x, dtype=None):
    """The transpose of a 2-D tile, in PSUM."""
    source = in_sbuf(x)
    out = ndarray((x.shape[1], x.shape[0]), dtype=source.dtype, buffer=psum)
    nisa.nc_transpose(out, source, engine=nisa.engine.tensor)
    return out if dtype in (None, x.dtype) else copied(out, dtype)


def matmul(x, y, transpose_x=False):
    """``x @ y`` (``x.T @ y`` with transpose_x), fp32 in PSUM."""
    stationary = in_sbuf(x) if transpose_x else copied(transpose(x))
    out = ndarray((stationary.shape[1], y.shape[1]), dtype="float32", buffer=psum)
    nisa.nc_matmul(out, stationary, in_sbuf(y))
    return out


def _tensor_assign(view, value):
    """``t[key] = value``: a copy of a tensor, or the same number everywhere."""
    if not isinstance(value, _vtrn.NkiTensor):
        _fill(view, value)
    elif is_hbm(view.buffer) or is_hbm(value.buffer):
        nisa.dma_copy(view, in_sbuf(value))
    else:
        nisa.tensor_copy(view, value)


_vtrn.extend_tensor("_assign", _tensor_assign)


# ---- looking at values ----


def _tensor_numpy(tensor):
    """The values as a NumPy array; everything up to here runs first, and the program cannot be replayed."""
    tensor._mark_looked()
    return arrays.read(tensor)


def _tensor_text(tensor):
    return f"{tensor!r}\n{arrays.read(tensor)}"


def _tensor_array(tensor, dtype=None, copy=None):
    values = _tensor_numpy(tensor)
    return values if dtype is None else values.astype(dtype)


_vtrn.extend_tensor("numpy", _tensor_numpy)
_vtrn.extend_tensor("__array__", _tensor_array)
_vtrn.extend_tensor("_text", _tensor_text)
