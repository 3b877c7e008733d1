/* arch: what a generation is. Data only, from gen2.def, gen3.def, gen4.def: every number has a basis and a source.
 * A target is a NeuronCore generation under the name of a chip: trn1, inf2 (v2), trn2 (v3), trn3 (v4). */
#ifndef VTRN_ARCH_H
#define VTRN_ARCH_H
#include "isa/isa.h"

enum vtrn_basis { VTRN_DOCUMENTED, VTRN_MEASURED, VTRN_DERIVED, VTRN_ASSUMED };
const char *vtrn_basis_name(enum vtrn_basis basis);

/* Sizes and limits: FIELD(name, unit, doc); the .def files give SIZE(name, value, basis, "source"). */
#define VTRN_ARCH_SIZES(FIELD) \
    FIELD(nc_version, "", "NeuronCore version: 2, 3, 4") \
    FIELD(cores_per_chip, "", "NeuronCores per chip") \
    FIELD(partitions, "", "partitions of SBUF and PSUM") \
    FIELD(sbuf_partition_bytes, "B", "SBUF bytes in a partition") \
    FIELD(sbuf_usable_bytes, "B", "SBUF bytes in a partition that kernels may use") \
    FIELD(psum_banks, "", "PSUM banks in a partition") \
    FIELD(psum_bank_bytes, "B", "bytes of one PSUM bank in a partition") \
    FIELD(stationary_max, "elements", "free size of the stationary operand") \
    FIELD(moving_max, "elements", "free size of the moving operand") \
    FIELD(bn_stats_max, "elements", "free size of bn_stats") \
    FIELD(pe_rows, "", "rows of the tensor engine") \
    FIELD(pe_columns, "", "columns of the tensor engine") \
    FIELD(min_tile_rows, "", "smallest row tile of the tensor engine") \
    FIELD(access_max_free, "elements", "free elements of one SBUF access") \
    FIELD(registers, "", "32-bit registers of one sequencer") \
    FIELD(dma_engines, "", "DMA engines of one core") \
    FIELD(dma_queues, "", "queues of one DMA engine") \
    FIELD(hbm_bytes, "B", "HBM of the chip") \
    FIELD(hbm_bandwidth, "B/s", "HBM bandwidth of the chip") \
    FIELD(pe_clock, "Hz", "tensor engine clock") \
    FIELD(vector_clock, "Hz", "vector engine clock") \
    FIELD(scalar_clock, "Hz", "scalar engine clock") \
    FIELD(gpsimd_clock, "Hz", "GpSimd clock") \
    FIELD(dma_engine_bandwidth, "B/s", "peak of one DMA engine") \
    FIELD(neuronlink_bandwidth, "B/s", "NeuronLink bandwidth of the chip") \
    FIELD(hbm_stacks, "", "HBM stacks of the chip") \
    VTRN_ARCH_TIMES(FIELD)
/* What instructions cost beside their clocks and widths: what time/ computes with. A cost that scales with a clock is in
 * cycles of that clock, one that does not in ps. */
