/* Index expressions and masks of the old namespace (neuronxcc.nki): nl.arange, nl.mgrid and what is computed from them. */
#ifndef VTRN_AFFINE_H
#define VTRN_AFFINE_H
#include "ext.h"

/* The value at (i0, i1, ...) is base + term_0(i0) + term_1(i1) + ...; a term is i * stride, or table[i] where // and % made
 * it something else. A dimension of size 1 has no term. */
struct nki_affine {
    PyObject_HEAD int64_t base, count[EXT_RANK], stride[EXT_RANK], *table[EXT_RANK];
    uint8_t ndim;
};
enum mask_kind { MASK_COMPARE, MASK_AND, MASK_OR, MASK_NOT, MASK_CONSTANT };
struct nki_mask {
    PyObject_HEAD enum mask_kind kind;
    int compare;                   /* Py_LT, ...: `index compare 0` */
    struct nki_affine *index;      /* COMPARE; owned */
    struct nki_mask *left, *right; /* AND, OR, NOT (left); owned */
    bool value;                    /* CONSTANT */
};
extern PyTypeObject nki_affine_type, nki_mask_type;
#define IS_AFFINE(o) (Py_TYPE(o) == &nki_affine_type)
#define IS_MASK(o) (Py_TYPE(o) == &nki_mask_type)

struct nki_affine *ext_affine_new(int ndim);
/* Part of the value that dimension d adds at i. */
static inline int64_t affine_term(const struct nki_affine *x, int d, int64_t i)
{
    return x->table[d] ? x->table[d][i] : i * x->stride[d];
}
/* Smallest and largest term of dimension d over [start, start + count). */
void ext_affine_range(const struct nki_affine *x, int d, int64_t start, int64_t count, int64_t *low, int64_t *high);
/* The mask's dimensions; 0 for constants. -1: parts of different shapes. */
int ext_mask_shape(const struct nki_mask *mask, int64_t *count);
extern PyMethodDef ext_affine_functions[], ext_box_functions[], ext_tile_functions[];
#endif
