/* nl.arange and arithmetic on it. An expression keeps one term per dimension instead of its values, so that i_p * 512 + i_f
 * costs nothing for its 65,536 values, strides of a view can be read off, and masks become rectangles (boxes.c).
 * Arithmetic is exact in 64 bits; what has no such form (a product of two ranges) is an error. */
#include "affine.h"

static int affine_error(const char *fmt, ...) VTRN_PRINTF(1, 2);
static int affine_error(const char *fmt, ...)
{
    char why[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.index, "index expression", "%s", why);
}

struct nki_affine *ext_affine_new(int ndim)
{
    struct nki_affine *x = PyObject_New(struct nki_affine, &nki_affine_type);

    if (!x) return NULL;
    memset(&x->base, 0, sizeof *x - offsetof(struct nki_affine, base));
    x->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) x->count[d] = 1;
    return x;
}

static void affine_dealloc(PyObject *self)
{
    struct nki_affine *x = (struct nki_affine *)self;

    for (int d = 0; d < x->ndim; d++) PyMem_Free(x->table[d]);
    PyObject_Free(self);
}

static bool has_term(const struct nki_affine *x, int d) { return x->count[d] > 1 && (x->table[d] || x->stride[d]); }

/* Gives dimension d `values`, as a stride where they are evenly spaced. The first is moved into the base. */
static int set_term(struct nki_affine *x, int d, const int64_t *values)
{
    int64_t n = x->count[d], step = n > 1 ? values[1] - values[0] : 0, i = 2;

    x->base += values[0];
    while (i < n && values[i] - values[i - 1] == step) i++;
    if (i >= n) {
        x->stride[d] = step;
        return 0;
    }
    x->table[d] = PyMem_Malloc((size_t)n * sizeof *x->table[d]);
    if (!x->table[d]) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < n; i++) x->table[d][i] = values[i] - values[0];
    return 0;
}

void ext_affine_range(const struct nki_affine *x, int d, int64_t start, int64_t count, int64_t *low, int64_t *high)
{
    *low = *high = affine_term(x, d, start);
    if (!x->table[d]) {
        int64_t last = affine_term(x, d, start + count - 1);

        if (last < *low) *low = last;
        if (last > *high) *high = last;
        return;
    }
    for (int64_t i = start; i < start + count; i++) {
        if (x->table[d][i] < *low) *low = x->table[d][i];
        if (x->table[d][i] > *high) *high = x->table[d][i];
    }
}

/* ---------------------------------------------------------------- operands of Python's operators */
/* An expression, or an integer as one without dimensions. New reference; NULL without an error: something else. */
static struct nki_affine *operand(PyObject *obj)
{
    struct nki_affine *x;
    PyObject *number;

    if (IS_AFFINE(obj)) return (struct nki_affine *)Py_NewRef(obj);
    if (IS_TENSOR(obj) || !PyIndex_Check(obj)) return NULL;
    number = PyNumber_Index(obj);
    x = number ? ext_affine_new(0) : NULL;
    if (x) x->base = PyLong_AsLongLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred()) Py_CLEAR(x);
    return x;
}

static bool is_constant(const struct nki_affine *x)
{
    for (int d = 0; d < x->ndim; d++)
        if (has_term(x, d)) return false;
    return true;
}

/* a + b * scale, broadcast as NumPy does: dimensions are matched from the last one. */
static struct nki_affine *combine(const struct nki_affine *a, const struct nki_affine *b, int64_t scale)
{
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    struct nki_affine *x = ext_affine_new(ndim);

    if (!x) return NULL;
    x->base = a->base + b->base * scale;
    for (int d = 0; d < ndim; d++) {
        int da = d - (ndim - a->ndim), db = d - (ndim - b->ndim);
        int64_t na = da < 0 ? 1 : a->count[da], nb = db < 0 ? 1 : b->count[db], *values;
        int status;

        x->count[d] = na > nb ? na : nb;
        if (na != nb && na != 1 && nb != 1) {
            affine_error("sizes %lld and %lld of dimension %d do not broadcast", (long long)na, (long long)nb, d);
            goto failed;
        }
        if (x->count[d] == 1) continue;
        if ((na == 1 || !a->table[da]) && (nb == 1 || !b->table[db])) {
            x->stride[d] = (na == 1 ? 0 : a->stride[da]) + (nb == 1 ? 0 : b->stride[db]) * scale;
            continue;
        }
        values = PyMem_Malloc((size_t)x->count[d] * sizeof *values);
        if (!values) {
            PyErr_NoMemory();
            goto failed;
        }
        for (int64_t i = 0; i < x->count[d]; i++)
            values[i] = (na == 1 ? 0 : affine_term(a, da, i)) + (nb == 1 ? 0 : affine_term(b, db, i)) * scale;
        status = set_term(x, d, values);
        PyMem_Free(values);
        if (status < 0) goto failed;
    }
    return x;

failed:
    Py_DECREF(x);
    return NULL;
}

