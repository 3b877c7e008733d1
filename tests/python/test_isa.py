"""Every nisa function, called as a kernel calls it, against NumPy. Corner cases of each are in the C tests."""

import math

import ml_dtypes
import numpy as np
import pytest
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import TARGETS, load, on_tiles, random_array, run, save, tile

X = random_array(1, 64, 48)
Y = random_array(2, 64, 48)
COVERED = set()


def covers(*names):
    COVERED.update(names)
    return lambda function: function


def close(result, reference, rtol=2e-6, atol=2e-6):
    np.testing.assert_allclose(np.asarray(result, np.float32), reference, rtol=rtol, atol=atol)


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64)).astype(np.float32)


# ---- tensor engine ----


@covers("nc_matmul")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_nc_matmul_accumulates_over_calls(dtype):
    a, b = X.astype(dtype), Y[:, :40].astype(dtype)

    def body(s, m):
        acc = tile((48, 40), buffer=nl.psum)
        nisa.nc_matmul(acc, s, m)
        nisa.nc_matmul(acc, stationary=s, moving=m)
        again = tile((48, 40), buffer=nl.psum)
        nisa.nc_matmul(again, s, m)
        nisa.nc_matmul(again, s, m, accumulate=False)
        return acc, again

    twice, once = on_tiles(body, a, b)
    reference = a.astype(np.float64).T @ b.astype(np.float64)
    close(once, reference, 1e-5, 1e-4)
    close(twice, 2 * reference, 1e-5, 1e-4)


