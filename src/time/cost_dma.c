/* What a DMA costs. A transfer is cut into packets: what is contiguous on both sides, at most the largest packet. Its
 * partitions are spread over the DMA engines, eight to one (DMA overview), and each engine sends its packets one after the
 * other: a fixed time and its bytes each. Which engine issues it, and what that costs, follows dge_mode.
 * Must not know other transfers: queueing is sched.c's work. */
#include "time/time_int.h"

/* Bytes that lie together: inner dimensions whose strides continue each other. On chip a partition ends a run, and an index
 * vector steps over rows. */
static int64_t run_bytes(const struct vtrn_ap *ap, bool on_chip)
{
    int64_t run = 1;
    int last = on_chip ? 1 : 0;

    for (int d = 0; d < ap->ndyn; d++)
        if (ap->dyn[d].kind == VTRN_DYN_VECTOR) last = 1;
    for (int d = ap->ndim - 1; d >= last; d--) {
        if (ap->dim[d].count == 1) continue;
        if (ap->dim[d].stride != run) break;
        run *= ap->dim[d].count;
    }
    return run * vtrn_dtypes[ap->dtype].size_bytes;
}

struct sides {
    const struct vtrn_ap *dst, *src;
    bool dst_on_chip, src_on_chip;
};

static bool on_chip(const struct time_state *state, const struct vtrn_ap *ap)
{
    return vtrn_space_on_chip(state->time->prog->tensor[ap->tensor].space);
}

/* DMA engines that carry it, by the partitions of the on-chip side; HBM to HBM: all. Returns rows per engine. */
static int64_t spread(const struct time_state *state, const struct sides *sides, int64_t packets, struct time_plan *plan)
{
    const struct vtrn_ap *side = sides->dst_on_chip ? sides->dst : sides->src_on_chip ? sides->src : NULL;
    int64_t engines = state->rates.arch->dma_engines < TIME_DMA_ENGINES ? state->rates.arch->dma_engines : TIME_DMA_ENGINES;
    int64_t per = state->rates.arch->partitions / engines, first, end;

    if (!side) {
        plan->engines = (uint8_t)(packets < engines ? packets : engines);
        return 0;
    }
    first = state->time->place->spot[side->tensor].partition + side->part0;
    end = first + side->dim[0].count * (side->dim[0].stride > 1 ? side->dim[0].stride : 1);
    first = first / per < engines ? first / per : engines - 1;
    end = (end + per - 1) / per < engines ? (end + per - 1) / per : engines;
    plan->first_engine = (uint8_t)first;
    plan->engines = (uint8_t)(end > first ? end - first : 1);
    return side->dim[0].count < per ? side->dim[0].count : per;
}

static void cost_issue(const struct time_state *state, int mode, uint64_t packets, struct time_plan *plan)
{
    const struct vtrn_arch *arch = state->rates.arch;
    uint64_t ps = (uint64_t)(mode == VTRN_DGE_SWDGE ? arch->dma_swdge_ps : arch->dma_static_ps);

    if (mode == VTRN_DGE_HWDGE) {
        cost_add(&state->rates, plan, VTRN_FACT_dma_hwdge_ps, (uint64_t)arch->dma_hwdge_ps);
        cost_add(&state->rates, plan, VTRN_FACT_dma_hwdge_packet_ps, packets * (uint64_t)arch->dma_hwdge_packet_ps);
        ps = (uint64_t)arch->dma_hwdge_ps + packets * (uint64_t)arch->dma_hwdge_packet_ps;
    } else {
        cost_add(&state->rates, plan, mode == VTRN_DGE_SWDGE ? VTRN_FACT_dma_swdge_ps : VTRN_FACT_dma_static_ps, ps);
    }
    plan->load_ps = (uint32_t)(ps > UINT32_MAX ? UINT32_MAX : ps);
}

/* What dge_mode.unknown means: the compiler chooses; hardware where there is one, unless descriptors are prepared. */
static int mode_of(const struct time_state *state, const struct vtrn_value *dge_mode)
{
    if (dge_mode && dge_mode->i != VTRN_DGE_UNKNOWN) return (int)dge_mode->i;
    return state->rates.arch->nc_version >= 3 && !state->rates.static_dma ? VTRN_DGE_HWDGE : VTRN_DGE_NONE;
}

static void cost_packets(const struct time_state *state, const struct sides *sides, int64_t percent, int mode, struct time_plan *plan,
                         struct time_cost *cost)
{
    const struct vtrn_arch *arch = state->rates.arch;
    int64_t src_bytes = ap_bytes(sides->src), dst_bytes = ap_bytes(sides->dst), bytes = src_bytes > dst_bytes ? src_bytes : dst_bytes;
    int64_t run = run_bytes(sides->src, sides->src_on_chip), other = run_bytes(sides->dst, sides->dst_on_chip), packet, rows, packets, mine;
    uint64_t each;

