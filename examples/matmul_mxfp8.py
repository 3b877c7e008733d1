"""A matrix product in MXFP8 (trn3): bf16 operands are quantised on the chip to fp8 with a power-of-two scale for every 32
values, then multiplied at four times the rate of bf16.

    vtrn run examples/matmul_mxfp8.py
"""

import common
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

GROUP = 4  # values of one packed element: consecutive in the contraction
TILE_K = 128 * GROUP  # contraction of one instruction


def load_and_quantize(matrix, k_start, columns):
    """Rows k_start .. k_start + 511 of some columns as packed fp8 and scales.

    Row k_start + 128 q + p becomes value q of partition p. Any order would do, when both operands have the same.
    """
    count = columns.stop - columns.start
    tile = nl.ndarray((128, count, GROUP), dtype=matrix.dtype, buffer=nl.sbuf)
    for q in range(GROUP):
        first = k_start + 128 * q
        nisa.dma_copy(dst=tile[:, :, q], src=matrix[first : first + 128, columns])
    packed = nl.ndarray((128, count), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    scale = nl.ndarray((128, count), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=packed, src=tile.reshape((128, count * GROUP)), dst_scale=scale)
    return packed, scale


@nki.jit(platform_target="trn3")
def matmul_mxfp8(a_t, b):
    """c[M, N] = a_t[K, M].T @ b[K, N]. M is a multiple of 128, N and K of 512."""
    k_size, m_size = a_t.shape
    _, n_size = b.shape
    tile_m, tile_n = 128, 512
    k_tiles = range(k_size // TILE_K)
    c = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.shared_hbm)

    a_parts = [load_and_quantize(a_t, k * TILE_K, slice(0, m_size)) for k in k_tiles]
    for n in range(n_size // tile_n):
        columns = slice(n * tile_n, (n + 1) * tile_n)
        b_parts = [load_and_quantize(b, k * TILE_K, columns) for k in k_tiles]
        for m in range(m_size // tile_m):
            rows = slice(m * tile_m, (m + 1) * tile_m)
            total = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
            for (a, a_scale), (b_part, b_scale) in zip(a_parts, b_parts, strict=True):
                nisa.nc_matmul_mx(
                    dst=total, stationary=a[:, rows], moving=b_part, stationary_scale=a_scale[:, rows], moving_scale=b_scale
                )
            tile = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=total)
            nisa.dma_copy(dst=c[rows, columns], src=tile)
    return c


def quantized(matrix):
    """What the chip makes of a bf16 matrix [K, columns], as fp32: the reference in NumPy.

    A group is 8 partitions x 4 values, which load_and_quantize takes from rows 128 q + p with p in one block of 8.
    """
    k_size, columns = matrix.shape
    values = matrix.astype(np.float32).reshape(k_size // TILE_K, GROUP, 16, 8, columns)  # tile, q, block, row in block, column
    largest = np.abs(values).max(axis=(1, 3), keepdims=True)
    exponent = np.floor(np.log2(largest, where=largest > 0, out=np.zeros_like(largest)))
    scale = np.exp2(exponent - 7)  # the largest exponent of e4m3fn is 8; one is kept for rounding up
    return (values / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32).__mul__(scale).reshape(k_size, columns)


def run(size=1024) -> common.Outcome:
    rng = np.random.default_rng(2)
    a_t = rng.standard_normal((size, size), np.float32).astype(ml_dtypes.bfloat16)
    b = (rng.standard_normal((size, size), np.float32) * np.exp2(rng.integers(-6, 7, (1, size)))).astype(ml_dtypes.bfloat16)
    reference = quantized(a_t).T @ quantized(b)

    if common.HAS_TORCH:
        import torch

        a_torch, b_torch = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (np.ascontiguousarray(a_t.T), b))
        native, native_call = "torch.mm bf16", lambda: torch.mm(a_torch, b_torch)
    else:
        native, native_call = "numpy fp32", lambda: a_t.astype(np.float32).T @ b.astype(np.float32)
    return common.outcome(
        "MXFP8 matmul", f"{size} x {size} x {size}", lambda: matmul_mxfp8(a_t, b), reference, 1e-5, native, native_call
    )


if __name__ == "__main__":
    common.main(run)
