"""A recorded kernel: printable, savable, and run again with other arguments and without the kernel's Python."""

import os

import numpy as np

from vtrn import _vtrn, arrays
from vtrn.settings import session_options, settings


class _Declared:
    """What an array needs to know of an output: a whole tensor."""

    offset = 0

    def __init__(self, shape, dtype):
        self.shape = shape
        self.dtype = dtype
        self.strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]


class Program:
    """Made by :func:`vtrn.trace` or :meth:`load`; ``inputs`` and ``outputs`` are lists of (name, shape, dtype).

    Outputs are the tensors in shared HBM that the kernel returned, in the order in which it declared them; one without a
    name of its own is called after its place in the return value: out, or out0, out1, ...
    """

    def __init__(self, program):
        self._program = program

    @classmethod
    def load(cls, path) -> "Program":
        return cls(_vtrn.Program.load(os.fspath(path)))

    @classmethod
    def parse(cls, text: str) -> "Program":
        """From the assembly text that :meth:`text` gives."""
        return cls(_vtrn.Program.parse(text))

    def save(self, path) -> None:
        self._program.save(os.fspath(path))

    def text(self) -> str:
        return self._program.text()

    name = property(lambda self: self._program.name)
    target = property(lambda self: self._program.target)
    cores = property(lambda self: self._program.cores)
    inputs = property(lambda self: self._program.inputs)
    outputs = property(lambda self: self._program.outputs)
    instructions = property(lambda self: self._program.instructions)
    replayable = property(lambda self: self._program.replayable, doc="False: the kernel's Python looked at values")

    def __repr__(self):
        return f"<Program {self.name or 'kernel'}: {self.target}, {self.cores} core(s), {self.instructions} instructions>"

    def run(self, *args, threads=None, seed=None, stochastic_rounding=None):
        """Runs on a fresh chip. Arguments in the order of ``inputs``; written ones change in place."""
        if not self.replayable:
            raise _vtrn.VtrnError(
                f"program {self.name}: the kernel's Python looked at values, so it holds for those values only; "
                "use nl.fori_loop and nl.while_loop instead of dynamic loops in Python"
            )
        options = session_options(settings.merged(threads=threads, seed=seed, stochastic_rounding=stochastic_rounding))
        binder = _Binder(self.inputs, self._program.written)
        bound = [arrays.bind(binder, str(i), array) for i, array in enumerate(args)]
        pages = self._program.run([(b.tensor.address, b.tensor.size_bytes, b.tensor.readonly) for b in bound], **options)
        for b in bound:
            b.finish()
        kind = "torch" if args and arrays.is_torch(args[0]) else "numpy"
        results = [
            arrays.view_of(p, _Declared(shape, dtype), kind) for p, (_, shape, dtype) in zip(pages, self.outputs, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def time(self, level=None, target=None, static_dma=False):
        """How long the chip would take, and why: no run, no arguments. See :class:`vtrn.Profile`.

        Programs with loops that hang on a value in memory need a :meth:`run` before.
        """
        from vtrn.profile import Profile

        return Profile(self._program.time(level=level, target=target, static_dma=static_dma))


class _Input:
    def __init__(self, address, size_bytes, readonly, written):
        self.address = address
        self.size_bytes = size_bytes
        self.readonly = readonly
        self._written = written


class _Binder:
    """Takes the place of a session in arrays.bind: checks an argument against the program's input."""

    def __init__(self, inputs, written):
        self.inputs = inputs
        self.written = written
        self.next = 0

    def input(self, name, shape, dtype, address, size_bytes, readonly, _owner):
        if self.next >= len(self.inputs):
            raise _vtrn.NkiTypeError(f"argument {name}: the program has {len(self.inputs)} inputs")
        label, wanted_shape, wanted_dtype = self.inputs[self.next]
        self.next += 1
        if tuple(shape) != tuple(wanted_shape) or dtype != wanted_dtype:
            raise _vtrn.NkiTypeError(
                f"argument {name} ({label}): {shape} {dtype}; the program was recorded with {wanted_shape} {wanted_dtype}"
            )
        return _Input(address, size_bytes, readonly, self.written[self.next - 1])
