/* Growable byte buffer and the int64 helpers of checked arithmetic. A buffer grows by half, so appending n bytes costs
 * O(n) whatever the pieces are. On failure nothing has changed. Must not know what the bytes mean. */
#include "base/base.h"

bool vtrn_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    if (a == 0 || b == 0) {
        *out = 0;
        return true;
    }
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a) : (b > 0 ? a < INT64_MIN / b : b < INT64_MAX / a)) return false;
    *out = a * b;
    return true;
}

bool vtrn_add_i64(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
    *out = a + b;
    return true;
}

enum vtrn_status vtrn_buf_reserve(struct vtrn_buf *buf, size_t extra_bytes)
{
    size_t need, capacity = buf->capacity;
    uint8_t *data;

    if (!vtrn_add_size(buf->size, extra_bytes, &need)) return VTRN_NOMEM;
    if (need <= capacity) return VTRN_OK;
    if (capacity < 64) capacity = 64;
    while (capacity < need)
        if (!vtrn_add_size(capacity, capacity / 2, &capacity)) capacity = need;
    data = realloc(buf->data, capacity);
    if (!data) return VTRN_NOMEM;
    buf->data = data;
    buf->capacity = capacity;
    return VTRN_OK;
}

enum vtrn_status vtrn_buf_append(struct vtrn_buf *buf, const void *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return VTRN_OK;
    VTRN_TRY(vtrn_buf_reserve(buf, size_bytes));
    memcpy(buf->data + buf->size, bytes, size_bytes);
    buf->size += size_bytes;
    return VTRN_OK;
}

/* Leaves a terminating zero behind the text that size does not count, so that `data` prints as a string. */
enum vtrn_status vtrn_buf_printf(struct vtrn_buf *buf, const char *fmt, ...)
{
    va_list args, again;
    int length;

    VTRN_TRY(vtrn_buf_reserve(buf, 128));
    va_start(args, fmt);
    va_copy(again, args);
    length = vsnprintf((char *)buf->data + buf->size, buf->capacity - buf->size, fmt, args);
    va_end(args);
    if (length >= 0 && (size_t)length >= buf->capacity - buf->size) {
        if (vtrn_buf_reserve(buf, (size_t)length + 1) < 0) {
            va_end(again);
            return VTRN_NOMEM;
        }
        length = vsnprintf((char *)buf->data + buf->size, buf->capacity - buf->size, fmt, again);
    }
    va_end(again);
    if (length < 0) return VTRN_INVALID;
    buf->size += (size_t)length;
    return VTRN_OK;
}

void vtrn_buf_fini(struct vtrn_buf *buf)
{
    free(buf->data);
    *buf = (struct vtrn_buf){ 0 };
}
