"""Misuse of the old namespace: one line that names the kernel's line, the function, the operand and the rule."""

import numpy as np
import pytest
import vtrn
from vtrn.neuronxcc import nki
from vtrn.neuronxcc.nki import isa as nisa
from vtrn.neuronxcc.nki import language as nl

X = np.ones((128, 64), np.float32)
HBM = {"dtype": nl.float32, "buffer": nl.shared_hbm}


def tile(*shape):
    return nl.zeros(shape or (128, 64), dtype=nl.float32)


def assign(target, value):
    target[...] = value


# what the kernel does with x (128, 64) in HBM -> words of the error
TYPES = {
    "nl on HBM": (lambda x: nl.exp(x), r"nl.exp: .* is in HBM; load it first"),
    "nisa on HBM": (lambda x: nisa.nc_matmul(x, x), r"nisa.nc_matmul: .* is in HBM; load it first"),
    "operators on HBM": (lambda x: x + x, r"nl.add: .* is in HBM"),
    "load of an array": (lambda x: nl.load(X), "nl.load: ndarray is not a tensor"),
    "store to SBUF": (lambda x: nl.store(tile(), tile()), "nl.store: dst must be in HBM"),
    "None": (lambda x: nl.add(tile(), None), "nl.add: NoneType is neither a tile nor a number"),
    "assigned text": (lambda x: assign(tile(), "a"), "assignment: str is neither a tile nor a number"),
    "assigned array": (lambda x: assign(tile(), X), "assignment: ndarray is neither .*; arrays come in as arguments"),
    "operator": (lambda x: nisa.tensor_tensor(tile(), tile(), op="plus"), "op is str, which is not an operator"),
    "NumPy function": (lambda x: nisa.tensor_tensor(tile(), tile(), op=np.arctan2), "op is numpy.ufunc, which is not an operator"),
    "activation": (lambda x: nisa.activation(np.add, tile()), "op is numpy.ufunc, which is not an activation function"),
    "dtype": (lambda x: nl.ndarray((4, 4), "float31"), "dtype float31: Trainium has no such data type"),
    "float64": (lambda x: nl.ndarray((4, 4), np.float64), "Trainium has no such data type; convert to a 32-bit one first"),
    "buffer": (lambda x: nl.ndarray((4, 4), nl.float32, buffer="dram"), "buffer dram: use nl.sbuf"),
    "misspelt": (lambda x: nl.exp(tile(), dtpye=nl.float32), "nl.exp: no argument dtpye; is dtype meant?"),
    "unknown argument": (lambda x: nl.exp(tile(), volume=1), "nl.exp: no argument volume; it has x, dtype, mask"),
    "dst": (lambda x: nisa.tensor_copy(dst=tile(), src=tile()), r"no argument dst; .* dst\[...\] = nisa.tensor_copy\(...\)"),
    "real index": (lambda x: nl.load(x[1.5]), "float is not an index: use numbers, slices"),
    "text as a mask": (lambda x: nl.copy(tile(), mask="p"), "mask: str; a mask is a comparison of index expressions"),
    "tile as a mask": (lambda x: nl.copy(tile(), mask=tile() > 0), "mask: Tensor; a mask is a comparison"),
    "if on a tile": (lambda x: 1 if tile() > 0 else 2, "only the chip knows the value; use masks, nl.where"),
    "int of a tile": (lambda x: int(tile()), "int: .* only the chip knows the value"),
    "float of a tile": (lambda x: float(tile()), "float: .* only the chip knows the value"),
    "array of a tile": (lambda x: np.asarray(tile()), "numpy: .* has no values for NumPy while the kernel is made"),
    "loop over a tile": (lambda x: list(nl.affine_range(tile())), "nl.affine_range: a tile, whose value only the chip knows"),
    "half a loop": (lambda x: list(nl.sequential_range(2.5)), "nl.sequential_range: 2.5; an integer is needed"),
    "half a size": (lambda x: tile(128, 2.5), "nl.ndarray: shape: 2.5; an integer is needed"),
    "half a range": (lambda x: nl.arange(2.5), "nl.arange: 2.5; an integer is needed"),
    "no range": (lambda x: nl.arange(), "nl.arange: 0 arguments; it takes stop, or start"),
    "open grid": (lambda x: nl.mgrid[0:4, 2:], "nl.mgrid: dimension 1: a slice with an end is needed"),
    "number as a grid": (lambda x: nl.mgrid[5], "nl.mgrid: dimension 0: a slice with an end is needed"),
    "axis": (lambda x: nl.max(tile(), axis="x"), "nl.max: axis 'x'; an integer or a list of integers is needed"),
    "iota": (lambda x: nisa.iota(5, dtype=np.int32), "nisa.iota: expr is int; an index expression"),
    "affine_select": (lambda x: nisa.affine_select(tile(), tile(), 0.0), "nisa.affine_select: pred is Tensor; a comparison"),
    "loop_reduce": (lambda x: nl.loop_reduce(tile(), np.add, [0]), "nl.loop_reduce: loop_indices must be variables of"),
}
VALUES = {
    "partitions differ": (lambda x: nl.add(tile(), tile(64, 64)), r"nl.add: shapes \(128, 64\) and \(64, 64\) do not broadcast"),
    "columns differ": (lambda x: nl.add(tile(), tile(128, 32)), r"nl.add: shapes .* do not broadcast"),
    "stored shape": (lambda x: nl.store(nl.ndarray((128, 32), **HBM), tile()), r"\(128, 64\) does not fit \(128, 32\)"),
    "assigned shape": (lambda x: assign(tile(128, 32), tile()), r"\(128, 64\) does not fit \(128, 32\)"),
    "mask's shape": (lambda x: nl.copy(tile(), mask=nl.arange(7)[:, None] < 3), r"\(7, 1\) does not fit the tile's \(128, 64\)"),
    "two partition dimensions": (lambda x: tile(nl.par_dim(4), nl.par_dim(4)), "more than one nl.par_dim"),
    "reduction of partitions": (lambda x: nl.sum(tile(), axis=0), "nl.sum: axis 0 of .*: only free dimensions can be reduced"),
    "missing axis": (lambda x: nisa.tensor_reduce(np.add, tile(), axis=[1, 3]), r"nisa.tensor_reduce: axis \[1, 3\] of"),
    "block dimensions": (
        lambda x: nl.exp(tile(2, nl.par_dim(128), 4)),
        "nl.exp: .* block dimensions before the partition dimension",
    ),
    "reshape": (lambda x: tile().reshape((128, 65)), "the new shape has 8320 elements, the old 8192"),
    "program_id": (lambda x: nl.program_id(3), "nl.program_id: axis 3; the launch grid has 0 dimensions"),
    "empty grid": (lambda x: nl.mgrid[5:5], "the range from 5 to 5 is empty"),
}
RULES = {
    "partitions": (lambda x: tile(256, 4), r"partition dimension 256 > 128 \(partitions of sbuf on trn2\); tile it"),
    "PSUM": (lambda x: nl.zeros((128, 8192), nl.float32, buffer=nl.psum), "32768 bytes per partition > 16384"),
    "no elements": (lambda x: tile(128, 0), "dimension 1 is 0; it must be at least 1"),
    "contraction": (lambda x: nisa.nc_matmul(tile(64, 64), tile()), "stationary has 64 partitions, moving has 128"),
    "moving": (lambda x: nisa.nc_matmul(tile(), tile(128, 1024)), "moving free size 1024 > 512"),
    "bn_aggr": (lambda x: nisa.bn_aggr(tile()), "must hold .* triples"),
    "index dtype": (lambda x: nl.gather_flattened(tile(), tile()), "indices: dtype float32, it must be int32 or uint32"),
}
INDICES = {
    "too many": (lambda x: x[0, 0, 0], "3 indices for 2 dimensions"),
    "outside": (lambda x: nl.load(x[nl.ds(126, 4), :]), "indices 126..129 of dimension 0 are outside 0..127"),
}
KINDS = (
    (TYPES, vtrn.NkiTypeError),
    (VALUES, vtrn.NkiValueError),
    (RULES, vtrn.NkiValidationError),
    (INDICES, vtrn.NkiIndexError),
)


