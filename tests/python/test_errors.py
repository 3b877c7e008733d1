"""Wrong calls. Each is one line that starts with the kernel's line, names the function and says what is wrong and what would
be right; none crashes. The table is the front end's part; tests of legality in C hold the rest."""

import functools
import re

import ml_dtypes
import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl

Invalid, Type, Value, Index = vtrn.NkiValidationError, vtrn.NkiTypeError, vtrn.NkiValueError, vtrn.NkiIndexError


class Tiles:
    """What the wrong calls use: t, u in SBUF (128, 64) fp32, b bf16, i int32, c (128, 1), p PSUM, h HBM."""

    def __init__(self, h):
        self.h = h
        self.t, self.u = nl.zeros((128, 64), nl.float32), nl.zeros((128, 64), nl.float32)
        self.b = nl.zeros((128, 64), nl.bfloat16)
        self.i = nl.zeros((128, 64), nl.int32)
        self.c = nl.zeros((128, 1), nl.float32)
        self.p = nl.zeros((128, 64), nl.float32, buffer=nl.psum)
        self.index = nl.zeros((128, 1), nl.int32)
        self.half = nl.zeros((64, 64), nl.float32)
        self.reg = nisa.register_alloc(3)


HUGE, ODD = 2**70, "\udcff"
WRONG = {
    # arguments
    "missing argument": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u), Type, "nisa.tensor_tensor: argument op is missing"),
    "missing dst": (lambda k: nisa.memset(value=1.0), Type, "nisa.memset: argument dst is missing"),
    "unknown argument": (lambda k: nisa.tensor_copy(k.t, k.u, colour=1), Type, "nisa.tensor_copy: no argument colour"),
    "argument twice": (lambda k: nisa.tensor_copy(k.t, k.u, dst=k.t), Type, "argument dst is given twice"),
    "too many arguments": (
        lambda k: nisa.reciprocal(k.t, k.u, "a", 4, 5),
        Type,
        "nisa.reciprocal: 5 arguments; it takes at most 3",
    ),
    "removed mask": (lambda k: nisa.tensor_copy(k.t, k.u, mask=[1]), Type, "no argument mask"),
    "name that is no string": (lambda k: nisa.memset(k.t, 0.0, name=3), Type, "name is int, not a string"),
    # types of operands
    "array for a tile": (lambda k: nisa.tensor_copy(k.t, np.zeros((128, 64))), Type, "src is numpy.ndarray; a tensor is needed"),
    "number for a tile": (lambda k: nisa.tensor_tensor(k.t, k.t, 2.0, nl.add), Type, "data2 is float; a tensor is needed"),
    "None for a tile": (lambda k: nisa.nc_matmul(None, k.t, k.u), Type, "dst is None; a tensor is needed"),
    "list for a tile": (lambda k: nisa.dma_copy([k.t], k.h), Type, "dst is list; a tensor is needed"),
    "tile for a list": (lambda k: nisa.dma_compute(k.t, k.u, nl.add), Type, "srcs is vtrn.NkiTensor; a list of tensors"),
    "wrong list": (lambda k: nisa.dma_compute(k.t, [k.u, 3], nl.add), Type, "srcs is int; a list of tensors"),
    "tile for a number": (lambda k: nisa.memset(k.t, k.u), Type, "value is vtrn.NkiTensor; a number is needed"),
    "string for a number": (lambda k: nisa.memset(k.t, "0"), Type, "value is str; a number is needed"),
    "register for a number": (
        lambda k: nisa.memset(k.t, k.reg),
        Type,
        "value is vtrn.VirtualRegister; a number (store the register",
    ),
    "string for a scalar": (lambda k: nisa.tensor_scalar(k.t, k.t, nl.add, "1"), Type, "operand0 is str; a number or a tensor"),
    "register for a scalar": (lambda k: nisa.tensor_scalar(k.t, k.t, nl.add, k.reg), Type, "operand0 is vtrn.VirtualRegister"),
    "float for an integer": (
        lambda k: nisa.iota(k.i, [[1, 64]], channel_multiplier=1.5),
        Type,
        "channel_multiplier is float; an integer",
    ),
    "tile for a register": (
        lambda k: nisa.iota(k.i, [[1, 64]], offset=k.index),
        Type,
        "offset is vtrn.NkiTensor; a register or an integer",
    ),
    "integer for a written register": (lambda k: nisa.register_move(3, 4), Type, "dst is int; a register (nisa.register_alloc)"),
    "string for a flag": (
        lambda k: nisa.tensor_scalar(k.t, k.t, nl.add, 1.0, reverse0="yes"),
        Type,
        "reverse0 is str; True or False",
    ),
    "string for axis": (lambda k: nisa.tensor_reduce(k.c, nl.add, k.t, "x"), Type, "axis is str; a list of integers"),
    "pattern with a float": (lambda k: nisa.iota(k.i, [[1.5, 64]]), Type, "pattern is float; an integer"),
    # operators and enums
    "function for an operator": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u, nl.exp), Type, "op is exp, which is not an operator"),
    "operator for a function": (
        lambda k: nisa.activation(k.t, nl.multiply, k.t),
        Type,
        "op is multiply, which is not an activation function",
    ),
    "object for an operator": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u, 3), Type, "op is int, which is not an operator"),
    "unknown operator name": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u, "plus"), Type, "op is str, which is not an operator"),
    "foreign function": (lambda k: nisa.activation(k.t, np.cbrt, k.t), Type, "which is not an activation function"),
    "operator that does not reduce": (lambda k: nisa.tensor_reduce(k.c, nl.power, k.t, 1), Invalid, "op: power is not an operator"),
    "wrong enum": (
        lambda k: nisa.tensor_copy(k.t, k.u, engine=nisa.oob_mode.skip),
        Type,
        "engine is oob_mode, not a member of engine (unknown, tensor",
    ),
    "number for an enum": (
        lambda k: nisa.dma_copy(k.t, k.h, oob_mode=17),
        Type,
        "oob_mode is int, not a member of oob_mode (error, skip)",
    ),
    "unknown enum name": (
        lambda k: nisa.nc_matmul(k.p, k.t, k.u, perf_mode="triple_row"),
        Type,
        "matmul_perf_mode (none, double_row)",
    ),
    "arithmetic for a comparison": (
        lambda k: nisa.affine_select(k.t, [[1, 64]], 0, k.u, 0.0, cmp_op=nl.add),
        Type,
        "cmp_op is vtrn.NkiOp, not a member of comparison",
    ),
    # legality that the front end's users meet first
    "engine that cannot": (
        lambda k: nisa.reciprocal(k.p[0:64], k.half, name="x") and nisa.nc_transpose(k.p, k.t, engine=nisa.engine.gpsimd),
        Invalid,
        "engine gpsimd does not run it; use one of: tensor, vector",
    ),
    "matmul into SBUF": (lambda k: nisa.nc_matmul(k.t[0:64], k.t, k.u), Invalid, "nisa.nc_matmul: dst"),
    "matmul from PSUM": (lambda k: nisa.nc_matmul(k.p[0:64], k.p, k.u), Invalid, "nisa.nc_matmul: stationary"),
    "matmul of different contractions": (lambda k: nisa.nc_matmul(k.p[0:64], k.half, k.u), Invalid, "nisa.nc_matmul: "),
    "moving too large": (
        lambda k: nisa.nc_matmul(nl.ndarray((64, 512), nl.float32, nl.psum), k.t, nl.zeros((128, 640), nl.float32)),
        Invalid,
        "640",
    ),
    "dma from PSUM": (lambda k: nisa.dma_copy(k.h, k.p), Invalid, "nisa.dma_copy: src"),
    "dma of other sizes": (lambda k: nisa.dma_copy(k.t, k.h[0:64]), Invalid, "nisa.dma_copy: "),
    "gpsimd in PSUM": (lambda k: nisa.tensor_copy(k.p, k.t, engine=nisa.gpsimd_engine), Invalid, "nisa.tensor_copy: "),
    "both inputs in PSUM": (lambda k: nisa.tensor_tensor(k.t, k.p, k.p, nl.add), Invalid, "nisa.tensor_tensor: "),
    "different partitions": (lambda k: nisa.tensor_copy(k.t, k.half), Invalid, "nisa.tensor_copy: "),
    "different free sizes": (lambda k: nisa.tensor_copy(k.t, k.t[:, 0:32]), Invalid, "nisa.tensor_copy: "),
    "compute on HBM": (lambda k: nisa.tensor_copy(k.t, k.h), Invalid, "nisa.tensor_copy: src"),
    "bitwise on floats": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u, nl.bitwise_and), Invalid, "nisa.tensor_tensor: "),
    "axis of partitions": (lambda k: nisa.tensor_reduce(k.c, nl.add, k.t, 0), Invalid, "nisa.tensor_reduce: axis"),
    "axis that is not there": (lambda k: nisa.tensor_reduce(k.c, nl.add, k.t, 2), Invalid, "nisa.tensor_reduce: axis"),
    "v4 instruction on v3": (lambda k: nisa.exponential(k.t, k.t), Invalid, "needs NeuronCore v4 (trn3) or newer"),
    "v4 operator on v3": (lambda k: nisa.tensor_tensor(k.t, k.t, k.u, nl.abs_max), Invalid, "abs_max needs NeuronCore v4"),
    "shuffle mask of 31": (lambda k: nisa.nc_stream_shuffle(k.t, k.u, list(range(31))), Invalid, "shuffle_mask"),
    "x4 memset": (lambda k: nisa.memset(nl.ndarray((128, 4), nl.float8_e4m3fn_x4), 1.0), Invalid, "nisa.memset: "),
    "bn_stats too long": (
        lambda k: nisa.bn_stats(nl.zeros((128, 6), nl.float32), nl.zeros((128, 600), nl.float32)),
        Invalid,
        "600",
    ),
    "core barrier on one core": (lambda k: nisa.core_barrier(k.h, (0, 1)), Invalid, "nisa.core_barrier: "),
    "priority 7": (lambda k: nisa.dma_copy(k.t, k.h, priority=7), Invalid, "priority 7 is outside 0..3"),
    # declarations
    "dtype that does not exist": (
        lambda k: nl.ndarray((4, 4), "float99"),
        Type,
        "nl.ndarray: dtype float99: Trainium has no such data type",
    ),
    "64-bit dtype": (lambda k: nl.ndarray((4, 4), np.float64), Type, "convert to a 32-bit one first"),
    "no dtype": (lambda k: nl.ndarray((4, 4)), Type, "nl.ndarray: argument dtype is missing"),
    "unknown ndarray argument": (lambda k: nl.ndarray((4, 4), nl.float32, size=3), Type, "nl.ndarray: no argument size"),
    "shape that is a number": (lambda k: nl.ndarray(4, nl.float32), Type, "shape: a tuple of integers is needed, not int"),
    "shape with a float": (lambda k: nl.ndarray((4, 2.5), nl.float32), Type, "item 1 is float, not an integer"),
    "negative size": (lambda k: nl.ndarray((4, -1), nl.float32), Invalid, "dimension 1 is -1"),
    "129 partitions": (lambda k: nl.ndarray((129, 4), nl.float32), Invalid, "partition dimension 129 > 128"),
    "one dimension on chip": (lambda k: nl.ndarray((128,), nl.float32), Invalid, "rank 1 is outside 2..8"),
    "nine dimensions": (lambda k: nl.ndarray((1,) * 9, nl.float32), Value, "9 dimensions, at most 8"),
    "larger than SBUF": (lambda k: nl.ndarray((128, 1 << 20), nl.float32), Invalid, "bytes per partition"),
    "larger than PSUM": (lambda k: nl.ndarray((128, 8192), nl.float32, buffer=nl.psum), Invalid, "psum"),
    "unknown buffer": (lambda k: nl.ndarray((4, 4), nl.float32, buffer="cache"), Type, "buffer cache: use nl.sbuf"),
    "buffer of the wrong type": (lambda k: nl.ndarray((4, 4), nl.float32, buffer=3), Type, "buffer of type int"),
    "address beyond the partition": (lambda k: nl.ndarray((4, 4), nl.float32, address=(0, 1 << 20)), Invalid, "address"),
    "address that is a number": (lambda k: nl.ndarray((4, 4), nl.float32, address=5), Type, "address: a tuple of integers"),
    "address with one entry": (lambda k: nl.ndarray((4, 4), nl.float32, address=(5,)), Value, "address must be (partition, byte"),
    "name that is a number": (lambda k: nl.ndarray((4, 4), nl.float32, name=5), Type, "name is int, not a string"),
    # indices and views
    "index beyond the end": (
        lambda k: k.t[128],
        Index,
        "index: dimension 0: index 128 is outside 0..127; the tensor is tensor (128, 64) float32 sbuf",
    ),
    "too many indices": (lambda k: k.t[0, 0, 0], Index, "3 indices for 2 dimensions"),
    "empty slice": (lambda k: k.t[:, 64:80], Index, "of size 64 is empty"),
    "negative step": (lambda k: k.t[:, ::-1], Index, "step -1; it must be at least 1"),
    "tile as an index": (
        lambda k: k.h[k.index],
        Type,
        "vtrn.NkiTensor is not an index: use integers, slices, nl.ds, ... or a register (a tensor of indices: .ap(vector_offset=)",
    ),
    "ds beyond the end": (lambda k: k.h[nl.ds(100, 64)], Index, "nl.ds(100, 64) is outside 0..127"),
    "negative ds": (lambda k: nl.ds(0, -1), Value, "nl.ds: size -1; it cannot be negative"),
    "copy of an empty view": (
        lambda k: nisa.tensor_copy(dst=k.t[:, nl.ds(0, 0)], src=k.t[:, nl.ds(0, 0)]),
        Invalid,
        "dst: dimension 1 has size 0; it must be at least 1",
    ),
    "DMA of an empty view": (lambda k: nisa.dma_copy(dst=k.t[3:3], src=k.h[3:3]), Invalid, "dimension 0 has size 0"),
    "ds without size": (lambda k: nl.ds(0), Type, "nl.ds: argument size is missing"),
    "reshape to other sizes": (lambda k: k.t.reshape((128, 65)), Value, "reshape: the new shape has 8320 elements, the old 8192"),
    "reshape of partitions": (lambda k: k.t.reshape((64, 128)), Value, "dimension 0 (partitions) must stay 128, not 64"),
    "reshape of a strided view": (
        lambda k: k.t[:, ::2].reshape((128, 4, 8)) and k.t[:, 0:32].reshape((128, 4, 8)) and k.h.permute((1, 0)).reshape((8192,)),
        Value,
        "without a copy",
    ),
    "permute twice the same": (lambda k: k.h.permute((0, 0)), Value, "permute: the dimensions are not an order of 0..1"),
    "broadcast of a size": (lambda k: k.t.broadcast(1, 128), Value, "broadcast: dimension 1 has size 64, not 1"),
    "view of an odd size": (lambda k: k.t[:, 0:1].view(nl.uint8)[:, 0:3].view(nl.uint16), Value, "is not a multiple of 2 bytes"),
    "ap that is no pattern": (lambda k: k.t.ap(5), Type, "ap: the pattern is int, not a list of [stride, count]"),
    "ap pair of three": (lambda k: k.h.ap([[64, 128, 1]]), Value, "3 dimensions, at most 2"),
    "ap with count 0": (lambda k: k.h.ap([[64, 0]]), Value, "a count of at least 1"),
    "ap across partitions": (lambda k: k.t.ap([[60, 128], [1, 4]]), Value, "partition stride 60 is not a multiple of 64"),
    "ap with two indices": (
        lambda k: k.h.ap([[64, 128], [1, 64]], scalar_offset=k.reg, vector_offset=k.index),
        Value,
        "exclude each other",
    ),
    "vector index on chip": (
        lambda k: k.t.ap([[64, 128], [1, 64]], vector_offset=k.index),
        Value,
        "a vector of indices needs a tensor in HBM",
    ),
    "vector index of floats": (lambda k: k.h.ap([[64, 128], [1, 64]], vector_offset=k.c), Value, "indices must be integers"),
    "vector index too short": (
        lambda k: k.h.ap([[64, 128], [1, 64]], vector_offset=k.index[0:64]),
        Value,
        "64 indices for 128 steps",
    ),
    "vector index of another dimension": (
        lambda k: k.h.ap([[64, 128], [1, 64]], vector_offset=k.index, indirect_dim=1),
        Value,
        "vector_offset needs indirect_dim 0",
    ),
    "scalar index that is a tile": (
        lambda k: k.h.ap([[64, 128], [1, 64]], scalar_offset=k.index),
        Value,
        "a scalar index must be one integer",
    ),
    "register as ap offset": (
        lambda k: k.h.ap([[64, 1], [1, 4]], offset=k.reg + k.index if False else k.c),
        Type,
        "offset is vtrn.NkiTensor, not an integer",
    ),
    "select beyond the end": (lambda k: k.h.select(0, 128), Value, "select: index 128 is outside 0..127"),
    "slice beyond the end": (lambda k: k.t.slice(1, 60, 70), Value, "0 <= start < end <= 64"),
    "dimension that is not there": (lambda k: k.t.expand_dim(9), Value, "expand_dim: no place 9"),
    "access beyond the tensor": (
        lambda k: nisa.dma_copy(k.t, k.h.ap([[64, 128], [1, 64]], offset=64)),
        Invalid,
        "nisa.dma_copy: src",
    ),
    "access beyond the partition": (
        lambda k: nisa.tensor_copy(k.t, k.u.ap([[64, 128], [1, 64]], offset=8)),
        Invalid,
        "nisa.tensor_copy: src",
    ),
    "squeeze of a size": (lambda k: k.h.reshape((2, 64, 64)).squeeze_dim(0), Value, "squeeze_dim: dimension 0 has size 2, not 1"),
    "rearrange with a size that does not divide": (
        lambda k: k.t.rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 5}),
        Value,
        "rearrange: 64 elements do not divide by 5",
    ),
    # functions, loops, registers
    "two numbers": (lambda k: nl.add(1, 2), Type, "nl.add: two numbers"),
    "list for a tile in nl": (lambda k: nl.exp([1, 2]), Type, "nl.exp: list is not a tile"),
    "shapes that do not broadcast": (
        lambda k: nl.add(k.t, k.t[:, 0:32]),
        Value,
        "nl.add: shapes (128, 64) and (128, 32) do not broadcast",
    ),
    "reduction over partitions": (lambda k: nl.sum(k.t, 0), Value, "nl.sum: axis 0"),
    "program_id of another axis": (lambda k: nl.program_id(1), Value, "nl.program_id: axis 1"),
    "loop step 0": (lambda k: nl.fori_loop(0, 4, lambda i: None, step=0), Value, "nl.fori_loop: step 0"),
    "loop bound of floats": (
        lambda k: nl.fori_loop(0, 4.5, lambda i: None),
        Type,
        "nl.fori_loop: the bounds must be integers or registers",
    ),
    "dynamic step": (lambda k: list(nl.dynamic_range(0, 4, k.reg)), Value, "nl.dynamic_range: step"),
    "while body without a register": (
        lambda k: nl.while_loop(k.reg, lambda r: None),
        Type,
        "nl.while_loop: the body returned NoneType",
    ),
    "register from a float": (lambda k: nisa.register_alloc(2.5), Type, "nisa.register_alloc: x is float"),
    "register with a tile": (lambda k: k.reg + k.t, TypeError, "unsupported operand"),
    "register index beyond the tensor": (lambda k: k.t[:, nl.ds(k.reg, 65)], Index, "size 65 > 64"),
    "constant of 64 bits": (lambda k: nl.shared_constant(np.zeros((2, 2))), Type, "nl.shared_constant: dtype float64"),
    "depends_on a number": (
        lambda k: nisa.memset(k.t, 0.0).depends_on(3),
        Type,
        "depends_on: int is not what a nisa function returned",
    ),
    "depends_on a later one": (
        lambda k: (lambda a, b: a.depends_on(b))(nisa.memset(k.t, 0.0), nisa.memset(k.t, 0.0)),
        Invalid,
        "the producer comes after the consumer",
    ),
    # numbers that no 64 bits hold, and what looks like a number
    "huge dimension": (lambda k: nl.ndarray((HUGE, 2), nl.float32), Value, "nl.ndarray: shape: item 0 does not fit in 64 bits"),
    "huge address": (lambda k: nl.ndarray((2, 2), nl.float32, address=(0, -HUGE)), Value, "item 1 does not fit in 64 bits"),
    "huge index": (lambda k: k.t[HUGE], Index, "index 9223372036854775807 is outside 0..127"),
    "hugely negative index": (lambda k: k.t[-HUGE], Index, "is outside 0..127"),
    "huge ds": (lambda k: k.t[nl.ds(HUGE, 1)], Index, "is outside 0..127"),
    "huge size of ds": (lambda k: nl.ds(0, HUGE), Value, "nl.ds: size does not fit in 64 bits"),
    "huge ap": (lambda k: k.h.ap([[1, HUGE]]), Value, "ap: item 1 does not fit in 64 bits"),
    "huge ap offset": (lambda k: k.h.ap([[1, 4]], offset=HUGE), Value, "ap: offset does not fit in 64 bits"),
    "ap offset beyond 64 bits": (lambda k: k.h[1:].ap([[1, 4]], offset=2**63 - 1), Value, "lies behind the tensor"),
    "huge scalar index": (
        lambda k: k.h.ap([[64, 2], [1, 4]], scalar_offset=2**60, indirect_dim=0),
        Value,
        "index 1152921504606846976 times 64 elements is more than any tensor",
    ),
    "huge select": (lambda k: k.h.select(0, HUGE), Value, "select: the index does not fit in 64 bits"),
    "huge dimension number": (lambda k: k.h.select(HUGE, 0), Value, "select: the dimension does not fit in 64 bits"),
    "huge broadcast": (lambda k: k.c.broadcast(1, HUGE), Value, "broadcast: size does not fit in 64 bits"),
    "huge slice": (lambda k: k.h.slice(1, 0, HUGE), Value, "slice: end does not fit in 64 bits"),
    "huge place": (lambda k: k.h.expand_dim(HUGE), Value, "expand_dim: dim does not fit in 64 bits"),
    "huge integer operand": (lambda k: nisa.iota(k.i, [[1, 64]], offset=HUGE), Value, "nisa.iota: offset does not fit in 64 bits"),
    "float without an integer": (
        lambda k: nisa.iota(k.i, [[1, 64]], channel_multiplier=float("nan")),
        Type,
        "is float; an integer",
    ),
    "larger than any float": (lambda k: nisa.memset(k.t, 10**400), Value, "nisa.memset: value is an integer that is larger than"),
    "huge register": (lambda k: nisa.register_alloc(HUGE), Value, "the number does not fit in 64 bits"),
    "huge arithmetic": (lambda k: k.reg + HUGE, Value, "register arithmetic: the number does not fit in 64 bits"),
    "huge loop": (lambda k: nl.fori_loop(0, HUGE, lambda i: None), Value, "nl.fori_loop: the number does not fit in 64 bits"),
    "huge loop step": (lambda k: nl.fori_loop(0, 4, lambda i: None, step=HUGE), Value, "step does not fit in 64 bits"),
    "array for a number": (lambda k: nisa.memset(k.t, np.zeros(3)), Type, "value is numpy.ndarray; a number is needed"),
    "array for an index": (lambda k: k.t[np.array([1, 2])], Type, "index: numpy.ndarray is not an index"),
    "slice of floats": (lambda k: k.t[1.5:3], Type, "dimension 0: the bounds of a slice are integers"),
    "slice of step 0": (lambda k: k.t[::0], Index, "dimension 0: step 0"),
    # text that is no UTF-8
    "odd name": (lambda k: nl.ndarray((2, 2), nl.float32, name=ODD), Value, "characters that UTF-8 does not have"),
    "odd name of an instruction": (lambda k: nisa.memset(k.t, 0.0, name=ODD), Value, "characters that UTF-8 does not have"),
    "odd dtype": (lambda k: nl.ndarray((2, 2), ODD), Type, "nl.ndarray: dtype ?"),
    "odd buffer": (lambda k: nl.ndarray((2, 2), nl.float32, buffer=ODD), Type, "nl.ndarray: buffer of type str"),
    "odd argument": (lambda k: nisa.memset(k.t, 0.0, **{ODD: 1}), Type, "nisa.memset: no argument ?"),
    "odd argument of ndarray": (lambda k: nl.ndarray((2, 2), nl.float32, **{ODD: 1}), Type, "nl.ndarray: no argument ?"),
}
WHERE = re.compile(r"^test_errors\.py:\d+ ")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_say_where_what_and_why(case):
    call, error, words = WRONG[case]
    with pytest.raises(error) as caught:
        vtrn.run(lambda x: call(Tiles(x)) and None, np.zeros((128, 64), np.float32), target="trn2")
    text = str(caught.value)
    assert words in text and "\n" not in text and len(text) < 700
    if isinstance(caught.value, vtrn.NkiValidationError) and not words.startswith(("nl.", "a scalar")):
        assert WHERE.match(text) or "nl." in text, text


