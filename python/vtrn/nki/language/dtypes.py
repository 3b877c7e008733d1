"""The data types: strings, equal to what ``tensor.dtype`` is."""

from vtrn._vtrn import dtypes as _dtypes

globals().update({name: name for name in _dtypes})

__all__ = list(_dtypes)
