"""The NKI API (0.6, tolerant of 0.2 - 0.5) on vtrn: ``import vtrn.nki as nki``, or ``import nki`` after vtrn.install_nki()."""

from vtrn.nki import collectives, compiler, dtype, isa, language, tensor, typing
from vtrn.nki.kernel import Kernel, cpu_simulate, jit, simulate

__version__ = "0.6.0"
__all__ = [
    "Kernel",
    "collectives",
    "compiler",
    "cpu_simulate",
    "dtype",
    "isa",
    "jit",
    "language",
    "simulate",
    "tensor",
    "typing",
]