def test_there_are_enough_kinds():
    assert len(WRONG) >= 120


# ---- faults: found when the chip runs ----


def test_a_fault_names_the_kernel_line_of_the_instruction():
    def kernel(x, rows):
        idx, got = nl.load(rows), nl.ndarray((4, 64), nl.float32)
        nisa.dma_copy(got, x.ap([[64, 4], [1, 64]], vector_offset=idx))  # the line
        nisa.tensor_copy(nl.ndarray((4, 64), nl.float32), got)

    with open(__file__, encoding="utf-8") as file:
        line = next(i for i, row in enumerate(file, 1) if row.rstrip().endswith("# the line"))
    with pytest.raises(vtrn.Fault, match=rf"test_errors.py:{line} nisa.dma_copy: .*500"):
        vtrn.run(kernel, np.zeros((128, 64), np.float32), np.array([[0], [500], [1], [2]], np.int32), target="trn2")


def test_a_run_that_failed_takes_no_more_instructions():
    def kernel(x, rows):
        idx, got = nl.load(rows), nl.ndarray((1, 64), nl.float32)
        nisa.dma_copy(got, x.ap([[64, 1], [1, 64]], vector_offset=idx))
        with pytest.raises(vtrn.Fault):
            got.numpy()
        with pytest.raises(vtrn.VtrnError, match="the run has stopped"):
            nisa.memset(got, 0.0)
        with pytest.raises(vtrn.VtrnError, match="the run has stopped"):
            got.numpy()

    with pytest.raises(vtrn.VtrnError, match="the run has stopped"):
        vtrn.run(kernel, np.zeros((128, 64), np.float32), np.array([[500]], np.int32), target="trn2")


