/* Files as commands name them: programs in either form, and whole files. */
#include <errno.h>

#include "cli/cli.h"

static const uint8_t program_magic[4] = { 0x89, 'V', 'T', 'R' }; /* no text file starts so */

enum vtrn_status cli_read_file(const char *path, uint8_t **bytes_out, size_t *size_out, struct vtrn_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    struct vtrn_buf buf = { 0 };
    enum vtrn_status status = VTRN_OK;
    char block[16384];
    size_t n;

    VTRN_FAIL_IF(!file, err, VTRN_IO, "%s: %s", path, strerror(errno));
    while ((n = fread(block, 1, sizeof block, file)) > 0 && (status = vtrn_buf_append(&buf, block, n)) >= 0) {}
    if (ferror(file)) status = vtrn_fail(err, VTRN_IO, "%s: %s", path, strerror(errno));
    else if (status < 0 || (status = vtrn_buf_append(&buf, "", 1)) < 0) vtrn_fail(err, status, "%s: no memory for the file", path);
    if (!is_stdin) fclose(file);
    if (status < 0) {
        vtrn_buf_fini(&buf);
        return status;
    }
    *bytes_out = buf.data;
    *size_out = buf.size - 1;
    return VTRN_OK;
}

bool cli_is_program(const char *path)
{
    size_t length = strlen(path);
    uint8_t start[4];
    FILE *file;
    bool is;

    if (length > 3 && strcmp(path + length - 3, ".vt") == 0) return true;
    file = fopen(path, "rb");
    if (!file) return length > 5 && strcmp(path + length - 5, ".vtrn") == 0; /* reading it will say why it cannot */
    is = fread(start, 1, sizeof start, file) == sizeof start && memcmp(start, program_magic, sizeof start) == 0;
    fclose(file);
    return is || (length > 5 && strcmp(path + length - 5, ".vtrn") == 0);
}

enum vtrn_status cli_load(const char *path, struct vtrn_program **program_out, struct vtrn_error *err)
{
    enum vtrn_status status;
    size_t size, length = strlen(path);
    uint8_t *bytes;

    VTRN_TRY(cli_read_file(path, &bytes, &size, err));
    /* A .vtrn file that does not start like one is damaged, not assembly: let the loader say so. */
    if ((size >= sizeof program_magic && memcmp(bytes, program_magic, sizeof program_magic) == 0) ||
        (length > 5 && strcmp(path + length - 5, ".vtrn") == 0))
        status = vtrn_program_load(bytes, size, program_out, err);
    else
        status = vtrn_program_parse((const char *)bytes, size, program_out, err);
    free(bytes);
    if (status < 0) vtrn_error_prefix(err, "%s", path);
    return status;
}

void cli_shape_text(const struct vtrn_tensor_info *info, char *out)
{
    size_t at = 0;

    strcpy(out, "1");
    for (int i = 0; i < info->rank; i++)
        at += (size_t)snprintf(out + at, 192 - at, "%s%lld", i ? "x" : "", (long long)info->dim[i]);
}

const char *cli_role(const struct vtrn_tensor_info *info)
{
    if (info->kind == VTRN_TENSOR_OUTPUT) return "output";
    return info->written ? "in-out" : "input";
}