@pytest.mark.parametrize(
    "body, text, error", [pytest.param(*row, error, id=name) for table, error in KINDS for name, row in table.items()]
)
def test_misuse_in_a_kernel(body, text, error):
    @nki.jit
    def kernel(x):
        return body(x)

    with pytest.raises(error, match=rf"^test_old_errors.py:\d+ .*{text}") as caught:
        kernel(X)
    assert "\n" not in str(caught.value)


@nki.jit
def copied(x, count):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: nl.ndarray((4, 4), nl.float32), vtrn.VtrnError, "works only inside a kernel"),
        (lambda: nl.program_id(0), vtrn.NkiValidationError, "outside a kernel; kernels are functions with nki.jit"),
        (lambda: copied(X), TypeError, "missing 1 required positional argument: 'count'"),
        (lambda: copied(X.astype(np.float64), 1), vtrn.NkiTypeError, "argument x: dtype float64 does not exist on Trainium"),
        (lambda: copied["a"](X, 1), vtrn.NkiTypeError, "launch grid: 'a'; an integer is needed"),
        (lambda: copied[-1](X, 1), vtrn.NkiValueError, r"launch grid: sizes must be positive, not \(-1,\)"),
        (lambda: nki.jit(copied, platform_target="trn9")(X, 1), vtrn.NkiValueError, "trn9: use trn1, inf2, trn2 or trn3"),
        (lambda: nki.benchmark(copied)(X), TypeError, "missing 1 required"),
    ],
)
def test_misuse_outside_kernels(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_floats_that_are_whole_are_sizes_and_numpy_scalars_are_numbers():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((128 / 2, np.int64(64)), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(64 / 64):
            nl.store(out, np.float32(2) * nl.load(x[0:64]) + np.float32(i))
        return out

    np.testing.assert_array_equal(kernel(X), 2 * X[:64])


def test_runners_do_not_take_kernels_for_tests():
    assert not hasattr(copied, "__wrapped__") and callable(copied)
