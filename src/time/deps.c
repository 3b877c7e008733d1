/* Dependencies of a core's steps from the memory they touch.
 *
 * Every access is a box: rows by columns. On chip the rows are partitions and the columns bytes of the physical SBUF or PSUM,
 * so tensors that share an address meet whether the user aliased them or the packing reused it. In HBM the rows are those of
 * the tensor's innermost dimension. A box covers what lies between its elements too: too much, never too little.
 *
 * Records of past accesses are kept in buckets of columns (on chip) or rows (HBM) and clipped to them. A write that covers a
 * record replaces it, for who meets the record meets the write. A bucket that grows too long melts its older records into one
 * per class: again too much, never too little, and of steps that ended long ago.
 *
 * Steps of one class end in order, so the last one stands for those before it. What the hardware's pipelines make
 * unnecessary is left out: an engine's write after its own read or write, and products that follow each other into PSUM. */
#include "time/time_int.h"

enum { RECORDS_MAX = 48, SBUF_SHIFT = 11, PSUM_SHIFT = 11, HBM_BUCKETS = 256, HBM_SHIFT = 7 };

_Static_assert(RECORDS_MAX / 4 + 2 * TIME_CLASSES < RECORDS_MAX, "melting makes room");
_Static_assert(2 * TIME_CLASSES <= 32, "a bit for each slot");

struct record {
    struct time_box box;
    uint32_t step;
    uint8_t cls;
    bool write;
};
struct bucket {
    struct record *record;
    uint16_t count, capacity;
};
struct object {
    struct bucket *bucket;
    uint32_t buckets; /* a power of two */
    uint8_t shift;    /* log2 of the columns or rows of a bucket */
    bool by_rows, written;
    uint32_t read[TIME_CLASSES]; /* step + 1: last read while it was not written yet */
};
struct deps {
    const struct vtrn_prog *prog;
    const struct vtrn_place *place;
    int core;
    struct object sbuf, psum;
    struct object **hbm; /* by tensor, made when used */
    uint32_t *spill_at;  /* by tensor: address of one that found no room, behind all others; NULL while there is none */
    uint32_t spill_top;
    /* of the step that is being noted */
    uint32_t step;
    int cls;
    uint64_t dep[2 * TIME_CLASSES]; /* by class, then those of the stationary tile alone: step << 3 | kind, of those in `noted` */
    uint8_t noted[2 * TIME_CLASSES];
    uint32_t is_noted; /* bit by slot */
    int notes;
};

/* ---------------------------------------------------------------- life */
static bool make_object(struct object *object, uint32_t buckets, uint8_t shift, bool by_rows)
{
    *object = (struct object){ .bucket = calloc(buckets, sizeof *object->bucket), .buckets = buckets, .shift = shift, .by_rows = by_rows };
    return object->bucket != NULL;
}

static void free_object(struct object *object)
{
    for (uint32_t b = 0; object->bucket && b < object->buckets; b++) free(object->bucket[b].record);
    free(object->bucket);
}

struct deps *deps_create(const struct vtrn_prog *prog, const struct vtrn_place *place, int core)
{
    struct deps *deps = calloc(1, sizeof *deps);
    bool good;

    if (!deps) return NULL;
    *deps = (struct deps){ .prog = prog, .place = place, .core = core, .spill_top = UINT32_C(1) << 30 };
    good = make_object(&deps->sbuf, 128, SBUF_SHIFT, false);
    good = make_object(&deps->psum, 8, PSUM_SHIFT, false) && good;
    deps->sbuf.written = deps->psum.written = true;
    deps->hbm = calloc((size_t)prog->tensors + 1, sizeof *deps->hbm);
    if (good && deps->hbm) return deps;
    deps_destroy(deps);
    return NULL;
}

void deps_destroy(struct deps *deps)
{
    if (!deps) return;
    for (uint32_t t = 0; deps->hbm && t < deps->prog->tensors; t++) {
        if (!deps->hbm[t]) continue;
        free_object(deps->hbm[t]);
        free(deps->hbm[t]);
    }
    free(deps->hbm);
    free_object(&deps->sbuf);
    free_object(&deps->psum);
    free(deps->spill_at);
    free(deps);
}

