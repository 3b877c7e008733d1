"""The package name of NKI 0.1: ``neuronxcc.nki`` on vtrn. Nothing else of AWS's compiler is here."""

import logging

from vtrn.neuronxcc import nki

if not hasattr(logging, "OFF"):
    logging.OFF = logging.CRITICAL + 10  # AWS's package adds this level, and scripts call logging.disable(logging.OFF)

__all__ = ["nki"]
