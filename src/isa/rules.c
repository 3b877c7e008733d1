/* What each cost rule counts: the issue cost of an instruction in cycles of its engine's clock, as text for the manual.
 * N: elements per partition, P: partitions. The numbers are the documentation's; time/ applies them with the rates of a
 * generation. The letters of sources are explained in arch/sources.def; "inferred" where no source says so.
 * Must not know a generation. */
#include "isa/isa.h"

const char *vtrn_rule_text(enum vtrn_rule rule)
{
    switch (rule) {
    case VTRN_RULE_NONE:
    case VTRN_RULES: return "none";
    case VTRN_RULE_MATMUL:
        return "Tensor cycles: max(min(64, N of stationary), N of moving), times 4 for fp32 (C). Loading the stationary operand "
               "takes about a quarter of its free size and runs behind the previous multiplication (A2). fp8 with double_row "
               "and the MX types cost the same cycles for 2 and 4 times the work (A3, A4).";
    case VTRN_RULE_TRANSPOSE:
        return "Tensor engine: max(P, min(64, N)) cycles when issued back to back; vector engine: max(64, N) cycles (C).";
    case VTRN_RULE_ELEMS:
        return "max(64, N) cycles (C; inferred where the tables have no row: tensor_scalar_cumulative and the generators). v3 runs tensor_copy and tensor_scalar 4 times as fast when both sides are 16-bit floats in "
               "SBUF with the innermost dimension contiguous, and twice as fast when one of these conditions fails (A3). An "
               "access with a dynamic offset takes at least about 600 cycles (C).";
    case VTRN_RULE_ELEMS2:
        return "Two tensor inputs: max(64, 2N) cycles; max(64, N) when one input is in PSUM, or when all are contiguous bf16 in "
               "SBUF and the operator is add, multiply or subtract (C; scalar_tensor_tensor: N only for bf16 with subtract, then "
               "multiply, and an even N). v3: twice as fast with both inputs in SBUF and 16-bit "
               "floats everywhere (A3).";
    case VTRN_RULE_MEMSET: return "max(64, N) cycles; max(64, N/2) for value 0 in a 16-bit float type (C).";
    case VTRN_RULE_PREDICATED:
        return "max(64, 2N) cycles; max(64, N) when one of the two inputs is in PSUM (C for "
               "tensor_copy_predicated; inferred for select_reduce).";
    case VTRN_RULE_RECIPROCAL: return "max(64, 8N) vector cycles (SH).";
    case VTRN_RULE_ACTIVATION:
        return "max(64, N) scalar cycles, and 64 more when the accumulators are read out into reduce_res (C). activate2: inferred, "
               "the same.";
    case VTRN_RULE_EXPONENTIAL: return "max(64, N/4) vector cycles: inferred from \"four times the throughput of the scalar engine\" (A4).";
    case VTRN_RULE_GPSIMD_ELEMS:
        return "150 + N GpSimd cycles (C, printed for iota and affine_select; inferred for the others).";
    case VTRN_RULE_REDUCE: return "max(64, N) cycles; N/2 when input and output are bf16 and the operator is add or maximum (C).";
    case VTRN_RULE_SCALAR_REDUCE: return "max(64, N) + 64 cycles (C).";
    case VTRN_RULE_SCAN: return "max(64, 2N) cycles (C).";
    case VTRN_RULE_BN_AGGR: return "max(64, 13 * N/3) cycles, N/3 triples (C).";
    case VTRN_RULE_TOPK: return "4n + K GpSimd cycles, n values and K results (nki.isa reference, SDK 2.32).";
    case VTRN_RULE_LOCAL_GATHER:
        return "150 + num_valid_indices * E / C GpSimd cycles with E = num_elem_per_idx and C = ((28 + 4E) / (4E)) / "
               "min(4 / dtype bytes, E), as printed (C); the division by C looks inverted there.";
    case VTRN_RULE_QUANTIZE: return "max(64, N/4) vector cycles: four elements per partition and cycle (A4).";
    case VTRN_RULE_RAND2: return "max(64, N/4) vector cycles: four values per partition and cycle (A4).";
    case VTRN_RULE_DMA:
        return "A fixed start (about 1.3 us from the semaphore to the data) and, on each of the DMA engines that the partitions are "
               "spread over, for every contiguous piece the larger of its bytes over the engine's bandwidth and a per-piece "
               "time; pieces under 512 bytes are bound by the latter (DMA; the per-piece time is inferred). hwdge: about 600 ns "
               "per instruction (A3).";
    case VTRN_RULE_DMA_TRANSPOSE:
        return "As a copy, at no more than 90 % of its rate from HBM and 50 % from SBUF (A3).";
    case VTRN_RULE_DMA_COMPUTE: return "As a copy of all operands at 50 % of its rate before v4; full rate on v4 (A4).";
    case VTRN_RULE_SENDRECV: return "As a copy between the two cores after both have arrived; the rendezvous is not documented.";
    case VTRN_RULE_BARRIER: return "Until both cores have arrived; the latency of the semaphores is not documented.";
    case VTRN_RULE_CONTROL: return "Sequencer only, about one instruction issue; not documented.";
    }
    return "none";
}
