"""NKI 0.1 (``neuronxcc.nki``) on vtrn: ``import vtrn.neuronxcc.nki as nki``, or by its own name after vtrn.install_nki()."""

from vtrn.neuronxcc.nki import compiler, isa, language, typing
from vtrn.neuronxcc.nki.kernel import Kernel, baremetal, benchmark, jit, profile, simulate_kernel, trace
from vtrn.neuronxcc.nki.tile import Tensor as tensor  # noqa: N813 - the class has this name

__version__ = "0.1"
__all__ = [
    "Kernel",
    "baremetal",
    "benchmark",
    "compiler",
    "isa",
    "jit",
    "language",
    "profile",
    "simulate_kernel",
    "tensor",
    "trace",
    "typing",
]
