"""nki.language: tensors, dtypes, loops, and functions on tiles."""
# ruff: noqa: F401 - names are imported to be found here

import sys as _sys

from vtrn import _vtrn
from vtrn._vtrn import NkiTensor, ds
from vtrn.nki.language import dtypes as dtypes
from vtrn.nki.language.dtypes import *  # noqa: F403
from vtrn.nki.language.loops import (
    affine_range,
    dynamic_range,
    fori_loop,
    no_reorder,
    sequential_range,
    static_range,
    while_loop,
)
from vtrn.nki.language.maths import (
    all,
    ceil,
    cos,
    dropout,
    floor,
    logical_not,
    max,
    mean,
    min,
    negative,
    prod,
    rms_norm,
    softmax,
    sum,
    tan,
    trunc,
    var,
    where,
)
from vtrn.nki.language.memory import (
    broadcast_to,
    empty_like,
    expand_dims,
    full,
    gather_flattened,
    load,
    load_transpose2d,
    matmul,
    ndarray,
    ones,
    par_dim,
    rand,
    random_seed,
    shared_constant,
    shared_identity_matrix,
    store,
    transpose,
    zeros,
    zeros_like,
)
from vtrn.nki.language.objects import NKIObject
from vtrn.nki.language.tiles import (
    MemoryRegion,
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    private_hbm,
    psum,
    sbuf,
    shared_hbm,
    tile_size,
)
from vtrn.nki.language.tiles import (
    _TileSize as _TileSize,
)

DType = str
dtype = str
tensor = NkiTensor
range = range
bool = bool_  # noqa: F405
device_print = _vtrn.functions["device_print"]
globals().update(_vtrn.ops)  # nl.add, nl.exp, ...: values for op= and functions


def program_id(axis=0):
    """The core that this kernel runs on."""
    if axis != 0:
        raise _vtrn.NkiValueError(f"nl.program_id: axis {axis}; the launch grid has one")
    return _vtrn.core_id()


def num_programs(axes=0):
    """The number of cores that run the kernel."""
    if axes not in (0, None, (0,), [0]):
        raise _vtrn.NkiValueError(f"nl.num_programs: axes {axes}; the launch grid has one")
    return _vtrn.core_count()


def program_ndim():
    """1 when the kernel was launched as ``kernel[lnc]``, else 0."""
    return _vtrn.grid_ndim()


# A star import must not hide the built-in range and bool.
__all__ = [name for name in _sys.modules[__name__].__dict__ if not name.startswith("_") and name not in ("range", "bool")]
