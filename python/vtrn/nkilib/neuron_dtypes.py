"""Stand-in for AWS's ``neuron_dtypes`` package (not public): the names that the nki-library tests use.

Dtypes are NumPy dtypes: NumPy's own, ml_dtypes', and vtrn's packed MX dtypes, whose ``str()`` is the NKI name.
"""

import ml_dtypes
import numpy as np

from vtrn import npdtypes

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3fn_x4 = npdtypes.float8_e4m3fn_x4
float8_e5m2_x4 = npdtypes.float8_e5m2_x4
float4_e2m1fn_x4 = npdtypes.float4_e2m1fn_x4

_SYNONYMS = {"float8e4": float8_e4m3, "float8e5": float8_e5m2, "tfloat32": np.dtype(np.float32), "bool_": np.dtype(bool)}


def _numpy_dtype(value):
    """The NumPy dtype of a dtype, a type or an NKI dtype name."""
    if isinstance(value, str) and value in _SYNONYMS:
        return _SYNONYMS[value]
    return np.dtype(value)


def static_cast(array, dtype):
    """Converts values; to or from a packed MX dtype the last axis shrinks or grows by 4."""
    array = np.asarray(array)
    to = _numpy_dtype(dtype)
    if npdtypes.is_packed(array.dtype):
        array = npdtypes.unpack(array)
    if npdtypes.is_packed(to):
        return npdtypes.pack(np.ascontiguousarray(array, dtype=np.float32), to)
    return array.astype(to)


def sizeinbytes(value):
    return _numpy_dtype(value).itemsize


def is_float_type(value):
    kind = _numpy_dtype(value)
    return kind.kind == "f" or kind in (bfloat16, float8_e4m3, float8_e4m3fn, float8_e5m2)


dtype = _numpy_dtype


class finfo:
    """Limits of a floating dtype, with its NumPy dtype as ``.dtype``."""

    def __init__(self, value):
        self.dtype = _numpy_dtype(value)
        info = ml_dtypes.finfo(self.dtype)
        self.min, self.max, self.eps, self.tiny = info.min, info.max, info.eps, info.tiny
