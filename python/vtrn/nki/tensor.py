"""nki.tensor: the tensor type."""

from vtrn._vtrn import NkiTensor

Tensor = NkiTensor

__all__ = ["NkiTensor", "Tensor"]
