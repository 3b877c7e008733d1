"""Tensors of the old namespace: a view of a vtrn tensor, where its partition dimension is, and how its value was made.

Indexing is done in C (src/tile.c); here are Python's operators, assignment, and ``compute``, which makes the instructions of
one operation: one for each box of its mask. A value that was only just made is made again where it is assigned to
(``t[...] = nisa.op(...)`` is one instruction), by taking its instructions back."""

import math
import numbers
import operator
import sys

import numpy as np

from vtrn import _vtrn, arrays
from vtrn.nki.language import tiles

isa = _vtrn.functions
_dtypes = {}
_BOOL = np.dtype(np.bool_)


def numpy_dtype(name):
    """The NumPy dtype that ``tensor.dtype`` is."""
    found = _dtypes.get(name)
    if found is None:
        found = _dtypes[name] = np.dtype("V4") if name == "tfloat32" else arrays.numpy_dtype(name)
    return found


def dtype_name(dtype):
    """The name of a dtype in the instruction table."""
    if dtype is bool:
        return "bool_"
    if isinstance(dtype, np.dtype) and dtype == np.dtype("V4"):
        return "tfloat32"
    return _vtrn.dtype_name(dtype)


def fail(what, text, error=_vtrn.NkiValueError):
    """Raises the error with the kernel's line."""
    return _vtrn.fail(error, what, text)


def plain(value):
    """A NumPy scalar as Python's number."""
    return value.item() if isinstance(value, np.generic) else value


