"""nl.* functions on tiles against NumPy, made tensors, and the target's sizes."""

import math

import ml_dtypes
import numpy as np
import pytest
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import TARGETS, load, on_tiles, random_array, run, save

X = random_array(1, 32, 24)
Y = random_array(2, 32, 24)
POSITIVE = random_array(3, 32, 24, low=0.1, high=5.0)
LARGE = random_array(4, 32, 24, low=-60.0, high=60.0)


def close(result, reference, rtol=3e-6, atol=3e-6):
    np.testing.assert_allclose(np.asarray(result, np.float64), reference, rtol=rtol, atol=atol)


UNARY = {
    "exp": (X, np.exp),
    "log": (POSITIVE, np.log),
    "sqrt": (POSITIVE, np.sqrt),
    "rsqrt": (POSITIVE, lambda x: 1 / np.sqrt(x)),
    "tanh": (X, np.tanh),
    "sigmoid": (X, lambda x: 1 / (1 + np.exp(-x))),
    "relu": (X, lambda x: np.maximum(x, 0)),
    "silu": (X, lambda x: x / (1 + np.exp(-x))),
    "softplus": (X, lambda x: np.log1p(np.exp(x))),
    "mish": (X, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "erf": (X, np.vectorize(math.erf)),
    "gelu": (X, lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
    "gelu_apprx_tanh": (X, lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "gelu_apprx_sigmoid": (X, lambda x: x / (1 + np.exp(-1.702 * x))),
    "erf_dx": (X, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
    "reciprocal": (POSITIVE, lambda x: 1 / x),
    "copy": (X, lambda x: x),
    "abs": (X, np.abs),
    "square": (X, np.square),
    "sign": (X, np.sign),
    "negative": (X, np.negative),
    "arctan": (X, np.arctan),
    "ceil": (LARGE, np.ceil),
    "floor": (LARGE, np.floor),
    "trunc": (LARGE, np.trunc),
    "sin": (LARGE, np.sin),
    "cos": (LARGE, np.cos),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    array, function = UNARY[name]
    tolerance = 2e-5 if name in ("sin", "cos") else 3e-6
    close(on_tiles(lambda x: getattr(nl, name)(x), array), function(array.astype(np.float64)), tolerance, tolerance)
    half = on_tiles(lambda x: getattr(nl, name)(x, dtype=nl.bfloat16), array)
    assert half.dtype == ml_dtypes.bfloat16


def test_tan_is_sine_over_cosine():
    close(on_tiles(nl.tan, X * np.float32(0.5)), np.tan(X.astype(np.float64) * 0.5), 1e-5, 1e-5)


def test_rounding_functions_keep_what_has_no_fraction_and_what_is_not_a_number():
    special = np.array([[0.5, -0.5, 1.5, -1.5, 2.0**30, -(2.0**31), 3e38, np.inf, -np.inf, np.nan, 8388609.0, -0.0]], np.float32)
    for name in ("floor", "ceil"):
        assert np.array_equal(on_tiles(getattr(nl, name), special), getattr(np, name)(special), equal_nan=True), name


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_on_tiles_numbers_and_columns(name):
    function, op = BINARY[name], getattr(nl, name)

    def body(x, y, column, row):
        return op(x, y), op(x, 0.5), op(0.5, x), op(x, column), op(column, x), op(x, row)

    got = on_tiles(body, X, Y, Y[:, :1], Y[:1])
    half = np.float32(0.5)
    want = [function(X, Y), function(X, half), function(half, X), function(X, Y[:, :1]), function(Y[:, :1], X), function(X, Y[:1])]
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(a, b.astype(np.float32))


def test_integer_functions():
    a, b = (np.random.default_rng(s).integers(0, 256, (16, 8)).astype(np.int32) for s in (1, 2))

    def body(x, y):
        return (
            nl.bitwise_and(x, y),
            nl.bitwise_or(x, 7),
            nl.bitwise_xor(x, y),
            nl.left_shift(x, 3),
            nl.right_shift(x, 2),
            nl.invert(x),
        )

    want = (a & b, a | 7, a ^ b, a << 3, a >> 2, ~a)
    for got, reference in zip(on_tiles(body, a, b), want, strict=True):
        assert np.array_equal(got, reference)


def test_logical_functions_and_power():
    a, b = (X > 0).astype(np.float32), (Y > 0).astype(np.float32)

    def body(x, y, base):
        return nl.logical_and(x, y), nl.logical_or(x, y), nl.logical_xor(x, y), nl.logical_not(x), nl.power(base, y)

    got = on_tiles(body, a, b, POSITIVE)
    for result, reference in zip(got[:4], (a * b, np.maximum(a, b), (a != b), 1 - a), strict=True):
        assert np.array_equal(result, reference.astype(np.float32))
    close(got[4], POSITIVE**b)


def test_v4_magnitude_functions():
    larger, smaller = on_tiles(lambda x, y: (nl.abs_max(x, y), nl.abs_min(x, y)), X, Y, target="trn3")
    assert np.array_equal(larger, np.where(np.abs(X) > np.abs(Y), X, Y)) and np.array_equal(
        smaller, np.where(np.abs(X) < np.abs(Y), X, Y)
    )
    with pytest.raises(vtrn.NkiValidationError, match="abs_max needs NeuronCore v4"):
        on_tiles(nl.abs_max, X, Y)


def test_reductions_over_trailing_dimensions():
    cube = X.reshape(32, 4, 6)

    def body(x):
        t = x.reshape((32, 4, 6))
        return (
            nl.sum(t, 2),
            nl.sum(t, [1, 2], keepdims=True),
            nl.max(t, axis=-1),
            nl.min(t, axis=(1, 2)),
            nl.mean(t, [1, 2]),
            nl.prod(x, 1),
            nl.var(x, 1),
            nl.sum(x, axis=1, dtype=nl.bfloat16),
        )

    got = on_tiles(body, X)
    want = (
        cube.sum(2),
        cube.sum((1, 2), keepdims=True),
        cube.max(2),
        cube.min((1, 2))[:, None],
        cube.mean((1, 2))[:, None],
        X.prod(1)[:, None],
        X.var(1)[:, None],
    )
    for result, reference in zip(got[:7], want, strict=True):
        assert result.shape == reference.shape
        close(result, reference, 1e-5, 1e-5)
    assert got[7].dtype == ml_dtypes.bfloat16
    with pytest.raises(vtrn.NkiValueError, match="only the last dimensions"):
        on_tiles(lambda x: nl.sum(x, 0), X)
    with pytest.raises(vtrn.NkiValueError, match="only the last dimensions"):
        on_tiles(lambda x: nl.sum(x.reshape((32, 4, 6)), 1), X)


def test_all_and_where():
    mask = (X > 0).astype(np.float32)

    def body(m, x, y):
        return nl.all(nl.greater(x, -10.0), 1), nl.where(m, x, y), nl.where(m, x, 0.0), nl.where(m, 1.0, y)

    every, both, left, right = on_tiles(body, mask, X, Y)
    assert (every == 1).all() and np.array_equal(both, np.where(mask, X, Y))
    assert np.array_equal(left, np.where(mask, X, 0)) and np.array_equal(right, np.where(mask, np.float32(1), Y))


def test_comparisons_are_true_when_they_hold_everywhere():
    def kernel(x, y):
        a, b = load(x), load(y)
        assert nl.equal(a, a) and not nl.equal(a, b)
        assert nl.less(a, 100.0) and not nl.less(a, 0.0)
        assert a  # a tile itself is true, as any object is

    run(kernel, X, Y)


def test_softmax_and_rms_norm():
    weight = random_array(9, 1, 24)

    def body(x, w):
        return nl.softmax(x), nl.softmax(x, axis=[1]), nl.rms_norm(x, w, axis=1, n=24)

    soft, again, norm = on_tiles(body, X, weight)
    e = np.exp(X - X.max(1, keepdims=True))
    close(soft, e / e.sum(1, keepdims=True), 1e-5, 1e-6)
    assert np.array_equal(soft, again)
    close(norm, X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-6) * weight, 1e-5, 1e-5)


def test_matmul_and_transpose():
    a, b = random_array(5, 48, 32), random_array(6, 32, 40)

    def body(x, xt, y):
        return nl.matmul(x, y), nl.matmul(xt, y, transpose_x=True), nl.transpose(x)

    plain, transposed, turned = on_tiles(body, a, np.ascontiguousarray(a.T), b)
    close(plain, a.astype(np.float64) @ b, 1e-4, 1e-4)
    assert np.array_equal(plain, transposed) and np.array_equal(turned, a.T)


def test_broadcast_expand_and_gather():
    index = np.random.default_rng(3).integers(0, 24, (32, 10)).astype(np.uint32)

    def body(row, column, x, i):
        assert nl.broadcast_to(x, x.shape) is x
        cube = nl.broadcast_to(nl.expand_dims(x, 1), (32, 3, 24))
        return nl.broadcast_to(row, (32, 24)), nl.broadcast_to(column, (32, 5), dtype=nl.bfloat16), cube, nl.gather_flattened(x, i)

    rows, columns, cube, gathered = on_tiles(body, Y[:1], Y[:, :1], X, index)
    assert np.array_equal(rows, np.broadcast_to(Y[:1], (32, 24)))
    assert np.array_equal(columns, np.broadcast_to(Y[:, :1], (32, 5)).astype(ml_dtypes.bfloat16))
    assert np.array_equal(cube, np.broadcast_to(X[:, None], (32, 3, 24)))
    assert np.array_equal(gathered, np.take_along_axis(X, index.astype(np.int64), 1))


def test_load_and_store():
    def kernel(x, vector):
        out = nl.ndarray((24, 32), nl.bfloat16, buffer=nl.shared_hbm)
        psum = nl.ndarray((24, 32), nl.float32, buffer=nl.psum)
        nisa.tensor_copy(psum, nl.load_transpose2d(x))
        nl.store(out, value=psum)
        column = nl.load(vector, dtype=nl.float16)
        assert column.shape == (32, 1) and column.dtype == nl.float16
        return out, save(column)

    out, column = run(kernel, X, X[:, 0].copy())
    assert np.array_equal(out, X.T.astype(ml_dtypes.bfloat16)) and np.array_equal(column[:, 0], X[:, 0].astype(np.float16))


def test_assignment_copies_and_fills():
    """t[key] = value, between all memories, also through views with gaps."""

    def kernel(x):
        out = nl.ndarray((32, 3, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.sbuf)
        bank = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
        tile[...] = x  # HBM to SBUF
        tile[:, 3:5] = 7
        bank[...] = tile
        bank[0:32, 0] = nl.negative(tile[:, 1])
        out[:, 0, :] = bank  # PSUM to HBM
        out[:, 1] = x  # HBM to HBM
        out[:, 2, ::2] = 2.5
        out[:, 2, 1::2] = tile[:, 1::2]
        return out

    first = X.copy()
    first[:, 3:5] = 7
    last = np.where(np.arange(24) % 2, first, 2.5)
    first[:, 0] = -X[:, 1]
    assert np.array_equal(run(kernel, X), np.stack([first, X, last], axis=1))

    def wrong_shape(x):
        tile = load(x)
        tile[:, 0:3] = tile[:, 0:4]

    with pytest.raises(vtrn.NkiValidationError, match="tensor_copy"):
        run(wrong_shape, X)

    def delete(x):
        del load(x)[0:1]

    with pytest.raises(vtrn.NkiTypeError, match="cannot be deleted"):
        run(delete, X)


def test_par_dim_is_the_first_dimension_or_refused():
    def kernel(x):
        tile = nl.ndarray((nl.par_dim(32), 24), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(tile, x)
        return save(tile)

    assert np.array_equal(run(kernel, X), X)

    def blocks(x):
        nl.zeros((4, nl.par_dim(32), 24), dtype=nl.float32, buffer=nl.sbuf)

    with pytest.raises(vtrn.NkiValueError, match="par_dim is dimension 1.*list of tensors"):
        run(blocks, X)


def test_load_transpose2d_drops_trailing_ones():
    result = run(lambda x: save(nl.load_transpose2d(x)), X.reshape(32, 24, 1, 1))
    assert np.array_equal(result, X.T)
    with pytest.raises(vtrn.NkiValueError, match="has 3 dimensions, not 2"):
        run(lambda x: save(nl.load_transpose2d(x)), X.reshape(32, 12, 2))


def test_made_tensors():
    def kernel(x):
        t = load(x)
        assert nl.empty_like(t).shape == t.shape and nl.empty_like(t, dtype=nl.int8, buffer=nl.psum).buffer == nl.psum
        return (
            save(nl.zeros((4, 5), nl.float32)),
            save(nl.ones((4, 5), nl.int16)),
            save(nl.full((4, 5), 2.5, nl.bfloat16)),
            save(nl.zeros_like(t)),
            nl.full((3, 4, 5), 7, nl.int32, buffer=nl.shared_hbm),
            save(nl.shared_identity_matrix(8)),
            save(nl.shared_identity_matrix(16, dtype=nl.float32)),
            save(nl.zeros((4, 5), nl.float32, buffer=nl.psum)),
        )

    zeros, ones, halves, like, hbm, eye8, eye16, psum = run(kernel, X)
    assert (zeros == 0).all() and (ones == 1).all() and (halves == 2.5).all() and like.shape == X.shape and (like == 0).all()
    assert hbm.shape == (3, 4, 5) and (hbm == 7).all() and (psum == 0).all()
    assert eye8.dtype == np.uint8 and np.array_equal(eye8, np.eye(8)) and np.array_equal(eye16, np.eye(16))


def test_random_numbers():
    def kernel(seed):
        s = load(seed)
        nl.random_seed(s)
        a = nl.rand((64, 100), nl.float32)
        nl.random_seed(s)
        return save(a), nl.rand((64, 100), nl.float32, buffer=nl.shared_hbm), save(nl.dropout(a, 0.5))

    a, b, dropped = run(kernel, np.array([[7]], np.int32))
    assert np.array_equal(a, b) and a.min() >= 0 and a.max() < 1 and abs(a.mean() - 0.5) < 0.02 and abs(a.var() - 1 / 12) < 0.005
    assert ((dropped == 0) | (dropped == a)).all() and 0.4 < (dropped == 0).mean() < 0.6


def test_printing(capsys):
    def kernel(x):
        t = load(x)
        nl.device_print("my tile", t[0:1, 0:2])
        print(t[0:2, 0:2])

    run(kernel, np.full((4, 4), 1.25, np.float32))
    text = capsys.readouterr().out
    assert "my tile" in text and text.count("1.25") >= 6 and "<NkiTensor tensor (2, 2) float32 sbuf>" in text


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_of_the_target(target):
    seen = {}

    def kernel(x):
        names = (
            "pmax",
            "psum_fmax",
            "psum_bank_fmax",
            "psum_bank_fmax_bytes",
            "psum_num_banks",
            "gemm_stationary_fmax",
            "gemm_moving_fmax",
            "bn_stats_fmax",
            "sbuf_size_bytes",
            "sbuf_fmax_bytes",
            "sbuf_fmax",
            "total_available_sbuf_size",
        )
        seen.update({name: getattr(nl.tile_size, name) for name in names}, version=nisa.get_nc_version())

    run(kernel, X, target=target)
    assert (seen["pmax"], seen["psum_fmax"], seen["psum_bank_fmax"], seen["psum_bank_fmax_bytes"]) == (128, 512, 512, 2048)
    assert (seen["gemm_stationary_fmax"], seen["gemm_moving_fmax"], seen["psum_num_banks"]) == (128, 512, 8)
    assert seen["sbuf_size_bytes"] == {"trn1": 24, "trn2": 28, "trn3": 32}[target] << 20
    assert seen["sbuf_fmax"] * 4 == seen["sbuf_fmax_bytes"] == seen["total_available_sbuf_size"] >= 176 << 10
    assert seen["version"] == {"trn1": nisa.nc_version.gen2, "trn2": nisa.nc_version.gen3, "trn3": nisa.nc_version.gen4}[target]
    assert nisa.get_nc_sub_version() == 0


def test_memory_regions():
    assert nl.hbm is nl.private_hbm and nl.is_hbm(nl.shared_hbm) and nl.is_hbm(nl.hbm) and not nl.is_hbm(nl.sbuf)
    assert nl.is_sbuf(nl.sbuf) and nl.is_psum(nl.psum) and nl.is_on_chip(nl.psum) and not nl.is_on_chip(nl.hbm)


def test_operators_are_values():
    import copy
    import pickle

    assert nl.add is copy.deepcopy(nl.add) and pickle.loads(pickle.dumps(nl.exp)) is nl.exp
    assert repr(nl.add) == "nl.add" and nl.add.__name__ == "add" and {nl.add: 1}[nl.add] == 1
    with pytest.raises(TypeError, match="only for op="):
        nl.bypass(1)


def test_tiles_may_alias_by_address():
    def kernel(x):
        a = nl.ndarray((32, 24), nl.float32, address=(0, 4096))
        b = nl.ndarray((32, 12), nl.float32, buffer=nl.sbuf, address=(0, 4096 + 48))
        nisa.dma_copy(a, x)
        return save(b)

    assert np.array_equal(run(kernel, X), X[:, 12:])
