/* Reductions and recurrences in the words of a vector level: what ref/rows.c defines, element by element in order. A lane is
 * a row: blocks of VL rows by 4 columns are transposed on the way in (and out), so VL chains advance at once.
 * Rows beyond the last whole VL repeat a row and are not stored. */
#define ALU_WORDS_ONLY
#include "kern/alu.inc.c"

/* Blocks that are not VL by 4: out of line, or they would be most of the code. */
static __attribute__((noinline)) void load_narrow(vf column[4], const float *p, size_t stride, int columns)
{
    v_load_columns(column, p, stride, VL, columns);
}
static __attribute__((noinline)) void load_ragged(vf column[4], const float *p, size_t stride, int rows, int columns)
{
    v_load_columns(column, p, stride, rows, columns);
}
static __attribute__((noinline)) void store_ragged(float *p, size_t stride, vf column[4], int rows, int columns)
{
    v_store_columns(p, stride, column, rows, columns);
}
KERN_INLINE void load_block(vf column[4], const float *p, size_t stride, int rows, int columns)
{
    if (rows < VL) load_ragged(column, p, stride, rows, columns);
    else if (columns < 4) load_narrow(column, p, stride, columns);
    else v_load_columns(column, p, stride, VL, 4);
}
KERN_INLINE void store_block(float *p, size_t stride, vf column[4], int rows, int columns)
{
    if (rows < VL || columns < 4) store_ragged(p, stride, column, rows, columns);
    else v_store_columns(p, stride, column, VL, 4);
}

enum { FEW_ROWS = 2 }; /* up to this many are not worth a block of VL */

/* ---- reductions ---- */
/* One step. A NaN is not carried in the value where that would cost (maximum and the like give the second operand): the
 * lanes that have met one are in `nan`. */
KERN_INLINE bool fold_notes_nan(const enum vtrn_alu op)
{
    return op == VTRN_ALU_MAXIMUM || op == VTRN_ALU_MINIMUM || op == VTRN_ALU_ABS_MAX || op == VTRN_ALU_ABS_MIN;
}
KERN_INLINE vf fold(const enum vtrn_alu op, vf sum, vf x)
{
    switch (op) {
    case VTRN_ALU_ADD: return v_add(sum, x);
    case VTRN_ALU_SUBTRACT: return v_sub(sum, x);
    case VTRN_ALU_MULTIPLY: return v_mul(sum, x);
    case VTRN_ALU_MAXIMUM: return v_max(sum, x);
    case VTRN_ALU_MINIMUM: return v_min(sum, x);
    case VTRN_ALU_ABS_MAX: return v_sel(v_lt(v_abs(x), v_abs(sum)), sum, x);
    case VTRN_ALU_ABS_MIN: return v_sel(v_lt(v_abs(sum), v_abs(x)), sum, x);
    default: return v_alu(op, sum, x); /* LOGICAL_* */
    }
}
KERN_INLINE void fold_columns(const enum vtrn_alu op, vf *sum, vm *nan, const vf column[4], int columns)
{
    if (fold_notes_nan(op) && columns == 4)
        *nan = m_or(*nan, m_or(v_unordered(column[0], column[1]), v_unordered(column[2], column[3])));
#pragma GCC unroll 4
    for (int k = 0; k < columns; k++) {
        if (fold_notes_nan(op) && columns < 4) *nan = m_or(*nan, v_unordered(column[k], column[k]));
        *sum = fold(op, *sum, column[k]);
    }
}
KERN_INLINE void reduce_group(const enum vtrn_alu op, float *acc, const float *src, size_t row_stride, int rows, size_t n)
{
    vf sum = v_load(acc, rows), column[4];
    vm nan = v_unordered(sum, sum);
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        load_block(column, src + i, row_stride, rows, 4);
        fold_columns(op, &sum, &nan, column, 4);
    }
    if (i < n) {
        load_block(column, src + i, row_stride, rows, (int)(n - i));
        fold_columns(op, &sum, &nan, column, (int)(n - i));
    }
    if (fold_notes_nan(op)) sum = v_sel(nan, v_of_bits(i_set1(KERN_NAN_BITS)), sum);
    v_store(acc, v_canonical(sum), rows);
}
/* Rows of one element next to each other: no transposition, one operation. */
KERN_INLINE void reduce_single(const enum vtrn_alu op, float *acc, const float *src, size_t rows)
{
    for (size_t r = 0; r < rows; r += VL) {
        int lanes = rows - r < VL ? (int)(rows - r) : VL;
        v_store(acc + r, v_alu(op, v_load(acc + r, lanes), v_load(src + r, lanes)), lanes);
    }
}
/* Few rows: one chain after the other, each at the speed of its operation. */
KERN_INLINE void reduce_chain(const enum vtrn_alu op, float *acc, const float *src, size_t n)
{
    vf sum = v_set1(*acc);
    vm nan = v_unordered(sum, sum);
    for (size_t i = 0; i < n; i++) {
        vf x = v_set1(src[i]);
        if (fold_notes_nan(op)) nan = m_or(nan, v_unordered(x, x));
        sum = fold(op, sum, x);
    }
    if (fold_notes_nan(op)) sum = v_sel(nan, v_of_bits(i_set1(KERN_NAN_BITS)), sum);
    v_store(acc, v_canonical(sum), 1);
}
KERN_INLINE void reduce_rows(const enum vtrn_alu op, float *acc, const float *src, size_t row_stride, size_t rows, size_t n)
{
    size_t r = 0;
    if (n == 0) return;
    if (n == 1 && row_stride == 1) {
        reduce_single(op, acc, src, rows);
        return;
    }
    for (; r + VL <= rows; r += VL) reduce_group(op, acc + r, src + r * row_stride, row_stride, VL, n);
    if (rows - r <= FEW_ROWS)
        for (; r < rows; r++) reduce_chain(op, acc + r, src + r * row_stride, n);
    if (r < rows) reduce_group(op, acc + r, src + r * row_stride, row_stride, (int)(rows - r), n);
}