def whole(what, value):
    """An integer; floats that are one count, as divisions give them."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    if not hasattr(value, "__index__"):
        kind = "a tile, whose value only the chip knows" if isinstance(value, Tensor) else repr(value)
        fail(what, f"{kind}; an integer is needed", _vtrn.NkiTypeError)
    return operator.index(value)


# ---- masks ----


def boxes_of(mask, shape):
    """Boxes [(starts, counts)] of a mask over a tile; None: all of it; []: nothing."""
    if mask is None or mask is True:
        return None
    if isinstance(mask, (bool, np.bool_, int)):
        return None if mask else []
    return _vtrn.boxes(mask, tuple(shape))


def _is_legal(start, count):
    """Engines reach more than 64 partitions from 0, more than 32 from 0 or 64, fewer from every 32nd."""
    return start % (128 if count > 64 else 64 if count > 32 else 32) == 0


def legal_boxes(boxes):
    return boxes is None or all(_is_legal(starts[0], counts[0]) for starts, counts in boxes)


class Redo:
    """How a value was made, for making it elsewhere."""

    __slots__ = ("accumulates", "end", "here", "inputs", "make", "mark", "pointwise")

    def __init__(self, mark, make, inputs, pointwise, here, accumulates):
        self.mark, self.end, self.make, self.inputs = mark, _vtrn.mark(), make, inputs
        self.pointwise, self.here, self.accumulates = pointwise, here, accumulates

    def into(self, result, target, accumulate=None, keeps=False):
        """Makes the value in ``target``; with ``keeps`` also there. False: it cannot be, and has to be copied."""
        view = target.data
        if target.par != 0 or view.dtype != result.data.dtype or not _same_dims(target.shape, result.shape):
            return False
        if not tiles.is_on_chip(view.buffer) or not (self.here is None or view.buffer is self.here):
            return False
        for tile in self.inputs:
            if tile.data._id == view._id and not (self.pointwise and _vtrn.same_region(tile.data, view)):
                return False
        if not (_vtrn.mark() == self.end if keeps else _vtrn.undo(self.mark, self.end)):
            return False
        if self.accumulates:
            self.make(target, accumulate if accumulate is not None else False)
            target.note_write(by_products=True)
        else:
            self.make(target)
            target.note_write()
        return True


def _same_dims(a, b):
    return a == b or [n for n in a if n != 1] == [n for n in b if n != 1] and a[0] == b[0]


class Tensor:
    """A tensor or a view of one. ``par`` is its partition dimension, -1 in HBM."""

    __slots__ = ("_root", "checks", "data", "filled", "par", "products", "redo", "said", "valid")

    def __init__(self, view, par, checks=None, said=None, root=None):
        self.data, self.par, self.checks, self.said = view, par, checks, said
        self._root = root
        self.valid = self.redo = None
        if root is None and tiles.is_psum(view.buffer):
            self.filled, self.products = set(), set()

    @property
    def root(self):
        """The tensor that this is a view of. There, in PSUM, ``filled`` and ``products`` are the regions that others than products
        have written, and that those have."""
        return self if self._root is None else self._root

    def _region(self):
        """(first partition, behind the last, first byte of a partition, behind the last) of a view in PSUM."""
        view, size = self.data, self.itemsize
        partition, start = divmod(view.offset, view.strides[self.par] or 1)
        reach = sum((n - 1) * step for d, (n, step) in enumerate(zip(view.shape, view.strides, strict=True)) if d != self.par)
        return partition, partition + view.shape[self.par], start * size, (start + reach + 1) * size

    def note_write(self, by_products=False):
        if tiles.is_psum(self.data.buffer):
            (self.root.products if by_products else self.root.filled).add(self._region())

    def is_written(self, but_products=False):
        """Whether something has written to the region of this view in PSUM."""
        low, high, start, end = self._region()
        regions = self.root.filled if but_products else self.root.filled | self.root.products
        return any(low < r[1] and r[0] < high and start < r[3] and r[2] < end for r in regions)

    # what kernels ask

    @property
    def shape(self):
        return self.said or self.data.shape

    @property
    def dtype(self):
        return numpy_dtype(self.data.dtype)

    @property
    def buffer(self):
        return self.data.buffer

    @property
    def name(self):
        return self.data.name

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def itemsize(self):
        return _vtrn.dtypes[self.data.dtype]

    def assert_shape(self, shape):
        if tuple(shape) != tuple(self.shape):
            fail("assert_shape", f"the shape is {tuple(self.shape)}, not {tuple(shape)}")
        return self

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return repr(self.data)

    __hash__ = object.__hash__

    # what only arrays have: a tile's values are on the chip

    __array_ufunc__ = None

    def __array__(self, *_args, **_options):
        return fail("numpy", f"{self!r} has no values for NumPy while the kernel is made; use nl.* functions", _vtrn.NkiTypeError)

    def __bool__(self):
        if self.par >= 0 and self.data.dtype == "bool_":
            self._no_value("if, and, or, not", "masks, nl.where, nl.logical_and, ...")
        return True

    def __int__(self):
        return self._no_value("int", "nl.* functions")

    def __float__(self):
        return self._no_value("float", "nl.* functions")

    def _no_value(self, what, instead):
        return fail(what, f"{self!r}: only the chip knows the value; use {instead}", _vtrn.NkiTypeError)

    # views

    def _like(self, view, par=None):
        made = Tensor(view, self.par if par is None else par, root=self.root)
        return made

    def checked(self):
        """Itself, when every index is inside the tensor."""
        if self.checks:
            _vtrn.tile_check(self.data, self.checks, None, None)
            self.checks = None
        return self

    def __getitem__(self, key):
        if key is Ellipsis and self.valid is None:
            return self
        if self.said:
            fail("index", "the view has uneven steps; index the tensor once")
        self.checked()
        view, par, checks, said = _vtrn.tile_view(self.data, self.par, _plain_key(key))
        return Tensor(view, par, checks, said, self.root)

    def __setitem__(self, key, value):
        is_temporary = sys.getrefcount(value) <= _TEMPORARY
        assign(self[key], value, is_temporary)

    def __iter__(self):
        return (self[i] for i in range(self.shape[0]))

    def reshape(self, shape, *more):
        shape = (shape, *more) if more or isinstance(shape, numbers.Integral) else tuple(shape)
        shape = tuple(int(n) for n in shape)
        if -1 in shape:
            known = math.prod(n for n in shape if n != -1)
            shape = tuple(self.size // known if n == -1 else n for n in shape)
        return self._like(self.checked().data.reshape(shape))

    def view(self, dtype):
        return self._like(self.checked().data.view(dtype_name(dtype)))

    def expand_dims(self, axis):
        axis = axis if axis >= 0 else axis + self.ndim + 1
        return self._like(self.checked().data.expand_dim(axis))

    def broadcast_to(self, shape, *more):
        shape = tuple(int(n) for n in ((shape, *more) if more else shape))
        view = self.checked().data
        while view.ndim < len(shape):
            view = view.expand_dim(0 if self.par < 0 else 1)
        for dim, size in enumerate(shape):
            if view.shape[dim] == size:
                continue
            if self.par == dim:
                return spread(self._like(view), shape[dim]).broadcast_to(shape)
            view = view.broadcast(dim, size)
        return self._like(view)

    def astype(self, dtype):
        return compute(self.shape, dtype_name(dtype), [self], lambda dst, src: isa["tensor_copy"](dst, src))

    # operators: nl.* functions, set by nki.language

    def __iadd__(self, other):
        is_temporary = sys.getrefcount(other) <= _TEMPORARY_ADDED
        return accumulate(self, other, is_temporary)


class Moved:
    """An index expression that begins at an element of a tile: ``tile[0, 0] + nl.arange(8)[None, :]``."""

    def __init__(self, tile, index):
        self.tile, self.index = tile, index

    def __add__(self, other):
        return Moved(self.tile, self.index + other)

    __radd__ = __add__

    def __sub__(self, other):
        return Moved(self.tile, self.index - other)


def _plain_item(item):
    if isinstance(item, Tensor):
        return item.checked().data
    return (item.tile.checked().data, item.index) if isinstance(item, Moved) else item


def _plain_key(key):
    if isinstance(key, (Tensor, Moved)):
        return (_plain_item(key),)
    if type(key) is tuple:
        for item in key:
            if isinstance(item, (Tensor, Moved)):
                return tuple(map(_plain_item, key))
    return key


# Whether the value of an assignment is only in the assignment: its reference count says so, in every Python in which a
# value that has a name counts more.
class _Probe:
    def __setitem__(self, key, value):
        self.count = sys.getrefcount(value)

    def __iadd__(self, value):
        self.count = sys.getrefcount(value)
        return self


def _temporary_counts():
    probe, named, counts = _Probe(), object(), []
    probe[0] = object()
    counts.append(probe.count)
    probe[0] = named
    counts.append(probe.count)
    probe += object()
    counts.append(probe.count)
    probe += named
    counts.append(probe.count)
    return (counts[0] if counts[1] > counts[0] else -1), (counts[2] if counts[3] > counts[2] else -1)


_TEMPORARY, _TEMPORARY_ADDED = _temporary_counts()


# ---- making instructions ----


def on_chip(shape, dtype, buffer=tiles.sbuf):
    return Tensor(_vtrn.ndarray(tuple(shape), dtype=dtype, buffer=buffer), 0)


def is_hbm(tile):
    return tile.par < 0


def spread(tile, partitions):
    """A copy of a tile with one partition on all: DMA reads the one for each."""
    source = in_sbuf(tile).data
    made = on_chip((partitions, *source.shape[1:]), source.dtype)
    isa["dma_copy"](made.data, source.ap([[0, partitions], *source.get_pattern()[1:]]))
    return made


def in_sbuf(tile):
    """The tile, or a copy of it where only SBUF will do."""
    if not tiles.is_psum(tile.data.buffer):
        return tile
    made = on_chip(tile.data.shape, tile.data.dtype)
    emit(isa["tensor_copy"], made, [tile], tile.data.shape, tile.valid)
    made.valid = tile.valid
    return made


def part(tile, shape, box=None):
    """The tile broadcast to ``shape``, and of that a box."""
    if box is None and tile.said is None and tile.data.shape == shape:
        return tile.data
    starts, counts = box or (None, None)
    view = _vtrn.tile_part(tile.data, shape, starts, counts)
    if view is None and tile.par < 0 and tile.data.is_contiguous() and tile.size == math.prod(shape):
        view = _vtrn.tile_part(tile.data.reshape(tuple(shape)), shape, starts, counts)
    if view is None:
        fail("shape", f"{tuple(tile.shape)} does not fit {tuple(shape)}")
    return view


def check(tile, box=None):
    if tile.checks:
        _vtrn.tile_check(tile.data, tile.checks, *(box or (None, None)))


def _rows(tile, shape, box):
    """The partitions of a (P, 1) operand that a box has."""
    if box is None or not isinstance(tile, Tensor):
        return tile.data if isinstance(tile, Tensor) else tile
    return _vtrn.tile_rows(tile.data, box[0][0], box[1][0])


def emit(function, dst, inputs, shape, boxes, columns=()):
    """``function(dst, *inputs, *columns)`` for each box; columns are numbers or (P, 1) tiles."""
    shape = tuple(shape)
    if dst.said is not None or any(t.said is not None for t in inputs):
        _emit_uneven(function, dst, inputs, shape, boxes, columns)
        return
    if len(shape) > MAX_FREE + 1:
        boxes = _narrowed(shape, boxes, (dst, *inputs))
    for box in (None,) if boxes is None else boxes:
        for tile in (dst, *inputs):
            check(tile, box)
        function(part(dst, shape, box), *(part(t, shape, box) for t in inputs), *(_rows(c, shape, box) for c in columns))


MAX_FREE = 4  # free dimensions of an access pattern of an engine


def _merged_dims(view):
    """Free dimensions that an access pattern needs for the view."""
    dims = [(n, step) for n, step in zip(view.shape[1:], view.strides[1:], strict=True) if n != 1]
    return len(dims) - sum(step == inner * n for (_, step), (n, inner) in zip(dims, dims[1:], strict=False))


def _narrowed(shape, boxes, tiles_):
    """Boxes that are smaller in the shortest dimensions, until every operand has an access pattern."""
    boxes = [((0,) * len(shape), shape)] if boxes is None else boxes
    while boxes and any(_merged_dims(part(t, shape, box)) > MAX_FREE for t in tiles_ for box in boxes[:1]):
        dim = min((d for d in range(1, len(shape)) if boxes[0][1][d] > 1), key=lambda d: boxes[0][1][d])
        boxes = [
            ((*starts[:dim], starts[dim] + i, *starts[dim + 1 :]), (*counts[:dim], 1, *counts[dim + 1 :]))
            for starts, counts in boxes
            for i in range(counts[dim])
        ]
    return boxes


def _emit_uneven(function, dst, inputs, shape, boxes, columns):
    """Tiles of uneven steps (// and % in indices) have more dimensions than they say: copies with even steps stand for them."""
    for tile in (dst, *inputs):
        check(tile)
    even = [t if t.said is None else _evened(t) for t in inputs]
    if dst.said is None:
        emit(function, dst, even, shape, boxes, columns)
        return
    result = _evened(dst) if boxes is not None else on_chip(dst.said, dst.data.dtype)
    emit(function, result, even, shape, boxes, columns)
    split = tuple(dst.data.shape)
    emit(isa["dma_copy"], Tensor(dst.data, dst.par), [Tensor(result.data.reshape(split), 0)], split, None)


def _evened(tile):
    made = on_chip(tile.said, tile.data.dtype)
    split = tuple(tile.data.shape)
    emit(isa["dma_copy"], Tensor(made.data.reshape(split), 0), [Tensor(tile.data, tile.par)], split, None)
    return made


def _through_copy(function, dst, inputs, shape, boxes, columns):
    """The same for boxes whose partitions an engine cannot start at: all of the bounding box is computed from partition 0,
    and DMA moves the boxes."""
    whole = on_chip(shape, dst.data.dtype)
    low = [min(b[0][d] for b in boxes) for d in range(len(shape))]
    high = [max(b[0][d] + b[1][d] for b in boxes) for d in range(len(shape))]
    start = low[0] // 32 * 32
    low[0] = start if _is_legal(start, high[0] - start) else 0
    emit(function, whole, inputs, shape, [(tuple(low), tuple(end - begin for begin, end in zip(low, high, strict=True)))], columns)
    target = dst if not tiles.is_psum(dst.data.buffer) else None
    if target is None:
        fail("mask", "the partitions of a masked write to PSUM must start at a multiple of 32")
    emit(isa["dma_copy"], dst, [whole], shape, boxes)


def emit_compute(function, dst, inputs, shape, boxes, columns=()):
    if legal_boxes(boxes):
        emit(function, dst, inputs, shape, boxes, columns)
    else:
        _through_copy(function, dst, inputs, tuple(shape), boxes, columns)


def compute(shape, dtype, inputs, function, mask=None, columns=(), buffer=tiles.sbuf, moves=False, here=None):
    """A new tile made by ``function(dst, *inputs, *columns)``, element by element, where the mask holds. ``moves``: by DMA."""
    shape = tuple(shape)
    columns = [plain(c) if not isinstance(c, Tensor) else _column(c, shape) for c in columns]
    if not moves:
        inputs = [tile if tile.data.shape[0] == shape[0] or tile.par < 0 else spread(tile, shape[0]) for tile in inputs]
    boxes = boxes_of(mask, shape)
    result = on_chip(shape, dtype, buffer)
    run = emit if moves else emit_compute

    def make(dst):
        run(function, dst, inputs, shape, boxes, columns)

    mark = _vtrn.mark()
    make(result)
    result.valid = boxes
    sources = [*inputs, *(c for c in columns if isinstance(c, Tensor))]
    result.redo = Redo(mark, make, sources, True, here, False)
    return result


def produce(shape, dtype, inputs, make, buffer=tiles.sbuf, here=None, accumulates=False):
    """A new tile made by ``make(dst)`` in ways that are not element by element."""
    result = on_chip(shape, dtype, buffer)
    mark = _vtrn.mark()
    make(result, False) if accumulates else make(result)
    result.redo = Redo(mark, make, inputs, False, here, accumulates)
    return result


def _column(tile, shape):
    """A (P, 1) operand: (1, 1) is put on all partitions."""
    tile.checked()
    if tile.data.shape[0] == 1 and shape[0] > 1:
        tile = spread(tile, shape[0])
    return tile


# ---- assignment ----


def fill(target, value, mask=None):
    """The same number where the mask holds."""
    value = plain(value)
    if not isinstance(value, (bool, int, float)):
        hint = "; arrays come in as arguments of the kernel, or by nl.shared_constant" if isinstance(value, np.ndarray) else ""
        fail("assignment", f"{type(value).__name__} is neither a tile nor a number{hint}", _vtrn.NkiTypeError)
    shape = tuple(target.shape)
    if target.par < 0:
        one = on_chip((1, 1), target.data.dtype)
        isa["memset"](one.data, value)

        def put(dst):
            source = one.data.ap([[1, 1], *([0, n] for n in dst.shape)]) if dst.ndim <= 4 else None
            if source is None:
                fail("store", "a number into a tensor of five dimensions")
            isa["dma_copy"](dst.expand_dim(0), source)

        emit(put, target, [], shape, boxes_of(mask, shape))
        return
    target.note_write()
    for block in blocks(target):
        emit_compute(lambda dst: isa["memset"](dst, value), block, [], block.shape, boxes_of(mask, block.shape))


def blocks(tensor):
    """The tiles of a tensor whose partition dimension has block dimensions before it."""
    if tensor.par <= 0:
        return [tensor]
    return [tile for i in range(tensor.shape[0]) for tile in blocks(tensor[i])]


def assign(target, value, is_temporary=False):
    """``target[...] = value``, where the value's mask held."""
    if not isinstance(value, Tensor):
        fill(target, value)
        return
    if _vtrn.same_region(target.data, value.data):
        return
    if is_temporary and value.redo is not None and value.redo.into(value, target):
        return
    copy_into(target, value)


def copy_into(target, value, boxes=None):
    """Copies a tile where its mask held, or to the boxes given; DMA when one side is in HBM."""
    target.note_write()
    if target.par > 0 or value.par > 0:
        if target.shape != value.shape:
            fail("assignment", f"shapes {tuple(target.shape)} and {tuple(value.shape)} differ")
        for i in range(target.shape[0]):
            copy_into(target[i], value[i])
        return
    shape = tuple(value.shape if boxes is None else value.shape)
    if not _same_dims_any(target.shape, shape):
        shape = tuple(target.shape)  # the value is broadcast
    boxes = value.valid if boxes is None else boxes
    if target.par < 0 or value.par < 0:
        emit(isa["dma_copy"], target, [in_sbuf(value)], shape, boxes)
        return
    if value.data.shape[0] != shape[0]:
        value = spread(value, shape[0])
    if legal_boxes(boxes) and _can_start(target) and _can_start(value):
        emit(isa["tensor_copy"], target, [value], shape, boxes)
    else:
        emit(isa["dma_copy"], target, [in_sbuf(value)], shape, boxes)


def _same_dims_any(a, b):
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def _can_start(tile):
    row = tile.data.get_pattern()[0][0] if tile.par == 0 else 0
    if not row:
        return True
    first = tile.data.offset // row
    return _is_legal(first, tile.data.shape[0]) or tiles.is_psum(tile.data.buffer)


def accumulate(target, value, is_temporary):
    """``target += value``; a product into PSUM accumulates there."""
    if isinstance(value, Tensor) and tiles.is_psum(target.data.buffer) and value.redo is not None and value.redo.accumulates:
        how = True if target.is_written(but_products=True) else "first"
        if value.redo.into(value, target, how, keeps=not is_temporary):
            return target
        if not target.is_written():  # a first product
            copy_into(target, value)
            return target
    _add_into(target, value)
    return target


def _add_into(target, value):
    target.note_write()
    if isinstance(value, Tensor) and tiles.is_psum(target.data.buffer):
        value = in_sbuf(value)
    shape = tuple(target.shape)
    if isinstance(value, Tensor):
        if target.par > 0:
            for i in range(shape[0]):
                _add_into(target[i], value[i])
            return
        if value.data.shape[0] != shape[0]:
            value = spread(value, shape[0])
        emit_compute(lambda dst, a, b: isa["tensor_tensor"](dst, a, b, "add"), target, [target, value], shape, value.valid)
    else:
        emit_compute(lambda dst, a: isa["tensor_scalar"](dst, a, "add", plain(value)), target, [target], shape, None)
