/* .npy files (NumPy's format versions 1 to 3), read against a tensor that says what must be in them, so nothing a file
 * claims is trusted: sizes come from the tensor. Types that NumPy itself does not know (bfloat16, fp8, MX) are stored as
 * ml_dtypes and NumPy store them: as raw bytes of that size. Source: the format's description in numpy.lib.format. */
#include <ctype.h>
#include <errno.h>

#include "cli/cli.h"

enum { NPY_FIXED = 12 /* magic, version, the longest length field */, NPY_HEADER_MAX = 65536, NPY_ALIGN = 64 };
static const uint8_t npy_magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

/* ---------------------------------------------------------------- types */
static const struct {
    const char *dtype, *descr;
} npy_types[] = {
    { "float32", "<f4" }, { "tfloat32", "<f4" }, { "float16", "<f2" }, { "int8", "|i1" },   { "int16", "<i2" },
    { "int32", "<i4" },   { "uint8", "|u1" },    { "uint16", "<u2" },  { "uint32", "<u4" }, { "bool_", "|b1" },
};

/* What a file of this tensor says in 'descr'; `out` holds 16 bytes. */
static void descr_of(const struct vtrn_tensor_info *info, char *out)
{
    for (size_t i = 0; i < sizeof npy_types / sizeof npy_types[0]; i++)
        if (strcmp(npy_types[i].dtype, info->dtype) == 0) {
            strcpy(out, npy_types[i].descr);
            return;
        }
    snprintf(out, 16, "|V%zu", info->element_bytes);
}

/* A byte order mark may be anything for one byte; "<f1" is how NumPy stores float8_e5m2. */
static bool descr_fits(const char *descr, const struct vtrn_tensor_info *info)
{
    char want[16], digits[8];

    descr_of(info, want);
    snprintf(digits, sizeof digits, "%zu", info->element_bytes);
    if (!descr[0] || !strchr("<|=", descr[0]) || (descr[0] == '|' && info->element_bytes > 1 && descr[1] != 'V')) return false;
    if (strcmp(descr + 1, want + 1) == 0) return true;
    return want[1] == 'V' && strcmp(descr + 2, digits) == 0 && (descr[1] == 'u' || (descr[1] == 'f' && info->element_bytes == 1));
}

/* ---------------------------------------------------------------- header */
struct npy_header {
    char descr[32];
    bool fortran;
    int rank; /* -1: not seen */
    int64_t dim[VTRN_RANK_MAX];
};
struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n')) c->at++;
}

static bool take(struct cursor *c, char expected)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != expected) return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static bool take_string(struct cursor *c, char *out, size_t size)
{
    size_t n = 0;
    char quote;

    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    quote = *c->at++;
    while (c->at < c->end && *c->at != quote) {
        if (n + 1 == size || *c->at == '\\') return false;
        out[n++] = *c->at++;
    }
    out[n] = 0;
    return take(c, quote);
}

static bool take_number(struct cursor *c, int64_t *out)
{
    int64_t value = 0;

    skip_blanks(c);
    if (c->at == c->end || !isdigit((unsigned char)*c->at)) return false;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        if (!vtrn_mul_i64(value, 10, &value) || !vtrn_add_i64(value, *c->at - '0', &value)) return false;
    (void)take(c, 'L'); /* Python 2 wrote long integers so */
    *out = value;
    return true;
}