/* ---- scans ---- */
/* The operators of a scan as the compiler sees them: a pair that it knows, or a pair looked up for every step. */
struct scan_form {
    bool mul_add; /* r = a * r + b: ops commute, so the reverse flags do not matter */
    bool single;  /* r = op0(a, r), and op1 passes it on */
    enum vtrn_alu op0;
};
KERN_INLINE vf scan_apply(enum vtrn_alu op, bool reverse, vf a, vf b) { return reverse ? v_alu(op, b, a) : v_alu(op, a, b); }
static __attribute__((noinline)) vf scan_any(enum vtrn_alu op, bool reverse, vf a, vf b)
{
    switch (op) {
#define CASE(NAME) \
    case VTRN_ALU_##NAME: return scan_apply(VTRN_ALU_##NAME, reverse, a, b);
        KERN_EACH_ARITH(CASE)
#undef CASE
    default: return a;
    }
}
KERN_INLINE vf scan_step(const struct scan_form f, const struct vtrn_scan *s, vf a, vf b, vf r)
{
    if (f.mul_add) return v_add(v_mul(a, r), b);
    if (f.single) return s->reverse0 ? v_alu(f.op0, r, a) : v_alu(f.op0, a, r);
    return scan_any(s->op1, s->reverse1, scan_any(s->op0, s->reverse0, a, r), b);
}
/* Columns i.. of `ways` groups of VL rows side by side; only a single group may have fewer rows. The loops are unrolled, or
 * the columns would live in memory. */
