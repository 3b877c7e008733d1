/* What the tensor engine has written of a PSUM tensor since it was declared.
 *
 * nc_matmul(accumulate=None) overwrites what no product has written yet and adds to the rest, location by location
 * (nki.isa.nc_matmul, "Accumulation mode"). Nearly every tensor is written whole by its first product, so the state of the
 * whole tensor is kept beside the bits, and the bits are touched only while part of it is written.
 * A bit stands for two bytes, the narrowest element that the tensor engine accumulates (bfloat16). */
#include "mem/mem.h"

enum { BYTES_PER_WORD = 128 };

/* Bits of columns [low, high) bytes that lie in word w. */
static uint64_t word_mask(size_t w, size_t low, size_t high)
{
    size_t first = w * BYTES_PER_WORD, last = first + BYTES_PER_WORD;
    size_t from = low > first ? (low - first) / 2 : 0, to = high < last ? (high - first + 1) / 2 : 64;

    return (to == 64 ? ~UINT64_C(0) : (UINT64_C(1) << to) - 1) & ~UINT64_C(0) << from;
}

enum vtrn_written vtrn_store_written(const struct vtrn_store *store, int64_t p0, int64_t parts, size_t low, size_t high)
{
    if (store->written_state != VTRN_WRITTEN_SOME || low >= high) return (enum vtrn_written)store->written_state;
    size_t first = low / BYTES_PER_WORD, last = (high - 1) / BYTES_PER_WORD;
    uint64_t any = 0, missing = 0;

    for (int64_t p = p0; p < p0 + parts; p++) {
        const uint64_t *row = store->written + (size_t)p * store->written_words;

        for (size_t w = first; w <= last; w++) {
            uint64_t mask = w > first && w < last ? ~UINT64_C(0) : word_mask(w, low, high);

            any |= row[w] & mask;
            missing |= ~row[w] & mask;
        }
    }
    return !missing ? VTRN_WRITTEN_ALL : any ? VTRN_WRITTEN_SOME : VTRN_WRITTEN_NONE;
}

void vtrn_store_mark(struct vtrn_store *store, int64_t p0, int64_t parts, size_t low, size_t high)
{
    if (store->written_state == VTRN_WRITTEN_ALL || low >= high) return;
    if (p0 == 0 && parts == store->partitions && low == 0 && high >= store->row_bytes) {
        store->written_state = VTRN_WRITTEN_ALL;
        return;
    }
    if (store->written_state == VTRN_WRITTEN_NONE) {
        memset(store->written, 0, (size_t)store->partitions * store->written_words * sizeof *store->written);
        store->written_state = VTRN_WRITTEN_SOME;
    }
    for (int64_t p = p0; p < p0 + parts; p++) {
        uint64_t *row = store->written + (size_t)p * store->written_words;

        for (size_t w = low / BYTES_PER_WORD; w <= (high - 1) / BYTES_PER_WORD; w++) row[w] |= word_mask(w, low, high);
    }
}
