"""nki.compiler of NKI 0.1: where tensors are placed. Decorators that steer AWS's compiler change nothing."""

import contextlib
import functools
import inspect
import math

from vtrn import _vtrn
from vtrn.neuronxcc.nki.blocks import Blocks
from vtrn.neuronxcc.nki.launch import call_site, instance
from vtrn.neuronxcc.nki.tile import Tensor, fail
from vtrn.nki.language import tiles
from vtrn.nki.language.loops import no_reorder


def _unchanged(function=None, **_options):
    return (lambda decorated: decorated) if function is None else function


enable_stack_allocator = _unchanged
force_auto_alloc = _unchanged
skip_middle_end_transformations = _unchanged


def multi_buffer(factor=2):
    """The number of buffers of a tensor; every iteration has its own here."""
    return contextlib.nullcontext()


def allocation_scope():
    """The scope of tensors; they live as long as Python's objects."""
    return contextlib.nullcontext()


class _Place:
    """A buffer= that says where each tile is."""

    def __init__(self, buffer, address):
        self.buffer, self.address = buffer, address

    def place(self, shape, dtype, par, name):
        blocks, rows, free = shape[:par], shape[par], shape[par + 1 :] or (1,)
        size = math.prod(free) * _vtrn.dtypes[dtype]
        state, site = instance(), call_site()

        def make(index):
            address = self.address and state.address(site, functools.partial(self.address, index, rows, size))
            options = {} if address is None else {"address": address}
            return Tensor(_vtrn.ndarray((rows, *free), dtype=dtype, buffer=self.buffer, name=name, **options), 0)

        return Blocks(blocks, (rows, *free), make).make_all() if blocks else make(())


def _modulo(base, sizes, scale):
    """Address of a block: its index modulo ``sizes`` in row-major order, times ``scale``, from ``base``."""

    def of(index):
        limits = tuple(sizes) or (1,) * len(index)
        if not index:  # no blocks: there is one tile, however many may stand behind it
            return base
        if len(limits) != len(index):
            fail("mod_alloc", f"{len(limits)} numbers of tiles {limits} for {len(index)} block dimensions")
        number = 0
        for i, n in zip(index, limits, strict=True):
            number = number * n + i % n
        return base + number * scale

    return of


def _ask(func, index, rows, size):
    """An allocation function's answer; its parameters are idx, pdim_size and fdim_size where it has them by name."""
    named = {"idx": index, "pdim_size": rows, "fdim_size": size}
    try:
        inspect.signature(func).bind(**named)
    except (TypeError, ValueError):
        return tuple(int(n) for n in func(index, rows, size))
    return tuple(int(n) for n in func(**named))


class _Sbuf:
    """``nki.compiler.sbuf``"""

    def alloc(self, func):
        """Tiles at (partition, byte) = func(block index, partitions, bytes)."""
        return _Place(tiles.sbuf, functools.partial(_ask, func))

    def mod_alloc(self, *, base_addr, base_partition=0, num_par_tiles=(), num_free_tiles=()):
        """Tiles one behind the other from ``base_addr`` on, used again after ``num_free_tiles``."""
        return _Place(
            tiles.sbuf,
            lambda index, rows, size: (
                _modulo(base_partition, num_par_tiles, rows)(index),
                _modulo(base_addr, num_free_tiles, size)(index),
            ),
        )

    def auto_alloc(self):
        """Tiles at addresses that vtrn chooses."""
        return _Place(tiles.sbuf, None)


class _Psum:
    """``nki.compiler.psum``"""

    def alloc(self, func):
        """Tiles at (bank, partition, byte) = func(block index, partitions, bytes)."""

        def address(index, rows, size):
            bank, partition, byte = (*_ask(func, index, rows, size), 0, 0)[:3]
            return partition, bank * _bank_bytes() + byte

        return _Place(tiles.psum, address)

    def mod_alloc(self, *, base_bank, base_addr=0, base_partition=0, num_bank_tiles=(), num_par_tiles=(), num_free_tiles=()):
        """Tiles in banks from ``base_bank`` on, used again after ``num_bank_tiles``."""

        def address(index, rows, size):
            bank = _modulo(base_bank, num_bank_tiles, 1)(index)
            return (
                _modulo(base_partition, num_par_tiles, rows)(index),
                bank * _bank_bytes() + _modulo(base_addr, num_free_tiles, size)(index),
            )

        return _Place(tiles.psum, address)

    def auto_alloc(self):
        """Tiles at addresses that vtrn chooses."""
        return _Place(tiles.psum, None)


def _bank_bytes():
    return _vtrn.target_size(_vtrn.current_target(), "psum_bank_bytes")


sbuf, psum = _Sbuf(), _Psum()

__all__ = [
    "allocation_scope",
    "enable_stack_allocator",
    "force_auto_alloc",
    "multi_buffer",
    "no_reorder",
    "psum",
    "sbuf",
    "skip_middle_end_transformations",
]
