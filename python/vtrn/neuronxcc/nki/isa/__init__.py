"""nki.isa of NKI 0.1: one function per instruction; each returns the tile that it writes."""

from vtrn.neuronxcc.nki import instructions as _instructions
from vtrn.neuronxcc.nki.instructions import *  # noqa: F403
from vtrn.neuronxcc.nki.isa import constants
from vtrn.neuronxcc.nki.isa.constants import *  # noqa: F403
from vtrn.neuronxcc.nki.isa.constants import engine
from vtrn.neuronxcc.nki.keywords import check_all as _check_all
from vtrn.neuronxcc.nki.language import fp32
from vtrn.nki.isa import get_nc_version

_check_all("nisa", globals())

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown

__all__ = [
    *_instructions.__all__,
    *constants.__all__,
    "constants",
    "fp32",
    "get_nc_version",
    "gpsimd_engine",
    "scalar_engine",
    "tensor_engine",
    "unknown_engine",
    "vector_engine",
]
