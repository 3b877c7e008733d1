"""Recorded programs: trace, text, save, load, run again, bit for bit."""

import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, random_array, run, save, tile


@nki.jit
def attention(q, k, v):
    """softmax(q @ k.T) @ v of one head; q and k come transposed."""
    d, n = q.shape
    out = nl.ndarray((n, d), nl.float32, buffer=nl.shared_hbm, name="attention")
    scores = tile((n, n), buffer=nl.psum)
    nisa.nc_matmul(scores, load(q), load(k))
    powers, total = tile((n, n)), tile((n, 1))
    largest = tile((n, 1))
    nisa.tensor_reduce(largest, nl.maximum, scores, 1, negate=True)
    nisa.activation_reduce(powers, nl.exp, scores, nl.add, total, bias=largest)
    nisa.reciprocal(total, total)
    nisa.tensor_scalar(powers, powers, nl.multiply, total)
    turned = tile((n, n), buffer=nl.psum)
    nisa.nc_transpose(turned, powers)
    nisa.tensor_copy(powers, turned)
    result = tile((n, d), buffer=nl.psum)
    nisa.nc_matmul(result, powers, load(v))
    final = tile((n, d))
    nisa.tensor_copy(final, result)
    nisa.dma_copy(out, final)
    return out


ARGUMENTS = (random_array(1, 64, 96), random_array(2, 64, 96), random_array(3, 96, 64))


def reference(q, k, v):
    s = q.T @ k
    p = np.exp(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ v


def test_the_python_run_equals_numpy():
    np.testing.assert_allclose(run(attention, *ARGUMENTS), reference(*ARGUMENTS), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_saved_programs_give_the_same_bits(target, tmp_path):
    direct = run(attention, *ARGUMENTS, target=target)
    program = vtrn.trace(attention, *ARGUMENTS, target=target)
    assert program.target == target and program.replayable and program.name == "attention"
    assert [row[0] for row in program.inputs] == ["q", "k", "v"] and program.outputs == [("attention", (96, 64), "float32")]
    program.save(tmp_path / "attention.vtrn")
    loaded = vtrn.Program.load(tmp_path / "attention.vtrn")
    assert loaded.text() == program.text() and vtrn.Program.parse(program.text()).text() == program.text()
    for again in (program, loaded, vtrn.Program.parse(program.text())):
        assert again.run(*ARGUMENTS).tobytes() == direct.tobytes()
    other = tuple(np.ascontiguousarray(a[::-1]) for a in ARGUMENTS)
    assert loaded.run(*other).tobytes() == run(attention, *other, target=target).tobytes()


def test_every_instruction_remembers_its_line():
    text = vtrn.trace(attention, *ARGUMENTS, target="trn2").text()
    with open(__file__, encoding="utf-8") as file:
        line = next(i for i, row in enumerate(file, 1) if "nisa.activation_reduce(powers" in row)
    assert f'"{__file__}" {line}' in text


def test_tracing_does_not_run_and_random_programs_repeat_with_their_seed():
    def kernel(x):
        bits = tile((128, 64), nl.uint32)
        nisa.rng(bits)
        return save(bits)

    x = np.zeros((1, 1), np.float32)
    a, b = run(kernel, x, seed=5), run(kernel, x, seed=5)
    program = vtrn.trace(kernel, x, target="trn2")
    assert np.array_equal(a, b) and np.array_equal(program.run(x, seed=5), a) and not np.array_equal(run(kernel, x, seed=6), a)
    assert np.array_equal(program.run(x), run(kernel, x))

    def writes(x):
        nisa.dma_copy(x, nl.ones((1, 1), nl.float32))

    vtrn.trace(writes, x, target="trn2")
    assert x[0, 0] == 0  # not executed
    vtrn.trace(writes, x, target="trn2").run(x)
    assert x[0, 0] == 1


def test_constants_are_part_of_the_program(tmp_path):
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "table.npy", table)

    def kernel(x):
        t = load(nl.shared_constant(table))
        nisa.tensor_tensor(t, t, load(nl.shared_constant(str(tmp_path / "table.npy"))), nl.add)
        return save(t)

    x = np.zeros((1, 1), np.float32)
    program = vtrn.trace(kernel, x, target="trn2")
    program.save(tmp_path / "c.vtrn")
    assert np.array_equal(vtrn.Program.load(tmp_path / "c.vtrn").run(x), 2 * table)


def test_wrong_arguments_of_a_program():
    program = vtrn.trace(attention, *ARGUMENTS, target="trn2")
    with pytest.raises(TypeError, match=r"argument 0 \(q\): \(4, 4\) float32; the program was recorded with \(64, 96\)"):
        program.run(np.zeros((4, 4), np.float32), *ARGUMENTS[1:])
    with pytest.raises(TypeError, match="2 arguments; the program has 3 inputs"):
        program.run(*ARGUMENTS[:2])
    with pytest.raises(TypeError, match="the program has 3 inputs"):
        program.run(*ARGUMENTS, ARGUMENTS[0])
    with pytest.raises(OSError, match="no/such/file"):
        vtrn.Program.load("no/such/file")
    with pytest.raises(ValueError):
        vtrn.Program.parse("nonsense")
    with pytest.raises(ValueError, match="characters that UTF-8 does not have"):
        vtrn.Program.parse("vtrn 1\udcff")
    for thing in (b"vtrn 1", 5, None):
        with pytest.raises(TypeError, match="is not a string of assembly text"):
            vtrn.Program.parse(thing)
    for thing in (None, [1.0], 5):
        with pytest.raises(TypeError, match="argument 0: .* is not an array of NumPy, PyTorch or JAX"):
            program.run(thing, *ARGUMENTS[1:])


def test_edges_are_recorded():
    def kernel(x):
        a = nisa.memset(tile((1, 1)), 0.0)
        b = nisa.memset(tile((1, 1)), 0.0)
        c = nisa.memset(tile((1, 1)), 0.0)
        assert c.depends_on(a, b) is c
        return None

    assert "edge 2 0" in vtrn.trace(kernel, np.zeros((1, 1), np.float32), target="trn2").text()
