"""Comparison of arrays."""

import numpy as np


def allclose(actual, expected, rtol=1e-05, atol=1e-08, equal_nan=False, **_options):
    """numpy.allclose, also of dtypes that it does not compare."""
    wide = [np.asarray(a).astype(np.float64) if np.asarray(a).dtype.kind in "Vf" else np.asarray(a) for a in (actual, expected)]
    return bool(np.allclose(*wide, rtol=rtol, atol=atol, equal_nan=equal_nan))


__all__ = ["allclose"]
