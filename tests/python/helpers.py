"""What the Python tests share: running a kernel body on arrays, and reference values."""

import numpy as np
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl

TARGETS = ("trn1", "trn2", "trn3")


def run(kernel, *arrays, target="trn2", **options):
    return vtrn.run(kernel, *arrays, target=target, **options)


def load(x):
    """An SBUF tile with the values of an HBM tensor."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(tile, x)
    return tile


def save(tile):
    """An output tensor with the values of an on-chip tile."""
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    if tile.buffer == nl.psum:
        copy = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(copy, tile)
        tile = copy
    nisa.dma_copy(out, tile)
    return out


def on_tiles(body, *arrays, target="trn2", **options):
    """Loads every array, calls body(*tiles) and returns its tiles as arrays."""

    def kernel(*tensors):
        result = body(*[load(x) for x in tensors])
        return tuple(save(t) for t in result) if isinstance(result, tuple) else save(result)

    return run(kernel, *arrays, target=target, **options)


def tile(shape, dtype=nl.float32, buffer=nl.sbuf, **more):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer, **more)


def random_array(seed, *shape, dtype=np.float32, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