#define VTRN_ARCH_TIMES(FIELD) \
    FIELD(min_issue_cycles, "cycles", "least interval between two instructions of a compute engine") \
    FIELD(sequencer_ps, "ps", "fetch, decode and issue of one instruction by a sequencer") \
    FIELD(semaphore_ps, "ps", "from the end of an instruction to the start of one that waits for it on another engine") \
    FIELD(control_ps, "ps", "a register or branch instruction in a sequencer") \
    FIELD(register_load_ps, "ps", "register_load from memory") \
    FIELD(dynamic_access_cycles, "cycles", "least cost of an access with an offset from a register or tensor") \
    FIELD(pe_fill_cycles, "cycles", "tensor engine: from the last column in to the last column out") \
    FIELD(pe_commit_ps, "ps", "tensor engine: reading SBUF and writing PSUM around a multiplication") \
    FIELD(pe_load_ps, "ps", "tensor engine: reading SBUF before a stationary tile is loaded") \
    FIELD(pe_load_columns, "columns/cycle", "fast LoadStationary: columns of a 16-bit tile per tensor cycle") \
    FIELD(pe_load_fp32_cycles, "cycles", "LoadStationary of fp32: tensor cycles per column in each of its two passes") \
    FIELD(pe_fp32_passes, "", "passes of the moving tile for fp32, against one for 16 bit") \
    FIELD(pe_fp32_transpose_passes, "", "passes for a transpose of fp32") \
    FIELD(pe_gate_window_cycles, "cycles", "tensor engine clock gate: tensor cycles of a window") \
    FIELD(pe_gate_busy_percent, "%", "busy share of a window from which the next one runs at full rate") \
    FIELD(pe_gate_rate_percent, "%", "tensor engine rate after an idle window; 100: no gate") \
    FIELD(vector_latency_ps, "ps", "vector engine: pipeline latency around the elements, hidden from independent instructions") \
    FIELD(vector_pointer_ps, "ps", "vector engine: fetching a (P,1) scalar operand") \
    FIELD(vector_wide, "", "vector engine: elements per cycle and partition of copies and scalar operators, 16 bit, SBUF, contiguous") \
    FIELD(vector_half_wide, "", "the same with one condition missing: fp32, PSUM on one side, or strided") \
    FIELD(scalar_latency_ps, "ps", "scalar engine: pipeline latency of copies") \
    FIELD(scalar_function_ps, "ps", "scalar engine: pipeline latency of activation functions with scale and bias") \
    FIELD(scalar_table_ps, "ps", "scalar engine: loading another function table") \
    FIELD(scalar_wide, "", "scalar engine: elements per cycle and partition of 16-bit copies and scalar operators") \
    FIELD(accumulator_cycles, "cycles", "reading an accumulator out into reduce_res") \
    FIELD(gpsimd_start_cycles, "cycles", "start of a GpSimd instruction") \
    FIELD(gpsimd_latency_ps, "ps", "GpSimd: pipeline latency around the elements") \
    FIELD(dma_start_ps, "ps", "from the trigger of a DMA to its first packet") \
    FIELD(dma_transfer_ps, "ps", "time that a transfer occupies a DMA engine beside its packets") \
    FIELD(dma_packet_ps, "ps", "time that a packet occupies a DMA engine beside its bytes") \
    FIELD(dma_packet_bytes, "B", "largest packet of a DMA engine") \
    FIELD(dma_sustained_bandwidth, "B/s", "what the DMA engines of a core sustain together") \
    FIELD(dma_static_ps, "ps", "issue of a DMA with prepared descriptors") \
    FIELD(dma_hwdge_ps, "ps", "issue of a DMA whose descriptors hardware generates") \
    FIELD(dma_hwdge_packet_ps, "ps", "the same for each of its packets") \
    FIELD(dma_swdge_ps, "ps", "issue of a DMA whose descriptors GpSimd generates") \
    FIELD(dma_swdge_packet_ps, "ps", "least time of a packet whose descriptor GpSimd generates") \
    FIELD(dma_transpose_percent, "%", "rate of a DMA transpose from HBM, of a copy's") \
    FIELD(dma_transpose_sbuf_percent, "%", "rate of a DMA transpose from SBUF, of a copy's") \
    FIELD(dma_compute_percent, "%", "rate of a DMA that computes, of a copy's") \
    FIELD(pair_ps, "ps", "barrier or rendezvous of a pair of cores, after the later one came") \
    FIELD(kernel_ps, "ps", "begin and end of a kernel: clearing semaphores, first instructions, last notification")

/* Index of a number in `facts`: VTRN_FACT_pe_clock, ... */
enum vtrn_fact_id {
#define FIELD(name, unit, doc) VTRN_FACT_##name,
    VTRN_ARCH_SIZES(FIELD)
#undef FIELD
    VTRN_FACTS
};
struct vtrn_arch_fact {
    const char *name, *unit, *doc, *source;
    int64_t value;
    enum vtrn_basis basis;
};
struct vtrn_arch {
    const char *name, *chip, *doc; /* "gen3", "trn2" */
#define FIELD(name, unit, doc) int64_t name;
    VTRN_ARCH_SIZES(FIELD)
#undef FIELD
    const struct vtrn_arch_fact *facts; /* the same numbers with basis and source; ends with name NULL */
};
/* What the letters in a fact's source stand for; ends with letters NULL. */
struct vtrn_arch_source {
    const char *letters, *document;
};
extern const struct vtrn_arch_source vtrn_arch_sources[];
/* "trn2", "gen3", "inf2", "trn1", "v3", "trn1n", "trn3pre", "inf2.xlarge", ...; NULL: unknown. */
const struct vtrn_arch *vtrn_arch_find(const char *target);
/* i-th chip in order trn1, inf2, trn2, trn3; NULL past the end. */
const struct vtrn_arch *vtrn_arch_list(int i);
#endif
