"""Registers, device loops and unrolled loops; what may be looked at and what may not."""

import numpy as np
import pytest
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, run, tile

DATA = np.arange(32, dtype=np.float32).reshape(1, 32)


def out_like(shape, dtype=nl.float32):
    return nl.zeros(shape, dtype, buffer=nl.shared_hbm)


def test_arithmetic_happens_on_the_chip_and_is_seen_when_looked_at():
    def kernel(x):
        a, b = nisa.register_alloc(17), nisa.register_alloc(5)
        assert (int(a + b), int(a - b), int(a * b), int(a // b), int(a % b)) == (22, 12, 85, 3, 2)
        assert (int(a & b), int(a | b), int(a ^ b), int(b << 2), int(a >> 1)) == (1, 21, 20, 20, 8)
        assert int(3 + a) == 20 and int(20 - a) == 3 and int(-b) == -5
        assert a > b and b < 6 and a >= 17 and not a == b and a != b and a <= 17
        assert str(a) == "17" and repr(a).startswith("<VirtualRegister r")
        assert [i for i in range(b)] == [0, 1, 2, 3, 4]
        nisa.register_move(b, a)
        nisa.register_move(dst=a, imm=3)
        assert int(b) == 17 and int(a) == 3
        assert a != None  # noqa: E711  kernels compare optional arguments so
        return [int(a), b == 17 and 1]

    assert run(kernel, DATA) == [3, 1]


def test_load_and_store():
    def kernel(x, number):
        out = out_like((1, 1), nl.int32)
        reg = nisa.register_alloc()
        nisa.register_load(reg, load(number))
        cell = tile((1, 1), nl.int32)
        nisa.register_store(cell, reg + 1)
        nisa.dma_copy(out, cell)
        return out

    assert run(kernel, DATA, np.array([[41]], np.int32))[0, 0] == 42


def copy_through(dst, src):
    temp = tile((1, 1))
    nisa.dma_copy(temp, src)
    nisa.dma_copy(dst, temp)


def test_fori_loop_is_traced_once_and_replayable():
    calls = []

    def kernel(data, bound):
        out = out_like((1, 32))
        upper = nisa.register_alloc()
        nisa.register_load(upper, load(bound))

        def body(i):
            calls.append(i)
            copy_through(
                out.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1),
                data.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1),
            )

        nl.fori_loop(0, upper, body)
        return out

    result = run(kernel, DATA, np.array([[10]], np.int32))
    assert len(calls) == 1 and np.array_equal(result[0, :10], DATA[0, :10]) and (result[0, 10:] == 0).all()
    program = vtrn.trace(kernel, DATA, np.array([[10]], np.int32), target="trn2")
    assert program.replayable
    longer = program.run(DATA, np.array([[20]], np.int32))
    assert np.array_equal(longer[0, :20], DATA[0, :20]) and (longer[0, 20:] == 0).all()


def test_loop_registers_index_slices_and_ds():
    def kernel(data):
        out = out_like((1, 32))

        def body(i):
            copy_through(out[:, nl.ds(i, 1)], data[:, nl.ds(31 - i, 1)])

        nl.fori_loop(0, 32, body, step=2)
        return out

    assert np.array_equal(run(kernel, DATA)[0, ::2], DATA[0, ::-1][::2])


def test_nested_loops_and_on_chip_offsets():
    def kernel(data):
        out = out_like((4, 8))
        t, sums = load(data), nl.zeros((1, 32), nl.float32)

        def outer(i):
            def inner(j):
                at = i * 8 + j
                nisa.tensor_scalar(sums[:, nl.ds(at, 1)], t[:, nl.ds(at, 1)], nl.add, 100.0)

            nl.fori_loop(0, 8, inner)

        nl.fori_loop(0, 4, outer)
        nisa.dma_copy(out.reshape((1, 32)), sums)
        return out

    assert np.array_equal(run(kernel, DATA).reshape(1, 32), DATA + 100)


def test_while_loop_runs_until_its_register_is_zero():
    def kernel(data, count):
        out = out_like((1, 2))
        left, total = load(count), nl.zeros((1, 1), nl.float32)
        one = nl.full((1, 1), 1, nl.int32)
        reg = nisa.register_alloc()
        nisa.register_load(reg, left)

        def body(r):
            nisa.tensor_scalar(total, total, nl.add, 3.0)
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(r, left)
            return r

        nl.while_loop(reg, body)
        nisa.dma_copy(out[:, 0:1], total)
        nisa.dma_copy(out[:, 1:2], total)
        return out

    assert run(kernel, DATA, np.array([[5]], np.int32))[0, 0] == 15
    assert run(kernel, DATA, np.array([[0]], np.int32))[0, 0] == 0


def test_dynamic_range_unrolls_with_frozen_registers():
    def kernel(data, bound):
        out = out_like((1, 32))
        upper = nisa.register_alloc()
        nisa.register_load(upper, load(bound))
        for i in nl.dynamic_range(upper):
            copy_through(out[:, nl.ds(i * 2, 1)], data.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1))
            with pytest.raises(vtrn.NkiValidationError, match="induction register"):
                nisa.register_move(i, 3)
        return out

    bound = np.array([[6]], np.int32)
    assert np.array_equal(run(kernel, DATA, bound)[0, :12:2], DATA[0, :6])
    assert not vtrn.trace(kernel, DATA, bound, target="trn2").replayable
    assert vtrn.trace(lambda x: [i for i in nl.dynamic_range(3)] and None, DATA, target="trn2").replayable


def test_while_register_runs_in_python_and_is_not_replayable():
    def kernel(count):
        left, steps = load(count), 0
        reg = nisa.register_alloc()
        nisa.register_load(reg, left)
        while reg:
            steps += 1
            nisa.tensor_scalar(left, left, nl.subtract, 1)
            nisa.register_load(reg, left)
        return steps

    count = np.array([[4]], np.int32)
    assert run(kernel, count) == 4
    program = vtrn.trace(kernel, count, target="trn2")
    assert not program.replayable
    with pytest.raises(vtrn.VtrnError, match="looked at values"):
        program.run(count)


@pytest.mark.parametrize(
    "body, words",
    [
        (lambda i: int(i), "not known while a device loop is traced"),
        (lambda i: [0][i], "not known while a device loop"),
        (lambda i: bool(i > 2), "not known while a device loop"),
        (lambda i: load_one().numpy(), "device loop"),
    ],
)
def test_values_cannot_be_looked_at_while_a_device_loop_is_traced(body, words):
    with pytest.raises(TypeError, match=words):
        run(lambda x: nl.fori_loop(0, 4, body), DATA)


def load_one():
    return nl.zeros((1, 1), nl.float32)


def test_device_loops_in_no_reorder_are_refused():
    def kernel(x):
        with nl.no_reorder():
            for _ in nl.affine_range(2):
                tile((1, 1))
            nl.fori_loop(0, 2, lambda i: None)

    with pytest.raises(vtrn.NkiValidationError, match="not allowed inside nl.no_reorder"):
        run(kernel, DATA)


def test_ranges_are_pythons():
    assert list(nl.affine_range(3)) == list(nl.sequential_range(0, 3)) == list(nl.static_range(0, 3, 1)) == [0, 1, 2]
    assert list(nl.affine_range(1, 8, 3)) == [1, 4, 7]
