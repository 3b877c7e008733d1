"""Random valid kernels: a seed gives a plan (a list of instruction calls on slices of tiles) and, computed alongside with
model.py, the bytes that every tile must hold at the end.

A plan is plain data, so a failing one can be printed, cut down and replayed. Rules kept by construction: legal start
partitions, equal element counts, a destination that overlaps no source unless it is exactly the same view.
"""

import dataclasses

import ml_dtypes
import model
import numpy as np

FREE = (6, 40)  # free shape of every tile
DTYPES = {
    "float32": np.dtype(np.float32),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float16": np.dtype(np.float16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "int16": np.dtype(np.int16),
    "uint16": np.dtype(np.uint16),
    "int32": np.dtype(np.int32),
    "uint32": np.dtype(np.uint32),
}
FLOATS = [name for name in DTYPES if "float" in name]
INTS = [name for name in DTYPES if "int" in name]


@dataclasses.dataclass(frozen=True)
class View:
    """A slice of a tile: `index` is a tuple of (start, stop, step)."""

    tile: int
    index: tuple

    def of(self, tile):
        return tile[tuple(slice(*part) for part in self.index)]

    @property
    def partitions(self):
        start, stop, _ = self.index[0]
        return stop - start

    def __repr__(self):
        return f"t{self.tile}[{', '.join(f'{a}:{b}' + (f':{c}' if c != 1 else '') for a, b, c in self.index)}]"


@dataclasses.dataclass
class Tile:
    dtype: str
    space: str
    value: np.ndarray  # what it holds now


@dataclasses.dataclass
class Call:
    """One instruction: name, keyword arguments (View, number, string or list)."""

    name: str
    args: dict

    def __repr__(self):
        return f"nisa.{self.name}({', '.join(f'{k}={v!r}' for k, v in self.args.items())})"


class Op(str):
    """An operator name: `nl.<name>` when the call is made."""

    def __repr__(self):
        return f"nl.{str(self)}"


class Cmd(str):
    """A reduce_cmd member."""

    def __repr__(self):
        return f"nisa.reduce_cmd.{str(self)}"


def random_values(rng, shape, dtype):
    """Ordinary values, with some exact zeros, repeats and extremes."""
    dtype = DTYPES[dtype]
    if model.is_int(dtype):
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -9), 10, shape)
        wide = rng.integers(info.min, info.max, shape, endpoint=True)
        return np.where(rng.random(shape) < 0.8, small, wide).astype(dtype)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)
    x = np.where(rng.random(shape) < 0.1, 0.0, x)
    x = np.where(rng.random(shape) < 0.2, np.round(x), x)
    return x.astype(np.float32).astype(dtype)


