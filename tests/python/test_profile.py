"""vtrn.profile and Program.time: totals and tables that agree with each other, loops that need a run, pairs of cores."""

import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, random_array, save, tile


@nki.jit
def product(a, b):
    total = tile((128, 512), buffer=nl.psum)
    for k in range(0, a.shape[0], 128):
        nisa.nc_matmul(dst=total, stationary=load(a[k : k + 128, :]), moving=load(b[k : k + 128, :]))
    return save(total)


A, B = random_array(0, 512, 128), random_array(1, 512, 512)


def test_profile_runs_and_times():
    profile = vtrn.profile(product, target="trn2")(A, B)
    assert np.allclose(profile.result, A.T @ B, atol=1e-2)
    assert profile.target == "trn2" and profile.level == "event"
    assert profile.total_ps == profile.span_ps + profile.kernel_ps and profile.span_ps >= profile.count_ps > 0
    assert profile.does_not_fit == "" and str(profile) and "us" in repr(profile)
    program = vtrn.trace(product, A, B, target="trn2")
    assert program.time().total_ps == profile.total_ps


def test_tables_agree_with_steps():
    profile = vtrn.trace(product, A, B, target="trn2").time()
    steps = profile.steps
    assert len(steps) == sum(s["steps"] for s in profile.streams) == sum(line["steps"] for line in profile.lines)
    assert steps["end_ps"].max() == profile.span_ps and (steps["start_ps"] >= steps["ready_ps"]).all()
    for s in profile.streams:
        assert s["busy_ps"] + s["idle_ps"] + sum(s["wait_for_ps"].values()) == profile.span_ps
        assert sum(s["wait_for_ps"].values()) == sum(s["wait_why_ps"].values())
    assert list(steps["end_ps"][profile.path]) == sorted(steps["end_ps"][profile.path])
    hbm = next(m for m in profile.memories if m["memory"] == "hbm")
    assert hbm["read_bytes"] == A.nbytes + B.nbytes and hbm["write_bytes"] == 128 * 512 * 4
    ours = [line for line in profile.lines if line["file"].endswith("test_profile.py")]
    assert ours and sum(line["critical_ps"] for line in profile.lines) <= profile.span_ps


def test_levels_and_targets():
    program = vtrn.trace(product, A, B, target="trn2")
    event, rule, count = (program.time(level=level).span_ps for level in ("event", "rule", "count"))
    assert event >= rule >= count > 0
    assert program.time(target="trn1").target == "trn1"
    with pytest.raises(ValueError, match="level exact; there are count, rule and event"):
        program.time(level="exact")
    with pytest.raises(ValueError, match="no target is called trn9"):
        program.time(target="trn9")


def test_a_kernel_that_does_not_fit():
    def kernel(x):
        tiles = [load(x) for _ in range(7)]
        for t in tiles[1:]:
            nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=t, op=nl.add)
        return save(tiles[0])

    x = np.zeros((128, 8192), np.float32)  # 32 KiB a partition: six fit
    message = vtrn.trace(kernel, x, target="trn2").time().does_not_fit
    for part in ("229376 bytes per partition are live at once > 212984", "7 tensors", "helpers.py:17"):
        assert part in message
    assert vtrn.trace(kernel, x, target="trn3").time().does_not_fit == ""


def test_loops_on_values_take_them_from_the_run():
    def kernel(x, n):
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        t = load(x)
        count = nisa.register_alloc()
        nisa.register_load(count, n)

        def body(i):
            nisa.activation(dst=t, op=nl.exp, data=t)

        nl.fori_loop(0, count, body)
        nisa.dma_copy(dst=out, src=t)
        return out

    x, n = np.zeros((128, 64), np.float32), np.array([[5]], np.int32)
    program = vtrn.trace(kernel, x, n, target="trn2")
    with pytest.raises(vtrn.NkiUnsupported, match="hangs on a register that is loaded from memory"):
        program.time()
    profile = vtrn.profile(kernel, target="trn2")(x, n)
    assert next(s for s in profile.streams if s["stream"] == "scalar")["steps"] == 5


def test_a_pair_waits_for_each_other():
    def kernel(x):
        shared = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
        t = load(x)
        if nl.program_id(0) == 0:  # one core comes later
            for _ in range(50):
                nisa.reciprocal(dst=t, data=t)
        nisa.dma_copy(dst=shared[64 * nl.program_id(0) : 64 * nl.program_id(0) + 64, :], src=t[0:64, :])
        nisa.core_barrier(shared, (0, 1))
        return shared

    profile = vtrn.trace(nki.jit(kernel)[2], np.ones((128, 512), np.float32), target="trn2").time()
    barriers = profile.steps[(profile.steps["stream"] == 3)]
    assert len(barriers) == 2 and barriers["start_ps"][0] == barriers["start_ps"][1]
    late = next(s for s in profile.streams if s["core"] == 1 and s["stream"] == "gpsimd")
    assert late["idle_ps"] > profile.span_ps // 2
    store = profile.steps[(profile.steps["core"] == 0) & (profile.steps["stream"] == 6)]
    assert (barriers["start_ps"] >= store["end_ps"].max()).all()


def test_kernels_of_the_old_namespace():
    import vtrn.neuronxcc.nki as old
    import vtrn.neuronxcc.nki.language as ol

    @old.jit
    def double(x):
        out = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm)
        ol.store(out, ol.load(x) * 2)
        return out

    x = random_array(3, 128, 256)
    profile = vtrn.profile(double, target="trn1")(x)
    assert profile.target == "trn1" and np.array_equal(profile.result, 2 * x) and profile.span_ps > 0


@pytest.mark.parametrize("form", ["list", "dict", "keyword", "among others", "the same twice"])
def test_arrays_are_profiled_wherever_the_call_has_them(form):
    def total(*tiles):
        t = load(tiles[0])
        nisa.tensor_tensor(t, t, load(tiles[1]), nl.add)
        return save(t)

    a, b = A[:128], B[:128, :128]
    kernel, args, named = {
        "list": (lambda pair: total(*pair), ([a, b],), {}),
        "dict": (lambda d: total(d["b"], d["a"]), ({"a": a, "b": b},), {}),
        "keyword": (lambda x, *, y: total(x, y), (a,), {"y": b}),
        "among others": (lambda n, pair, flag: total(*pair), (3, (a, b), None), {}),
        "the same twice": (lambda x, y: total(x, y), (a, a), {}),
    }[form]
    want = a + (a if form == "the same twice" else b)
    assert (vtrn.profile(kernel, target="trn2")(*args, **named).result == want).all()
