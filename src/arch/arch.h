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
    FIELD(neuronlink_bandwidth, "B/s", "NeuronLink bandwidth of the chip")

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
/* "trn2", "gen3", "inf2", "trn1", "v3", ...; NULL: unknown. */
const struct vtrn_arch *vtrn_arch_find(const char *target);
/* i-th chip in order trn1, inf2, trn2, trn3; NULL past the end. */
const struct vtrn_arch *vtrn_arch_list(int i);
#endif