KERN_INLINE void scan_block(const struct scan_form f, const struct vtrn_scan *s, size_t row0, size_t i, vf r[2], const int ways,
                            int rows, const int columns)
{
    const bool reads_b = f.mul_add || (!f.single && s->b != NULL);
    vf a[2][4], b[2][4];
#define EACH(w) _Pragma("GCC unroll 2") for (int w = 0; w < ways; w++)

    EACH(w) load_block(a[w], s->a + (row0 + (size_t)w * VL) * s->a_stride + i, s->a_stride, rows, columns);
    if (reads_b) EACH(w) load_block(b[w], s->b + (row0 + (size_t)w * VL) * s->b_stride + i, s->b_stride, rows, columns);
#pragma GCC unroll 4
    for (int k = 0; k < columns; k++) {
        EACH(w) r[w] = scan_step(f, s, a[w][k], reads_b ? b[w][k] : r[w], r[w]);
        EACH(w) a[w][k] = v_canonical(r[w]);
    }
    EACH(w) store_block(s->dst + (row0 + (size_t)w * VL) * s->dst_stride + i, s->dst_stride, a[w], rows, columns);
}
KERN_INLINE void scan_groups(const struct scan_form f, const struct vtrn_scan *s, size_t row0, const int ways, int rows)
{
    vf r[2];
    size_t i = 0;
    EACH(w) r[w] = v_load(s->state + row0 + (size_t)w * VL, rows);
    for (; i + 4 <= s->n; i += 4) scan_block(f, s, row0, i, r, ways, rows, 4);
    for (; i < s->n; i++) scan_block(f, s, row0, i, r, ways, rows, 1);
    EACH(w) v_store(s->state + row0 + (size_t)w * VL, v_canonical(r[w]), rows);
#undef EACH
}
KERN_INLINE void scan_chain(const struct scan_form f, const struct vtrn_scan *s, size_t row)
{
    const float *a = s->a + row * s->a_stride, *b = s->b != NULL ? s->b + row * s->b_stride : NULL;
    float *dst = s->dst + row * s->dst_stride;
    vf r = v_set1(s->state[row]);
    for (size_t i = 0; i < s->n; i++) {
        r = scan_step(f, s, v_set1(a[i]), b != NULL && !f.single ? v_set1(b[i]) : r, r);
        v_store(dst + i, v_canonical(r), 1);
    }
    v_store(s->state + row, v_canonical(r), 1);
}
KERN_INLINE void scan_rows(const struct scan_form f, const struct vtrn_scan *s)
{
    size_t row = 0;
    for (; row + 2 * VL <= s->rows; row += 2 * VL) scan_groups(f, s, row, 2, VL);
    for (; row + VL <= s->rows; row += VL) scan_groups(f, s, row, 1, VL);
    if (s->rows - row <= FEW_ROWS)
        for (; row < s->rows; row++) scan_chain(f, s, row);
    if (row < s->rows) scan_groups(f, s, row, 1, (int)(s->rows - row));
}
static __attribute__((noinline)) void scan_mul_add(const struct vtrn_scan *s)
{
    scan_rows((struct scan_form){ .mul_add = true }, s);
}
static __attribute__((noinline)) void scan_other(const struct vtrn_scan *s) { scan_rows((struct scan_form){ 0 }, s); }
#define EACH_SINGLE(X) X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM)
#define SINGLE(NAME) \
    static __attribute__((noinline)) void scan_single_##NAME(const struct vtrn_scan *s) \
    { \
        scan_rows((struct scan_form){ .single = true, .op0 = VTRN_ALU_##NAME }, s); \
    }
EACH_SINGLE(SINGLE)

/* No vector form, or raw copies of operands (whose NaNs stay as they are): ref's work. */
static bool scan_is_ref(const struct vtrn_scan *s)
{
    bool odd0 = s->op0 == VTRN_ALU_FMOD || s->op0 == VTRN_ALU_MOD, odd1 = s->op1 == VTRN_ALU_FMOD || s->op1 == VTRN_ALU_MOD;
    return odd0 || odd1 || (s->op1 == VTRN_ALU_BYPASS && (s->reverse1 || s->op0 == VTRN_ALU_BYPASS));
}
static void scan(const struct vtrn_scan *s)
{
    if (s->n == 0) return;
    if (scan_is_ref(s)) {
        vtrn_kern_for(VTRN_CPU_REF)->scan(s);
    } else if (s->op0 == VTRN_ALU_MULTIPLY && s->op1 == VTRN_ALU_ADD) {
        scan_mul_add(s);
    } else if (s->op1 == VTRN_ALU_BYPASS) {
        switch (s->op0) {
#define CASE(NAME) \
    case VTRN_ALU_##NAME: scan_single_##NAME(s); break;
            EACH_SINGLE(CASE)
#undef CASE
        default: scan_other(s); break;
        }
    } else {
        scan_other(s);
    }
}

#define REDUCE(NAME) \
    static void reduce_##NAME(float *acc, const float *src, size_t row_stride, size_t rows, size_t n) \
    { \
        reduce_rows(VTRN_ALU_##NAME, acc, src, row_stride, rows, n); \
    }
KERN_EACH_REDUCE(REDUCE)

static void set_rows(struct vtrn_kern *kern)
{
#define SET(NAME) kern->reduce[VTRN_ALU_##NAME] = reduce_##NAME;
    KERN_EACH_REDUCE(SET)
#undef SET
    kern->scan = scan;
}
