/* Inside prog/ only: what build.c, table.c, file.c, text.c and verify.c share. */
#ifndef VTRN_PROG_INT_H
#define VTRN_PROG_INT_H
#include "prog/prog.h"

/* Grows *array (elements of elem_bytes) so that it holds `need` elements; doubles. */
enum vtrn_status prog_grow(void *array, uint32_t *capacity, uint32_t need, size_t elem_bytes);

/* Fills `partitions` and `row_bytes` of a declaration from its shape after checking all of it against the target. */
enum vtrn_status prog_tensor_check(const struct vtrn_prog *prog, struct vtrn_tensor *tensor, struct vtrn_error *err);

/* vtrn_prog_tensor for a declaration at position `born` of its core's list (loaders know it from the file). */
enum vtrn_status prog_tensor_add(struct vtrn_prog *prog, const struct vtrn_tensor *proto, uint32_t born, uint32_t *tensor_out,
                                 struct vtrn_error *err);
/* Adds a location even when it is there already: loaders keep the numbers. */
enum vtrn_status prog_loc_add(struct vtrn_prog *prog, uint32_t file_string, uint32_t line, uint32_t *loc_out);
/* The string, when it is in the table; nothing is added. */
bool prog_string_find(const struct vtrn_prog *prog, const char *text, size_t length, uint32_t *index_out);
/* Puts "core 0 instruction 17 (kernel.py:41 nisa.nc_matmul): " before the message. */
void prog_prefix_place(const struct vtrn_prog *prog, struct vtrn_error *err, int core, uint32_t index, const struct vtrn_inst *inst);
/* What append cannot know until the list is complete: every loop of every core is closed. */
enum vtrn_status prog_check_closed(const struct vtrn_prog *prog, struct vtrn_error *err);

/* The text of a string that a message may show: never NULL. */
static inline const char *prog_tensor_label(const struct vtrn_prog *prog, uint32_t tensor, char *scratch, size_t size)
{
    const char *name = tensor < prog->tensors ? vtrn_prog_text(prog, prog->tensor[tensor].name) : "";

    if (name[0] != '\0') return name;
    snprintf(scratch, size, "%%%u", (unsigned)tensor);
    return scratch;
}
#endif