class Generator:
    def __init__(self, seed, length=24):
        self.rng = np.random.default_rng(seed)
        self.tiles, self.inputs, self.calls = [], [], []
        names = list(DTYPES)
        for i in range(10):
            dtype = "float32" if i < 2 else names[self.rng.integers(len(names))]
            self.add_tile(dtype, "sbuf")
        for _ in range(2):
            self.add_tile("float32", "psum")
        self.makers = [getattr(self, name) for name in dir(type(self)) if name.startswith("make_")]
        while len(self.calls) < length:
            self.makers[self.rng.integers(len(self.makers))]()

    # ---- choices ----
    def add_tile(self, dtype, space):
        value = random_values(self.rng, (128, *FREE), dtype)
        self.inputs.append(value.copy())
        self.tiles.append(Tile(dtype, space, value))

    def pick(self, sequence):
        return sequence[self.rng.integers(len(sequence))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def tile(self, dtypes=None, spaces=("sbuf", "psum"), avoid=()):
        choice = [
            i for i, t in enumerate(self.tiles) if t.space in spaces and i not in avoid and (dtypes is None or t.dtype in dtypes)
        ]
        return self.pick(choice) if choice else None

    def shape(self):
        return int(self.pick([1, 2, 16, 31, 32, 48, 64, 100, 128])), int(self.rng.integers(1, 7)), int(self.rng.integers(1, 41))

    def start(self, partitions):
        return int(self.pick([0] if partitions > 64 else [0, 64] if partitions > 32 else [0, 32, 64, 96]))

    def view(self, tile, shape):
        """A view of a tile with this (partitions, rows, columns), at a random place with random steps."""
        parts, index = shape[0], []
        begin = self.start(parts)
        index.append((begin, begin + parts, 1))
        for count, extent in zip(shape[1:], FREE):
            step = int(self.rng.integers(1, 4))
            while (count - 1) * step + 1 > extent:
                step -= 1
            span = (count - 1) * step + 1
            first = int(self.rng.integers(0, extent - span + 1))
            index.append((first, first + span, step))
        return View(tile, tuple(index))

    def value(self, view):
        return view.of(self.tiles[view.tile].value)

    def dtype(self, view):
        return DTYPES[self.tiles[view.tile].dtype]

    def operands(self, dst_dtypes, *source_dtypes, one_psum=True, spaces=("sbuf", "psum")):
        """A destination view and source views of one shape; None when no tile fits."""
        shape, sources, used_psum = self.shape(), [], False
        for dtypes in source_dtypes:
            tile = self.tile(dtypes, spaces=("sbuf",) if used_psum and one_psum else spaces)
            if tile is None:
                return None
            used_psum |= self.tiles[tile].space == "psum"
            sources.append(self.view(tile, shape))
        if self.chance(0.2) and (dst_dtypes is None or self.tiles[sources[0].tile].dtype in dst_dtypes):
            if sum(s.tile == sources[0].tile for s in sources) == 1:
                return [sources[0], *sources]  # in place
        tile = self.tile(dst_dtypes, spaces=spaces, avoid=[s.tile for s in sources])
        return None if tile is None else [self.view(tile, shape), *sources]

    def scalar(self, partitions, avoid=()):
        """A number or a (P,1) fp32 column; returns (argument, value for the model)."""
        if self.chance(0.5):
            number = float(np.float32(self.pick([0.0, 1.0, -1.5, 0.3, 3.0, -0.0078125])))
            return number, number
        tile = self.tile(["float32"], spaces=("sbuf",), avoid=avoid)
        if tile is None:
            return 1.0, 1.0
        view = self.view(tile, (partitions, 1, 1))
        return view, self.value(view).copy()

    def emit(self, name, dst, result, **args):
        target = self.value(dst)
        target[...] = np.asarray(result).astype(target.dtype, copy=False).reshape(target.shape)
        self.calls.append(Call(name, {"dst": dst, **args}))

    def column_of(self, dtype, partitions, avoid):
        tile = self.tile([dtype], spaces=("sbuf",), avoid=avoid)
        return None if tile is None else self.view(tile, (partitions, 1, 1))

    # ---- one maker per instruction (or form of it) ----
    def make_tensor_copy(self):
        found = self.operands(None, None)
        if found:
            dst, src = found
            self.emit("tensor_copy", dst, model.convert(self.value(src), self.dtype(dst)), src=src)

    def make_memset(self):
        tile = self.tile()
        dst = self.view(tile, self.shape())
        if model.is_int(self.dtype(dst)):
            value = int(self.rng.integers(0, 100))
        else:
            value = float(np.float32(self.rng.standard_normal()))
        self.emit("memset", dst, model.from_f32(np.full(self.value(dst).shape, value), self.dtype(dst)), value=value)

    def make_tensor_tensor(self):
        found = self.operands(None, FLOATS, FLOATS + ["int8", "uint8"])
        if found:
            dst, a, b = found
            op = self.pick(list(model.ARITH))
            self.emit(
                "tensor_tensor",
                dst,
                model.tensor_tensor(self.value(a), self.value(b), op, self.dtype(dst)),
                data1=a,
                data2=b,
                op=Op(op),
            )

    def make_tensor_tensor_bits(self):
        dtype = self.pick(INTS)
        found = self.operands([dtype], [dtype], [dtype], spaces=("sbuf",))
        if found:
            dst, a, b = found
            op = self.pick([*model.BITS, "left_shift", "right_shift"])
            self.emit(
                "tensor_tensor",
                dst,
                model.tensor_tensor(self.value(a), self.value(b), op, self.dtype(dst)),
                data1=a,
                data2=b,
                op=Op(op),
            )

    def make_tensor_tensor_int32(self):
        dtype = self.pick(["int32", "uint32"])
        found = self.operands([dtype], [dtype], [dtype], spaces=("sbuf",))
        if found:
            dst, a, b = found
            op = self.pick(["add", "subtract", "multiply"])
            result = model.tensor_tensor_int32(self.value(a), self.value(b), op, self.dtype(dst))
            self.emit("tensor_tensor", dst, result, data1=a, data2=b, op=Op(op))

    def make_tensor_scalar(self):
        found = self.operands(FLOATS, FLOATS)
        if not found:
            return
        dst, data = found
        ops = list(model.ARITH)
        arg0, value0 = self.scalar(data.partitions, avoid=[dst.tile])
        op0, reverse0 = self.pick(ops), self.chance(0.3)
        args = {"data": data, "op0": Op(op0), "operand0": arg0, "reverse0": reverse0}
        op1 = value1 = None
        reverse1 = False
        if self.chance(0.6):
            arg1, value1 = self.scalar(data.partitions, avoid=[dst.tile])
            op1, reverse1 = self.pick(ops), self.chance(0.3)
            args.update(op1=Op(op1), operand1=arg1, reverse1=reverse1)
        result = model.tensor_scalar(self.value(data), op0, value0, reverse0, op1, value1, reverse1, self.dtype(dst))
        self.emit("tensor_scalar", dst, result, **args)

    def make_scalar_tensor_tensor(self):
        found = self.operands(FLOATS, FLOATS, FLOATS)
        if found:
            dst, data, other = found
            arg, value = self.scalar(data.partitions, avoid=[dst.tile])
            op0, op1 = self.pick(list(model.ARITH)), self.pick(list(model.ARITH))
            r0, r1 = self.chance(0.3), self.chance(0.3)
            result = model.scalar_tensor_tensor(self.value(data), op0, value, op1, self.value(other), r0, r1, self.dtype(dst))
            self.emit(
                "scalar_tensor_tensor",
                dst,
                result,
                data=data,
                op0=Op(op0),
                operand0=arg,
                op1=Op(op1),
                operand1=other,
                reverse0=r0,
                reverse1=r1,
            )

    def make_reciprocal(self):
        found = self.operands(FLOATS, FLOATS)
        if found:
            dst, data = found
            self.emit("reciprocal", dst, model.reciprocal(self.value(data), self.dtype(dst)), data=data)

    def make_activation(self):
        found = self.operands(FLOATS, FLOATS)
        if not found:
            return
        dst, data = found
        op = self.pick(list(model.EXACT_ACTIVATIONS))
        bias_arg, bias = self.scalar(data.partitions, avoid=[dst.tile])
        scale_arg, scale = self.scalar(data.partitions, avoid=[dst.tile])
        args = {"op": Op(op), "data": data, "bias": bias_arg, "scale": scale_arg}
        result, values = model.activation(op, self.value(data), bias, scale, self.dtype(dst))
        used = [dst.tile, data.tile, *[a.tile for a in (bias_arg, scale_arg) if isinstance(a, View)]]
        column = self.column_of("float32", data.partitions, used) if self.chance(0.3) else None
        if column is not None:
            total = model.reduce_in_order(values, "add", np.zeros(values.shape[0], np.float32))
            self.emit("activation_reduce", dst, result, **args, reduce_op=Op("add"), reduce_res=column)
            self.value(column)[...] = total.reshape(-1, 1, 1)
        else:
            self.emit("activation", dst, result, **args)

    def make_tensor_reduce(self):
        found = self.operands(None, FLOATS)
        if not found:
            return
        _, data = found
        kept = self.pick([1, 2])
        rows = 1 if kept == 1 else self.value(data).shape[1]
        tile = self.tile(FLOATS, avoid=[data.tile])
        if tile is None:
            return
        dst = self.view(tile, (data.partitions, rows, 1))
        op, negate = self.pick(model.REDUCE), self.chance(0.2)
        result = model.tensor_reduce(self.value(data), op, kept, negate, self.dtype(dst))
        self.emit("tensor_reduce", dst, result, op=Op(op), data=data, axis=[1, 2] if kept == 1 else [2], negate=negate)

    def make_tensor_scalar_reduce(self):
        found = self.operands(FLOATS, FLOATS)
        if not found:
            return
        dst, data = found
        arg, value = self.scalar(data.partitions, avoid=[dst.tile])
        used = [dst.tile, data.tile, *([arg.tile] if isinstance(arg, View) else [])]
        column = self.column_of("float32", data.partitions, used)
        if column is None:
            return
        op0, reduce_op, reverse = (
            self.pick(list(model.ARITH)),
            self.pick(["add", "multiply", "maximum", "minimum"]),
            self.chance(0.3),
        )
        result, total = model.tensor_scalar_reduce(self.value(data), op0, value, reduce_op, reverse, self.dtype(dst), np.float32)
        self.emit(
            "tensor_scalar_reduce",
            dst,
            result,
            data=data,
            op0=Op(op0),
            operand0=arg,
            reduce_op=Op(reduce_op),
            reduce_res=column,
            reverse0=reverse,
        )
        self.value(column)[...] = total.reshape(-1, 1, 1)

    def make_tensor_scalar_cumulative(self):
        found = self.operands(FLOATS, FLOATS)
        if found:
            dst, src = found
            arg, value = self.scalar(src.partitions, avoid=[dst.tile])
            op0, op1 = self.pick(["add", "multiply", "maximum", "subtract"]), self.pick(["add", "multiply", "maximum", "minimum"])
            result = model.tensor_scalar_cumulative(self.value(src), op0, op1, value, self.dtype(dst))
            self.emit("tensor_scalar_cumulative", dst, result, src=src, op0=Op(op0), op1=Op(op1), imm0=arg)

    def make_tensor_tensor_scan(self):
        found = self.operands(FLOATS, FLOATS, FLOATS)
        if found:
            dst, a, b = found
            arg, value = self.scalar(a.partitions, avoid=[dst.tile])
            op0, op1 = self.pick(["multiply", "add", "maximum"]), self.pick(["add", "minimum", "multiply", "subtract"])
            r0, r1 = self.chance(0.2), self.chance(0.2)
            result = model.tensor_tensor_scan(self.value(a), self.value(b), value, op0, op1, r0, r1, self.dtype(dst))
            self.emit(
                "tensor_tensor_scan", dst, result, data0=a, data1=b, initial=arg, op0=Op(op0), op1=Op(op1), reverse0=r0, reverse1=r1
            )

    def make_tensor_copy_predicated(self):
        dtype = self.pick(FLOATS + INTS)
        found = self.operands([dtype], [dtype], ["uint8", "uint16", "uint32"])
        if found and found[0] != found[1]:
            dst, src, predicate = found
            reverse = self.chance(0.3)
            result = model.tensor_copy_predicated(self.value(dst), self.value(src), self.value(predicate), reverse)
            self.emit("tensor_copy_predicated", dst, result, src=src, predicate=predicate, reverse_pred=reverse)

    def make_select_reduce(self):
        found = self.operands(FLOATS, FLOATS, ["uint8", "uint16", "int8", "int16"])
        if found:
            dst, on_true, predicate = found
            arg, value = self.scalar(on_true.partitions, avoid=[dst.tile])
            reverse = self.chance(0.3)
            result = model.select_reduce(self.value(predicate), self.value(on_true), value, reverse, self.dtype(dst))
            self.emit("select_reduce", dst, result, predicate=predicate, on_true=on_true, on_false=arg, reverse_pred=reverse)

    def make_range_select(self):
        found = self.operands(FLOATS, FLOATS)
        if not found:
            return
        dst, on_true = found
        bounds = [self.tile(["float32"], spaces=("sbuf",), avoid=[dst.tile]) for _ in range(2)]
        if None in bounds:
            return
        views = [self.view(t, (on_true.partitions, 1, 1)) for t in bounds]
        ops = [self.pick(["equal", "less", "less_equal", "greater", "greater_equal"]) for _ in range(2)]
        start = int(self.rng.integers(-20, 20))
        result, values = model.range_select(
            self.value(on_true), *ops, *[self.value(v).copy() for v in views], start, self.dtype(dst)
        )
        column = self.column_of("float32", on_true.partitions, [dst.tile, on_true.tile, *bounds])
        if column is None:
            return
        self.emit(
            "range_select",
            dst,
            result,
            on_true_tile=on_true,
            comp_op0=Op(ops[0]),
            comp_op1=Op(ops[1]),
            bound0=views[0],
            bound1=views[1],
            range_start=start,
            reduce_res=column,
        )
        low = np.full(values.shape[0], -np.inf, np.float32)
        self.value(column)[...] = model.reduce_in_order(values, "maximum", low).reshape(-1, 1, 1)

    def pattern(self, shape):
        return [[int(self.rng.integers(-3, 4)), int(count)] for count in shape[1:]]

    def make_iota(self):
        shape = self.shape()
        dst = self.view(self.tile(["float32", "int32", "int16", "bfloat16", "uint32", "uint8"], spaces=("sbuf",)) or 0, shape)
        pattern, offset, multiplier = self.pattern(shape), int(self.rng.integers(0, 50)), int(self.rng.integers(-3, 4))
        result = model.iota(shape[0], pattern, offset, multiplier, self.dtype(dst))
        self.emit("iota", dst, result, pattern=pattern, offset=offset, channel_multiplier=multiplier)

    def make_affine_select(self):
        found = self.operands(FLOATS, FLOATS, spaces=("sbuf",))
        if found:
            dst, on_true = found
            shape = self.value(on_true).shape
            pattern, offset, multiplier = self.pattern(shape), int(self.rng.integers(-9, 9)), int(self.rng.integers(-3, 4))
            op, other = self.pick(list(model.COMPARE)), float(np.float32(self.rng.standard_normal()))
            result = model.affine_select(self.value(on_true), pattern, multiplier, other, op, offset, self.dtype(dst))
            self.emit(
                "affine_select",
                dst,
                result,
                pattern=pattern,
                channel_multiplier=multiplier,
                on_true_tile=on_true,
                on_false_value=other,
                cmp_op=Op(op),
                offset=offset,
            )

    def make_nc_matmul(self):
        dtype = self.pick(["bfloat16", "float16", "float32", "float8_e4m3", "float8_e5m2"])
        pair = ["float32"] if dtype == "float32" else [d for d in FLOATS if d != "float32"]
        s, x = self.tile([dtype], spaces=("sbuf",)), self.tile(pair, spaces=("sbuf",))
        if s is None or x is None:
            return
        k = int(self.pick([1, 3, 32, 64, 128]))
        stationary = self.view(s, (k, int(self.rng.integers(1, 4)), int(self.rng.integers(1, 41))))
        moving = self.view(x, (k, int(self.rng.integers(1, 7)), int(self.rng.integers(1, 41))))
        m = self.value(stationary)[0].size
        tile = self.tile(["float32"], spaces=("psum",))
        rows = self.value(moving).shape[1:]
        dst = View(tile, ((0, m, 1), (0, rows[0], 1), (0, rows[1], 1)))
        if m > 128:
            return
        first = model.nc_matmul(self.value(stationary), self.value(moving), None)
        self.emit("nc_matmul", dst, first, stationary=stationary, moving=moving, accumulate=False)
        if self.chance(0.5):
            second = model.nc_matmul(self.value(stationary), self.value(moving), model.flat(self.value(dst)))
            self.emit("nc_matmul", dst, second, stationary=stationary, moving=moving, accumulate=True)

    def make_nc_transpose(self):
        dtype = self.pick(["float32", "bfloat16", "float16", "int32"])
        a, b = self.tile([dtype], spaces=("sbuf",)), None
        if a is not None:
            b = self.tile([dtype], spaces=("sbuf",), avoid=[a])
        if b is None:
            return
        rows, columns = int(self.rng.integers(1, 33)), int(self.rng.integers(1, 33))
        data, dst = self.view(a, (rows, 1, columns)), self.view(b, (columns, 1, rows))
        self.emit("nc_transpose", dst, model.flat(self.value(data)).T, data=data)

    def make_nc_stream_shuffle(self):
        dtype = self.pick(list(DTYPES))
        shape = (int(self.pick([32, 64, 128])), int(self.rng.integers(1, 7)), int(self.rng.integers(1, 41)))
        a = self.tile([dtype], spaces=("sbuf",))
        b = None if a is None else self.tile([dtype], spaces=("sbuf",), avoid=[a])
        if b is None:
            return
        src, dst = self.view(a, shape), self.view(b, shape)
        mask = [int(self.pick([255, *range(32)])) for _ in range(32)]
        self.emit(
            "nc_stream_shuffle", dst, model.nc_stream_shuffle(self.value(dst), self.value(src), mask), src=src, shuffle_mask=mask
        )

    def make_max8_and_find(self):
        src = self.tile(FLOATS)
        if src is None:
            return
        shape = (int(self.pick([1, 17, 128])), int(self.rng.integers(1, 7)), int(self.rng.integers(8, 41)))
        data = self.view(src, shape)
        top = self.tile(["float32"], spaces=("sbuf",), avoid=[src])
        index = self.tile(["uint32", "uint16"], spaces=("sbuf",))
        if top is None:
            return
        dst = self.view(top, (shape[0], 1, 8))
        self.emit("max8", dst, model.from_f32(model.max8(self.value(data)), self.dtype(dst)), src=data)
        if index is not None:
            found = self.view(index, (shape[0], 1, 8))
            result = model.nc_find_index8(self.value(data), self.value(dst), self.dtype(found))
            self.emit("nc_find_index8", found, result, data=data, vals=dst)

    def make_dma_copy(self):
        found = self.operands(None, None, spaces=("sbuf",))
        if found:
            dst, src = found
            self.emit("dma_copy", dst, model.convert(self.value(src), self.dtype(dst)), src=src)


def run(generator, nki, nl, nisa):
    """Runs the plan on vtrn; returns the final bytes of every tile."""

    def kernel(*arguments):
        tiles = []
        for tile, argument in zip(generator.tiles, arguments):
            made = nl.ndarray((128, *FREE), dtype=getattr(nl, tile.dtype), buffer=nl.sbuf)
            nisa.dma_copy(dst=made, src=argument)
            if tile.space == "psum":
                onchip = nl.ndarray((128, *FREE), dtype=nl.float32, buffer=nl.psum)
                nisa.tensor_copy(dst=onchip, src=made)
                made = onchip
            tiles.append(made)

        def resolve(value):
            if isinstance(value, View):
                return value.of(tiles[value.tile])
            if isinstance(value, Cmd):
                return getattr(nisa.reduce_cmd, value)
            return getattr(nl, value) if isinstance(value, Op) else value

        for call in generator.calls:
            getattr(nisa, call.name)(**{name: resolve(value) for name, value in call.args.items()})
        results = []
        for tile, made in zip(generator.tiles, tiles):
            if tile.space == "psum":
                copy = nl.ndarray((128, *FREE), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(dst=copy, src=made)
                made = copy
            out = nl.ndarray((128, *FREE), dtype=getattr(nl, tile.dtype), buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=made)
            results.append(out)
        return tuple(results)

    return nki.simulate(kernel)(*generator.inputs)


def difference(generator, results):
    """None, or a text that says where a tile differs from the model. NaNs of any payload are equal."""
    for i, (tile, got) in enumerate(zip(generator.tiles, results)):
        want, got = tile.value, np.asarray(got)
        if got.dtype != want.dtype:
            return f"tile {i}: dtype {got.dtype}, expected {want.dtype}"
        width = want.dtype.itemsize
        same = want.view(f"u{width}") == got.view(f"u{width}")
        if want.dtype.kind != "i" and want.dtype.kind != "u":
            same |= np.isnan(want.astype(np.float32)) & np.isnan(got.astype(np.float32))
        if not same.all():
            at = tuple(int(v) for v in np.argwhere(~same)[0])
            return (
                f"tile {i} ({tile.dtype}, {tile.space}) at {at}: got {got[at]}, model says {want[at]}; "
                f"{int((~same).sum())} elements differ"
            )
    return None
