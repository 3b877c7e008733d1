/* Writing programs: to bytes (vtrn_prog_save) and to files, and reading whole files into memory. file_int.h has the
 * layout, load.c the other direction. Must not know what instructions mean: code is copied as it is. */
#include "prog/file_int.h"

#include <errno.h>

struct writer {
    struct vtrn_buf *out;
    size_t start; /* of the file in `out` */
    uint32_t sections;
    size_t entry; /* offset in `out` of the current section's table entry */
    size_t section_start;
};

static enum vtrn_status put32(struct writer *w, uint32_t value)
{
    uint8_t bytes[4];

    file_put32(bytes, value);
    return vtrn_buf_append(w->out, bytes, sizeof bytes);
}

static enum vtrn_status pad_to(struct writer *w, size_t align, size_t from)
{
    static const uint8_t zeros[FILE_DATA_ALIGN];

    return vtrn_buf_append(w->out, zeros, (align - (w->out->size - from) % align) % align);
}

/* ---------------------------------------------------------------- sections */
static enum vtrn_status section_begin(struct writer *w, uint32_t kind, uint32_t core)
{
    uint8_t *entry;

    VTRN_TRY(pad_to(w, 8, w->start));
    w->entry = w->start + FILE_HEADER_BYTES + (size_t)w->sections++ * FILE_ENTRY_BYTES;
    w->section_start = w->out->size;
    entry = w->out->data + w->entry;
    file_put32(entry, kind);
    file_put32(entry + 4, core);
    file_put64(entry + 8, w->out->size - w->start);
    return VTRN_OK;
}

static void section_end(struct writer *w)
{
    uint8_t *entry = w->out->data + w->entry;
    size_t size = w->out->size - w->section_start;

    file_put64(entry + 16, size);
    file_put64(entry + 24, vtrn_hash_bytes(w->out->data + w->section_start, size, 0));
}

static enum vtrn_status write_target(struct writer *w, const struct vtrn_prog *prog, uint32_t chip)
{
    VTRN_TRY(section_begin(w, FILE_TARGET, 0));
    VTRN_TRY(put32(w, (uint32_t)prog->cores));
    VTRN_TRY(put32(w, prog->replayable ? FILE_FLAG_REPLAYABLE : 0));
    VTRN_TRY(put32(w, prog->name));
    VTRN_TRY(put32(w, chip));
    VTRN_TRY(put32(w, prog->registers));
    VTRN_TRY(put32(w, 0));
    section_end(w);
    return VTRN_OK;
}

/* The chip's name is one more string when no string of the program is equal to it. */
static enum vtrn_status write_strings(struct writer *w, const struct vtrn_prog *prog, bool chip_follows)
{
    uint32_t count = prog->strings + chip_follows;

    VTRN_TRY(section_begin(w, FILE_STRINGS, 0));
    VTRN_TRY(put32(w, count));
    VTRN_TRY(put32(w, 0));
    for (uint32_t i = 0; i < prog->strings; i++) VTRN_TRY(put32(w, (uint32_t)strlen(vtrn_prog_text(prog, i))));
    if (chip_follows) VTRN_TRY(put32(w, (uint32_t)strlen(prog->arch->chip)));
    for (uint32_t i = 0; i < prog->strings; i++) {
        const char *text = vtrn_prog_text(prog, i);

        VTRN_TRY(vtrn_buf_append(w->out, text, strlen(text)));
    }
    if (chip_follows) VTRN_TRY(vtrn_buf_append(w->out, prog->arch->chip, strlen(prog->arch->chip)));
    section_end(w);
    return VTRN_OK;
}

static enum vtrn_status write_locs(struct writer *w, const struct vtrn_prog *prog)
{
    VTRN_TRY(section_begin(w, FILE_LOCS, 0));
    VTRN_TRY(put32(w, prog->locs));
    VTRN_TRY(put32(w, 0));
    for (uint32_t i = 0; i < prog->locs; i++) {
        VTRN_TRY(put32(w, prog->loc[i].file));
        VTRN_TRY(put32(w, prog->loc[i].line));
    }
    section_end(w);
    return VTRN_OK;
}

static enum vtrn_status write_tensors(struct writer *w, const struct vtrn_prog *prog)
{
    uint64_t data_end = 0;

    VTRN_TRY(section_begin(w, FILE_TENSORS, 0));
    VTRN_TRY(put32(w, prog->tensors));
    VTRN_TRY(put32(w, 0));
    for (uint32_t i = 0; i < prog->tensors; i++) {
        const struct vtrn_tensor *t = &prog->tensor[i];
        uint8_t record[FILE_TENSOR_BYTES] = { t->space,
                                              t->dtype,
                                              t->rank,
                                              t->role,
                                              t->core,
                                              t->has_address,
                                              (uint8_t)t->addr_partition,
                                              (uint8_t)(t->addr_partition >> 8) };

        file_put32(record + 8, t->addr_byte);
        file_put32(record + 12, t->name);
        file_put32(record + 16, t->loc);
        file_put32(record + 20, t->born);
        for (int d = 0; d < VTRN_TENSOR_RANK; d++) file_put64(record + 24 + 8 * d, d < t->rank ? (uint64_t)t->dim[d] : 0);
        file_put64(record + 88, t->data ? file_align_data(data_end) : FILE_NO_DATA);
        if (t->data) data_end = file_align_data(data_end) + (uint64_t)t->row_bytes;
        VTRN_TRY(vtrn_buf_append(w->out, record, sizeof record));
    }
    section_end(w);
    return VTRN_OK;
}

