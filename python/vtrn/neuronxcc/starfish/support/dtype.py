"""Conversion of NumPy arrays to Neuron dtypes."""

import numpy as np

from vtrn.neuronxcc.nki.language import bfloat16, float8_e4m3, float8_e5m2


def static_cast(array, dtype):
    """The array in another dtype; float dtypes round to nearest even."""
    return np.asarray(array).astype(dtype)


__all__ = ["bfloat16", "float8_e4m3", "float8_e5m2", "static_cast"]