def test_calls_outside_a_kernel():
    for call in (
        lambda: nl.ndarray((4, 4), nl.float32),
        lambda: nisa.register_alloc(),
        lambda: nl.program_id(),
        lambda: nisa.memset(None, 0),
    ):
        with pytest.raises(vtrn.VtrnError, match="works only inside a kernel that runs"):
            call()


def test_tensors_do_not_outlive_their_run():
    kept = []
    vtrn.run(lambda x: kept.append(nl.zeros((4, 4), nl.float32)), np.zeros((4, 4), np.float32))
    assert kept[0].shape == (4, 4) and "NkiTensor" in repr(kept[0]) and str(kept[0]) == repr(kept[0])
    with pytest.raises(vtrn.NkiValidationError, match="belongs to another run"):
        vtrn.run(lambda x: nisa.memset(kept[0], 0.0), np.zeros((4, 4), np.float32))
    with pytest.raises(vtrn.VtrnError, match="works only inside"):
        kept[0].numpy()


def test_errors_of_the_kernels_own_python_pass_through():
    with pytest.raises(ZeroDivisionError):
        vtrn.run(lambda x: 1 / 0, np.zeros((4, 4), np.float32))
    with pytest.raises(AssertionError, match="my message"):

        @nki.jit
        def kernel(x):
            assert x.shape == (1, 1), "my message"

        kernel(np.zeros((4, 4), np.float32))


