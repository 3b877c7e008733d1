"""Two cores: program ids, shared HBM, sendrecv, barriers, values that need the other core, deadlocks."""

import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, run, save, tile

X = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)


def test_each_core_does_its_half_of_a_shared_output():
    @nki.jit
    def kernel(x):
        n, me = nl.num_programs(axes=0), nl.program_id(axis=0)
        rows = x.shape[0] // n
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        part = load(x[me * rows : (me + 1) * rows])
        nisa.tensor_scalar(part, part, nl.multiply, float(me + 1))
        nisa.dma_copy(out[me * rows : (me + 1) * rows], part)
        return out

    assert np.array_equal(run(kernel[2], X), np.concatenate([X[:32], 2 * X[32:]]))
    assert np.array_equal(run(kernel[1], X), X) and np.array_equal(run(kernel, X), X)


def test_grid_dimensions():
    seen = []

    @nki.jit
    def kernel(x):
        seen.append((nl.program_ndim(), nl.num_programs(), nl.program_id(0), x.buffer))

    run(kernel, X)
    run(kernel[1], X)
    run(kernel[2], X)
    assert seen == [(0, 1, 0, nl.hbm), (1, 1, 0, nl.hbm), (1, 2, 0, nl.shared_hbm), (1, 2, 1, nl.shared_hbm)]


def test_sendrecv_swaps_tiles():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        out = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm)
        mine, theirs = load(x), tile((64, 8))
        nisa.tensor_scalar(mine, mine, nl.add, 1000.0 * me)
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
        nisa.dma_copy(out[me], theirs)
        return out

    result = run(kernel[2], X)
    assert np.array_equal(result[0], X + 1000) and np.array_equal(result[1], X)


def test_barriers_order_shared_memory_and_old_forms_work():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        shared = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm, name="exchange")
        out = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm, name="result")
        mine, got = load(x), tile((64, 8))
        nisa.tensor_scalar(mine, mine, nl.multiply, 2.0 + me)
        nisa.dma_copy(shared[me], mine)
        nisa.core_barrier(shared, (0, 1))
        nisa.dma_copy(got, shared[1 - me])
        nisa.dma_copy(out[me], got)
        again = tile((64, 8))
        nisa.sendrecv(src=got, dst=again, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=1, use_gpsimd_dma=True)
        return out

    result = run(kernel[2], X)
    assert np.array_equal(result[0], 3 * X) and np.array_equal(result[1], 2 * X)


def test_values_that_need_the_other_core_can_be_looked_at():
    seen = {}

    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        theirs = tile((64, 8))
        mine = load(x)
        nisa.tensor_scalar(mine, mine, nl.add, 10.0 * me)
        nisa.sendrecv(mine, theirs, 1 - me, 1 - me, 0)
        seen[me] = theirs.numpy()
        nisa.sendrecv(theirs, mine, 1 - me, 1 - me, 1)
        assert np.array_equal(mine.numpy(), X + 10 * me)

    run(kernel[2], X)
    assert np.array_equal(seen[0], X + 10) and np.array_equal(seen[1], X)


def test_a_core_far_ahead_lets_the_other_come_along():
    order = []

    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        a, b = load(x), tile((64, 8))
        for i in range(12000):
            if i == 10:
                nisa.sendrecv(a, b, 1 - me, 1 - me, 0)
            nisa.tensor_copy(b, a)
            if i % 1000 == 0:
                order.append(me)

    run(kernel[2], X)
    assert order != sorted(order) and len(order) == 24


def test_deadlock_is_explained():
    @nki.jit
    def kernel(x):
        shared = nl.ndarray((64, 8), nl.float32, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nisa.core_barrier(shared, (0, 1))

    with pytest.raises(vtrn.Deadlock, match=r"test_lnc2.py:\d+ nisa.core_barrier"):
        run(kernel[2], X)


def test_deadlock_when_a_value_is_needed():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        a, b = load(x), tile((64, 8))
        if me == 0:
            nisa.sendrecv(a, b, 1, 1, 0)
            b.numpy()

    with pytest.raises(vtrn.Deadlock, match="nisa.sendrecv"):
        run(kernel[2], X)


def test_an_error_on_one_core_is_the_error():
    @nki.jit
    def kernel(x):
        if nl.program_id(0) == 1:
            raise ValueError("core 1 only")
        load(x)

    with pytest.raises(ValueError, match="core 1 only"):
        run(kernel[2], X)

    @nki.jit
    def early(x):
        if nl.program_id(0) == 0:
            raise ValueError("core 0 only")
        load(x)

    with pytest.raises(ValueError, match="core 0 only"):
        run(early[2], X)


def test_different_shared_tensors_are_an_error():
    @nki.jit
    def kernel(x):
        nl.ndarray((64, 8 + nl.program_id(0)), nl.float32, buffer=nl.shared_hbm)

    with pytest.raises(vtrn.NkiValidationError, match="differs between the cores"):
        run(kernel[2], X)


def test_wrong_launches():
    @nki.jit
    def kernel(x):
        return save(load(x))

    with pytest.raises(ValueError, match="1 or 2 cores"):
        kernel[3]
    with pytest.raises(TypeError, match="grids of neuronxcc.nki are gone"):
        kernel[2, 2]


def test_two_core_programs_replay():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        out = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm)
        mine, theirs = load(x), tile((64, 8))
        nisa.tensor_scalar(mine, mine, nl.add, 1.0 + me)
        nisa.sendrecv(mine, theirs, 1 - me, 1 - me, 0)
        nisa.dma_copy(out[me], theirs)
        return out

    program = vtrn.trace(kernel[2], X, target="trn2")
    assert program.cores == 2
    assert np.array_equal(program.run(X), run(kernel[2], X))


@pytest.mark.parametrize("threads", [1, 2])
def test_cores_start_together(threads):
    """Both clear the output without a barrier, as kernels do that count on it; then each fills its half."""

    @nki.jit
    def kernel(x):
        me, rows = nl.program_id(0), x.shape[0] // 2
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, nl.zeros(x.shape, x.dtype))
        part = load(x[me * rows : (me + 1) * rows])
        for _ in range(200):  # more than one batch
            nisa.tensor_scalar(part, part, nl.add, 1.0)
        nisa.dma_copy(out[me * rows : (me + 1) * rows], part)
        return out

    for _ in range(5):
        assert np.array_equal(run(kernel[2], X, threads=threads), X + 200)
