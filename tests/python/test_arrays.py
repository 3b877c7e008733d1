"""Arguments and results: kinds of arrays, dtypes, in-place writes, no copies, uninitialised memory."""

import resource

import ml_dtypes
import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, run, save, tile

torch = pytest.importorskip("torch")


def add_one(x):
    t = load(x)
    nisa.tensor_scalar(t, t, nl.add, 1.0)
    return save(t)


DTYPES = [
    np.float32,
    np.float16,
    np.int8,
    np.int16,
    np.int32,
    np.uint8,
    np.uint16,
    np.uint32,
    np.bool_,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3,
    ml_dtypes.float8_e5m2,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_in_and_goes_out_bit_for_bit(dtype):
    array = np.random.default_rng(0).integers(0, 2, (16, 8)).astype(dtype)
    name = {"bool": "bool_"}.get(np.dtype(dtype).name, np.dtype(dtype).name)

    def kernel(x):
        assert x.dtype == getattr(nl, name) == name
        return save(load(x))

    result = run(kernel, array)
    assert result.dtype == array.dtype and result.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu])
def test_v4_dtypes(dtype):
    array = np.ones((16, 8), dtype)
    assert run(lambda x: save(load(x)), array, target="trn3").tobytes() == array.tobytes()


def test_packed_dtypes_by_view_and_by_name():
    from vtrn import npdtypes

    words = np.arange(64, dtype=np.uint32).reshape(8, 8)

    def kernel(x):
        assert x.view(nl.float8_e4m3fn_x4).shape == (8, 8)
        out = nl.ndarray((8, 8), nl.float8_e4m3fn_x4, buffer=nl.shared_hbm)
        t = tile((8, 8), nl.float8_e4m3fn_x4)
        nisa.dma_copy(t, x.view(nl.float8_e4m3fn_x4))
        nisa.dma_copy(out, t)
        return out

    result = run(kernel, words, target="trn3")
    assert result.dtype == npdtypes.float8_e4m3fn_x4 and result.tobytes() == words.tobytes()
    again = run(lambda x: x.dtype, result, target="trn3")
    assert again == "float8_e4m3fn_x4"


@pytest.mark.parametrize("dtype, better", [(np.float64, "float32"), (np.int64, "int32"), (np.complex64, "a dtype of nki.language")])
def test_dtypes_that_do_not_exist_say_what_to_do(dtype, better):
    with pytest.raises(
        TypeError, match=rf"argument x: dtype {np.dtype(dtype).name} does not exist on Trainium; convert to {better}"
    ):
        run(lambda x: None, np.zeros((4, 4), dtype))


def test_torch_in_torch_out():
    a = torch.arange(32, dtype=torch.float32).reshape(4, 8)
    result = run(add_one, a)
    assert isinstance(result, torch.Tensor) and torch.equal(result, a + 1)
    b = a.to(torch.bfloat16)
    result = run(add_one, b)
    assert result.dtype == torch.bfloat16 and torch.equal(result, b + 1)
    assert torch.equal(run(add_one, a.T), a.T + 1)  # strided: copied
    assert torch.equal(nki.simulate(add_one)(torch.nn.Parameter(a)), a + 1)


def test_arguments_that_the_kernel_writes_change_in_place():
    def kernel(x, y):
        nisa.dma_copy(y, load(x))
        return y

    x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    assert run(kernel, x, y) is y and (y == 1).all()
    wide = np.zeros((4, 16), np.float32)
    run(kernel, x, wide[:, ::2])  # not contiguous: copied and written back
    assert (wide[:, ::2] == 1).all() and (wide[:, 1::2] == 0).all()
    t = torch.zeros(4, 8)
    run(kernel, torch.ones(4, 8), t)
    assert (t == 1).all()


def test_read_only_arrays_cannot_be_written():
    x = np.ones((4, 8), np.float32)
    frozen = np.zeros((4, 8), np.float32)
    frozen.flags.writeable = False
    assert np.array_equal(run(lambda a, b: save(load(b)), x, frozen), frozen)
    with pytest.raises(vtrn.NkiValidationError, match="dst: b is read-only"):
        run(lambda a, b: nisa.dma_copy(b, load(a)), x, frozen)


