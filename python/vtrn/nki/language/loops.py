"""Loops: the ranges are Python's; nl.fori_loop and nl.while_loop are loops of the chip, traced once."""

import threading

from vtrn import _vtrn

_region = threading.local()


def _range(start, stop=None, step=1):
    return range(start) if stop is None else range(start, stop, step)


def affine_range(start, stop=None, step=1):
    """Python's range: the loop is unrolled."""
    return _range(start, stop, step)


def sequential_range(start, stop=None, step=1):
    """Python's range: the loop is unrolled."""
    return _range(start, stop, step)


def static_range(start, stop=None, step=1):
    """Python's range: the loop is unrolled."""
    return _range(start, stop, step)


def dynamic_range(start, stop=None, step=1):
    """A loop whose bounds may be registers. It is unrolled while tracing; the variable is a frozen register.

    A bound in a register is looked at, so the program can then not be replayed: prefer nl.fori_loop.
    """
    if isinstance(step, _vtrn.VirtualRegister) or int(step) < 1:
        raise _vtrn.NkiValueError(f"nl.dynamic_range: step {step!r}; it must be a positive integer")
    if stop is None:
        start, stop = 0, start
    for value in range(int(start), int(stop), int(step)):
        yield _vtrn.known_register(value)


def _check_loop(what):
    if getattr(_region, "no_reorder", 0):
        raise _vtrn.NkiValidationError(f"{what}: not allowed inside nl.no_reorder()")


def fori_loop(lower, upper, body_fun, step=1):
    """``for i in range(lower, upper, step): body_fun(i)`` on the chip; bounds may be registers, ``i`` is one."""
    _check_loop("nl.fori_loop")
    body_fun(_vtrn.loop_begin(lower, upper, step))
    _vtrn.loop_end()


def while_loop(init, body_fun):
    """``r = init; while r != 0: r = body_fun(r)`` on the chip."""
    _check_loop("nl.while_loop")
    condition = _vtrn.register_alloc(init)
    _vtrn.while_begin(condition)
    result = body_fun(_vtrn.register_alloc(condition))
    if not isinstance(result, _vtrn.VirtualRegister):
        raise _vtrn.NkiTypeError(f"nl.while_loop: the body returned {type(result).__name__}, not a register")
    _vtrn.functions["register_move"](condition, result)
    _vtrn.loop_end()


class no_reorder:
    """``with nl.no_reorder():`` keeps the order of instructions, which vtrn always keeps; device loops are not allowed."""

    def __enter__(self):
        _region.no_reorder = getattr(_region, "no_reorder", 0) + 1
        return self

    def __exit__(self, *_exception):
        _region.no_reorder -= 1
        return False
