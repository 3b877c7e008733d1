"""nki.language of the old namespace against NumPy: functions, dtypes, operators, reductions, products, loops, blocks."""

import math

import ml_dtypes
import numpy as np
import pytest
import vtrn
from vtrn.neuronxcc import nki
from vtrn.neuronxcc.nki import isa as nisa
from vtrn.neuronxcc.nki import language as nl
from vtrn.neuronxcc.nki import typing as nt
from vtrn.neuronxcc.nki.language import par_dim

RNG = np.random.default_rng(5)
A = RNG.uniform(0.5, 3, (128, 48)).astype(np.float32)
B = RNG.uniform(0.5, 3, (128, 48)).astype(np.float32)
SIGNED = RNG.uniform(-3, 3, (128, 48)).astype(np.float32)
INTS = RNG.integers(0, 100, (128, 48)).astype(np.int32)


def on_tiles(body, *arrays, **options):
    """Loads the arrays, calls body(*tiles), returns what it returns."""

    def kernel(*tensors):
        result = body(*[nl.load(x) for x in tensors])
        tiles = result if isinstance(result, tuple) else (result,)
        made = []
        for tile in tiles:
            out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
            nl.store(out, tile)
            made.append(out)
        return tuple(made) if isinstance(result, tuple) else made[0]

    return nki.jit(kernel, **options)(*arrays)


def close(got, want, tolerance=2e-6):
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=tolerance, atol=tolerance)


# ---- element by element ----

BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "mod": np.mod,
}
COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    function, want = getattr(nl, name), BINARY[name]
    got = on_tiles(lambda a, b: (function(a, b), function(a, 1.5), function(1.5, b), function(a, b[:, 0:1])), A, B)
    one_and_half = np.float32(1.5)
    for value, expected in zip(got, (want(A, B), want(A, one_and_half), want(one_and_half, B), want(A, B[:, :1])), strict=True):
        close(value, expected, 1e-5)


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_are_bool(name):
    a, b = np.round(A), np.round(B)
    got = on_tiles(lambda a, b: getattr(nl, name)(a, b), a, b)
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, COMPARE[name](a, b))


@pytest.mark.parametrize("name", BITS)
def test_bits(name):
    np.testing.assert_array_equal(
        on_tiles(lambda a, b: getattr(nl, name)(a, b), INTS, INTS[::-1].copy()), BITS[name](INTS, INTS[::-1])
    )


UNARY = {
    "abs": np.abs,
    "negative": np.negative,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign,
    "square": np.square,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "erf": lambda x: np.vectorize(math.erf)(x),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "copy": lambda x: x,
}
POSITIVE = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "tan": np.tan}


@pytest.mark.parametrize("name", [*UNARY, *POSITIVE])
def test_unary_functions(name):
    x, want = (SIGNED, UNARY[name]) if name in UNARY else (A * 0.4, POSITIVE[name])
    close(on_tiles(getattr(nl, name), x), want(x.astype(np.float64)), 2e-5)


def test_operators_of_python():
    def body(a, b):
        return (a + b) * 2 - a / b, -a, 1.0 - a, a > b, a**2, abs(b - a)

    got = on_tiles(body, A, B)
    for value, want in zip(got, ((A + B) * 2 - A / B, -A, 1 - A, A > B, A**2, abs(B - A)), strict=True):
        close(value, want, 1e-5)


def test_masks_of_functions():
    def body(a, b):
        i_p, i_f = nl.mgrid[0:128, 0:48]
        out = nl.zeros((128, 48), dtype=nl.float32)
        out[i_p, i_f] = nl.add(a, b, mask=i_p >= i_f)
        out[i_p, i_f] = nl.floor(a, mask=i_p + 10 < i_f)
        return out

    p, f = np.meshgrid(np.arange(128), np.arange(48), indexing="ij")
    close(on_tiles(body, A, B), np.where(p >= f, A + B, np.where(p + 10 < f, np.floor(A), 0)))