/* ---------------------------------------------------------------- boxes */
static uint32_t clamp32(int64_t x) { return x < 0 ? 0 : x > UINT32_MAX ? UINT32_MAX : (uint32_t)x; }

/* A tensor without room: bytes of its own behind the physical ones. */
static bool spilled_byte(struct deps *deps, uint32_t t, uint32_t *byte_out)
{
    if (!deps->spill_at) deps->spill_at = calloc((size_t)deps->prog->tensors + 1, sizeof *deps->spill_at);
    if (!deps->spill_at) return false;
    if (!deps->spill_at[t]) {
        deps->spill_at[t] = deps->spill_top;
        deps->spill_top += (uint32_t)deps->prog->tensor[t].row_bytes;
    }
    *byte_out = deps->spill_at[t];
    return true;
}

static bool box_on_chip(struct deps *deps, const struct vtrn_ap *ap, bool whole, int64_t shift, struct time_box *box)
{
    const struct vtrn_tensor *t = &deps->prog->tensor[ap->tensor];
    const struct vtrn_spot *spot = &deps->place->spot[ap->tensor];
    int64_t low, high, size = vtrn_dtypes[ap->dtype].size_bytes, first = spot->partition + ap->part0;
    uint32_t byte = spot->byte;

    if (spot->kind == VTRN_SPOT_SPILLED && !spilled_byte(deps, ap->tensor, &byte)) return false;
    if (whole || !vtrn_ap_extent(ap, true, &low, &high)) {
        *box = (struct time_box){ spot->partition, spot->partition + t->partitions, byte, byte + (uint32_t)t->row_bytes };
        return true;
    }
    box->row = clamp32(first);
    box->rows_end = clamp32(first + ap->dim[0].stride * (ap->dim[0].count - 1) + 1);
    if (ap->dim[0].stride < 0) *box = (struct time_box){ 0, 128, 0, 0 };
    box->col = clamp32(byte + (low + shift) * size);
    box->cols_end = clamp32(byte + (high + shift + 1) * size);
    return true;
}

/* Rows of the tensor's innermost dimension; a pattern that does not fit them covers whole rows. */
static void box_in_hbm(const struct vtrn_tensor *t, const struct vtrn_ap *ap, bool whole, int64_t shift, struct time_box *box)
{
    int64_t size = vtrn_dtypes[ap->dtype].size_bytes, pitch = t->dim[t->rank - 1] * vtrn_dtypes[t->dtype].size_bytes;
    int64_t low, high, col = 0, at, end;

    if (whole || !vtrn_ap_extent(ap, false, &low, &high)) {
        *box = (struct time_box){ 0, clamp32(t->row_bytes / pitch + 1), 0, clamp32(pitch) };
        return;
    }
    at = (low + shift) * size;
    end = (high + shift + 1) * size;
    for (int d = 0; d < ap->ndim; d++) {
        int64_t stride = ap->dim[d].stride * size;

        if (stride < 0) stride = -stride;
        if (stride % pitch) col += stride * (ap->dim[d].count - 1);
    }
    *box = (struct time_box){ clamp32(at / pitch), clamp32((end - 1) / pitch + 1), 0, clamp32(pitch) };
    if (at % pitch + col + size > pitch) return;
    box->col = clamp32(at % pitch);
    box->cols_end = clamp32(at % pitch + col + size);
}

/* ---------------------------------------------------------------- records */
void deps_begin(struct deps *deps, uint32_t step, int cls)
{
    deps->step = step;
    deps->cls = cls;
    deps->is_noted = 0;
    deps->notes = 0;
}