def test_results_have_the_structure_of_the_return_value():
    def kernel(x):
        a, b = save(load(x)), save(load(x))
        return {"pair": (a, [b, a]), "view": a[1:3, ::2], "number": 3, "none": None, "input": x}

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    result = run(kernel, x)
    assert np.array_equal(result["pair"][0], x) and isinstance(result["pair"][1], list)
    assert np.array_equal(result["view"], x[1:3, ::2]) and result["number"] == 3 and result["none"] is None
    assert result["input"] is x


def test_on_chip_results_say_what_to_do():
    with pytest.raises(TypeError, match="is on chip; copy it to a tensor in nl.shared_hbm"):
        run(lambda x: load(x), np.ones((4, 8), np.float32))


def test_arrays_inside_containers_and_configuration_objects():
    class Config(nl.NKIObject):
        weight: object
        scale: float = 2.0

    def kernel(pair, config, table):
        assert pair[0].buffer == nl.hbm and config.weight.shape == (4, 8) and table["w"] is pair[1]
        t = load(pair[0])
        nisa.tensor_tensor(t, t, load(config.weight), nl.add)
        nisa.tensor_scalar(t, t, nl.multiply, config.scale)
        return save(t)

    a, b, w = (np.full((4, 8), v, np.float32) for v in (1, 2, 3))
    config = Config(weight=w)
    assert (run(kernel, (a, b), config, {"w": b}) == 8).all() and config.weight is w


def test_uninitialised_memory_reads_as_poison():
    def kernel(x):
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        half = tile((4, 8))
        nisa.tensor_copy(half[:, 0:4], load(x)[:, 0:4])
        nisa.dma_copy(out, half)
        return (
            out,
            save(tile((4, 8), nl.bfloat16)),
            save(tile((4, 8), nl.int32)),
            nl.ndarray((2, 2), nl.float32, buffer=nl.shared_hbm),
        )

    for _ in range(3):  # memory goes from run to run, what is in it does not
        out, floats, ints, untouched = run(kernel, np.ones((4, 8), np.float32))
        assert (out[:, :4] == 1).all() and np.isnan(out[:, 4:]).all()
        assert np.isnan(floats.astype(np.float32)).all() and (ints == 0x7F7F7F7F).all() and np.isnan(untouched).all()
        out[:], floats[:], ints[:], untouched[:] = 1, 1, 1, 1


def test_results_stay_when_others_are_dropped():
    def kernel(x):
        return save(load(x))

    kept = []
    for value in range(20):
        kept.append(run(kernel, np.full((4, 8), value, np.float32)))
        run(kernel, np.full((4, 8), -1, np.float32))  # dropped: the next run may have its memory
        if value % 3 == 0:
            kept[value] = None
    assert all((array == value).all() for value, array in enumerate(kept) if array is not None)


def test_large_arguments_and_results_are_not_copied():
    big = np.zeros((1024, 256 * 1024), np.float32)  # 1 GiB, of which a few pages are touched
    big[5, 7] = 3

    def kernel(x):
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, load(x[4:8, 0:8]))
        nisa.dma_copy(x[1020:1024, 0:8], load(x[4:8, 0:8]))
        return out

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(kernel, big)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result[1, 7] == 3 and big[1021, 7] == 3
    assert grown < 64 * 1024, f"{grown} KiB more"


def test_tiles_of_one_kind_share_few_entries_of_the_tensor_table():
    def kernel(x):
        ids = set()
        for i in range(2000):
            t = tile((128, 8), nl.float32 if i % 2 else nl.bfloat16)
            nisa.memset(t, 1.0 + i % 3)
            if i % 500 == 499:
                assert (t.numpy() == 1.0 + i % 3).all()
            ids.add(t._id)
        return len(ids)

    assert run(kernel, np.zeros((1, 1), np.float32)) < 200


def test_memory_of_a_long_run_stays_bounded():
    def kernel(x):
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        for _ in range(4000):  # 1 GiB of tiles in all
            t = tile((128, 512))
            nisa.tensor_copy(t, tile_of(x))
        nisa.dma_copy(out, t)
        return out

    def tile_of(x):
        t = tile((128, 512))
        nisa.memset(t, 1.0)
        return t

    run(kernel, np.zeros((1, 1), np.float32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(kernel, np.zeros((1, 1), np.float32))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


def test_empty_arrays_and_wrong_devices_are_refused():
    with pytest.raises(TypeError, match="argument x: an empty array"):
        run(lambda x: None, np.zeros((0, 4), np.float32))
    with pytest.raises(TypeError, match="move it to the CPU"):
        run(lambda x: None, torch.zeros(2, 2, device="meta"))