DTYPES = {
    ("int8", "uint8"): "int16",
    ("uint16", "int32"): "int32",
    ("int32", "float16"): "float16",
    ("float16", "bfloat16"): "float32",
    ("bfloat16", "float32"): "float32",
    ("float8_e4m3", "bfloat16"): "bfloat16",
    ("int32", "uint32"): "float32",
}


@pytest.mark.parametrize("pair", DTYPES)
def test_the_dtype_of_two_tiles(pair):
    @nki.jit
    def kernel():
        a, b = (nl.zeros((4, 4), dtype=getattr(nl, name)) for name in pair)
        assert nl.add(a, b).dtype == getattr(nl, DTYPES[pair])

    kernel()


def test_the_dtype_of_a_tile_and_a_number():
    @nki.jit
    def kernel():
        small, half, brain = nl.zeros((4, 4), nl.int8), nl.zeros((4, 4), nl.float16), nl.zeros((4, 4), nl.bfloat16)
        assert (small + 2).dtype == nl.int32 and (half * 1.5).dtype == nl.float32 and (brain * 2).dtype == nl.bfloat16
        assert (half + np.float16(2)).dtype == nl.float16 and nl.add(small, 2, dtype=nl.bfloat16).dtype == nl.bfloat16
        assert nisa.tensor_scalar(half, np.add, 1.5).dtype == nl.float16 and nl.exp(half).dtype == nl.float16

    kernel()


def test_dtypes_are_numpys():
    assert nl.float32 is np.float32 and nl.bfloat16 == ml_dtypes.bfloat16 and np.zeros(2, nl.bfloat16).dtype == nl.bfloat16
    assert nl.fp32.min == np.finfo(np.float32).min and nl.finfo(nl.bfloat16).max == float(ml_dtypes.finfo(nl.bfloat16).max)
    np.testing.assert_array_equal(nl.static_cast(np.float32([1.001]), nl.bfloat16), np.asarray([1], nl.bfloat16))


# ---- reductions, selection, products ----


@pytest.mark.parametrize("name, want", [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod), ("mean", np.mean)])
def test_reductions(name, want):
    x = RNG.uniform(0.5, 1.5, (128, 4, 6)).astype(np.float32)

    def body(x):
        f = getattr(nl, name)
        return f(x, axis=2), f(x, axis=[1]), f(x, axis=(1, 2)), f(x, axis=[1, 2], keepdims=True), f(x, axis=-1, keepdims=True)

    wanted = want(x, 2), want(x, 1), want(x, (1, 2))[:, None], want(x, (1, 2), keepdims=True), want(x, 2, keepdims=True)
    for got, expected in zip(on_tiles(body, x), wanted, strict=True):
        assert got.shape == expected.shape
        close(got, expected, 1e-5)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("shape", ["rectangle", "triangle"])
def test_a_mask_says_what_a_reduction_counts(name, shape):
    def mask(p, f):
        return (p < 70) & (f < 31) if shape == "rectangle" else p >= f

    def body(x):
        out = nl.zeros((128, 1), dtype=nl.float32)
        out[...] = getattr(nl, name)(x, axis=1, mask=mask(*nl.mgrid[0:128, 0:48]))
        return out

    where = mask(*np.meshgrid(np.arange(128), np.arange(48), indexing="ij"))
    rows = [getattr(np, name)(SIGNED[p, where[p]]) if where[p].any() else 0 for p in range(128)]
    close(on_tiles(body, SIGNED)[:, 0], rows, 1e-5)


def test_softmax_variance_and_norm():
    w = RNG.random((128, 48), dtype=np.float32)
    soft, var, norm = on_tiles(lambda x, w: (nl.softmax(x, axis=1), nl.var(x, axis=[1]), nl.rms_norm(x, w, 1, 48)), SIGNED, w)
    e = np.exp(SIGNED - SIGNED.max(1, keepdims=True))
    close(soft, e / e.sum(1, keepdims=True), 1e-5)
    close(var[:, 0], SIGNED.var(1), 1e-5)
    close(norm, SIGNED / np.sqrt((SIGNED**2).mean(1, keepdims=True) + 1e-6) * w, 1e-5)


