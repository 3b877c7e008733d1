/* Inside exec/ only: a tensor operand as a flat sequence of elements, and copies between two of them (walk.c, copy.c,
 * convert.c). DMA operands may have different shapes; what counts is the row-major order of each. */
#ifndef VTRN_EXEC_WALK_INT_H
#define VTRN_EXEC_WALK_INT_H
#include "exec/exec_int.h"

enum { WALK_DIMS = 1 + EXEC_FREE_DIMS, WALK_CHUNK = 2048 /* elements that fit the chunk buffers of these files */ };

/* `rows` rows of `row_elems` elements. Without row_offset there is one row; with it row w starts at
 * base + row_offset[w], and a row at -1 does not take part. Dims of a row: outermost first, counts of 2 and more, merged
 * where adjacent ones step alike. */
struct exec_walk {
    uint8_t *base;
    const int64_t *row_offset;
    int64_t rows, row_elems, elems;
    int ndim;
    struct {
        ptrdiff_t stride; /* bytes */
        int64_t count;
    } dim[WALK_DIMS];
    uint8_t dtype, elem_bytes;
};

/* The elements of a resolved operand in row-major order; of `ap` with its axes in the order of `axes` (ap->ndim of
 * them); and of packed memory. */
void exec_walk_view(struct exec_walk *walk, const struct exec_view *view);
void exec_walk_axes(struct exec_walk *walk, const struct vtrn_ap *ap, const struct exec_view *view, const int *axes);
void exec_walk_packed(struct exec_walk *walk, void *bytes, int64_t elems, uint8_t dtype, uint8_t elem_bytes);
/* New packed memory for the elements of `like`, to be freed with vtrn_free_aligned. NULL: no memory, core->err says so. */
void *exec_walk_alloc(struct vtrn_core *core, const struct exec_walk *like, struct exec_walk *packed_out);
/* Elements [e0, e0+n) as a walk of their own, when they are whole inner dims; false otherwise. For every e0 that is a
 * multiple of n the dims are the same and only the base differs: exec_walk_at. */
bool exec_walk_slice(const struct exec_walk *walk, int64_t e0, int64_t n, struct exec_walk *slice_out);
/* Address of element e; NULL in a row that does not take part. */
uint8_t *exec_walk_at(const struct exec_walk *walk, int64_t e);
/* How many elements from e on are adjacent in memory (at least 1). */
int64_t exec_walk_run(const struct exec_walk *walk, int64_t e);
/* Packed elements [e0, e0+n): a pointer into the tensor when they are adjacent, else gathered into `scratch`.
 * Elements of rows that do not take part are left as they are. */
const void *exec_walk_read(const struct exec_walk *walk, int64_t e0, int64_t n, void *scratch);
void exec_walk_write(const struct exec_walk *walk, int64_t e0, int64_t n, const void *packed);
/* No two elements share an address. May say false of a pattern that is in fact injective. */
bool exec_walk_injective(const struct exec_walk *walk);
/* The same elements in the same order. */
bool exec_walk_same(const struct exec_walk *a, const struct exec_walk *b);
/* They may share bytes: exact for patterns of equal row pitch, else by the span of addresses. */
bool exec_walk_overlap(const struct exec_walk *a, const struct exec_walk *b);

/* dst = src: bytes when the dtypes are equal, exact saturating integers between integers, through fp32 otherwise.
 * Reads all of src before it writes where they overlap. Of several writes to one address the last in row-major order
 * stays. Rows that do not take part on either side are not written. Needs equal element counts. */
enum vtrn_status exec_copy(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src);
/* The same for equal element sizes, never converting; the walks must not overlap. */
void exec_copy_raw(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src);

/* n elements of one dtype to another by the rule of exec_copy; n <= WALK_CHUNK. */
void exec_convert(const struct vtrn_kern *kern, uint8_t dst_dtype, void *dst, uint8_t src_dtype, const void *src, int64_t n);
/* The same between integers, exactly, saturated to the range of dst. */
void exec_convert_ints(uint8_t dst_dtype, void *dst, uint8_t src_dtype, const void *src, int64_t n);
bool exec_is_integer(uint8_t dtype); /* INT, UINT and BOOL classes */
/* One integer element, sign or zero extended; and back, its low bits. */
int64_t exec_int_load(uint8_t dtype, const void *element);
void exec_int_store(uint8_t dtype, void *element, int64_t value);
/* Saturated to what the dtype holds. */
int64_t exec_int_clamp(uint8_t dtype, int64_t value);
#endif