static bool take_shape(struct cursor *c, struct npy_header *header)
{
    if (!take(c, '(')) return false;
    header->rank = 0;
    while (!take(c, ')')) {
        if (header->rank == VTRN_RANK_MAX || !take_number(c, &header->dim[header->rank])) return false;
        header->rank++;
        if (!take(c, ',')) return take(c, ')');
    }
    return true;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
static bool parse_dict(struct cursor *c, struct npy_header *header)
{
    *header = (struct npy_header){ .rank = -1 };
    if (!take(c, '{')) return false;
    while (!take(c, '}')) {
        char key[24];

        if (!take_string(c, key, sizeof key) || !take(c, ':')) return false;
        if (strcmp(key, "descr") == 0) {
            if (!take_string(c, header->descr, sizeof header->descr)) return false; /* a structured dtype is a list */
        } else if (strcmp(key, "fortran_order") == 0) {
            header->fortran = take_word(c, "True");
            if (!header->fortran && !take_word(c, "False")) return false;
        } else if (strcmp(key, "shape") != 0 || !take_shape(c, header)) {
            return false;
        }
        if (!take(c, ',')) return take(c, '}') && header->rank >= 0 && header->descr[0];
    }
    return header->rank >= 0 && header->descr[0];
}

/* Start of the dictionary and of the data, from the fixed part; false: not a .npy file. */
static bool locate(const uint8_t *bytes, size_t size, size_t *dict_out, size_t *data_out)
{
    size_t length;

    if (size < NPY_FIXED || memcmp(bytes, npy_magic, sizeof npy_magic) != 0 || bytes[6] < 1 || bytes[6] > 3) return false;
    *dict_out = bytes[6] == 1 ? 10 : 12;
    length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > NPY_HEADER_MAX) return false;
    *data_out = *dict_out + length;
    return true;
}

static void shape_of(int rank, const int64_t *dim, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "(");

    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, i ? ", %lld" : "%lld", (long long)dim[i]);
    if (at < size) snprintf(out + at, size - at, rank == 1 ? ",)" : ")");
}

static enum vtrn_status check(const struct npy_header *header, const struct vtrn_tensor_info *want, struct vtrn_error *err)
{
    char is[192], wanted[192], descr[16];
    bool same = header->rank == want->rank;

    descr_of(want, descr);
    VTRN_FAIL_IF(!descr_fits(header->descr, want), err, VTRN_INVALID, "the array's dtype is '%s'; the input is %s ('%s'): convert it",
                 header->descr, want->dtype, descr);
    for (int i = 0; same && i < want->rank; i++) same = header->dim[i] == want->dim[i];
    if (!same) {
        shape_of(header->rank, header->dim, is, sizeof is);
        shape_of(want->rank, want->dim, wanted, sizeof wanted);
        return vtrn_fail(err, VTRN_INVALID, "the array's shape is %s; the input is %s", is, wanted);
    }
    VTRN_FAIL_IF(header->fortran && want->rank > 1, err, VTRN_INVALID,
                 "the array is stored column by column; save np.ascontiguousarray of it");
    return VTRN_OK;
}

/* ---------------------------------------------------------------- reading */
enum vtrn_status cli_npy_parse(const uint8_t *bytes, size_t size, const struct vtrn_tensor_info *want, const uint8_t **data_out,
                               struct vtrn_error *err)
{
    struct npy_header header;
    struct cursor c;
    size_t dict, data;

    VTRN_FAIL_IF(!locate(bytes, size, &dict, &data), err, VTRN_FORMAT, "not a .npy file");
    VTRN_FAIL_IF(data > size, err, VTRN_FORMAT, "the .npy header is cut short");
    c = (struct cursor){ (const char *)bytes + dict, (const char *)bytes + data };
    VTRN_FAIL_IF(!parse_dict(&c, &header), err, VTRN_FORMAT,
                 "the .npy header is not a plain array's: it must have descr, fortran_order and shape");
    VTRN_TRY(check(&header, want, err));
    VTRN_FAIL_IF(size - data != want->size_bytes, err, VTRN_FORMAT, "the .npy file holds %zu bytes of data; its shape needs %zu",
                 size - data, want->size_bytes);
    *data_out = bytes + data;
    return VTRN_OK;
}

