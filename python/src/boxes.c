/* Masks as rectangles. The hardware knows no masks: an instruction acts on smaller operands, as AWS's compiler makes of a
 * mask. A mask over a tile becomes the fewest boxes that a walk of the dimensions from the outermost finds: neighbours with
 * equal insides are one. Dimensions that the mask does not depend on are not walked. */
#include "affine.h"

struct box {
    int64_t start[EXT_RANK], count[EXT_RANK];
};
struct boxes {
    struct box *box;
    size_t used, capacity;
};
struct walk {
    const struct nki_mask *mask;
    const int64_t *shape;
    int ndim, shift; /* the mask's dimension 0 is the tile's dimension `shift` */
    int64_t at[EXT_RANK];
};

static bool depends_on(const struct nki_mask *mask, int d)
{
    switch (mask->kind) {
    case MASK_CONSTANT: return false;
    case MASK_COMPARE:
        return d >= 0 && d < mask->index->ndim && mask->index->count[d] > 1 && (mask->index->table[d] || mask->index->stride[d]);
    case MASK_NOT: return depends_on(mask->left, d);
    default: return depends_on(mask->left, d) || depends_on(mask->right, d);
    }
}

static bool holds(const struct nki_mask *mask, const int64_t *at)
{
    int64_t value;

    switch (mask->kind) {
    case MASK_CONSTANT: return mask->value;
    case MASK_NOT: return !holds(mask->left, at);
    case MASK_AND: return holds(mask->left, at) && holds(mask->right, at);
    case MASK_OR: return holds(mask->left, at) || holds(mask->right, at);
    case MASK_COMPARE: break;
    }
    value = mask->index->base;
    for (int d = 0; d < mask->index->ndim; d++)
        if (mask->index->count[d] > 1) value += affine_term(mask->index, d, at[d]);
    switch (mask->compare) {
    case Py_LT: return value < 0;
    case Py_LE: return value <= 0;
    case Py_GT: return value > 0;
    case Py_GE: return value >= 0;
    case Py_EQ: return value == 0;
    default: return value != 0;
    }
}

static int add_box(struct boxes *boxes, const struct box *box)
{
    if (boxes->used == boxes->capacity) {
        size_t wanted = boxes->capacity ? boxes->capacity * 2 : 8;
        struct box *grown = PyMem_Realloc(boxes->box, wanted * sizeof *grown);

        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        boxes->box = grown;
        boxes->capacity = wanted;
    }
    boxes->box[boxes->used++] = *box;
    return 0;
}

static bool same_inside(const struct box *a, const struct box *b, size_t n, int from, int ndim)
{
    for (size_t i = 0; i < n; i++)
        for (int d = from; d < ndim; d++)
            if (a[i].start[d] != b[i].start[d] || a[i].count[d] != b[i].count[d]) return false;
    return true;
}

/* Boxes of dimensions d and later, behind those that `out` holds already. */
static int walk_dim(struct walk *walk, int d, struct boxes *out)
{
    size_t last = 0, last_count = 0;
    bool any = false;

    if (d == walk->ndim) {
        struct box all = { { 0 }, { 0 } };

        return holds(walk->mask, walk->at + walk->shift) ? add_box(out, &all) : 0;
    }
    for (int64_t i = 0; i < walk->shape[d]; i++) {
        bool free = !depends_on(walk->mask, d - walk->shift);
        size_t first = out->used, count;

        walk->at[d] = i;
        if (walk_dim(walk, d + 1, out) < 0) return -1;
        count = out->used - first;
        if (any && count > 0 && count == last_count && out->box[last].start[d] + out->box[last].count[d] == i &&
            same_inside(out->box + last, out->box + first, count, d + 1, walk->ndim)) {
            for (size_t k = 0; k < count; k++) out->box[last + k].count[d]++;
            out->used = first;
            continue;
        }
        for (size_t k = first; k < out->used; k++) {
            out->box[k].start[d] = i;
            out->box[k].count[d] = free ? walk->shape[d] : 1;
        }
        any = true;
        last = first;
        last_count = count;
        if (free) break;
    }
    return 0;
}

static PyObject *box_list(const struct boxes *boxes, int ndim)
{
    PyObject *list = PyList_New((Py_ssize_t)boxes->used);

    for (size_t i = 0; list && i < boxes->used; i++) {
        PyObject *box = Py_BuildValue("(NN)", ext_dims_tuple(boxes->box[i].start, ndim), ext_dims_tuple(boxes->box[i].count, ndim));

        if (!box) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, box);
    }
    return list;
}

static bool is_whole(const struct boxes *boxes, const int64_t *shape, int ndim)
{
    if (boxes->used != 1) return false;
    for (int d = 0; d < ndim; d++)
        if (boxes->box[0].count[d] != shape[d]) return false;
    return true;
}

/* boxes(mask, shape): None when the mask holds everywhere, else [(starts, counts), ...]. */
static PyObject *mask_boxes(PyObject *module, PyObject *args)
{
    int64_t shape[EXT_RANK], own[EXT_RANK];
    struct walk walk = { .shape = shape };
    struct boxes boxes = { 0 };
    PyObject *mask, *dims, *list = NULL;
    int n;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:boxes", &mask, &dims)) return NULL;
    if (!IS_MASK(mask))
        return EXT_NULL(ext_raise(ext_errors.type, "mask", "%.100s; a mask is a comparison of index expressions (nl.arange, nl.mgrid)",
                                  Py_TYPE(mask)->tp_name));
    walk.mask = (struct nki_mask *)mask;
    walk.ndim = ext_dims_read(dims, shape, EXT_RANK, "mask");
    n = walk.ndim < 0 ? -1 : ext_mask_shape(walk.mask, own);
    if (walk.ndim < 0) return NULL;
    if (n < 0) return EXT_NULL(ext_raise(ext_errors.value, "mask", "its parts have different shapes"));
    while (n > walk.ndim && own[n - 1] == 1) n--; /* trailing dimensions of size 1 say nothing */
    for (walk.shift = 0; walk.shift + n <= walk.ndim; walk.shift++) {
        int d = 0;

        while (d < n && (own[d] == 1 || own[d] == shape[walk.shift + d])) d++;
        if (d == n) break;
    }
    if (walk.shift + n > walk.ndim) {
        PyObject *text = PyObject_Str(dims);

        ext_raise(ext_errors.value, "mask", "its shape (%lld, %lld%s) does not fit the tile's %s", (long long)own[0],
                  (long long)(n > 1 ? own[1] : 1), n > 2 ? ", ..." : "", text ? PyUnicode_AsUTF8(text) : "shape");
        Py_XDECREF(text);
        return NULL;
    }
    if (walk_dim(&walk, 0, &boxes) == 0) list = is_whole(&boxes, shape, walk.ndim) ? Py_NewRef(Py_None) : box_list(&boxes, walk.ndim);
    PyMem_Free(boxes.box);
    return list;
}

PyMethodDef ext_box_functions[] = {
    { "boxes", mask_boxes, METH_VARARGS, "boxes(mask, shape): the rectangles where it holds; None: everywhere" },
    { 0 },
};