    /* The side that converts to fewer bytes has shorter runs of as many elements. */
    if (src_bytes < dst_bytes) run = run * vtrn_dtypes[sides->dst->dtype].size_bytes / vtrn_dtypes[sides->src->dtype].size_bytes;
    if (dst_bytes < src_bytes) other = other * vtrn_dtypes[sides->src->dtype].size_bytes / vtrn_dtypes[sides->dst->dtype].size_bytes;
    if (other < run) run = other;
    if (percent < 100 && run < 512) run = 512; /* the transpose and compute units gather what they work on */
    if (run > bytes) run = bytes;
    packet = run < arch->dma_packet_bytes ? run : arch->dma_packet_bytes;
    if (packet < 1) packet = 1;
    packets = (bytes + packet - 1) / packet;
    rows = spread(state, sides, packets, plan);
    if (rows) {
        const struct vtrn_ap *side = sides->dst_on_chip ? sides->dst : sides->src;
        int64_t of_row = bytes / side->dim[0].count;

        mine = rows * ((of_row + packet - 1) / packet);
        each = time_scale((uint64_t)(of_row * rows), state->rates.dma_mega);
    } else {
        mine = (packets + plan->engines - 1) / plan->engines;
        each = time_scale((uint64_t)(bytes / plan->engines), state->rates.dma_mega);
    }
    cost->least_ps = each;
    each += (uint64_t)(mine * arch->dma_packet_ps);
    if (mode == VTRN_DGE_SWDGE && each < (uint64_t)(mine * arch->dma_swdge_packet_ps)) each = (uint64_t)(mine * arch->dma_swdge_packet_ps);
    plan->work_ps = each * 100 / (uint64_t)percent + (uint64_t)arch->dma_transfer_ps;
    plan->dma_bytes = (uint64_t)bytes;
    cost_add(&state->rates, plan, VTRN_FACT_dma_packet_ps, (uint64_t)(mine * arch->dma_packet_ps));
    cost_add(&state->rates, plan, VTRN_FACT_dma_transfer_ps, (uint64_t)arch->dma_transfer_ps);
    cost->packets = (uint64_t)packets;
}

void cost_dma(struct time_state *state, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost)
{
    const struct vtrn_arch *arch = state->rates.arch;
    struct sides sides = { 0 };
    const struct vtrn_value *dge_mode = NULL;
    int64_t percent = 100, extra = 0;
    int mode;

    plan->flags |= PLAN_DMA;
    switch (inst->op) {
    case VTRN_OP_dma_transpose:
        sides = (struct sides){ .dst = &VTRN_ARGS(dma_transpose, inst)->dst.ap, .src = &VTRN_ARGS(dma_transpose, inst)->src.ap };
        dge_mode = &VTRN_ARGS(dma_transpose, inst)->dge_mode;
        percent = on_chip(state, sides.src) ? arch->dma_transpose_sbuf_percent : arch->dma_transpose_percent;
        break;
    case VTRN_OP_dma_compute:
        sides = (struct sides){ .dst = &VTRN_ARGS(dma_compute, inst)->dst.ap, .src = &VTRN_ARGS(dma_compute, inst)->srcs.aps[0] };
        percent = arch->dma_compute_percent;
        extra = VTRN_ARGS(dma_compute, inst)->srcs.count - 1; /* every source is read */
        break;
    case VTRN_OP_sendrecv:
        sides = (struct sides){ .dst = &VTRN_ARGS(sendrecv, inst)->dst.ap, .src = &VTRN_ARGS(sendrecv, inst)->src.ap };
        plan->flags |= PLAN_PEER;
        break;
    default:
        sides = (struct sides){ .dst = &VTRN_ARGS(dma_copy, inst)->dst.ap, .src = &VTRN_ARGS(dma_copy, inst)->src.ap };
        dge_mode = &VTRN_ARGS(dma_copy, inst)->dge_mode;
        break;
    }
    sides.dst_on_chip = on_chip(state, sides.dst);
    sides.src_on_chip = on_chip(state, sides.src);
    mode = mode_of(state, dge_mode);
    cost_packets(state, &sides, percent, mode, plan, cost);
    if (extra > 0) {
        plan->work_ps += (plan->work_ps - (uint64_t)arch->dma_transfer_ps) * (uint64_t)extra;
        plan->dma_bytes *= (uint64_t)(extra + 1);
    }
    cost_issue(state, mode, cost->packets, plan);
    plan->latency_ps = (uint32_t)(arch->dma_start_ps > (int64_t)plan->load_ps ? arch->dma_start_ps : (int64_t)plan->load_ps);
    if (plan->flags & PLAN_PEER) {
        plan->latency_ps += (uint32_t)arch->pair_ps;
        cost_add(&state->rates, plan, VTRN_FACT_pair_ps, (uint64_t)arch->pair_ps);
    }
}
