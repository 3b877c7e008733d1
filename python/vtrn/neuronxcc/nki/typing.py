"""Annotations for kernel parameters; they have no effect."""

from vtrn.nki.typing import mutable_tensor, tensor


class immutable(tensor):  # noqa: N801
    """A tensor that the kernel only reads."""


mutable = mutable_tensor

__all__ = ["immutable", "mutable", "mutable_tensor", "tensor"]
