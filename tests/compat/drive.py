"""References for public kernels whose scripts have none: runs the kernel of an unmodified file on random data and compares.

    vtrn run drive.py NAME FILE.py
"""

import runpy
import sys

import ml_dtypes
import numpy as np


def addition(module, rng):
    a, b = (rng.standard_normal((256, 1024), np.float32).astype(np.float16) for _ in range(2))
    return module["nki_tensor_add"](a, b), a + b, 0


def start(module, rng):
    a, b = (rng.standard_normal((100, 77), np.float32).astype(np.float16) for _ in range(2))
    return module["nki_tensor_add_kernel"](a, b), a + b, 0


def exponential(module, rng):
    x = rng.standard_normal((128, 512), np.float32)
    return module["tensor_exp_kernel_"](x), np.exp(x), 1e-6


def split(module, rng):
    x = rng.standard_normal((100, 77), np.float32).astype(ml_dtypes.bfloat16)
    even, odd = module["tensor_split_kernel_"](x)
    return np.concatenate([even, odd], 1), np.concatenate([x[:, ::2], x[:, 1::2]], 1), 0


def maxpool(module, rng):
    x = rng.standard_normal((64, 12, 18), np.float32)
    return module["tensor_maxpool_kernel_"](x, 3), x.reshape(64, 4, 3, 6, 3).max((2, 4)), 0


def main() -> int:
    name, path = sys.argv[1:3]
    module = runpy.run_path(path, run_name="kernels")  # not __main__: only the kernels
    result, reference, limit = globals()[name](module, np.random.default_rng(0))
    result, reference = np.asarray(result, np.float64), np.asarray(reference, np.float64)
    error = np.abs(result - reference).max() / np.abs(reference).max()
    good = result.shape == reference.shape and error <= limit
    print(f"{name}: {'match' if good else 'differ'}, largest relative error {error:.1e}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
