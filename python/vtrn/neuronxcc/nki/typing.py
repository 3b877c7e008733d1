"""Annotations for kernel parameters, which have no effect, and arguments that are only a shape and a dtype."""

import numpy as np

from vtrn.nki import typing as _new


class _Shaped:
    """``tensor[[128, 512], nl.bfloat16]``: an argument of zeros, for runs in which only the time counts."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(int(n) for n in shape), dtype

    def array(self):
        from vtrn import arrays

        return np.zeros(self.shape, arrays.numpy_dtype(self.dtype) if isinstance(self.dtype, str) else self.dtype)


class tensor(_new.tensor):  # noqa: N801
    """``tensor`` or ``tensor[shape]``: an annotation; ``tensor[shape, dtype]``, the shape a list: an argument of zeros."""

    def __class_getitem__(cls, key):
        is_argument = isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], (list, tuple))
        return _Shaped(*key) if is_argument else cls


class mutable_tensor(tensor, _new.mutable_tensor):  # noqa: N801
    """A tensor that the kernel writes."""


class immutable(tensor):  # noqa: N801
    """A tensor that the kernel only reads."""


mutable = mutable_tensor


def arrays_of(args, kwargs):
    """The arguments, with arrays for those that are only a shape."""
    return (
        [a.array() if isinstance(a, _Shaped) else a for a in args],
        {name: a.array() if isinstance(a, _Shaped) else a for name, a in kwargs.items()},
    )


__all__ = ["immutable", "mutable", "mutable_tensor", "tensor"]
