"""nl.tile_size: sizes of the target. Memory regions and predicates on them."""

import enum
import os

from vtrn import _vtrn
from vtrn.settings import current_target


class MemoryRegion(enum.Enum):
    """Where a tensor is."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"


sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
hbm = private_hbm = MemoryRegion.private_hbm
shared_hbm = MemoryRegion.shared_hbm
_vtrn.register_buffers(sbuf, psum, hbm, shared_hbm)

_HBM = ("hbm", "private_hbm", "shared_hbm", hbm, shared_hbm)


def is_hbm(buffer):
    return buffer in _HBM


def is_sbuf(buffer):
    return buffer in ("sbuf", sbuf)


def is_psum(buffer):
    return buffer in ("psum", psum)


def is_on_chip(buffer):
    return is_sbuf(buffer) or is_psum(buffer)


def _size(name):
    return _vtrn.target_size(current_target(), name)


def _of_target(name, doc):
    return property(lambda self: _size(name), doc=doc)


class _TileSize:
    """Sizes of the target's memories and engines."""

    pmax = _of_target("partitions", "partitions of a tile, at most")
    psum_bank_fmax_bytes = _of_target("psum_bank_bytes", "bytes of a PSUM bank in a partition")
    psum_bank_fmax = property(lambda self: self.psum_bank_fmax_bytes // 4, doc="fp32 elements of a PSUM bank in a partition")
    psum_fmax = psum_bank_fmax
    gemm_stationary_fmax = _of_target("stationary_max", "free size of the stationary operand, at most")
    gemm_moving_fmax = psum_bank_fmax  # what one PSUM bank takes; newer generations accept more, kernels tile by this
    bn_stats_fmax = _of_target("bn_stats_max", "free size of bn_stats, at most")
    psum_min_align = 4  # one fp32 accumulator
    sbuf_min_align = 1  # addresses are bytes; published kernels place byte tensors anywhere
    sbuf_fmax_bytes = _of_target("sbuf_usable_bytes", "SBUF bytes in a partition that kernels may use")
    total_available_sbuf_size = sbuf_fmax_bytes
    sbuf_fmax = property(lambda self: self.sbuf_fmax_bytes // 4, doc="fp32 elements of a partition that kernels may use")
    sbuf_size_bytes = property(lambda self: _size("partitions") * _size("sbuf_partition_bytes"), doc="all of SBUF")

    @property
    def psum_num_banks(self):
        """PSUM banks that kernels may use; one is kept when DMA transposes run on the tensor engine."""
        reserved = os.environ.get("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "").lower() == "true" and _size("nc_version") >= 3
        return _size("psum_banks") - reserved


tile_size = _TileSize()
