"""nki.collectives: importable, so that kernels that use it only on many ranks run on one. The operations themselves need
more than one chip, which vtrn does not run yet."""

import dataclasses

from vtrn import _vtrn
from vtrn.nki.language.objects import NKIObject


@dataclasses.dataclass
class ReplicaGroup(NKIObject):
    """Lists of ranks that take part in a collective together."""

    replica_groups: list = dataclasses.field(default_factory=list)

    @property
    def groups(self):
        return self.replica_groups


def rank_id():
    """The rank of this chip: a run has one."""
    return 0


def _missing(name):
    def operation(*_args, **_kwargs):
        raise _vtrn.NkiUnsupported(f"nki.collectives.{name}: collectives between chips are not implemented yet")

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = "Not implemented yet: needs more than one chip."
    return operation


_OPERATIONS = (
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "reduce_scatter",
)
globals().update({name: _missing(name) for name in _OPERATIONS})

__all__ = ["ReplicaGroup", "rank_id", *_OPERATIONS]
