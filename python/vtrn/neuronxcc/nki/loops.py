"""Loops of the old namespace: Python's, unrolled. The variables are numbers that know where their loop begins."""

from vtrn import _vtrn
from vtrn.neuronxcc.nki import maths
from vtrn.neuronxcc.nki.launch import call_site, instance
from vtrn.neuronxcc.nki.tile import Tensor, assign, on_chip, plain


class LoopIndex(int):
    """A loop variable: a number, which nl.loop_reduce asks for its loop."""

    def __new__(cls, value, loop, is_first):
        made = super().__new__(cls, value)
        made.loop, made.is_first = loop, is_first
        return made


def _loop(site, args):
    loop, running = object(), instance().loops
    entry = [site, 0]
    running.append(entry)
    try:
        for number, value in enumerate(range(*(int(plain(a)) for a in args))):
            entry[1] = number
            yield LoopIndex(value, loop, number == 0)
    finally:
        running.remove(entry)


def affine_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return _loop(call_site(), args)


def sequential_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return _loop(call_site(), args)


def static_range(*args, **_options):
    """Python's range: the loop is unrolled."""
    return range(*(int(plain(a)) for a in args))


def loop_reduce(x, op, loop_indices, *, dtype=None, mask=None, **_options):
    """Reduces a tile over the iterations of its loops; after the last one the result is complete."""
    indices = list(loop_indices) if isinstance(loop_indices, (tuple, list)) else [loop_indices]
    if not all(isinstance(i, LoopIndex) for i in indices):
        raise _vtrn.NkiTypeError("nl.loop_reduce: loop_indices must be variables of affine_range or sequential_range loops")
    totals, site = instance().totals, call_site()
    name = maths.named(dtype, x.data.dtype)
    if all(i.is_first for i in indices):
        total = totals[site] = Tensor(on_chip(x.shape, name).data, 0)
        assign(total, maths.copy(x, name, mask) if mask is not None else x)
        return total
    total = totals[site]
    assign(total, maths.binary(maths.op_name(op), total, x, name, mask))
    return total
