"""Index expressions: nl.arange and nl.mgrid."""

from vtrn import _vtrn
from vtrn.neuronxcc.nki.tile import fail, whole


def arange(*args):
    """A range of indices, of which index expressions and masks are made: ``nl.arange(128)[:, None]``."""
    args = [whole("nl.arange", a) for a in args]
    if not 1 <= len(args) <= 3:
        fail("nl.arange", f"{len(args)} arguments; it takes stop, or start, stop and step", _vtrn.NkiTypeError)
    return _vtrn.arange(0, args[0]) if len(args) == 1 else _vtrn.arange(*args)


class _Grid(tuple):
    """Dense index expressions; also by name: p, x, y, z, w."""

    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])
    w = property(lambda self: self[4])


class _MGrid:
    """``nl.mgrid[0:128, 0:512]``: an index expression for each dimension, all of the same shape."""

    def __getitem__(self, key):
        slices = key if isinstance(key, tuple) else (key,)
        ranges = []
        for dim, item in enumerate(slices):
            if not isinstance(item, slice) or item.stop is None:
                fail(
                    "nl.mgrid", f"dimension {dim}: a slice with an end is needed, as in nl.mgrid[0:128, 0:512]", _vtrn.NkiTypeError
                )
            bounds = (item.start or 0, item.stop, item.step or 1)
            values = _vtrn.arange(*(whole("nl.mgrid", bound) for bound in bounds))
            ranges.append(values[(None,) * dim + (slice(None),) + (None,) * (len(slices) - dim - 1)])
        nothing = sum((r * 0 for r in ranges[1:]), ranges[0] * 0)
        return _Grid(r + nothing for r in ranges)


mgrid = _MGrid()
