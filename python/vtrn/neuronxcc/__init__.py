"""The package name of NKI 0.1: ``neuronxcc.nki`` on vtrn. Nothing else of AWS's compiler is here."""

from vtrn.neuronxcc import nki

__all__ = ["nki"]
