"""A first kernel: y = silu(x), 128 rows at a time.

    vtrn run examples/first_kernel.py                 runs it and compares with NumPy
    vtrn run examples/first_kernel.py silu.vtrn       also records it as a program, and x as x.npy beside it
"""

import pathlib
import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def silu(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="y")
    for row in range(0, x.shape[0], 128):
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + 128, :])
        nisa.activation(dst=tile, op=nl.silu, data=tile)
        nisa.dma_copy(dst=y[row : row + 128, :], src=tile)
    return y


def main():
    x = np.linspace(-8, 8, 512 * 512, dtype=np.float32).reshape(512, 512)
    y = silu(x)
    print(f"y[0, 0] = {y[0, 0]:.6f}, y[511, 511] = {y[511, 511]:.6f}")
    print(f"largest difference to NumPy: {np.abs(y - x / (1 + np.exp(-x))).max():.1e}")
    if len(sys.argv) > 1:
        import vtrn

        path = pathlib.Path(sys.argv[1])
        vtrn.trace(silu, x).save(path)
        np.save(path.with_name("x.npy"), x)
        print(f"recorded {path}")


if __name__ == "__main__":
    main()
