"""A tiled matrix product in bfloat16 with fp32 sums in PSUM.

    vtrn run examples/matmul_bf16.py
"""

import common
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def matmul(a_t, b):
    """c[M, N] = a_t[K, M].T @ b[K, N]. M and K are multiples of 128, N of 512."""
    k_size, m_size = a_t.shape
    _, n_size = b.shape
    tile_k, tile_m, tile_n = nl.tile_size.pmax, nl.tile_size.gemm_stationary_fmax, nl.tile_size.gemm_moving_fmax
    k_tiles = k_size // tile_k
    c = nl.ndarray((m_size, n_size), dtype=a_t.dtype, buffer=nl.shared_hbm)

    # All of a_t stays in SBUF; of b, one block of columns at a time.
    a_tiles = nl.ndarray((tile_k, k_tiles, m_size), dtype=a_t.dtype, buffer=nl.sbuf)
    for k in range(k_tiles):
        nisa.dma_copy(dst=a_tiles[:, k, :], src=a_t[k * tile_k : (k + 1) * tile_k, :])

    for n in range(n_size // tile_n):
        columns = slice(n * tile_n, (n + 1) * tile_n)
        b_tiles = nl.ndarray((tile_k, k_tiles, tile_n), dtype=b.dtype, buffer=nl.sbuf)
        for k in range(k_tiles):
            nisa.dma_copy(dst=b_tiles[:, k, :], src=b[k * tile_k : (k + 1) * tile_k, columns])
        for m in range(m_size // tile_m):
            rows = slice(m * tile_m, (m + 1) * tile_m)
            total = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
            for k in range(k_tiles):  # the first product overwrites the bank, the others add to it
                nisa.nc_matmul(dst=total, stationary=a_tiles[:, k, rows], moving=b_tiles[:, k, :])
            tile = nl.ndarray((tile_m, tile_n), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=total)
            nisa.dma_copy(dst=c[rows, columns], src=tile)
    return c


def run(size=2048) -> common.Outcome:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((size, size), np.float32).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((size, size), np.float32).astype(ml_dtypes.bfloat16)
    a_t = np.ascontiguousarray(a.T)
    reference = a.astype(np.float32) @ b.astype(np.float32)

    if common.HAS_TORCH:
        import torch

        a_torch, b_torch = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b))
        native, native_call = "torch.mm bf16", lambda: torch.mm(a_torch, b_torch)
    else:
        native, native_call = "numpy fp32", lambda: a.astype(np.float32) @ b.astype(np.float32)
    return common.outcome(
        "bf16 matmul", f"{size} x {size} x {size}", lambda: matmul(a_t, b), reference, 2**-8, native, native_call
    )


if __name__ == "__main__":
    common.main(run)
