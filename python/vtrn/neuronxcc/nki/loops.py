"""Loops of the old namespace: Python's, unrolled. The variables are numbers that know where their loop begins."""

from vtrn import _vtrn
from vtrn.neuronxcc.nki import maths
from vtrn.neuronxcc.nki.launch import call_site, instance
from vtrn.neuronxcc.nki.tile import boxes_of, copy_into, emit_compute, fail, fill, in_sbuf, isa, on_chip, whole


class LoopIndex(int):
    """A loop variable: a number, which nl.loop_reduce asks for its loop."""

    def __new__(cls, value, loop):
        made = super().__new__(cls, value)
        made.loop = loop
        return made


def _loop(site, args):
    running = instance().loops
    entry = [site, 0]
    running.append(entry)
    try:
        for number, value in enumerate(range(*args)):
            entry[1] = number
            yield LoopIndex(value, entry)
    finally:
        running[:] = [other for other in running if other is not entry]


def affine_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return _loop(call_site(), [whole("nl.affine_range", a) for a in args])


def sequential_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return _loop(call_site(), [whole("nl.sequential_range", a) for a in args])


def static_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return _loop(call_site(), [whole("nl.static_range", a) for a in args])


def loop_reduce(x, op, loop_indices, *, dtype=None, mask=None, **_options):
    """Reduces a tile over the iterations of its loops; after the last one the result is complete."""
    indices = list(loop_indices) if isinstance(loop_indices, (tuple, list)) else [loop_indices]
    if not all(isinstance(i, LoopIndex) for i in indices):
        text = "loop_indices must be variables of nl.affine_range or nl.sequential_range loops"
        fail("nl.loop_reduce", text, _vtrn.NkiTypeError)
    others = [entry for entry in instance().loops if not any(entry is i.loop for i in indices)]
    key = (call_site(), tuple(map(tuple, others)))
    op, name = maths.op_name(op), maths.named(dtype, x.data.dtype)
    boxes = x.valid if mask is None else boxes_of(mask, x.shape)
    # Inner loops start anew in each iteration of the outermost; only when that one starts anew, a new sum begins.
    outermost = next(entry for entry in instance().loops if any(entry is i.loop for i in indices))
    loop, total = instance().totals.get(key, (None, None))
    if loop is not outermost:
        total = on_chip(x.shape, name)
        instance().totals[key] = outermost, total
        if boxes is not None:
            fill(total, maths.identity("nl.loop_reduce", op))
        copy_into(total, x, boxes)
        return total
    x = in_sbuf(x)
    emit_compute(lambda d, a, b: isa["tensor_tensor"](d, a, b, op), total, [total, x], x.shape, boxes)
    return total