@covers("nc_matmul_mx", "quantize_mx")
def test_quantize_and_multiply_mx():
    a, b = random_array(3, 128, 4 * 32, dtype=ml_dtypes.bfloat16), random_array(4, 128, 4 * 64, dtype=ml_dtypes.bfloat16)

    def body(x, y):
        parts = []
        for source in (x, y):
            data = tile((128, source.shape[1] // 4), nl.float8_e4m3fn_x4)
            scale = tile((128, source.shape[1] // 4), nl.uint8)
            nisa.memset(scale, 0)
            nisa.quantize_mx(dst=data, src=source, dst_scale=scale)
            parts += [data, scale]
        acc = tile((32, 64), buffer=nl.psum)
        nisa.nc_matmul_mx(acc, parts[0], parts[2], parts[1], parts[3])
        return acc

    result = on_tiles(body, a, b, target="trn3")
    reference = np.einsum("kmq,knq->mn", a.astype(np.float32).reshape(128, 32, 4), b.astype(np.float32).reshape(128, 64, 4))
    assert np.abs(result - reference).max() < 0.06 * np.abs(reference).max()


@covers("nc_transpose")
def test_nc_transpose_on_both_engines():
    def body(x):
        wide = tile((48, 64), buffer=nl.psum)
        nisa.nc_transpose(wide, x)
        small = tile((32, 32))
        nisa.nc_transpose(small, x[0:32, 0:32], engine=nisa.vector_engine)
        return wide, small

    wide, small = on_tiles(body, X)
    assert np.array_equal(wide, X.T) and np.array_equal(small, X[:32, :32].T)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16, nl.float8_e5m2])
def test_nc_transpose_of_narrow_floats_to_fp32(dtype, target):
    def body(x):
        narrow, wide, turned = tile((64, 48), dtype), tile((64, 48)), tile((48, 64), buffer=nl.psum)
        nisa.tensor_copy(narrow, x)
        nisa.tensor_copy(wide, narrow)
        nisa.nc_transpose(turned, narrow)
        return turned, wide

    turned, wide = on_tiles(body, X, target=target)
    assert np.array_equal(turned, wide.T)


# ---- element by element ----


@covers("tensor_copy", "memset")
def test_tensor_copy_and_memset_convert():
    def body(x):
        half, back, ints, sevens = tile((64, 48), nl.bfloat16), tile((64, 48)), tile((64, 48), nl.int32), tile((64, 48), nl.int16)
        nisa.tensor_copy(half, x)
        nisa.tensor_copy(back, half, engine=nisa.engine.gpsimd)
        nisa.tensor_copy(ints, x, engine=nisa.engine.scalar)
        nisa.memset(sevens, 7)
        return half, back, ints, sevens

    half, back, ints, sevens = on_tiles(body, X)
    assert np.array_equal(half, X.astype(ml_dtypes.bfloat16)) and np.array_equal(back, half.astype(np.float32))
    assert np.array_equal(ints, np.rint(X).astype(np.int32)) and (sevens == 7).all()


@covers("tensor_copy_predicated")
def test_tensor_copy_predicated():
    mask = (X > 0).astype(np.uint8)

    def body(x, y, m):
        nisa.tensor_copy_predicated(y, x, m)
        number = load_copy(x)
        nisa.tensor_copy_predicated(number, 9.0, m, reverse_pred=True)
        return y, number

    taken, number = on_tiles(body, X, Y, mask)
    assert np.array_equal(taken, np.where(mask, X, Y)) and np.array_equal(number, np.where(mask, X, np.float32(9)))


def load_copy(x):
    copy = tile(x.shape, x.dtype)
    nisa.tensor_copy(copy, x)
    return copy


@covers("tensor_tensor")
@pytest.mark.parametrize(
    "op, function",
    [
        (nl.add, np.add),
        (nl.subtract, np.subtract),
        (nl.multiply, np.multiply),
        (nl.maximum, np.maximum),
        (np.minimum, np.minimum),
        ("greater", np.greater),
    ],
)
def test_tensor_tensor(op, function):
    def body(x, y):
        out = tile(x.shape)
        nisa.tensor_tensor(out, x, y, op)
        return out

    assert np.array_equal(on_tiles(body, X, Y), function(X, Y).astype(np.float32))


@covers("tensor_scalar")
def test_tensor_scalar_chains_two_operators_with_vectors_and_numbers():
    def body(x, column):
        out, reversed_, bits = tile(x.shape), tile(x.shape), tile(x.shape, nl.int32)
        nisa.tensor_scalar(out, x, nl.multiply, column, op1=nl.add, operand1=1.5)
        nisa.tensor_scalar(dst=reversed_, data=x, op0=nl.subtract, operand0=2.0, reverse0=True)
        nisa.tensor_scalar(bits, x.view(nl.int32), op0=nl.bitwise_and, operand0=0xFF)
        return out, reversed_, bits

    out, reversed_, bits = on_tiles(body, X, Y[:, :1])
    assert np.array_equal(out, X * Y[:, :1] + np.float32(1.5))
    assert np.array_equal(reversed_, np.float32(2) - X) and np.array_equal(bits, X.view(np.int32) & 0xFF)


@covers("scalar_tensor_tensor", "reciprocal")
def test_scalar_tensor_tensor_and_reciprocal():
    def body(x, y, column):
        out, inverse = tile(x.shape), tile(x.shape)
        nisa.scalar_tensor_tensor(out, x, nl.multiply, column, nl.subtract, y, reverse1=True)
        nisa.reciprocal(inverse, y)
        return out, inverse

    out, inverse = on_tiles(body, X, Y, Y[:, :1])
    assert np.array_equal(out, Y - X * Y[:, :1])
    close(inverse, 1 / Y, 1e-6, 0)


@covers("activation")
@pytest.mark.parametrize(
    "op, function",
    [
        (nl.exp, np.exp),
        (nl.tanh, np.tanh),
        (nl.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
        (nl.square, np.square),
        (nl.relu, lambda x: np.maximum(x, 0)),
        (nl.gelu, lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))),
        (nl.copy, lambda x: x),
        (nl.silu, lambda x: x / (1 + np.exp(-x))),
    ],
)
def test_activation_with_scale_and_bias(op, function):
    def body(x, column):
        out = tile(x.shape)
        nisa.activation(out, op, x, bias=column, scale=0.5)
        return out

    close(on_tiles(body, X, Y[:, :1]), function((X * np.float32(0.5) + Y[:, :1]).astype(np.float64)), 3e-6, 3e-6)


@covers("activation_reduce")
def test_activation_sums_rows():
    def body(x):
        out, total, running = tile(x.shape), tile((64, 1)), tile((64, 1))
        nisa.activation_reduce(out, nl.exp, x, nl.add, total)
        nisa.activation(out, op=nl.copy, data=x, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.activation(out, nl.copy, x, reduce_op=nl.add, reduce_res=running, reduce_cmd=nisa.reduce_cmd.reduce)
        return total, running

    total, running = on_tiles(body, X)
    close(total[:, 0], np.exp(X).sum(1), 1e-5)
    close(running[:, 0], 2 * X.sum(1), 1e-5, 1e-4)


@covers("activate2", "exponential")
def test_v4_activations():
    def body(x, column):
        leaky, powers, total = tile(x.shape), tile(x.shape), tile((64, 1))
        nisa.activate2(leaky, nl.prelu, x, 2.0, column, nl.multiply, nl.add, relu_param=0.1)
        nisa.exponential(powers, x, max_value=column, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        return leaky, powers, total

    leaky, powers, total = on_tiles(body, X, Y[:, :1], target="trn3")
    linear = X * 2 + Y[:, :1]
    close(leaky, np.where(linear < 0, np.float32(0.1) * linear, linear))
    close(powers, np.exp(X - Y[:, :1]))
    close(total[:, 0], np.exp(X - Y[:, :1]).sum(1), 1e-5)


@covers("dropout", "set_rng_seed", "rng")
def test_dropout_keeps_values_and_rng_repeats_with_a_seed():
    def body(x, seed):
        kept, bits, again = tile(x.shape), tile(x.shape, nl.uint32), tile(x.shape, nl.uint32)
        nisa.set_rng_seed(seed)
        nisa.rng(bits)
        nisa.set_rng_seed(seed)
        nisa.rng(dst=again, engine=nisa.engine.vector)
        nisa.dropout(kept, x, 0.25)
        return kept, bits, again

    kept, bits, again = on_tiles(body, X, np.array([[1234]], np.int32))
    assert np.array_equal(bits, again) and len(np.unique(bits)) > 3000
    assert ((kept == X) | (kept == 0)).all() and 0.15 < (kept == 0).mean() < 0.35


@covers("affine_select", "iota")
def test_affine_select_and_iota():
    def body(x):
        lower, index = tile((64, 48)), tile((64, 48), nl.int32)
        nisa.affine_select(lower, [[-1, 48]], 1, x, -1.0, cmp_op=nl.greater_equal)
        nisa.iota(index, [[3, 6], [1, 8]], offset=5, channel_multiplier=100)
        return lower, index

    lower, index = on_tiles(body, X)
    p, i = np.arange(64)[:, None], np.arange(48)[None]
    assert np.array_equal(lower, np.where(p - i >= 0, X, np.float32(-1)))
    assert np.array_equal(index, 5 + 100 * p + 3 * (i // 8) + i % 8)


@covers("range_select", "select_reduce")
def test_selections():
    low, high = np.full((64, 1), 5, np.float32), np.arange(64, dtype=np.float32)[:, None]
    mask = (Y > 0).astype(np.uint8)

    def body(x, m, lo, hi):
        inside, largest, chosen = tile(x.shape), tile((64, 1)), tile(x.shape)
        nisa.range_select(
            inside,
            on_true_tile=x,
            comp_op0=nl.greater_equal,
            comp_op1=nl.less,
            bound0=lo,
            bound1=hi,
            reduce_res=largest,
            reduce_op=nl.maximum,
        )
        nisa.select_reduce(chosen, m, x, -3.0)
        return inside, largest, chosen

    inside, largest, chosen = on_tiles(body, X, mask, low, high)
    i = np.arange(48)[None]
    reference = np.where((i >= low) & (i < high), X, np.finfo(np.float32).min)
    assert np.array_equal(inside, reference) and np.array_equal(largest[:, 0], reference.max(1))
    assert np.array_equal(chosen, np.where(mask, X, np.float32(-3)))


@covers("nc_stream_shuffle")
def test_stream_shuffle_reverses_quadrants():
    def body(x):
        out = tile(x.shape)
        nisa.nc_stream_shuffle(out, x, list(range(31, -1, -1)))
        return out

    assert np.array_equal(on_tiles(body, X), X.reshape(2, 32, 48)[:, ::-1].reshape(64, 48))


# ---- reductions and scans ----


@covers("tensor_reduce", "tensor_partition_reduce")
def test_reductions():
    def body(x):
        total, largest, negated, across = tile((64, 6)), tile((64, 1)), tile((64, 1)), tile((1, 48))
        view = x.reshape((64, 6, 8))
        nisa.tensor_reduce(total, nl.add, view, 2)
        nisa.tensor_reduce(dst=largest, op=np.max, data=view, axis=[1, 2])
        nisa.tensor_reduce(negated, nl.add, x, axis=-1, negate=True, keepdims=True)
        nisa.tensor_partition_reduce(across, nl.add, x)
        return total, largest, negated, across

    total, largest, negated, across = on_tiles(body, X)
    close(total, X.reshape(64, 6, 8).sum(2), 1e-5, 1e-5)
    assert np.array_equal(largest[:, 0], X.max(1))
    close(negated[:, 0], -X.sum(1), 1e-5, 1e-5)
    close(across[0], X.sum(0), 1e-5, 1e-5)


@covers("tensor_scalar_reduce", "tensor_scalar_cumulative")
def test_scalar_reductions():
    def body(x):
        scaled, total, running = tile(x.shape), tile((64, 1)), tile(x.shape)
        nisa.tensor_scalar_reduce(scaled, x, nl.multiply, 2.0, nl.add, total)
        nisa.tensor_scalar_cumulative(running, x, nl.add, nl.add, 1.0)
        return scaled, total, running

    scaled, total, running = on_tiles(body, X)
    assert np.array_equal(scaled, X * 2)
    close(total[:, 0], (X * 2).sum(1), 1e-5, 1e-5)
    close(running, np.cumsum(X + 1, axis=1), 1e-5, 1e-5)


@covers("tensor_tensor_scan")
def test_scan_is_a_linear_recurrence():
    def body(a, b):
        out = tile(a.shape)
        nisa.tensor_tensor_scan(dst=out, data0=a, data1=b, initial=0.5, op0=nl.multiply, op1=nl.add)
        return out

    result, state = on_tiles(body, X, Y), np.full(64, 0.5, np.float32)
    for i in range(48):
        state = X[:, i] * state + Y[:, i]
        assert np.array_equal(result[:, i], state)


@covers("bn_stats", "bn_aggr")
def test_batch_norm_statistics():
    def body(x):
        stats, moments = tile((64, 6)), tile((64, 2))
        nisa.bn_stats(stats, x)
        nisa.bn_aggr(moments, stats)
        return moments

    moments = on_tiles(body, X)
    close(moments[:, 0], X.mean(1), 1e-5, 1e-6)
    close(moments[:, 1], X.var(1), 1e-5, 1e-6)


@covers("max8", "nc_find_index8", "nc_match_replace8")
def test_top_eight():
    def body(x):
        top, where, rest, index = tile((64, 8)), tile((64, 8), nl.uint32), tile(x.shape), tile((64, 8), nl.uint32)
        nisa.max8(top, x)
        nisa.nc_find_index8(where, x, top)
        nisa.nc_match_replace8(rest, x, top, -100.0, dst_idx=index)
        return top, where, rest, index

    top, where, rest, index = on_tiles(body, X)
    order = np.argsort(-X, axis=1)[:, :8]
    assert np.array_equal(top, np.take_along_axis(X, order, 1))
    assert np.array_equal(where, order.astype(np.uint32)) and np.array_equal(index, order.astype(np.uint32))
    reference = X.copy()
    np.put_along_axis(reference, order, -100, 1)
    assert np.array_equal(rest, reference)


@covers("topk")
def test_topk_of_a_snake():
    values = np.random.default_rng(7).permutation(160).astype(ml_dtypes.bfloat16).reshape(16, 10)

    def body(x):
        value, index = tile((16, 8), nl.bfloat16), tile((16, 8), nl.uint32)
        nisa.topk(value, index, x, 160)
        return value, index

    value, index = on_tiles(body, values, target="trn3")
    element = values.T.reshape(-1)  # element e is in partition e % 16, column e // 16
    assert (value == np.sort(element)[-8:]).all()  # every partition of the group has the result
    assert np.array_equal(element[index], value)


@covers("nonzero_with_count", "sequence_bounds")
def test_index_helpers():
    values = np.zeros((16, 12), np.float32)
    values[0, [1, 4, 11]] = 1
    ids = np.array([[1, 1, 2, 2, 2, 0]], np.float32)

    def body(x, ids_tile):
        found, bounds = tile((16, 13), nl.int32), tile((1, 2, 6))
        nisa.memset(found, 0)
        nisa.nonzero_with_count(found, x, index_offset=10, padding_val=-7)
        nisa.sequence_bounds(bounds, ids_tile)
        return found, bounds

    found, bounds = on_tiles(body, values, ids)
    assert found[0].tolist() == [11, 14, 21] + [-7] * 9 + [3]
    assert bounds[0, 0].tolist() == [0, 0, 2, 2, 2, 6] and bounds[0, 1].tolist() == [2, 2, 5, 5, 5, -1]


# ---- gathers ----


@covers("local_gather", "nc_n_gather")
def test_gathers_on_chip():
    rng = np.random.default_rng(5)
    each = rng.integers(0, 48, (64, 20)).astype(np.uint32)
    shared = rng.integers(0, 48, (64, 2)).astype(np.uint16)

    def body(x, index, lists):
        own, common = tile((64, 20)), tile((64, 32))
        nisa.nc_n_gather(own, x, index)
        nisa.local_gather(common, x, lists)
        return own, common

    own, common = on_tiles(body, X, each, shared)
    assert np.array_equal(own, np.take_along_axis(X, each.astype(np.int64), 1))
    for core in range(4):
        order = shared[16 * core : 16 * core + 16].T.reshape(-1)
        assert np.array_equal(common[16 * core : 16 * core + 16], X[16 * core : 16 * core + 16][:, order])


# ---- random numbers ----


@covers("rand_set_state", "rand_get_state", "rand2")
def test_generator_state_and_uniform_numbers():
    state = np.random.default_rng(6).integers(1, 2**31, (64, 6)).astype(np.uint32)

    def body(s):
        read = tile((64, 6), nl.uint32)
        nisa.rand_set_state(s)
        nisa.rand_get_state(read)
        uniform = tile((64, 100))
        nisa.rand2(uniform, -1.0, 3.0)
        return read, uniform

    read, uniform = on_tiles(body, state, target="trn3")
    assert np.array_equal(read, state)
    assert uniform.min() >= -1 and uniform.max() <= 3 and 0.8 < uniform.mean() < 1.2


# ---- DMA ----


@covers("dma_copy")
def test_dma_copies_gathers_and_scatters():
    rows = np.array([[3], [0], [200], [2]], np.int32)

    def kernel(x, index):
        out = nl.ndarray((4, 48), nl.float32, buffer=nl.shared_hbm)
        spread = nl.zeros((8, 48), nl.float32, buffer=nl.shared_hbm)
        idx, got = load(index), nl.zeros((4, 48), nl.float32)
        nisa.dma_copy(got, x.ap([[48, 4], [1, 48]], vector_offset=idx, indirect_dim=0), oob_mode=nisa.oob_mode.skip)
        nisa.dma_copy(out, got)
        nisa.dma_copy(spread.ap([[48, 4], [1, 48]], vector_offset=idx), got, oob_mode=nisa.oob_mode.skip)
        return out, spread

    out, spread = run(kernel, X, rows)
    assert np.array_equal(out[[0, 1, 3]], X[[3, 0, 2]]) and (out[2] == 0).all()
    assert np.array_equal(spread[[3, 0, 2]], X[[3, 0, 2]]) and (spread[4:] == 0).all()


@pytest.mark.parametrize("mode", [nisa.dge_mode.none, "none", 3])
def test_enum_members_may_be_given_by_name_and_number(mode):
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x, dge_mode=mode)
        return out

    assert np.array_equal(run(kernel, X), X) and "dge_mode=none" in vtrn.trace(kernel, X).text()


def test_generations_are_ordered():
    assert nisa.nc_version.gen2 < nisa.nc_version.gen3 <= nisa.nc_version(3) and nisa.nc_version.gen4.name == "gen4"


@covers("dma_transpose", "dma_compute")
def test_dma_transposes_and_adds():
    a = X.astype(ml_dtypes.bfloat16)

    def kernel(x, y, z):
        turned, total = tile((48, 64), nl.bfloat16), tile((64, 48))
        nisa.dma_transpose(turned, x)
        nisa.dma_compute(total, [load(y), load(z)], nl.add)
        return save(turned), save(total)

    turned, total = run(kernel, a, X, Y)
    assert np.array_equal(turned, a.T) and np.array_equal(total, X + Y)


# ---- two cores, registers: their own files ----
COVERED.update({"sendrecv", "core_barrier", "register_move", "register_load", "register_store"})


def test_every_function_is_called_here():
    functions = {n for n in nisa.__all__ if isinstance(getattr(nisa, n), vtrn._vtrn.NisaFunction)}
    assert functions == COVERED


def test_signatures_are_those_of_the_reference():
    import inspect

    assert str(inspect.signature(nisa.nc_transpose)) == "(dst, data, engine=None, name=None)"
    names = list(inspect.signature(nisa.dma_copy).parameters)
    assert names == ["dst", "src", "priority", "oob_mode", "dge_mode", "engine", "name"]
    assert nisa.nc_matmul.__name__ == "nc_matmul" and "stationary" in nisa.nc_matmul.__doc__


@pytest.mark.parametrize("to", ["int32", "uint32", "int16", "uint16", "int8", "uint8"])
@pytest.mark.parametrize("source", ["int32", "uint32", "int16", "uint16", "int8", "uint8"])
def test_dma_converts_integers_through_fp32(source, to):
    """As nki.isa.dma_copy documents: to float32, then to the destination; from 2**24 on that is inexact."""
    info = np.iinfo(source)
    values = [info.min, -1, 0, 1, 127, 128, 256, 32768, 65535, 65536, 2**24 - 1, 2**24 + 1, 2**24 + 3, 2**30 + 65, info.max]
    x = np.array([[v for v in values if info.min <= v <= info.max]], dtype=source)

    def kernel(x):
        y = nl.ndarray(x.shape, dtype=getattr(nl, to), buffer=nl.shared_hbm)
        nisa.dma_copy(dst=y, src=x)
        return y

    expected = x
    if source != to:
        limits = np.iinfo(to)
        expected = np.clip(x.astype(np.float32).astype(np.float64), limits.min, limits.max).astype(to)
    np.testing.assert_array_equal(vtrn.run(kernel, x, target="trn2"), expected)