static enum vtrn_status write_core(struct writer *w, const struct vtrn_code *code, uint32_t core)
{
    VTRN_TRY(section_begin(w, FILE_CODE, core));
    VTRN_TRY(put32(w, code->count));
    VTRN_TRY(put32(w, (uint32_t)(code->words.size / sizeof(uint32_t))));
    VTRN_TRY(vtrn_buf_append(w->out, code->words.data, code->words.size)); /* little-endian hosts: see isa/code.c */
    section_end(w);
    VTRN_TRY(section_begin(w, FILE_EDGES, core));
    VTRN_TRY(put32(w, code->edges));
    VTRN_TRY(put32(w, 0));
    for (uint32_t i = 0; i < code->edges; i++) {
        VTRN_TRY(put32(w, code->edge[i].consumer));
        VTRN_TRY(put32(w, code->edge[i].producer));
    }
    section_end(w);
    return VTRN_OK;
}

static enum vtrn_status write_data(struct writer *w, const struct vtrn_prog *prog)
{
    VTRN_TRY(section_begin(w, FILE_DATA, 0));
    for (uint32_t i = 0; i < prog->tensors; i++) {
        if (!prog->tensor[i].data) continue;
        VTRN_TRY(pad_to(w, FILE_DATA_ALIGN, w->section_start));
        VTRN_TRY(vtrn_buf_append(w->out, prog->tensor[i].data, (size_t)prog->tensor[i].row_bytes));
    }
    section_end(w);
    return VTRN_OK;
}

static enum vtrn_status write_sections(struct writer *w, const struct vtrn_prog *prog)
{
    uint32_t chip = prog->strings;
    bool known = prog_string_find(prog, prog->arch->chip, strlen(prog->arch->chip), &chip);

    VTRN_TRY(write_target(w, prog, chip));
    VTRN_TRY(write_strings(w, prog, !known));
    VTRN_TRY(write_locs(w, prog));
    VTRN_TRY(write_tensors(w, prog));
    for (int core = 0; core < prog->cores; core++) VTRN_TRY(write_core(w, &prog->code[core], (uint32_t)core));
    return write_data(w, prog);
}

enum vtrn_status vtrn_prog_save(const struct vtrn_prog *prog, struct vtrn_buf *out, struct vtrn_error *err)
{
    uint32_t sections = FILE_DATA + 2 * (uint32_t)(prog->cores - 1);
    size_t table_bytes = (size_t)sections * FILE_ENTRY_BYTES, head_bytes = FILE_HEADER_BYTES + table_bytes;
    struct writer w = { .out = out, .start = out->size };
    uint8_t *header;

    VTRN_TRY(prog_check_closed(prog, err));
    if (vtrn_buf_reserve(out, head_bytes) < 0) goto no_memory;
    memset(out->data + out->size, 0, head_bytes);
    out->size += head_bytes;
    if (write_sections(&w, prog) < 0) goto no_memory;
    header = out->data + w.start;
    memcpy(header, file_magic, sizeof file_magic);
    file_put32(header + 8, FILE_VERSION);
    file_put32(header + 12, sections);
    file_put64(header + 16, out->size - w.start);
    file_put64(header + 24, vtrn_hash_bytes(header + FILE_HEADER_BYTES, table_bytes, 0));
    return VTRN_OK;

no_memory:
    out->size = w.start;
    return vtrn_fail(err, VTRN_NOMEM, "no memory to save the program");
}

/* ---------------------------------------------------------------- files */
enum vtrn_status vtrn_prog_save_file(const struct vtrn_prog *prog, const char *path, struct vtrn_error *err)
{
    struct vtrn_buf bytes = { 0 };
    enum vtrn_status status = vtrn_prog_save(prog, &bytes, err);
    FILE *file = NULL;

    if (status >= 0 && !(file = fopen(path, "wb")))
        status = vtrn_fail(err, VTRN_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (file && fwrite(bytes.data, 1, bytes.size, file) != bytes.size)
        status = vtrn_fail(err, VTRN_IO, "%s: writing failed: %s", path, strerror(errno));
    if (file && fclose(file) != 0 && status >= 0) status = vtrn_fail(err, VTRN_IO, "%s: writing failed: %s", path, strerror(errno));
    vtrn_buf_fini(&bytes);
    return status;
}

static enum vtrn_status read_all(FILE *file, const char *path, struct vtrn_buf *out, struct vtrn_error *err)
{
    size_t got;

    do {
        if (vtrn_buf_reserve(out, 1 << 16) < 0) return vtrn_fail(err, VTRN_NOMEM, "%s: no memory to read it", path);
        got = fread(out->data + out->size, 1, out->capacity - out->size, file);
        out->size += got;
    } while (got);
    VTRN_FAIL_IF(ferror(file), err, VTRN_IO, "%s: reading failed: %s", path, strerror(errno));
    return VTRN_OK;
}

enum vtrn_status vtrn_prog_load_file(const char *path, struct vtrn_prog **prog_out, struct vtrn_error *err)
{
    struct vtrn_buf bytes = { 0 };
    FILE *file = fopen(path, "rb");
    enum vtrn_status status;

    VTRN_FAIL_IF(!file, err, VTRN_IO, "%s: cannot be read: %s", path, strerror(errno));
    status = read_all(file, path, &bytes, err);
    fclose(file);
    if (status >= 0) {
        status = vtrn_prog_load(bytes.data, bytes.size, prog_out, err);
        if (status < 0) vtrn_error_prefix(err, "%s", path);
    }
    vtrn_buf_fini(&bytes);
    return status;
}