static PyObject *add_scaled(PyObject *left, PyObject *right, int64_t left_scale, int64_t right_scale)
{
    struct nki_affine *a = operand(left), *b = a ? operand(right) : NULL, *zero, *x = NULL;

    if (a && b) {
        zero = left_scale == 1 ? NULL : ext_affine_new(0);
        if (left_scale == 1) {
            x = combine(a, b, right_scale);
        } else if (zero) {
            struct nki_affine *scaled = combine(zero, a, left_scale);

            if (scaled) x = combine(scaled, b, right_scale);
            Py_XDECREF(scaled);
        }
        Py_XDECREF(zero);
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (!x && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return (PyObject *)x;
}

static PyObject *affine_add(PyObject *left, PyObject *right) { return add_scaled(left, right, 1, 1); }
static PyObject *affine_subtract(PyObject *left, PyObject *right) { return add_scaled(left, right, 1, -1); }

static PyObject *affine_negative(PyObject *self)
{
    struct nki_affine *zero = ext_affine_new(0), *x = zero ? combine(zero, (struct nki_affine *)self, -1) : NULL;

    Py_XDECREF(zero);
    return (PyObject *)x;
}

static PyObject *affine_multiply(PyObject *left, PyObject *right)
{
    struct nki_affine *a = operand(left), *b = a ? operand(right) : NULL, *zero, *x = NULL;

    if (a && b) {
        if (!is_constant(b)) {
            struct nki_affine *swap = a;

            a = b;
            b = swap;
        }
        if (!is_constant(b)) {
            affine_error("a product of two ranges is not affine");
        } else if ((zero = ext_affine_new(b->ndim))) { /* keeps b's dimensions */
            x = combine(zero, a, b->base);
            Py_DECREF(zero);
        }
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (!x && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return (PyObject *)x;
}

/* ---------------------------------------------------------------- // and % */
static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

static bool all_multiples(const struct nki_affine *x, int d, int64_t divisor)
{
    if (!x->table[d]) return x->stride[d] % divisor == 0;
    for (int64_t i = 0; i < x->count[d]; i++)
        if (x->table[d][i] % divisor) return false;
    return true;
}

/* Terms that are multiples of the divisor divide (or vanish) by themselves; the base goes with the one that is left. */
static struct nki_affine *divided(const struct nki_affine *x, int64_t divisor, bool remainder)
{
    struct nki_affine *y = ext_affine_new(x->ndim);
    int left = -1;

    if (!y) return NULL;
    for (int d = 0; d < x->ndim; d++) {
        y->count[d] = x->count[d];
        if (!has_term(x, d)) continue;
        if (!all_multiples(x, d, divisor)) {
            if (left >= 0) {
                affine_error("%s %lld of an expression whose dimensions %d and %d are not multiples of it cannot be an index",
                             remainder ? "%" : "//", (long long)divisor, left, d);
                goto failed;
            }
            left = d;
        }
    }
    if (left < 0) y->base = remainder ? x->base - floor_div(x->base, divisor) * divisor : floor_div(x->base, divisor);
    for (int d = 0; d < x->ndim; d++) {
        int64_t *values;
        int status;

        if (!has_term(x, d) || (remainder && d != left)) continue;
        values = PyMem_Malloc((size_t)x->count[d] * sizeof *values);
        if (!values) {
            PyErr_NoMemory();
            goto failed;
        }
        for (int64_t i = 0; i < x->count[d]; i++) {
            int64_t value = affine_term(x, d, i) + (d == left ? x->base : 0), quotient = floor_div(value, divisor);

            values[i] = remainder ? value - quotient * divisor : quotient;
        }
        status = set_term(y, d, values);
        PyMem_Free(values);
        if (status < 0) goto failed;
    }
    return y;

failed:
    Py_DECREF(y);
    return NULL;
}

static PyObject *divide_operator(PyObject *left, PyObject *right, bool remainder)
{
    struct nki_affine *a = operand(left), *b = a ? operand(right) : NULL, *x = NULL;

    if (a && b) {
        if (!is_constant(b) || b->base == 0) affine_error("the divisor must be a number other than 0");
        else x = divided(a, b->base, remainder);
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (!x && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return (PyObject *)x;
}

static PyObject *affine_floor_divide(PyObject *left, PyObject *right) { return divide_operator(left, right, false); }
static PyObject *affine_remainder(PyObject *left, PyObject *right) { return divide_operator(left, right, true); }

/* ---------------------------------------------------------------- comparisons: masks */
static struct nki_mask *new_mask(enum mask_kind kind)
{
    struct nki_mask *mask = PyObject_New(struct nki_mask, &nki_mask_type);

    if (!mask) return NULL;
    mask->kind = kind;
    mask->compare = Py_EQ;
    mask->index = NULL;
    mask->left = mask->right = NULL;
    mask->value = false;
    return mask;
}

/* `index compare x` for an x between two integers: the integer that gives the same truth. */
static struct nki_affine *round_bound(double x, int compare)
{
    struct nki_affine *bound;
    double rounded = floor(x);

    if (rounded != x && (compare == Py_LT || compare == Py_GE)) rounded += 1;
    if (!(rounded > -9e18 && rounded < 9e18)) rounded = x > 0 ? 4e18 : -4e18;
    bound = ext_affine_new(0);
    if (bound) bound->base = (int64_t)rounded;
    return bound;
}

static PyObject *affine_compare(PyObject *left, PyObject *right, int compare)
{
    struct nki_affine *a = operand(left), *b = NULL, *difference;
    struct nki_mask *mask = NULL;

    if (a && PyFloat_Check(right)) b = round_bound(PyFloat_AS_DOUBLE(right), compare);
    else if (a) b = operand(right);
    difference = a && b ? combine(a, b, -1) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (difference) mask = new_mask(MASK_COMPARE);
    if (!mask) {
        Py_XDECREF(difference);
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    mask->compare = compare;
    mask->index = difference;
    if (PyFloat_Check(right) && (compare == Py_EQ || compare == Py_NE) && floor(PyFloat_AS_DOUBLE(right)) != PyFloat_AS_DOUBLE(right)) {
        mask->kind = MASK_CONSTANT;
        mask->value = compare == Py_NE;
        Py_CLEAR(mask->index);
    }
    return (PyObject *)mask;
}

static void mask_dealloc(PyObject *self)
{
    struct nki_mask *mask = (struct nki_mask *)self;

    Py_XDECREF(mask->index);
    Py_XDECREF(mask->left);
    Py_XDECREF(mask->right);
    PyObject_Free(self);
}

/* A mask, or a truth value as one: loop variables are numbers, so their comparisons are. */
static struct nki_mask *mask_operand(PyObject *obj)
{
    struct nki_mask *mask;
    int truth;

    if (IS_MASK(obj)) return (struct nki_mask *)Py_NewRef(obj);
    if (!PyBool_Check(obj) && strncmp(Py_TYPE(obj)->tp_name, "numpy.bool", 10) != 0) return NULL;
    truth = PyObject_IsTrue(obj);
    mask = truth < 0 ? NULL : new_mask(MASK_CONSTANT);
    if (mask) mask->value = truth;
    return mask;
}

static PyObject *mask_join(PyObject *left, PyObject *right, enum mask_kind kind)
{
    struct nki_mask *a = mask_operand(left), *b = a ? mask_operand(right) : NULL, *mask = a && b ? new_mask(kind) : NULL;

    if (!mask) {
        Py_XDECREF(a);
        Py_XDECREF(b);
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    mask->left = a;
    mask->right = b;
    return (PyObject *)mask;
}

static PyObject *mask_and(PyObject *left, PyObject *right) { return mask_join(left, right, MASK_AND); }
static PyObject *mask_or(PyObject *left, PyObject *right) { return mask_join(left, right, MASK_OR); }

static PyObject *mask_invert(PyObject *self)
{
    struct nki_mask *mask = new_mask(MASK_NOT);

    if (mask) mask->left = (struct nki_mask *)Py_NewRef(self);
    return (PyObject *)mask;
}

static int merge_shape(const int64_t *from, int n, int64_t *count, int *ndim)
{
    for (int d = 0; d < n; d++) {
        if (d < *ndim && count[d] != from[d] && count[d] != 1 && from[d] != 1) return -1;
        if (d >= *ndim || count[d] == 1) count[d] = from[d];
    }
    if (n > *ndim) *ndim = n;
    return 0;
}

int ext_mask_shape(const struct nki_mask *mask, int64_t *count)
{
    int64_t right[EXT_RANK];
    int ndim, n;

    if (mask->kind == MASK_CONSTANT) return 0;
    if (mask->kind == MASK_COMPARE) {
        memcpy(count, mask->index->count, mask->index->ndim * sizeof *count);
        return mask->index->ndim;
    }
    ndim = ext_mask_shape(mask->left, count);
    if (mask->kind == MASK_NOT || ndim < 0) return ndim;
    n = ext_mask_shape(mask->right, right);
    return n < 0 || merge_shape(right, n, count, &ndim) < 0 ? -1 : ndim;
}

/* compare(mask): (expression, operator) of `expression operator 0`, for affine_select; None: not a single comparison. */
static PyObject *mask_compare(PyObject *module, PyObject *arg)
{
    static const char *const names[] = { "less", "less_equal", "equal", "not_equal", "greater", "greater_equal" };
    const struct nki_mask *mask = (struct nki_mask *)arg;

    (void)module;
    if (!IS_MASK(arg) || mask->kind != MASK_COMPARE) Py_RETURN_NONE;
    return Py_BuildValue("(Os)", mask->index, names[mask->compare]);
}

/* conjuncts(mask): the masks that an `&` joins. */
static int add_conjuncts(PyObject *list, const struct nki_mask *mask)
{
    if (mask->kind == MASK_AND) return add_conjuncts(list, mask->left) < 0 ? -1 : add_conjuncts(list, mask->right);
    return PyList_Append(list, (PyObject *)mask);
}

static PyObject *mask_conjuncts(PyObject *module, PyObject *arg)
{
    PyObject *list = PyList_New(0);

    (void)module;
    if (!IS_MASK(arg)) return PyErr_Format(PyExc_TypeError, "%R is no mask", arg);
    if (list && add_conjuncts(list, (struct nki_mask *)arg) < 0) Py_CLEAR(list);
    return list;
}

/* ---------------------------------------------------------------- shape */
static PyObject *affine_getitem(PyObject *self, PyObject *key)
{
    const struct nki_affine *x = (struct nki_affine *)self;
    struct nki_affine *y = ext_affine_new(EXT_RANK);
    bool is_tuple = PyTuple_Check(key);
    Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(key) : 1;
    int from = 0, to = 0;

    if (!y) return NULL;
    y->base = x->base;
    for (Py_ssize_t i = 0; i < n || from < x->ndim; i++) {
        PyObject *item = i >= n ? Py_Ellipsis : is_tuple ? PyTuple_GET_ITEM(key, i) : key;
        Py_ssize_t start = 0, stop = from < x->ndim ? x->count[from] : 0, step = 1, count = stop;

        if (to == EXT_RANK) goto wrong;
        if (item == Py_None) {
            y->count[to++] = 1;
            continue;
        }
        if (from == x->ndim) {
            if (item == Py_Ellipsis) continue;
            goto wrong;
        }
        if (PySlice_Check(item)) {
            if (PySlice_Unpack(item, &start, &stop, &step) < 0) goto failed;
            count = PySlice_AdjustIndices(x->count[from], &start, &stop, step);
            if (count < 1) goto wrong;
        } else if (PyIndex_Check(item)) {
            start = PyNumber_AsSsize_t(item, PyExc_IndexError);
            if (start == -1 && PyErr_Occurred()) goto failed;
            if (start < 0) start += x->count[from];
            if (start < 0 || start >= x->count[from]) goto wrong;
            y->base += affine_term(x, from++, start);
            continue;
        } else if (item != Py_Ellipsis) {
            goto wrong;
        }
        y->count[to] = count;
        if (x->table[from] && count > 1) {
            int64_t *values = PyMem_Malloc((size_t)count * sizeof *values);
            int status = values ? 0 : -1;

            for (Py_ssize_t k = 0; values && k < count; k++) values[k] = affine_term(x, from, start + k * step);
            if (values) status = set_term(y, to, values);
            else PyErr_NoMemory();
            PyMem_Free(values);
            if (status < 0) goto failed;
        } else {
            y->base += affine_term(x, from, start);
            y->stride[to] = count > 1 ? x->stride[from] * step : 0;
        }
        from++;
        to++;
    }
    y->ndim = (uint8_t)to;
    return (PyObject *)y;

wrong:
    affine_error("a range is indexed by None and slices, as in nl.arange(128)[:, None]");
failed:
    Py_DECREF(y);
    return NULL;
}

static PyObject *affine_shape(PyObject *self, void *unused)
{
    (void)unused;
    return ext_dims_tuple(((struct nki_affine *)self)->count, ((struct nki_affine *)self)->ndim);
}

static PyObject *affine_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct nki_affine *)self)->ndim);
}

static PyObject *affine_base(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((struct nki_affine *)self)->base);
}

/* Strides per dimension; None: // or % made the values uneven. */
static PyObject *affine_strides(PyObject *self, void *unused)
{
    const struct nki_affine *x = (struct nki_affine *)self;

    (void)unused;
    for (int d = 0; d < x->ndim; d++)
        if (x->table[d]) Py_RETURN_NONE;
    return ext_dims_tuple(x->stride, x->ndim);
}

static PyObject *affine_repr(PyObject *self)
{
    PyObject *shape = affine_shape(self, NULL), *text = shape ? PyUnicode_FromFormat("<index expression of shape %R>", shape) : NULL;

    Py_XDECREF(shape);
    return text;
}

static int mask_bool(PyObject *self)
{
    (void)self;
    return 1; /* `mask and mask`, as kernels write at times, is the last one in AWS's compiler too */
}

/* arange(start, stop, step) */
static PyObject *new_arange(PyObject *module, PyObject *args)
{
    long long start, stop, step = 1, count;
    struct nki_affine *x;

    (void)module;
    if (!PyArg_ParseTuple(args, "LL|L:arange", &start, &stop, &step)) return NULL;
    if (step == 0) return EXT_NULL(ext_raise(ext_errors.value, "nl.arange", "step 0"));
    count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
    if (count < 1 || (stop - start > 0) != (step > 0))
        return EXT_NULL(ext_raise(ext_errors.value, "nl.arange", "the range from %lld to %lld is empty", start, stop));
    x = ext_affine_new(1);
    if (!x) return NULL;
    x->base = start;
    x->count[0] = count;
    x->stride[0] = count > 1 ? step : 0;
    return (PyObject *)x;
}

PyMethodDef ext_affine_functions[] = {
    { "arange", new_arange, METH_VARARGS, "arange(start, stop, step=1): an index expression" },
    { "mask_compare", mask_compare, METH_O, "(expression, operator) of a comparison with 0, or None" },
    { "mask_conjuncts", mask_conjuncts, METH_O, "the masks that & joins" },
    { 0 },
};

static PyNumberMethods affine_number = { .nb_add = affine_add,
                                         .nb_subtract = affine_subtract,
                                         .nb_multiply = affine_multiply,
                                         .nb_negative = affine_negative,
                                         .nb_floor_divide = affine_floor_divide,
                                         .nb_remainder = affine_remainder };
static PyMappingMethods affine_mapping = { .mp_subscript = affine_getitem };
static PyGetSetDef affine_attributes[] = {
    { "shape", affine_shape, NULL, "dimensions", NULL },
    { "ndim", affine_ndim, NULL, "number of dimensions", NULL },
    { "base", affine_base, NULL, "the value at the first place", NULL },
    { "strides", affine_strides, NULL, "step per dimension, or None", NULL },
    { 0 },
};
PyTypeObject nki_affine_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.IndexExpression",
    .tp_doc = "An index expression: nl.arange, nl.mgrid and sums and multiples of them.",
    .tp_basicsize = sizeof(struct nki_affine),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = affine_dealloc,
    .tp_repr = affine_repr,
    .tp_richcompare = affine_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_as_number = &affine_number,
    .tp_as_mapping = &affine_mapping,
    .tp_getset = affine_attributes,
};

static PyNumberMethods mask_number = { .nb_and = mask_and, .nb_or = mask_or, .nb_invert = mask_invert, .nb_bool = mask_bool };
PyTypeObject nki_mask_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.Mask",
    .tp_doc = "Where an instruction acts: comparisons of index expressions, joined by &, | and ~.",
    .tp_basicsize = sizeof(struct nki_mask),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = mask_dealloc,
    .tp_as_number = &mask_number,
};