def test_where_and_all():
    got, every = on_tiles(lambda a, b: (nl.where(a > b, a, 0.5), nl.all(a > 0.6, axis=1)), A, B)
    close(got, np.where(A > B, A, 0.5))
    np.testing.assert_array_equal(every[:, 0], (A > np.float32(0.6)).all(1))


def test_products_and_transposes():
    x, y = RNG.standard_normal((96, 128)).astype(np.float32), RNG.standard_normal((128, 200)).astype(np.float32)
    product, both, turned, small = on_tiles(
        lambda x, y: (nl.matmul(x, y), nl.matmul(y[:, 0:64], y, transpose_x=True), nl.transpose(x), nl.transpose(x[0:32, 0:16])),
        x,
        y,
    )
    close(product, x @ y, 1e-4)
    close(both, y[:, :64].T @ y, 1e-4)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(small, x[:32, :16].T)


@pytest.mark.parametrize("start", ["zeros", "ndarray", "assigned", "filled"])
@pytest.mark.parametrize("form", ["whole", "indexed", "named"])
def test_products_accumulate_in_psum(start, form):
    x, y = RNG.standard_normal((4, 128, 64)).astype(np.float32), RNG.standard_normal((4, 128, 256)).astype(np.float32)

    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
        make = nl.zeros if start == "zeros" else nl.ndarray
        acc = make((par_dim(64), 256), dtype=nl.float32, buffer=nl.psum)
        if start == "filled":
            acc[...] = 3.0
        for k in nl.affine_range(4):
            a, b = nl.load(x[k]), nl.load(y[k])
            if start == "assigned" and k == 0:
                acc[...] = nisa.nc_matmul(a, b)
            elif form == "whole":
                acc += nisa.nc_matmul(a, b)
            elif form == "indexed":
                acc[0:64, nl.arange(256)[None, :]] += nl.matmul(a, b, transpose_x=True)
            else:
                product = nisa.nc_matmul(a, b)
                acc[...] += product
        nl.store(out, acc)
        return out

    close(kernel(x, y), np.einsum("kpm,kpn->mn", x, y) + (3 if start == "filled" else 0), 1e-4)


@pytest.mark.parametrize("left, right", [("float32", "bfloat16"), ("bfloat16", "float32"), ("float16", "bfloat16")])
def test_products_of_different_dtypes(left, right):
    x, y = RNG.standard_normal((64, 32)).astype(np.float32), RNG.standard_normal((64, 48)).astype(np.float32)

    def body(x, y):
        return nl.copy(nl.matmul(nl.copy(x, dtype=left), nl.copy(y, dtype=right), transpose_x=True))

    x, y = (nl.static_cast(a, dtype).astype(np.float32) for a, dtype in ((x, left), (y, right)))
    close(on_tiles(body, x, y), x.T @ y, 1e-5)


@pytest.mark.parametrize("make", [nl.zeros, nl.ndarray])
@pytest.mark.parametrize("blocks", [1, 2])
def test_products_with_names_accumulate_and_keep_their_values(make, blocks):
    x, y = RNG.standard_normal((3, 128, 32)).astype(np.float32), RNG.standard_normal((3, 128, 64)).astype(np.float32)

    def body(*tiles):
        acc = make((blocks, par_dim(32), 64), dtype=nl.float32, buffer=nl.psum)
        products = [nisa.nc_matmul(tiles[0], tiles[3]), nisa.nc_matmul(tiles[1], tiles[4])]
        acc[0] += products[0]  # others were made since
        acc[0] += products[1]
        for block in range(1, blocks):
            last = nisa.nc_matmul(tiles[2], tiles[5])
            acc[block] += last
            products.append(last)
        return (nl.copy(acc[0]), nl.copy(acc[blocks - 1]), *map(nl.copy, products))

    got = on_tiles(body, *x, *y)
    each = np.einsum("kpm,kpn->kmn", x, y)
    for value, want in zip(got, (each[0] + each[1], each[2] if blocks > 1 else each[0] + each[1], *each), strict=False):
        close(value, want, 1e-4)


