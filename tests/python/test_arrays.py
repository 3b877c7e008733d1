"""Arguments and results: kinds of arrays, dtypes, in-place writes, no copies, uninitialised memory."""

import resource
import typing

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


# ---- memory that is not plainly the caller's ----


def add_in_place(x):
    t = load(x)
    nisa.tensor_scalar(t, t, nl.add, 1.0)
    nisa.dma_copy(x, t)


LAYOUTS = {
    "plain": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every other column": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "byte-swapped": lambda a: a.astype(">f4"),
    "not aligned": lambda a: np.frombuffer(bytearray(1) + bytearray(a.tobytes()), np.uint8)[1:].view(np.float32).reshape(a.shape),
    "torch transposed": lambda a: torch.from_numpy(a.copy()).T.contiguous().T,
    "torch leaf": lambda a: torch.from_numpy(a.copy()).requires_grad_(),
    "torch leaf transposed": lambda a: torch.from_numpy(a.copy()).T.contiguous().T.requires_grad_(),
    "torch view of a leaf": lambda a: torch.from_numpy(np.ascontiguousarray(a.T)).requires_grad_().T,
    "torch negated lazily": lambda a: torch._neg_view(torch.from_numpy(-a)),
}


@pytest.mark.parametrize("how", ["kernel", "program"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_and_written_in_place(layout, how):
    values = np.arange(48, dtype=np.float32).reshape(8, 6)

    def call(kernel, array):
        return run(kernel, array) if how == "kernel" else vtrn.trace(kernel, array, target="trn2").run(array)

    def as_numpy(array):
        return np.asarray(array.detach().resolve_neg()) if isinstance(array, torch.Tensor) else array

    array = LAYOUTS[layout](values.copy())
    assert (as_numpy(call(add_one, array)) == values + 1).all() and (as_numpy(array) == values).all()
    call(add_in_place, array)
    assert (as_numpy(array) == values + 1).all()


def read_only(array):
    array.flags.writeable = False
    return array


SEALED = {
    "read-only": lambda a: read_only(a.copy()),
    "read-only and strided": lambda a: read_only(np.asfortranarray(a)),
    "bytes": lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(a.shape),
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "torch expanded": lambda a: torch.from_numpy(a[:1].copy()).expand(a.shape),
}


@pytest.mark.parametrize("kind", [*SEALED, "mapped file"])
def test_what_cannot_be_written_is_read_and_refused_for_writing(kind, tmp_path):
    values = np.arange(48, dtype=np.float32).reshape(8, 6)
    if kind == "mapped file":
        np.save(tmp_path / "x.npy", values)
        array = np.load(tmp_path / "x.npy", mmap_mode="r")
    else:
        array = SEALED[kind](values)
    before = np.asarray(array).copy()
    program = vtrn.trace(add_one, array, target="trn2")
    assert (np.asarray(run(add_one, array)) == before + 1).all() and (np.asarray(program.run(array)) == before + 1).all()
    with pytest.raises(vtrn.NkiValidationError, match="dst: x is read-only"):
        run(add_in_place, array)
    with pytest.raises(vtrn.NkiValidationError, match=r"argument 0 \(x\) is read-only, but the program writes it"):
        vtrn.trace(add_in_place, before, target="trn2").run(array)
    assert (np.asarray(array) == before).all()


@pytest.mark.parametrize(
    "array, words",
    [
        (torch.eye(4).to_sparse(), "sparse or nested"),
        (np.array([object()]), "dtype object does not exist"),
        (np.zeros(3, [("a", "f4")]), "does not exist on Trainium"),
        (np.zeros(3, "M8[s]"), "dtype datetime64"),
    ],
)
def test_arrays_that_are_no_tensors_are_refused(array, words):
    with pytest.raises(vtrn.NkiTypeError, match=words):
        run(lambda x: None, array)


# ---- what may be returned ----


def test_named_tuples_come_and_go():
    class Pair(typing.NamedTuple):
        a: object
        b: object

    x = np.ones((4, 4), np.float32)
    result = run(lambda p: Pair(add_one(p.a), [add_one(p.b)]), Pair(x, x + 1))
    assert type(result) is Pair and (result.a == 2).all() and (result.b[0] == 3).all()


def yields(x):
    yield add_one(x)


async def waits(x):
    return add_one(x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("how", [run, vtrn.trace])
@pytest.mark.parametrize(
    "kernel, words",
    [
        (yields, "result: a generator; kernels return tensors in tuples, lists and dicts"),
        (waits, "result: a coroutine"),
        (lambda x: (add_one(x) for _ in range(2)), "result: a generator"),
        (lambda x: {add_one(x)}, "result: a set"),
        (lambda x: [nisa.register_alloc(1)], "result: a register"),
        (lambda x: tile((4, 4)), "result: tensor .* is on chip"),
        (lambda x: x[nisa.register_alloc(1)], "result: x .* is addressed by a register"),
    ],
)
def test_what_cannot_be_returned(how, kernel, words):
    with pytest.raises(vtrn.NkiTypeError, match=words):
        how(kernel, np.ones((4, 4), np.float32), target="trn2")


@pytest.mark.parametrize("how", [run, vtrn.trace])
@pytest.mark.parametrize("which", [0, 1])
def test_tensors_of_another_run_cannot_be_returned(how, which):
    kept, x = [], np.ones((4, 4), np.float32)
    run(lambda x: kept.extend((x, add_one(x))), x)
    with pytest.raises(vtrn.NkiValidationError, match="result: .* belongs to another run"):
        how(lambda x: kept[which], x, target="trn2")