static void note(struct deps *deps, uint32_t step, int cls, int kind, bool stationary)
{
    unsigned slot = (unsigned)cls + (stationary ? TIME_CLASSES : 0);
    uint64_t dep = (uint64_t)step << 3 | (unsigned)kind;

    if (step == deps->step) return;
    if (cls == deps->cls && cls < VTRN_STREAM_LOAD) { /* a compute engine and itself: see the head of this file */
        if (cls == VTRN_STREAM_TENSOR || kind == DEP_REUSE) return;
    }
    if (!(deps->is_noted >> slot & 1)) {
        deps->is_noted |= UINT32_C(1) << slot;
        deps->noted[deps->notes++] = (uint8_t)slot;
        deps->dep[slot] = dep;
    } else if (step > DEP_STEP(deps->dep[slot]) || (step == DEP_STEP(deps->dep[slot]) && kind == DEP_DATA)) {
        deps->dep[slot] = dep;
    }
}

void deps_on(struct deps *deps, uint32_t step, int cls, int kind) { note(deps, step, cls, kind, false); }

static bool meets(const struct time_box *a, const struct time_box *b)
{
    return a->col < b->cols_end && b->col < a->cols_end && a->row < b->rows_end && b->row < a->rows_end;
}

static bool covers(const struct time_box *a, const struct time_box *b)
{
    return a->col <= b->col && b->cols_end <= a->cols_end && a->row <= b->row && b->rows_end <= a->rows_end;
}

static void join(struct time_box *a, const struct time_box *b)
{
    if (b->row < a->row) a->row = b->row;
    if (b->rows_end > a->rows_end) a->rows_end = b->rows_end;
    if (b->col < a->col) a->col = b->col;
    if (b->cols_end > a->cols_end) a->cols_end = b->cols_end;
}

/* The step below which three quarters of the records are. */
static uint32_t upper_quarter(const struct bucket *bucket)
{
    uint32_t step[RECORDS_MAX];

    for (int i = 0; i < RECORDS_MAX; i++) {
        int at = i;

        for (; at > 0 && step[at - 1] > bucket->record[i].step; at--) step[at] = step[at - 1];
        step[at] = bucket->record[i].step;
    }
    return step[RECORDS_MAX * 3 / 4];
}

/* Melts the older three quarters of a full bucket: one record for each class and direction remains of them, which are fewer. */
static void melt(struct bucket *bucket)
{
    uint16_t left[TIME_CLASSES][2];
    uint32_t middle = upper_quarter(bucket);
    uint16_t kept = 0;

    memset(left, 0xff, sizeof left);
    for (uint16_t i = 0; i < bucket->count; i++) {
        struct record record = bucket->record[i];
        uint16_t *old = &left[record.cls][record.write];

        if (record.step <= middle && *old != UINT16_MAX) {
            struct record *into = &bucket->record[*old];

            join(&into->box, &record.box);
            if (record.step > into->step) into->step = record.step;
            continue;
        }
        if (record.step <= middle) *old = kept;
        bucket->record[kept++] = record;
    }
    bucket->count = kept;
}

static enum vtrn_status append(struct bucket *bucket, const struct record *record)
{
    if (bucket->count == RECORDS_MAX) melt(bucket);
    if (bucket->count == bucket->capacity) {
        uint16_t capacity = bucket->capacity ? bucket->capacity * 2 : 4;
        struct record *grown = realloc(bucket->record, capacity * sizeof *grown);

        if (!grown) return VTRN_NOMEM;
        bucket->record = grown;
        bucket->capacity = capacity;
    }
    bucket->record[bucket->count++] = *record;
    return VTRN_OK;
}

static enum vtrn_status touch(struct deps *deps, struct bucket *bucket, const struct record *now, int access, bool stationary)
{
    bool reads = access & VTRN_READ, stored = false;

    for (uint16_t i = 0; i < bucket->count;) {
        struct record *old = &bucket->record[i];

        if (!meets(&old->box, &now->box)) {
            i++;
            continue;
        }
        if (now->write || old->write) note(deps, old->step, old->cls, reads && old->write ? DEP_DATA : DEP_REUSE, stationary);
        if (!(now->write || (!old->write && old->cls == now->cls)) || !covers(&now->box, &old->box)) {
            i++;
        } else if (!stored) { /* the new record takes the place of the first that it covers */
            *old = *now;
            stored = true;
            i++;
        } else {
            *old = bucket->record[--bucket->count];
        }
    }
    return stored ? VTRN_OK : append(bucket, now);
}