def test_a_value_with_a_name_keeps_it_when_assigned():
    """t[...] = value makes the value in t only where nothing else can see it."""

    def body(x):
        value = nl.multiply(x, 2.0)
        out, again = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
        out[...] = value
        out[...] = 0.0
        again[...] = value
        return again

    np.testing.assert_array_equal(on_tiles(body, A), A * 2)


def test_assignments_read_before_they_write():
    def body(x):
        tile = nl.copy(x)
        tile[:, 1:48] = nl.copy(tile[:, 0:47])
        square = nl.copy(x[0:32, 0:32])
        square[...] = nl.transpose(square)
        return tile, square

    shifted, turned = on_tiles(body, A)
    np.testing.assert_array_equal(shifted, np.concatenate([A[:, :1], A[:, :47]], 1))
    np.testing.assert_array_equal(turned, A[:32, :32].T)


# ---- blocks, views ----


@pytest.mark.parametrize("count", [3, 400], ids=["one tensor", "larger than SBUF"])
def test_block_dimensions(count):
    x = RNG.random((count, 2, 128, 256), dtype=np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = nl.zeros((count, 2, par_dim(128), 256), dtype=x.dtype)
        for i in nl.affine_range(count):
            for j in nl.affine_range(2):
                tiles[i, j] = nl.load(x[i, j])
                tiles[i, j, nl.arange(64)[:, None], 0:8] = nl.multiply(tiles[i, j, 0:64, 0:8], -1.0)
        for i in nl.affine_range(count):
            nl.store(out[i, 0], tiles[i, 0, ...])
            nl.store(out[i, 1], tiles[i][1])
        return out

    want = x.copy()
    want[:, :, :64, :8] *= -1
    np.testing.assert_array_equal(kernel(x), want)


def test_whole_block_tensors_are_assigned_and_stored():
    x = RNG.random((3, 128, 20), dtype=np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles, more = (nl.ndarray((3, par_dim(128), 20), dtype=x.dtype) for _ in range(2))
        tiles[...] = 1.5
        for i in range(3):
            tiles[i] += nl.load(x[i])
        more[...] = tiles
        nl.store(out, more)
        return out

    np.testing.assert_array_equal(kernel(x), x + np.float32(1.5))


def test_blocks_in_psum_are_in_banks_of_their_own():
    x = RNG.standard_normal((5, 128, 300)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((5, 300, 300), dtype=x.dtype, buffer=nl.shared_hbm)
        acc = nl.zeros((5, par_dim(100), 300), dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(5):
            tile = nl.load(x[i])
            acc[i] += nisa.nc_matmul(tile[:, 0:100], tile)
        for i in nl.affine_range(5):
            nl.store(out[i, 0:100], acc[i])
        return out

    for i in range(5):
        close(kernel(x)[i, :100], x[i, :, :100].T @ x[i], 1e-4)


def test_views():
    x = RNG.random((128, 4, 6), dtype=np.float32)

    def body(x):
        assert x.ndim == 3 and x.itemsize == 4 and x.size == x.shape[0] * 24 and x.assert_shape((128, 4, 6)) is x
        flat = nl.copy(x.reshape((128, 24)))
        wide = nl.copy(x[:, :, 0].expand_dims(2).broadcast_to((128, 4, 6)))
        bits = nl.copy(x.reshape((128, 24)).view(nl.int32))
        rows = nl.copy(x[0:1, 0, :].reshape((1, 6)).broadcast_to((128, 6)))
        return flat, wide, bits, rows, x.astype(nl.bfloat16)

    flat, wide, bits, rows, brain = on_tiles(body, x)
    np.testing.assert_array_equal(flat, x.reshape(128, 24))
    np.testing.assert_array_equal(wide, np.broadcast_to(x[:, :, :1], x.shape))
    np.testing.assert_array_equal(bits, x.reshape(128, 24).view(np.int32))
    np.testing.assert_array_equal(rows, np.broadcast_to(x[0, 0], (128, 6)))
    np.testing.assert_array_equal(brain, x.astype(nl.bfloat16))


# ---- loops ----


def test_loop_reduce_in_loops():
    x = RNG.random((3, 4, 128, 16), dtype=np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((4, 128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        most = nl.ndarray((4, par_dim(128), 16), dtype=x.dtype)
        for i in nl.affine_range(3):
            for j in nl.affine_range(4):
                most[j] = nl.loop_reduce(nl.load(x[i, j]), op=np.max, loop_indices=[i], dtype=x.dtype)
        total = nl.ndarray((128, 16), dtype=x.dtype)
        for i in nl.affine_range(3):
            for j in nl.affine_range(4):
                total[...] = nl.loop_reduce(nl.load(x[i, j]), op=np.add, loop_indices=[i, j])
        for j in nl.affine_range(4):
            nl.store(out[j], nl.subtract(most[j], total))
        return out

    close(kernel(x), x.max(0) - x.sum((0, 1)), 1e-5)


def test_random_numbers():
    def body(x):
        nl.random_seed(nl.full((1, 1), 7, dtype=nl.int32))
        first = nl.rand((128, 64))
        return first, nl.dropout(nl.full((128, 64), 1.0, nl.float32), rate=nl.full((128, 1), 0.25, nl.float32)), nl.rand((128, 64))

    first, kept, second = on_tiles(body, A)
    assert 0 <= first.min() and first.max() < 1 and abs(first.mean() - 0.5) < 0.02 and not np.array_equal(first, second)
    assert set(np.unique(kept)) == {0, 1} and abs(kept.mean() - 0.75) < 0.03


def test_a_tile_in_hbm_is_refused_with_its_line():
    @nki.jit
    def kernel(x):
        return nl.add(x, 1.0)

    with pytest.raises(vtrn.NkiTypeError, match="nl.add.*is in HBM; load it first"):
        kernel(A)


@pytest.mark.parametrize("dtype", [nl.bfloat16, np.float32, "float16"])
def test_benchmark_takes_shapes_for_arguments(dtype):
    @nki.benchmark(warmup=1, iters=2)
    def kernel(x: nt.tensor[4, 4], y: nt.mutable_tensor):
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x), nl.load(y)))
        return out

    result = kernel(nt.tensor[[128, 64], dtype], y=nt.tensor[(128, 64), dtype])
    assert result.shape == (128, 64) and not np.asarray(result, np.float32).any()
    assert kernel.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_modulo_allocation_of_tiles_with_and_without_blocks():
    ncc = nki.compiler

    def body(x):
        one = nl.ndarray((128, 48), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=4096, num_free_tiles=(2,)))
        many = nl.ndarray((4, par_dim(128), 48), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=8192, num_free_tiles=(2,)))
        one[...] = nl.copy(x)
        for i in range(4):
            many[i] = nl.add(one, float(i))
        return nl.copy(many[0]), nl.copy(many[1])  # 2 and 3 are where 0 and 1 were

    first, second = on_tiles(body, A)
    close(first, A + 2)
    close(second, A + 3)
    with pytest.raises(vtrn.NkiValueError, match=r"mod_alloc: 2 numbers of tiles \(2, 2\) for 1 block dimensions"):
        on_tiles(
            lambda x: nl.ndarray((4, par_dim(128), 48), x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2, 2))), A
        )
