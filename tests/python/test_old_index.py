"""Index expressions and masks of the old namespace (neuronxcc.nki) against NumPy."""

import numpy as np
import pytest
import vtrn
from hypothesis import given, settings
from hypothesis import strategies as st
from vtrn.neuronxcc import nki
from vtrn.neuronxcc.nki import isa as nisa
from vtrn.neuronxcc.nki import language as nl

P, F = 128, 96
X = np.arange(P * F, dtype=np.float32).reshape(P, F)


def grids(*sizes):
    return np.meshgrid(*map(np.arange, sizes), indexing="ij")


def run_mask(mask, x=X):
    """nl.copy with a mask into a tile that holds -1."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(x.shape[0])[:, None], nl.arange(x.shape[1])[None, :]
        source = nl.load(x)
        tile = nl.full(x.shape, -1, dtype=x.dtype)
        tile[i_p, i_f] = nl.copy(source, mask=mask(i_p, i_f))
        nl.store(out, tile)
        return out

    return kernel(x)


MASKS = {
    "box": lambda p, f: (p < 40) & (f < 13),
    "inner box": lambda p, f: (p >= 32) & (p < 40) & (f > 3) & (f <= 20),
    "ragged rows": lambda p, f: p < 5,
    "odd start": lambda p, f: (p >= 5) & (p < 97) & (f < 10),
    "flat": lambda p, f: p * 96 + f < 1000,
    "causal": lambda p, f: p >= f,
    "anti-causal": lambda p, f: p + f < 60,
    "two boxes": lambda p, f: (f < 4) | (f >= 90),
    "not": lambda p, f: ~((p < 64) & (f < 48)),
    "equal": lambda p, f: f == 7,
    "unequal": lambda p, f: f != 7,
    "stripes": lambda p, f: f % 8 < 3,
    "blocks": lambda p, f: (f // 16) % 2 == 0,
    "rows": lambda p, f: p % 32 == 1,
    "nothing": lambda p, f: p < 0,
    "everything": lambda p, f: p >= 0,
    "with a number": lambda p, f: (p < 64) & True,
}


@pytest.mark.parametrize("name", MASKS)
def test_masked_parts_keep_their_contents(name):
    where = np.broadcast_to(MASKS[name](*np.meshgrid(np.arange(P), np.arange(F), indexing="ij")), X.shape)
    np.testing.assert_array_equal(run_mask(MASKS[name]), np.where(where, X, -1))


@settings(max_examples=40, deadline=None)
@given(
    a=st.integers(-3, 3),
    b=st.integers(-3, 3),
    c=st.integers(-150, 150),
    d=st.integers(1, 40),
    e=st.integers(0, 120),
    join=st.booleans(),
)
def test_random_masks(a, b, c, d, e, join):
    def mask(p, f):
        first, second = a * p + b * f <= c, f % d + p < e
        return first & second if join else first | second

    p, f = np.meshgrid(np.arange(P), np.arange(F), indexing="ij")
    np.testing.assert_array_equal(run_mask(mask), np.where(mask(p, f), X, -1))


@pytest.mark.parametrize("value", [True, False, np.bool_(True), np.bool_(False), None])
def test_a_mask_may_be_a_truth_value(value):
    keeps = value is not None and not value
    np.testing.assert_array_equal(run_mask(lambda p, f: value), np.full_like(X, -1) if keeps else X)


@pytest.mark.parametrize("rows, columns", [(128, 96), (100, 70), (1, 96), (128, 1), (37, 5)])
def test_loads_and_stores_leave_out_what_a_mask_excludes(rows, columns):
    x = np.random.default_rng(0).random((rows, columns), dtype=np.float32)

    @nki.jit
    def kernel(x):
        out = nl.zeros(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:96]
        inside = (i_p < rows) & (i_f < columns)
        tile = nl.load(x[i_p, i_f], mask=inside)
        nl.store(out[i_p, i_f], nl.multiply(tile, 2.0, mask=inside), mask=inside)
        return out

    np.testing.assert_array_equal(kernel(x), x * 2)


def test_an_index_outside_the_tensor_needs_a_mask():
    @nki.jit
    def kernel(x):
        i_p, i_f = nl.mgrid[0:128, 0:97]
        return nl.load(x[i_p, i_f])

    with pytest.raises(vtrn.NkiIndexError, match=r"test_old_index.py:\d+ index: indices 0..96 of dimension 1 are outside 0..95"):
        kernel(X)


def read(key, x, dtype=None):
    @nki.jit
    def kernel(x):
        tile = nl.load(x[key(nl.arange)])
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    got = kernel(x)
    return got


def numpy_arange(*args):
    return np.arange(*args)


CUBE = np.random.default_rng(1).random((6, 64, 24), dtype=np.float32)
KEYS = {
    "row and columns": lambda ar: (2, ar(64)[:, None], ar(24)[None, :]),
    "strided": lambda ar: (1, 2 * ar(32)[:, None], 3 * ar(8)[None, :] + 1),
    "sum of two ranges": lambda ar: (0, ar(64)[:, None, None], 4 * ar(6)[None, :, None] + ar(4)[None, None, :]),
    "overlapping windows": lambda ar: (0, ar(64)[:, None, None], 2 * ar(8)[None, :, None] + ar(5)[None, None, :]),
    "block in the free dimensions": lambda ar: (ar(6)[None, :, None], ar(64)[:, None, None], ar(24)[None, None, :]),
    "block as the partition": lambda ar: (ar(6)[:, None, None], ar(64)[None, :, None], ar(24)[None, None, :]),
    "repeated": lambda ar: (3, ar(64)[:, None, None], ar(4)[None, :, None] * 0 + ar(24)[None, None, :]),
    "quotient": lambda ar: (3, ar(64)[:, None], ar(24)[None, :] // 2),
    "remainder": lambda ar: (3, ar(64)[:, None], ar(24)[None, :] % 6),
    "quotient and remainder": lambda ar: (ar(48)[None, :] // 8 % 6, ar(64)[:, None], ar(48)[None, :] % 8),
    "backwards": lambda ar: (0, ar(64)[:, None], 23 - ar(24)[None, :]),
}


@pytest.mark.parametrize("name", KEYS)
def test_index_expressions_read_what_numpys_do(name):
    np.testing.assert_array_equal(read(KEYS[name], CUBE), CUBE[KEYS[name](numpy_arange)])


@pytest.mark.parametrize(
    "name", [name for name in KEYS if name not in ("overlapping windows", "repeated", "quotient", "remainder")]
)
def test_index_expressions_write_where_numpys_do(name):
    shape = CUBE[KEYS[name](numpy_arange)].shape
    values = np.random.default_rng(2).random(shape, dtype=np.float32)

    @nki.jit
    def kernel(values):
        out = nl.zeros(CUBE.shape, dtype=values.dtype, buffer=nl.shared_hbm)
        nl.store(out[KEYS[name](nl.arange)], nl.load(values))
        return out

    want = np.zeros_like(CUBE)
    want[KEYS[name](numpy_arange)] = values
    np.testing.assert_array_equal(kernel(values), want)


@pytest.mark.parametrize(
    "name", ["row and columns", "sum of two ranges", "overlapping windows", "quotient", "remainder", "backwards"]
)
def test_tiles_on_chip_are_indexed_alike(name):
    _, *key = KEYS[name](nl.arange)
    _, *want = KEYS[name](numpy_arange)

    @nki.jit
    def kernel(x):
        tile = nl.load(x[0])
        part = nl.add(tile[tuple(key)], 1.0)
        out = nl.ndarray(part.shape, dtype=part.dtype, buffer=nl.shared_hbm)
        nl.store(out, part)
        return out

    np.testing.assert_array_equal(kernel(CUBE), CUBE[0][tuple(want)] + 1)


def test_writing_to_a_part_of_a_tile():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((64, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((64, 24), dtype=x.dtype)
        i_p, i_a, i_b = nl.mgrid[0:64, 0:3, 0:4]
        tile[i_p, 8 * i_a + 2 * i_b] = nl.load(x[0, 0:64, 0:12]).reshape((64, 3, 4))
        tile[0:32, 1] = 7
        tile[:, nl.ds(3, 2)] += 1.0
        tile[...] = nl.multiply(tile, 2.0)
        nl.store(out, tile)
        return out

    want = np.zeros((64, 24), np.float32)
    i_p, i_a, i_b = grids(64, 3, 4)
    want[i_p, 8 * i_a + 2 * i_b] = CUBE[0, :64, :12].reshape(64, 3, 4)
    want[0:32, 1] = 7
    want[:, 3:5] += 1
    np.testing.assert_array_equal(kernel(CUBE), want * 2)


def test_mgrid_by_name_and_slices_in_any_place():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((6, 64, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        grid = nl.mgrid[0:64, 0:24]
        for i in nl.affine_range(3):
            nl.store(out[i, grid.p, grid.x], nl.load(x[i, grid.p, grid.x]))
        nl.store(out[3, ...], nl.load(x[3]))
        nl.store(out[4, 0:64, 0:24], nl.load(x[4, :, 0:24]))
        nl.store(out[5, nl.arange(64)[:, None], 0:24], nl.load(x[-1, nl.arange(64)[:, None], :]))
        return out

    np.testing.assert_array_equal(kernel(CUBE), CUBE)


BESIDE = {
    "behind": (lambda: (2, nl.arange(64)[:, None], slice(3, 20)), np.s_[2, :, 3:20]),
    "before": (lambda: (2, slice(5, 60), nl.arange(24)[None, :]), np.s_[2, 5:60, :]),
    "around": (lambda: (slice(1, 4), nl.arange(64)[None, :, None], slice(0, 24)), np.s_[1:4, :, 0:24]),
    "between": (lambda: (nl.arange(6)[:, None, None], slice(0, 64), nl.arange(24)[None, None, :]), np.s_[:]),
    "with a step": (lambda: (0, slice(0, 64, 2), 2 * nl.arange(12)[None, :]), np.s_[0, ::2, ::2]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_slices_beside_index_expressions_are_where_the_expressions_have_ones(name):
    key, want = BESIDE[name]
    np.testing.assert_array_equal(read(lambda _: key(), CUBE), CUBE[want])


@pytest.mark.parametrize("on", ["load", "store"])
def test_rows_by_a_tile_of_indices(on):
    rows = np.random.default_rng(3).permutation(128)[:64].astype(np.int32).reshape(64, 1)

    @nki.jit
    def kernel(x, rows):
        out = nl.zeros((64, F) if on == "load" else (128, F), dtype=x.dtype, buffer=nl.shared_hbm)
        index, i_f = nl.load(rows), nl.arange(F)[None, :]
        if on == "load":
            nl.store(out, nl.load(x[index, i_f]))
        else:
            nl.store(out[index[nl.arange(64)[:, None], 0], i_f], nl.load(x[0:64]))
        return out

    want = np.zeros((128, F), np.float32)
    want[rows[:, 0]] = X[:64]
    np.testing.assert_array_equal(kernel(X, rows), X[rows[:, 0]] if on == "load" else want)


@pytest.mark.parametrize("count", [1, 13, 32, 64])
def test_rows_by_a_tile_of_indices_with_a_mask(count):
    rows = np.random.default_rng(4).integers(0, 128, (64, 1)).astype(np.int32)
    rows[count:] = 100000

    @nki.jit
    def kernel(x, rows):
        out = nl.zeros((64, F), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(64)[:, None], nl.arange(F)[None, :]
        nl.store(out[i_p, i_f], nl.load(x[nl.load(rows), i_f], mask=i_p < count), mask=i_p < count)
        return out

    want = np.zeros((64, F), np.float32)
    want[:count] = X[rows[:count, 0]]
    np.testing.assert_array_equal(kernel(X, rows), want)


def test_an_element_chosen_on_the_chip():
    x = CUBE.copy()
    at = np.array([[4]], np.int32)

    @nki.jit
    def kernel(x, at):
        out = nl.ndarray((64, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x[nl.load(at), nl.arange(64)[:, None], nl.arange(24)[None, :]]))
        return out

    np.testing.assert_array_equal(kernel(x, at), x[4])


SUMS = {
    "tile first": lambda at, i_f: at[0, 0] + i_f,
    "tile last": lambda at, i_f: i_f + at[0, 0],
    "and numbers": lambda at, i_f: at[0, 0] * 1 + i_f + 2 - 2,
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("start", [0, 3, 16])
@pytest.mark.parametrize("on", ["chip", "hbm", "write"])
def test_expressions_that_begin_at_an_element_chosen_on_the_chip(name, start, on):
    at = np.array([[start]], np.int32)

    @nki.jit
    def kernel(x, at):
        index, i_p, i_f = nl.load(at), nl.arange(64)[:, None], nl.arange(8)[None, :]
        key = (i_p, SUMS[name](index, i_f))
        if on == "write":
            out = nl.zeros((64, 24), dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out[key], nl.load(x[0, :, 0:8]))
            return out
        out = nl.ndarray((64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.tensor_copy_dynamic_src(nl.load(x[0])[key]) if on == "chip" else nl.load(x[(0, *key)]))
        return out

    want = CUBE[0, :, start : start + 8]
    if on == "write":
        want = np.zeros((64, 24), np.float32)
        want[:, start : start + 8] = CUBE[0, :, :8]
    np.testing.assert_array_equal(kernel(CUBE, at), want)


def test_an_element_chosen_on_the_chip_that_leaves_the_tensor_is_a_fault():
    @nki.jit
    def kernel(x, at):
        return nl.copy(nl.load(x[0])[nl.arange(64)[:, None], nl.load(at) + nl.arange(8)[None, :]])

    with pytest.raises(vtrn.Fault, match=r"test_old_index.py:\d+ nisa.tensor_copy: .* 17 is outside 0..16"):
        kernel(CUBE, np.array([[17]], np.int32))


@pytest.mark.parametrize(
    "key, text",
    [
        (lambda at, i: at[0, 0] + i * 3, r"indices 0..57 of dimension 1, to which a tile is added, are outside 0..23"),
        (lambda at, i: at[0, 0] + i - 1, r"indices -1..18 of dimension 1, to which a tile is added"),
        (lambda at, i: at + i, "only one element of a tile, not all, can be added to an index expression"),
    ],
)
def test_wrong_sums_of_tiles_and_expressions(key, text):
    @nki.jit
    def kernel(x, at):
        return nl.load(x[0])[nl.arange(64)[:, None], key(nl.load(at), nl.arange(20)[None, :])]

    with pytest.raises(vtrn.NkiIndexError, match=text):
        kernel(CUBE, np.zeros((1, 2), np.int32))


def test_wrong_expressions_say_what_is_wrong():
    i_p, i_f = nl.arange(8)[:, None], nl.arange(4)[None, :]
    with pytest.raises(vtrn.NkiIndexError, match="a product of two ranges is not affine"):
        i_p * i_f
    with pytest.raises(vtrn.NkiIndexError, match="do not broadcast"):
        nl.arange(3) + nl.arange(4)
    with pytest.raises(vtrn.NkiValueError, match="the range from 0 to 0 is empty"):
        nl.arange(0)
