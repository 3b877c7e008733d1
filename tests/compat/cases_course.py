"""Assignment 4 of Stanford's CS149 (vector additions, a transpose, a fused convolution with max-pooling), as students solved it."""

import itertools

import numpy as np
from checkout import case, normal, uniform

VECTOR, CONV = "part1/kernels.py", "part2/conv2d.py"
SMALL, SQUARE = (4, 128, 32, 16), (1, 256, 34, 34)


def _vectors(size):
    return normal(1, size), normal(2, size)


def _additions(names):
    def check(at):
        kernels = at.module()
        for name in names:
            a, b = _vectors(128 if "naive" in name else 12800 if "tiled" in name else 512000)
            got = np.asarray(getattr(kernels, name)(a, b)).reshape(-1)
            at.equal(got, b + b if name.endswith("_bad") else a + b)

    return check


def _transposes(names):
    def check(at):
        kernels = at.module()
        for name in names:
            x = normal(1, 256, 384)
            at.equal(getattr(kernels, name)(x), x.T)

    return check


def _convolution(pools, shapes, dtypes=(np.float32, np.float16)):
    def check(at):
        import torch
        from torch.nn import functional

        kernel = at.module().fused_conv2d_maxpool
        for dtype, pool, shape, channels in itertools.product(dtypes, pools, shapes, (128, 256)):
            x, w, bias = (uniform(seed, *dims).astype(dtype) for seed, dims in
                          enumerate((shape, (channels, shape[1], 3, 3), (channels,))))  # fmt: skip
            wide = [torch.from_numpy(array.astype(np.float64)) for array in (x, w, bias)]
            want = functional.max_pool2d(functional.conv2d(*wide), pool)
            at.close(kernel(x, w, bias, pool), want, 1e-5 if dtype == np.float32 else 3e-3, 1e-4)

    return check


def _add(repository, name, path, title, check, reference, kernels=1, **more):
    check.__name__, check.__doc__ = name, title
    case(repository, path, reference, kernels=kernels, **more)(check)


_BASIC, _DIRECT = ("vector_add_naive", "vector_add_stream"), ("vector_add_direct_allocation", "vector_add_direct_allocation_bad")
_PARTITIONS = "partition dimension 256 > 128"


def _solution(
    repository, additions=_BASIC, transposes=("matrix_transpose",), pools=(1, 2), shapes=(SMALL, SQUARE), needs=("torch",)
):
    title = "vector additions" + (", and one whose three tiles share their addresses: b + b" if _DIRECT[1] in additions else "")
    _add(repository, "vector_additions", VECTOR, title, _additions(additions), "NumPy", len(additions))
    if transposes:
        _add(repository, "transpose", VECTOR, "transpose", _transposes(transposes), "NumPy", len(transposes))
    if "vector_add_tiled" not in additions:
        _add(
            repository, "rows_of_256", VECTOR, "vector addition by 256 rows, as the exercise leaves it",
            _additions(["vector_add_tiled"]),
            "NumPy", refused=_PARTITIONS,
        )  # fmt: skip
    if pools:
        words = "convolution with max-pooling" if 2 in pools else "convolution (pooling is not written yet)"
        _add(repository, "convolution", CONV, words, _convolution(pools, shapes), "torch.conv2d", needs=needs)


_ALL = (*_BASIC, "vector_add_tiled")
_solution("xaviergonzalez/asst4-trainium2")
_solution("robertpare17/asst4-trainium", additions=(*_BASIC, *_DIRECT), transposes=())
_solution("rishic3/asst4-trainium2", _ALL, ("matrix_transpose", "matrix_transpose_improved"))
_solution("EtashGuha/asst4-trainium2", pools=(1,), needs=("torch", "tqdm"))
_solution("chengli2003/asst4-trainium2", _ALL, pools=(1,), shapes=(SMALL,))
_solution("akjadhav/asst4-trainium", (*_ALL, *_DIRECT), (), pools=(1,))
_solution("waahm7/asst4-trainium", (*_ALL, *_DIRECT), (), pools=())
_solution("tianyeeT/cs149-asst4-trainium2", _ALL, pools=())
_solution("nriedman/asst4-trainium2", _ALL)
_solution("a-argy/asst4-trainium2", _ALL, (), shapes=(SMALL,))  # its chunks of rows leave out what does not divide
_solution("chenhzhu/asst4-trainium2", shapes=(SMALL,))  # likewise
_solution("ichuniq/asst4-trainium", _ALL, ())

_add(
    "EtashGuha/asst4-trainium2", "pooling_out_of_bounds", CONV, "the same with pooling: stores outside the pooled result",
    _convolution((2,), (SMALL,)), "torch.conv2d", refused="indices 7..7 of dimension 3 are outside 0..6", needs=("torch", "tqdm"),
)  # fmt: skip
_add(
    "ewang675/asst4-trainium", "reshape_of_partitions", CONV, "unfinished convolution: a reshape moves data across partitions",
    _convolution((1,), (SMALL,)), "torch.conv2d",
    refused="reshape: an on-chip view keeps a partition and a free dimension", needs=("torch",),
)  # fmt: skip