def test_wrong_targets_and_wrong_call_arguments():
    with pytest.raises(ValueError, match="trn7: use trn1, inf2, trn2 or trn3"):
        vtrn.run(lambda x: None, np.zeros((4, 4), np.float32), target="trn7")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        vtrn.run(lambda x, y: None, np.zeros((4, 4), np.float32))
    with pytest.raises(TypeError, match="dtype float64 does not exist on Trainium"):
        vtrn.run(lambda x: None, np.zeros((4, 4)))


def test_mixed_float8_formats_are_refused():
    def kernel(a, b):
        acc = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(acc, nl.load(a), nl.load(b))

    a, b = np.zeros((128, 64), ml_dtypes.float8_e4m3), np.zeros((128, 64), ml_dtypes.float8_e4m3fn)
    with pytest.raises(vtrn.NkiValidationError, match="nisa.nc_matmul"):
        vtrn.run(kernel, a, b, target="trn3")


X = np.zeros((4, 4), np.float32)
OPTIONS = {
    "threads below": ({"threads": -1}, Value, "threads: -1 is outside 1..4096"),
    "threads above": ({"threads": 10**9}, Value, "threads: 1000000000 is outside"),
    "threads far above": ({"threads": 10**30}, Value, "is outside 1..4096"),
    "threads no number": ({"threads": "many"}, Value, "threads: 'many' is not an integer"),
    "threads broken": ({"threads": 1.5}, Type, "threads: 1.5 is not an integer"),
    "seed no number": ({"seed": "a"}, Value, "seed: 'a' is not an integer"),
    "seed broken": ({"seed": 1.5}, Type, "seed: 1.5 is not an integer"),
    "target no string": ({"target": 5}, Type, "target: int is not a string: use trn1"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_wrong_options_of_a_run(case, monkeypatch):
    options, error, words = OPTIONS[case]
    ((name, value),) = options.items()
    with pytest.raises(error, match=re.escape(words)):
        vtrn.run(lambda x: None, X, **options)
    if name != "target":
        with pytest.raises(error, match=re.escape(words)):
            vtrn.trace(lambda x: None, X).run(X, **options)
    if isinstance(value, str):
        monkeypatch.setenv("VTRN_" + name.upper(), value)
        with pytest.raises(error, match=re.escape(words)):
            vtrn.run(lambda x: None, X)


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64 - 1, "0x10"])
def test_every_64_bit_seed_is_a_seed(seed):
    vtrn.run(lambda x: None, X, seed=seed)
    vtrn.trace(lambda x: None, X).run(X, seed=seed)


@pytest.mark.parametrize("thing", [5, None, "kernel"])
def test_what_is_no_kernel(thing):
    for call in (nki.simulate, vtrn.run, vtrn.trace):
        if not (call is nki.simulate and thing is None):  # nki.jit(None, ...) is a decorator
            with pytest.raises(Type, match=r"nki.jit: \w+ is not a function"):
                call(thing)


def test_callable_objects_are_kernels():
    class Scale:
        def __call__(self, x):
            return x

    for kernel in (nki.jit(Scale()), nki.jit(functools.partial(Scale()))):
        assert kernel(X) is X and kernel.__name__ in repr(kernel)


@pytest.mark.parametrize("call", [vtrn.run, vtrn.trace, lambda kernel, x: vtrn.profile(kernel)(x)])
def test_a_run_inside_a_kernel(call):
    with pytest.raises(vtrn.VtrnError, match=r"test_errors.py:\d+ .* a kernel runs already: call the other kernel in it directly"):
        vtrn.run(lambda x: call(lambda y: None, X), X)
