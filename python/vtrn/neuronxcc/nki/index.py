"""Index expressions: nl.arange and nl.mgrid."""

from vtrn import _vtrn


def arange(*args):
    """A range of indices, of which index expressions and masks are made: ``nl.arange(128)[:, None]``."""
    args = [int(a) for a in args]
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
            values = _vtrn.arange(int(item.start or 0), int(item.stop), int(item.step or 1))
            ranges.append(values[(None,) * dim + (slice(None),) + (None,) * (len(slices) - dim - 1)])
        nothing = sum((r * 0 for r in ranges[1:]), ranges[0] * 0)
        return _Grid(r + nothing for r in ranges)


mgrid = _MGrid()