/* The data of a file whose header is right; one byte more is asked for, to see that there is none. */
static enum vtrn_status read_data(FILE *file, const struct vtrn_tensor_info *want, void **bytes_out, struct vtrn_error *err)
{
    uint8_t *bytes = malloc(want->size_bytes ? want->size_bytes : 1);
    size_t got;

    VTRN_FAIL_IF(!bytes, err, VTRN_NOMEM, "no memory for %zu bytes", want->size_bytes);
    got = fread(bytes, 1, want->size_bytes, file);
    if (got == want->size_bytes && fgetc(file) == EOF && !ferror(file)) {
        *bytes_out = bytes;
        return VTRN_OK;
    }
    free(bytes);
    VTRN_FAIL_IF(ferror(file), err, VTRN_IO, "%s", strerror(errno));
    return vtrn_fail(err, VTRN_FORMAT, "the .npy file holds %s data than its shape needs (%zu bytes)",
                     got < want->size_bytes ? "less" : "more", want->size_bytes);
}

static enum vtrn_status read_npy(FILE *file, const struct vtrn_tensor_info *want, void **bytes_out, struct vtrn_error *err)
{
    static const size_t fixed = NPY_FIXED;
    uint8_t *head = malloc(NPY_FIXED + NPY_HEADER_MAX);
    struct npy_header header;
    struct cursor c;
    size_t size, dict = 0, data = 0;
    enum vtrn_status status;

    VTRN_FAIL_IF(!head, err, VTRN_NOMEM, "no memory for a header");
    size = fread(head, 1, fixed, file);
    if (!locate(head, size, &dict, &data)) status = vtrn_fail(err, VTRN_FORMAT, "not a .npy file");
    else if (data < fixed || fread(head + fixed, 1, data - fixed, file) != data - fixed)
        status = vtrn_fail(err, VTRN_FORMAT, "the .npy header is cut short");
    else {
        c = (struct cursor){ (const char *)head + dict, (const char *)head + data };
        if (parse_dict(&c, &header)) status = check(&header, want, err);
        else
            status = vtrn_fail(err, VTRN_FORMAT,
                               "the .npy header is not a plain array's: it must have descr, fortran_order and shape");
    }
    free(head);
    return status < 0 ? status : read_data(file, want, bytes_out, err);
}

enum vtrn_status cli_npy_read(const char *path, const struct vtrn_tensor_info *want, void **bytes_out, struct vtrn_error *err)
{
    FILE *file = fopen(path, "rb");
    enum vtrn_status status;

    VTRN_FAIL_IF(!file, err, VTRN_IO, "%s: %s", path, strerror(errno));
    status = read_npy(file, want, bytes_out, err);
    fclose(file);
    if (status < 0) vtrn_error_prefix(err, "%s", path);
    return status;
}

/* ---------------------------------------------------------------- writing */
enum vtrn_status cli_npy_write(const char *path, const struct vtrn_tensor_info *info, const void *bytes, struct vtrn_error *err)
{
    char descr[16], shape[192], dict[320];
    FILE *file = fopen(path, "wb");
    int length, padded;
    bool good;

    VTRN_FAIL_IF(!file, err, VTRN_IO, "%s: %s", path, strerror(errno));
    descr_of(info, descr);
    shape_of(info->rank, info->dim, shape, sizeof shape);
    length = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    padded = (10 + length + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN - 10; /* with the line feed at its end */
    good = fwrite(npy_magic, 1, sizeof npy_magic, file) == sizeof npy_magic && fputc(1, file) != EOF && fputc(0, file) != EOF &&
           fputc(padded & 0xff, file) != EOF && fputc(padded >> 8, file) != EOF &&
           fprintf(file, "%s%*s\n", dict, padded - length - 1, "") == padded &&
           fwrite(bytes, 1, info->size_bytes, file) == info->size_bytes;
    if (fclose(file) == EOF) good = false;
    VTRN_FAIL_IF(!good, err, VTRN_IO, "%s: %s", path, strerror(errno));
    return VTRN_OK;
}
