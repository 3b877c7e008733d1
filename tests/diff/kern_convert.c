/* A filter for dtypes_against_ml_dtypes.py: converts standard input by kern's slots and writes standard output.
 *
 *   kern_convert load DTYPE < elements > fp32        kern_convert store DTYPE < fp32 > elements
 *   kern_convert mx DTYPE < packed > fp32            kern_convert mx_store DTYPE < fp32, lane after lane > packed */
#include "kern/kern.h"

static bool read_all(struct vtrn_buf *in)
{
    uint8_t chunk[65536];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        if (vtrn_buf_append(in, chunk, got) < 0) return false;
    return true;
}

int main(int argc, char **argv)
{
    struct vtrn_buf in = { 0 };
    enum vtrn_dtype dtype = argc == 3 ? vtrn_dtype_by_text(argv[2], strlen(argv[2])) : VTRN_DT_NONE;
    if (dtype == VTRN_DT_NONE || !read_all(&in)) {
        fprintf(stderr, "usage: kern_convert load|store|mx|mx_store DTYPE\n");
        return 2;
    }
    const size_t size = vtrn_dtypes[dtype].size_bytes, lanes = vtrn_dtypes[dtype].lanes;
    const bool out_of_f32 = strcmp(argv[1], "store") == 0 || strcmp(argv[1], "mx_store") == 0;
    const size_t n = in.size / (out_of_f32 ? 4 * lanes : size), out_bytes = n * (out_of_f32 ? size : 4 * lanes);
    uint8_t *out = calloc(out_bytes + 1, 1);
    if (out == NULL) return 1;
    if (strcmp(argv[1], "load") == 0) {
        vtrn_kern_best()->load[dtype]((float *)(void *)out, in.data, n);
    } else if (strcmp(argv[1], "store") == 0) {
        vtrn_kern_best()->store[dtype](out, (const float *)(const void *)in.data, n);
    } else {
        for (size_t i = 0; i < n * lanes; i++) {
            float *value = (float *)(void *)(out_of_f32 ? in.data : out) + i;
            uint8_t *element = (out_of_f32 ? out : in.data) + i / lanes * size;
            if (out_of_f32) vtrn_mx_from_f32(dtype, *value, (int)(i % lanes), element);
            else *value = vtrn_mx_to_f32(dtype, element, (int)(i % lanes));
        }
    }
    fwrite(out, 1, out_bytes, stdout);
    free(out);
    vtrn_buf_fini(&in);
    return 0;
}
