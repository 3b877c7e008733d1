/* Inside prog/ only: what build.c, table.c, file.c, text.c and verify.c share. */
#ifndef VTRN_PROG_INT_H
#define VTRN_PROG_INT_H
#include "prog/prog.h"

/* Grows *array (elements of elem_bytes) so that it holds `need` elements; doubles. */
enum vtrn_status prog_grow(void *array, uint32_t *capacity, uint32_t need, size_t elem_bytes);

/* Fills `partitions` and `row_bytes` of a declaration from its shape after checking all of it against the target. */
enum vtrn_status prog_tensor_check(const struct vtrn_prog *prog, struct vtrn_tensor *tensor, struct vtrn_error *err);

/* The text of a string that a message may show: never NULL. */
static inline const char *prog_tensor_label(const struct vtrn_prog *prog, uint32_t tensor, char *scratch, size_t size)
{
    const char *name = tensor < prog->tensors ? vtrn_prog_text(prog, prog->tensor[tensor].name) : "";

    if (name[0] != '\0') return name;
    snprintf(scratch, size, "%%%u", (unsigned)tensor);
    return scratch;
}
#endif