static enum vtrn_status touch_object(struct deps *deps, struct object *object, const struct time_box *box, int access, bool stationary)
{
    uint32_t low = (object->by_rows ? box->row : box->col) >> object->shift;
    uint32_t high = ((object->by_rows ? box->rows_end : box->cols_end) - 1) >> object->shift;
    struct record record = { .step = deps->step, .cls = (uint8_t)deps->cls, .write = (access & VTRN_WRITE) != 0 };

    if (high < low) return VTRN_OK;
    for (uint64_t b = low; b <= high; b++) {
        uint64_t first = b << object->shift, end = (b + 1) << object->shift;

        record.box = *box;
        if (high - low >= object->buckets) { /* more than all: each bucket once, unclipped */
            if (b - low == object->buckets) break;
        } else if (object->by_rows) {
            if (record.box.row < first) record.box.row = (uint32_t)first;
            if (record.box.rows_end > end) record.box.rows_end = (uint32_t)end;
        } else {
            if (record.box.col < first) record.box.col = (uint32_t)first;
            if (record.box.cols_end > end) record.box.cols_end = (uint32_t)end;
        }
        VTRN_TRY(touch(deps, &object->bucket[b & (object->buckets - 1)], &record, access, stationary));
    }
    return VTRN_OK;
}

/* Most HBM tensors are inputs: as long as nobody writes one, the last reader of each class is all that matters. */
static enum vtrn_status touch_hbm(struct deps *deps, uint32_t t, const struct time_box *box, int access)
{
    struct object *object = deps->hbm[t];

    if (!object) {
        object = deps->hbm[t] = calloc(1, sizeof *object);
        if (!object) return VTRN_NOMEM;
    }
    for (int c = 0; c < TIME_CLASSES && (access & VTRN_WRITE); c++)
        if (object->read[c]) note(deps, object->read[c] - 1, c, DEP_REUSE, false);
    if (!object->written && !(access & VTRN_WRITE)) {
        object->read[deps->cls] = deps->step + 1;
        return VTRN_OK;
    }
    if (!object->bucket) {
        struct object made;

        if (!make_object(&made, HBM_BUCKETS, HBM_SHIFT, true)) return VTRN_NOMEM;
        memcpy(made.read, object->read, sizeof made.read);
        *object = made;
        object->written = true;
    }
    return touch_object(deps, object, box, access, false);
}

enum vtrn_status deps_access(struct deps *deps, const struct vtrn_ap *ap, int access, bool whole, int64_t shift, bool stationary)
{
    const struct vtrn_tensor *t = &deps->prog->tensor[ap->tensor];
    struct time_box box;

    if (!vtrn_space_on_chip(t->space)) {
        box_in_hbm(t, ap, whole, shift, &box);
        return touch_hbm(deps, ap->tensor, &box, access);
    }
    if (!box_on_chip(deps, ap, whole, shift, &box)) return VTRN_NOMEM;
    return touch_object(deps, t->space == VTRN_PSUM ? &deps->psum : &deps->sbuf, &box, access, stationary);
}

enum vtrn_status deps_end(struct deps *deps, struct vtrn_buf *out)
{
    uint64_t list[2 * TIME_CLASSES];
    size_t count = 0;

    for (int i = 0; i < deps->notes; i++) {
        unsigned slot = deps->noted[i], all = slot - TIME_CLASSES;
        uint64_t dep = deps->dep[slot];

        if (slot < TIME_CLASSES) list[count++] = dep;
        else if (!(deps->is_noted >> all & 1) || DEP_STEP(dep) > DEP_STEP(deps->dep[all]))
            list[count++] = (dep & ~UINT64_C(7)) | DEP_STATIONARY;
    }
    return count ? vtrn_buf_append(out, list, count * sizeof list[0]) : VTRN_OK;
}
