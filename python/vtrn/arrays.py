"""Arguments and results: NumPy, ml_dtypes, PyTorch and JAX arrays as tensors in HBM, and back, without copies.

An argument's bytes are the tensor's bytes, so what a kernel writes to it is seen by the caller. Only an array whose
layout a tensor cannot have (strided, byte-swapped) is copied, and copied back when the kernel wrote it.
"""

import dataclasses
import sys

import ml_dtypes
import numpy as np

from vtrn import _vtrn

_ML_DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
_PLAIN = {"bool_": np.bool_, "tfloat32": np.float32}


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype that holds an NKI dtype."""
    if name in _ML_DTYPES:
        return np.dtype(_ML_DTYPES[name])
    if name.endswith("_x4"):
        from vtrn import npdtypes

        return getattr(npdtypes, name)
    return np.dtype(_PLAIN.get(name, name))


def _torch():
    return sys.modules.get("torch")


def is_torch(value) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, getattr(jax, "Array", ()))


def is_array(value) -> bool:
    return isinstance(value, np.ndarray) or is_torch(value) or is_jax(value)


@dataclasses.dataclass
class Bound:
    """An argument in use: the array the caller gave, the memory the tensor uses, and whether that is a copy."""

    given: object
    memory: object
    tensor: object = None
    is_copy: bool = False

    def finish(self) -> None:
        """Writes a copy back when the kernel changed it."""
        if self.is_copy and self.tensor._written:
            if is_torch(self.given):
                self.given.detach().copy_(self.memory)
            else:
                self.given[...] = self.memory


def _wrong_argument(name, text):
    raise _vtrn.NkiTypeError(f"argument {name}: {text}")


def _bind_numpy(name, array):
    native = array.dtype.newbyteorder("=")
    memory = np.ascontiguousarray(array, dtype=native)
    is_copy = not (array.flags.c_contiguous and array.dtype == native)
    return memory, is_copy, memory.ctypes.data, memory.nbytes, not array.flags.writeable or _repeats(array.shape, array.strides)


def _repeats(shape, strides) -> bool:
    """Several elements are one in memory (broadcast_to, expand): what a kernel wrote could not be written back."""
    return any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True))


def _bind_torch(name, array):
    if array.device.type != "cpu":
        _wrong_argument(name, f"a tensor on {array.device}; move it to the CPU with .cpu()")
    if array.is_nested or array.layout != _torch().strided:
        _wrong_argument(name, "a sparse or nested tensor; make it dense with .to_dense() or to_padded_tensor()")
    array = array.detach()
    memory = array.resolve_conj().resolve_neg().contiguous()
    is_copy = memory.data_ptr() != array.data_ptr()
    return memory, is_copy, memory.data_ptr(), memory.nbytes, _repeats(array.shape, array.stride())


def bind(session, name: str, array) -> Bound:
    """Makes the array a tensor of the session."""
    if not is_array(array):
        _wrong_argument(name, f"{type(array).__name__} is not an array of NumPy, PyTorch or JAX")
    if is_torch(array):
        memory, is_copy, address, size, readonly = _bind_torch(name, array)
    else:
        source = np.asarray(array)
        memory, is_copy, address, size, readonly = _bind_numpy(name, source)
    if size == 0:
        _wrong_argument(name, f"an empty array of shape {tuple(array.shape)}; tensors have at least one element")
    try:
        dtype = _vtrn.dtype_name(array.dtype)
    except _vtrn.NkiTypeError:
        text = str(array.dtype).removeprefix("torch.")
        better = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(text, "a dtype of nki.language")
        _wrong_argument(name, f"dtype {text} does not exist on Trainium; convert to {better} first")
    bound = Bound(array, memory, is_copy=is_copy)
    bound.tensor = session.input(name, tuple(array.shape) or (1,), dtype, address, size, readonly, memory)
    return bound


# ---- results ----


def _torch_dtype(name):
    torch = _torch()
    names = {"bool_": "bool", "tfloat32": "float32", "float8_e4m3": "uint8"}
    dtype = getattr(torch, names.get(name, name), None)
    if dtype is None:
        _wrong_argument("result", f"dtype {name} has no PyTorch counterpart; view() it as an integer type in the kernel")
    return dtype


def view_of(memory, tensor, kind):
    """An array over ``memory`` (pages of a run, or an argument's memory) with the tensor's shape, strides and offset."""
    if kind == "torch":
        torch = _torch()
        dtype = _torch_dtype(tensor.dtype)
        flat = memory.view(-1).view(dtype) if is_torch(memory) else torch.frombuffer(memory, dtype=dtype)
        return flat.as_strided(tensor.shape, tensor.strides, tensor.offset)
    dtype = numpy_dtype(tensor.dtype)
    if isinstance(memory, np.ndarray):
        memory = memory.reshape(-1).view(np.uint8)
    array = np.ndarray(
        tensor.shape,
        dtype=dtype,
        buffer=memory,
        offset=tensor.offset * dtype.itemsize,
        strides=[stride * dtype.itemsize for stride in tensor.strides],
    )
    if kind == "jax":
        import jax.numpy as jnp

        return jnp.asarray(array)
    return array


def read(tensor):
    """The values of a tensor while its kernel runs, as a NumPy array of their own."""
    return np.frombuffer(tensor._read(), dtype=numpy_dtype(tensor.dtype)).reshape(tensor.shape)
