"""Enums of the nki.isa parameters, with the members and values of the instruction table."""

import enum as _enum

from vtrn import _vtrn as _vtrn


def _enum_of(set_name, doc, values=None):
    members = _vtrn.enum_members(set_name)
    cls = _enum.Enum(set_name, [(name, name if values is str else value) for name, value in members], module=__name__)
    cls.__doc__ = doc
    _vtrn.register_enum(set_name, cls)
    return cls


engine = _enum_of("engine", "The engine that runs an instruction.")
reduce_cmd = _enum_of("reduce_cmd", "What happens to an engine's accumulators.")
dge_mode = _enum_of("dge_mode", "Who makes DMA descriptors.")
oob_mode = _enum_of("oob_mode", "What an index outside its tensor does.")
matmul_perf_mode = _enum_of("matmul_perf_mode", "Performance mode of a matmul.", str)
dma_engine = _enum_of("dma_engine", "The DMA engine of a sendrecv.")
nc_version = _enum.IntEnum("nc_version", [("gen2", 2), ("gen3", 3), ("gen4", 4)], module=__name__)
nc_version.__doc__ = "NeuronCore generation: gen2 trn1 and inf2, gen3 trn2, gen4 trn3."

__all__ = ["dge_mode", "dma_engine", "engine", "matmul_perf_mode", "nc_version", "oob_mode", "reduce_cmd"]
