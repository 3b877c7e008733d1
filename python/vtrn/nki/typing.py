"""Annotations for kernel parameters; they have no effect."""


class tensor:
    """``tensor`` or ``tensor[shape]``: an argument in HBM."""

    def __class_getitem__(cls, shape):
        return cls


class mutable_tensor(tensor):
    """A tensor that the kernel writes."""


__all__ = ["mutable_tensor", "tensor"]
