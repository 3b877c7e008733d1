/* Inside api/ only: what the public handles hold. */
#ifndef VTRN_API_INT_H
#define VTRN_API_INT_H
#include "chip/chip.h"
#include "vtrn/vtrn.h"

struct vtrn_program {
    struct vtrn_prog *prog;
    uint32_t *input, *output; /* tensor numbers */
    uint32_t inputs, outputs;
    uint8_t *written;         /* by tensor: an instruction of some core writes it */
    uint64_t use[VTRN_ENGINES][VTRN_OPCODES];
};

struct vtrn_machine;
/* Of the machine's last run, one per core; NULL: it did not run. */
const struct vtrn_trace *api_machine_trace(const struct vtrn_machine *machine);

/* Copies what the caller has room for: callers built against an older header know fewer fields. */
static inline void api_give(void *info, size_t info_size, const void *full, size_t full_size)
{
    memcpy(info, full, info_size < full_size ? info_size : full_size);
}
#endif
