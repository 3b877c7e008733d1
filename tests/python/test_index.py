"""t[...] against NumPy: values, shapes, and the rules that differ (partition dimension, minimum rank)."""

import numpy as np
import pytest
import vtrn
import vtrn.nki.language as nl
from helpers import load, run


def random_item(rng, size, allow_int=True):
    kind = rng.integers(0, 5 if allow_int else 4)
    if kind == 0:
        return slice(None)
    start = int(rng.integers(0, size))
    stop = int(rng.integers(start + 1, size + 1))
    if kind == 1:
        return slice(start, stop)
    if kind == 2:
        return slice(start, stop, int(rng.integers(1, 4)))
    if kind == 3:
        return slice(start - size, None if stop == size else stop - size)
    return int(rng.integers(-size, size))


def random_index(rng, shape):
    items = [random_item(rng, size) for size in shape[: rng.integers(1, len(shape) + 1)]]
    if rng.integers(0, 3) == 0:
        items.insert(int(rng.integers(0, len(items) + 1)), ...)
        taken = len(items) - 1
        if items.index(...) < taken:  # the items after ... index the last dimensions
            after = taken - items.index(...)
            for i in range(after):
                items[len(items) - after + i] = random_item(rng, shape[len(shape) - after + i])
    return tuple(items)


def expected(array, index, on_chip):
    """NumPy's answer, with the partition dimension kept and the minimum rank."""
    items = list(index)
    if on_chip and items and isinstance(items[0], int):
        start = items[0] % array.shape[0]
        items[0] = slice(start, start + 1)
    elif on_chip and items[0] is ... and sum(i is not ... for i in items) == array.ndim and isinstance(items[1], int):
        start = items[1] % array.shape[0]
        items[1] = slice(start, start + 1)
    result = array[tuple(items)]
    while result.ndim < (2 if on_chip else 1):
        result = result[..., None]
    return result


@pytest.mark.parametrize("on_chip", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_indices_equal_numpy(seed, on_chip):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 9, size=rng.integers(2, 5)))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def kernel(x):
        t = load(x) if on_chip else x
        for _ in range(150):
            view, want, names = t, array, []
            for _ in range(rng.integers(1, 3)):  # slices of slices compose
                index = random_index(rng, view.shape)
                names.append(index)
                view, want = view[index], expected(want, index, on_chip)
            assert view.shape == want.shape, names
            assert np.array_equal(view.numpy(), want), names

    run(kernel, array)


def test_partition_integer_keeps_the_dimension_and_free_integers_drop_it():
    def kernel(x):
        t = nl.ndarray((64, 4, 10), nl.float32)
        assert t[3].shape == (1, 4, 10)
        assert t[0, 0].shape == (1, 10)
        assert t[0, 0, 9].shape == (1, 1)
        assert t[:, 0, 9].shape == (64, 1)
        assert t[..., 9].shape == (64, 4)
        assert t[5].offset == 5 * 40 and t[5, 2].offset == 5 * 40 + 20
        h = nl.ndarray((4, 5, 6), nl.float32, buffer=nl.hbm)
        assert h[1].shape == (5, 6) and h[1, 2, 3].shape == (1,) and h[1, 2, 3].offset == 30 + 12 + 3
        assert h[:, None, 2].shape == (4, 1, 6)

    run(kernel, np.zeros((1, 1), np.float32))


def test_ds_and_numpy_integers_are_indices():
    array = np.arange(64, dtype=np.float32).reshape(4, 16)

    def kernel(x):
        assert np.array_equal(x[nl.ds(1, 2), nl.ds(np.int64(3), 5)].numpy(), array[1:3, 3:8])
        assert np.array_equal(x[np.int32(2)].numpy(), array[2])
        assert x[:, 0:99].shape == (4, 16)  # ends are clamped as in Python
        assert x[nl.ds(2, 0)].shape == x[2:2].shape == (0, 16)  # a share of nothing; instructions refuse it
        assert repr(nl.ds(1, 2)) == "nl.ds(1, 2)" and nl.ds(start=1, size=2).size == 2

    run(kernel, array)


@pytest.mark.parametrize(
    "index, words",
    [
        ((4,), "index 4 is outside 0..3"),
        ((-5,), "index -5 is outside"),
        ((slice(2, 1),), "slice [2:1] of size 4 is empty"),
        ((slice(9, 12),), "is empty"),
        ((slice(0, 4, -1),), "step -1"),
        ((0, 0, 0), "3 indices for 2 dimensions"),
        ((..., ...), "more than one ..."),
        ((1.5,), "float is not an index"),
        (("a",), "str is not an index"),
        ((True,), "bool is not an index"),
        ((slice(0, "x"),), "the bounds of a slice are integers"),
    ],
)
def test_wrong_indices_say_what_is_wrong(index, words):
    def kernel(x):
        x[index]

    with pytest.raises((IndexError, TypeError)) as caught:
        run(kernel, np.zeros((4, 8), np.float32))
    assert words in str(caught.value)


def test_ds_out_of_range_names_the_range():
    with pytest.raises(
        vtrn.NkiIndexError, match=r"test_index.py:\d+ index: dimension 1: nl.ds\(6, 4\) is outside 0..7.*x \(4, 8\)"
    ):
        run(lambda x: x[:, nl.ds(6, 4)], np.zeros((4, 8), np.float32))
