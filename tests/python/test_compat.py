"""Call forms of NKI 0.2 - 0.5 that published kernels use."""

import ml_dtypes
import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, on_tiles, random_array, run, save, tile

X = random_array(1, 32, 24)
Y = random_array(2, 32, 24)


def test_keywords_without_effect_are_accepted():
    def body(x, y):
        half, out = tile(x.shape, nl.bfloat16), tile(x.shape)
        nisa.tensor_copy(src=x, dst=half, dtype=nl.bfloat16)
        nisa.tensor_copy(half, x, mask=None, name="copy")
        nisa.scalar_tensor_tensor(out, x, nl.add, 1.0, nl.multiply, y, dtype=nl.float32)
        return half, out

    half, out = on_tiles(body, X, Y)
    assert np.array_equal(half, X.astype(ml_dtypes.bfloat16)) and np.array_equal(out, (X + np.float32(1)) * Y)
    with pytest.raises(TypeError, match="no argument mask"):
        on_tiles(lambda x: nisa.tensor_copy(tile(x.shape), x, mask=3), X)


def test_dma_copy_without_priority_and_with_read_modify_write():
    def kernel(x, y):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        t = load(x)
        nisa.dma_copy(out, t, nisa.oob_mode.error, nisa.dge_mode.none)
        nisa.dma_copy(dst=out, src=load(y), dst_rmw_op=nl.add, unique_indices=True)
        nisa.dma_copy(dst=out, src=load(y), dst_rmw_op=None)
        nisa.dma_copy(dst=out, src=t, dst_rmw_op=nl.add)
        return out

    assert np.array_equal(run(kernel, X, Y), Y + X)


def test_dma_compute_and_affine_select_of_old_orders():
    def body(x, y):
        total, lower = tile(x.shape), tile(x.shape)
        nisa.dma_compute(total, [x, y], [1.0, 1.0], nl.add)
        nisa.affine_select(lower, [[-1, 24]], 2, 1, x, 0.0, nl.greater)
        return total, lower

    total, lower = on_tiles(body, X, Y)
    p, i = np.arange(32)[:, None], np.arange(24)[None]
    assert np.array_equal(total, X + Y) and np.array_equal(lower, np.where(2 + p - i > 0, X, np.float32(0)))


def test_enums_as_strings_and_buffers_as_strings():
    def body(x):
        out = nl.ndarray(x.shape, "float32", "sbuf")
        nisa.tensor_copy(out, x, engine="vector")
        nisa.tensor_tensor(out, out, x, op="add", engine=nisa.engine.vector)
        acc = nl.ndarray((24, 24), np.float32, buffer="psum")
        nisa.nc_matmul(acc, x, x, perf_mode="none")
        assert nl.ndarray((4, 4), np.float32, buffer="private_hbm").buffer == nl.hbm
        return out

    assert np.array_equal(on_tiles(body, X), X + X)


def test_numpy_operators():
    def body(x, y):
        out, total = tile(x.shape), tile((32, 1))
        nisa.tensor_tensor(out, x, y, op=np.multiply)
        nisa.tensor_reduce(total, np.add, x, axis=(1,))
        nisa.tensor_scalar(out, out, op0=np.maximum, operand0=0.0)
        nisa.activation(out, np.exp, out)
        return out, total

    out, total = on_tiles(body, X, Y)
    np.testing.assert_allclose(out, np.exp(np.maximum(X * Y, 0)), rtol=1e-5)


def test_dtypes_of_other_libraries():
    torch = pytest.importorskip("torch")

    def kernel(x):
        for dtype in (np.float32, np.dtype("float32"), "float32", torch.float32):
            assert nl.ndarray((2, 2), dtype).dtype == nl.float32
        assert nl.ndarray((2, 2), ml_dtypes.bfloat16).dtype == nl.ndarray((2, 2), torch.bfloat16).dtype == nl.bfloat16
        assert nl.ndarray((2, 2), "float8e4").dtype == nl.float8_e4m3 and nl.ndarray((2, 2), bool).dtype == nl.bool_

    run(kernel, X)


def test_register_alloc_from_a_tensor():
    def kernel(x):
        return int(nisa.register_alloc(load(x)))

    assert run(kernel, np.array([[9]], np.int32)) == 9


def test_jit_forms():
    def plain(x):
        return save(load(x))

    decorated = nki.jit(mode="trace", platform_target="trn3", debug_kernel=True)(plain)
    assert decorated.__wrapped__ is plain and decorated.__name__ == "plain" and nki.jit(decorated) is decorated

    @nki.jit()
    def outer(x, flag=False):
        """Doc."""
        return decorated(x)  # inlined

    import inspect

    assert (
        str(inspect.signature(outer)) == "(x, flag=False)"
        and "return decorated(x)" in inspect.getsource(outer)
        and outer.__doc__ == "Doc."
    )
    assert np.array_equal(outer(X), X) and np.array_equal(nki.simulate(outer)(x=X, flag=True), X)
    assert np.array_equal(nki.cpu_simulate(plain)[1](x=X), X)
    assert np.array_equal(outer.with_schedule([("a", "b")])(X), X)
    result = []
    nki.jit(platform_target="trn2")(lambda x: result.append(nisa.get_nc_version().name))(X)
    assert result == ["gen3"]


@pytest.mark.parametrize(
    "variable, value, version",
    [("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1", "gen2"), ("NKI_NC_VERSION", "gen3", "gen3"), ("VTRN_TARGET", "inf2", "gen2")],
)
def test_targets_from_the_environment(monkeypatch, variable, value, version):
    monkeypatch.setenv(variable, value)
    assert nki.jit(lambda x: nisa.get_nc_version().name)(X) == version and nisa.get_nc_version().name == version
    monkeypatch.setenv("VTRN_TARGET", "trn3")
    assert nki.jit(lambda x: nisa.get_nc_version().name)(X) == "gen4"
    assert vtrn.run(lambda x: nisa.get_nc_version().name, X, target="trn2") == "gen3"
    monkeypatch.setenv("VTRN_TARGET", "trn9")
    with pytest.raises(ValueError, match="trn9: use trn1, inf2, trn2 or trn3"):
        nki.jit(lambda x: None)(X)
