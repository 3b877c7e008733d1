/* Reading programs. The bytes may come from anywhere: every offset and count is checked against the bytes that are
 * there before it is used, memory grows only with the size of the file, and the program is built by the functions that
 * front ends use, so whatever loads is legal. file_int.h has the layout. */
#include "prog/file_int.h"

struct section {
    const uint8_t *data;
    uint64_t size;
    bool present;
};
struct reader {
    const uint8_t *bytes;
    uint64_t size;
    struct section section[FILE_DATA + 1]; /* by kind; CODE and EDGES of core 0 */
    struct section code[VTRN_CORES_MAX], edges[VTRN_CORES_MAX];
    uint64_t data_end; /* of the constants read so far */
    struct vtrn_prog *prog;
    struct vtrn_error *err;
};

static const char *const section_name[] = { "", "target", "strings", "locations", "tensors", "code", "edges", "data" };

#define BAD_IF(cond, r, ...) VTRN_FAIL_IF(cond, (r)->err, VTRN_FORMAT, __VA_ARGS__)

/* ---------------------------------------------------------------- header and section table */
static enum vtrn_status read_header(struct reader *r, uint32_t *sections_out)
{
    uint32_t version, sections;

    BAD_IF(r->size < FILE_HEADER_BYTES, r, "%llu bytes are too few for a .vtrn file", (unsigned long long)r->size);
    BAD_IF(memcmp(r->bytes, file_magic, sizeof file_magic) != 0, r, "not a .vtrn file (its first bytes are others)");
    version = file_get32(r->bytes + 8);
    sections = file_get32(r->bytes + 12);
    BAD_IF(version != FILE_VERSION, r, "format version %u; this vtrn reads version %d", version, FILE_VERSION);
    BAD_IF(file_get64(r->bytes + 16) != r->size, r, "the file says it has %llu bytes, but there are %llu; it is cut or joined",
           (unsigned long long)file_get64(r->bytes + 16), (unsigned long long)r->size);
    BAD_IF(sections > FILE_SECTIONS_MAX || FILE_HEADER_BYTES + (uint64_t)sections * FILE_ENTRY_BYTES > r->size, r,
           "%u sections are not possible", sections);
    BAD_IF(vtrn_hash_bytes(r->bytes + FILE_HEADER_BYTES, (size_t)sections * FILE_ENTRY_BYTES, 0) != file_get64(r->bytes + 24), r,
           "checksum of the section table is wrong; the file is damaged");
    *sections_out = sections;
    return VTRN_OK;
}

static enum vtrn_status read_entry(struct reader *r, const uint8_t *entry)
{
    uint32_t kind = file_get32(entry), core = file_get32(entry + 4);
    uint64_t offset = file_get64(entry + 8), size = file_get64(entry + 16);
    struct section *section;

    BAD_IF(kind < FILE_TARGET || kind > FILE_DATA, r, "section kind %u is unknown; the file may be from a newer vtrn", kind);
    BAD_IF(core >= (kind == FILE_CODE || kind == FILE_EDGES ? VTRN_CORES_MAX : 1), r, "section %s of core %u is not possible",
           section_name[kind], core);
    section = kind == FILE_CODE ? &r->code[core] : kind == FILE_EDGES ? &r->edges[core] : &r->section[kind];
    BAD_IF(section->present, r, "section %s occurs twice", section_name[kind]);
    BAD_IF(offset % 8 != 0 || offset > r->size || size > r->size - offset, r, "section %s lies outside the file", section_name[kind]);
    BAD_IF(vtrn_hash_bytes(r->bytes + offset, (size_t)size, 0) != file_get64(entry + 24), r,
           "checksum of section %s is wrong; the file is damaged", section_name[kind]);
    *section = (struct section){ r->bytes + offset, size, true };
    return VTRN_OK;
}

static enum vtrn_status read_table(struct reader *r)
{
    uint32_t sections = 0;

    VTRN_TRY(read_header(r, &sections));
    for (uint32_t i = 0; i < sections; i++) VTRN_TRY(read_entry(r, r->bytes + FILE_HEADER_BYTES + (size_t)i * FILE_ENTRY_BYTES));
    for (int kind = FILE_TARGET; kind <= FILE_DATA; kind++)
        BAD_IF(kind != FILE_CODE && kind != FILE_EDGES && !r->section[kind].present, r, "section %s is missing", section_name[kind]);
    return VTRN_OK;
}

/* Count of a section that holds `count u32, x u32, records`; its records fill the rest exactly. */
static enum vtrn_status read_count(struct reader *r, const struct section *section, const char *name, uint64_t record_bytes,
                                   uint32_t *count_out)
{
    BAD_IF(section->size < 8 || (uint64_t)file_get32(section->data) * record_bytes != section->size - 8 ||
               file_get32(section->data + 4) != 0,
           r, "section %s: its count does not fit its %llu bytes", name, (unsigned long long)section->size);
    *count_out = file_get32(section->data);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- strings, target, locations */
/* A string by number before the program exists: its bytes in the section. */
static enum vtrn_status locate_string(struct reader *r, uint32_t index, const uint8_t **text_out, uint32_t *length_out)
{
    const struct section *strings = &r->section[FILE_STRINGS];
    uint32_t count = file_get32(strings->data);
    uint64_t at = 8 + (uint64_t)count * 4;

    BAD_IF(index >= count, r, "string %u of %u does not exist", index, count);
    for (uint32_t i = 0; i < index; i++) at += file_get32(strings->data + 8 + (size_t)i * 4);
    *text_out = strings->data + at;
    *length_out = file_get32(strings->data + 8 + (size_t)index * 4);
    return VTRN_OK;
}

static enum vtrn_status check_strings(struct reader *r)
{
    const struct section *strings = &r->section[FILE_STRINGS];
    uint64_t count, end;

    BAD_IF(strings->size < 8, r, "section strings is cut");
    count = file_get32(strings->data);
    end = 8 + count * 4;
    BAD_IF(count < 1 || end > strings->size || file_get32(strings->data + 4) != 0, r, "section strings cannot hold %llu strings",
           (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        end += file_get32(strings->data + 8 + i * 4);
        BAD_IF(end > strings->size, r, "string %llu is longer than the section", (unsigned long long)i);
    }
    BAD_IF(end != strings->size || file_get32(strings->data + 8) != 0, r, "section strings does not add up");
    return VTRN_OK;
}

static enum vtrn_status read_target(struct reader *r, uint32_t *name_out)
{
    const struct section *target = &r->section[FILE_TARGET];
    char chip[64];
    const uint8_t *text = NULL;
    uint32_t length = 0, cores, flags, registers;
    const struct vtrn_arch *arch;

    BAD_IF(target->size != 24, r, "section target has %llu bytes", (unsigned long long)target->size);
    cores = file_get32(target->data);
    flags = file_get32(target->data + 4);
    registers = file_get32(target->data + 16);
    BAD_IF(cores < 1 || cores > VTRN_CORES_MAX || flags > FILE_FLAG_REPLAYABLE || registers > VTRN_REGISTERS_MAX ||
               file_get32(target->data + 20) != 0,
           r, "section target: %u cores, flags %u, %u registers are not possible", cores, flags, registers);
    VTRN_TRY(locate_string(r, file_get32(target->data + 12), &text, &length));
    BAD_IF(length >= sizeof chip || memchr(text, '\0', length), r, "section target: no such target");
    memcpy(chip, text, length);
    chip[length] = '\0';
    arch = vtrn_arch_find(chip);
    BAD_IF(!arch, r, "target \"%s\" is not known to this vtrn", chip);
    r->prog = vtrn_prog_create(arch, (int)cores, r->err);
    if (!r->prog) return VTRN_NOMEM;
    r->prog->replayable = flags & FILE_FLAG_REPLAYABLE;
    r->prog->registers = registers;
    *name_out = file_get32(target->data + 8);
    return VTRN_OK;
}

static enum vtrn_status read_strings(struct reader *r, uint32_t name)
{
    const struct section *strings = &r->section[FILE_STRINGS];
    uint32_t count = file_get32(strings->data);
    const char *text = (const char *)strings->data + 8 + (size_t)count * 4;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = file_get32(strings->data + 8 + (size_t)i * 4), index = 0;
        enum vtrn_status status = vtrn_prog_string(r->prog, text, length, &index);

        BAD_IF(status == VTRN_NOMEM, r, "no memory for string %u", i);
        BAD_IF(status < 0 || index != i, r, "string %u holds a zero byte, is too long, or stands twice", i);
        text += length;
    }
    BAD_IF(name >= r->prog->strings, r, "section target: string %u of %u does not exist", name, r->prog->strings);
    r->prog->name = name;
    return VTRN_OK;
}

static enum vtrn_status read_locs(struct reader *r)
{
    const struct section *locs = &r->section[FILE_LOCS];
    uint32_t count = 0, index;

    VTRN_TRY(read_count(r, locs, "locations", 8, &count));
    BAD_IF(count < 1 || file_get64(locs->data + 8) != 0, r, "location 0 is not \"unknown\"");
    for (uint32_t i = 1; i < count; i++) {
        enum vtrn_status status =
            prog_loc_add(r->prog, file_get32(locs->data + 8 + (size_t)i * 8), file_get32(locs->data + 12 + (size_t)i * 8), &index);

        VTRN_FAIL_IF(status == VTRN_NOMEM, r->err, VTRN_NOMEM, "no memory for location %u", i);
        BAD_IF(status < 0, r, "location %u names no file", i);
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensors */
static enum vtrn_status read_tensor(struct reader *r, uint32_t index, const uint8_t *record)
{
    const struct section *data = &r->section[FILE_DATA];
    uint64_t at = file_get64(record + 88);
    uint32_t born = file_get32(record + 20), ignored;
    struct vtrn_tensor tensor = { .space = record[0],
                                  .dtype = record[1],
                                  .rank = record[2],
                                  .role = record[3],
                                  .core = record[4],
                                  .has_address = record[5],
                                  .addr_partition = (uint16_t)(record[6] | record[7] << 8),
                                  .addr_byte = file_get32(record + 8),
                                  .name = file_get32(record + 12),
                                  .loc = file_get32(record + 16) };
    enum vtrn_status status;

    BAD_IF(record[5] > 1 || (!record[5] && (tensor.addr_partition || tensor.addr_byte)), r, "tensor %u: address is malformed", index);
    for (int d = 0; d < VTRN_TENSOR_RANK; d++) {
        tensor.dim[d] = (int64_t)file_get64(record + 24 + 8 * d);
        BAD_IF(d >= tensor.rank && tensor.dim[d] != 0, r, "tensor %u: dimension %d is beyond its rank", index, d);
    }
    status = prog_tensor_check(r->prog, &tensor, r->err);
    if (status >= 0 && (tensor.role == VTRN_ROLE_CONST) != (at != FILE_NO_DATA))
        status = vtrn_fail(r->err, VTRN_FORMAT, "a constant has data, and nothing else has");
    if (status >= 0 && at != FILE_NO_DATA &&
        (at != file_align_data(r->data_end) || at > data->size || (uint64_t)tensor.row_bytes > data->size - at))
        status = vtrn_fail(r->err, VTRN_FORMAT, "its data is not where that of the previous constant ends");
    if (status >= 0) {
        tensor.data = at != FILE_NO_DATA ? data->data + at : NULL;
        if (tensor.data) r->data_end = at + (uint64_t)tensor.row_bytes;
        status = prog_tensor_add(r->prog, &tensor, born, &ignored, r->err);
    }
    if (status < 0) vtrn_error_prefix(r->err, "tensor %u", index);
    return status;
}

static enum vtrn_status read_tensors(struct reader *r)
{
    const struct section *tensors = &r->section[FILE_TENSORS];
    uint32_t count = 0;

    VTRN_TRY(read_count(r, tensors, "tensors", FILE_TENSOR_BYTES, &count));
    for (uint32_t i = 0; i < count; i++) VTRN_TRY(read_tensor(r, i, tensors->data + 8 + (size_t)i * FILE_TENSOR_BYTES));
    BAD_IF(r->data_end != r->section[FILE_DATA].size, r, "section data holds more than the constants");
    return VTRN_OK;
}

/* ---------------------------------------------------------------- code */
static enum vtrn_status read_code(struct reader *r, int core, struct vtrn_inst *inst)
{
    const struct section *code = &r->code[core];
    const uint32_t *words;
    uint64_t count, total, at = 0;

    BAD_IF(!code->present || code->size < 8, r, "the code of core %d is missing", core);
    count = file_get32(code->data);
    total = file_get32(code->data + 4);
    BAD_IF(total * 4 != code->size - 8 || count > total, r, "core %d: %llu instructions in %llu words do not fit the section", core,
           (unsigned long long)count, (unsigned long long)total);
    words = (const uint32_t *)(const void *)(code->data + 8); /* aligned: the file is, and its offsets are multiples of 8 */
    for (uint64_t i = 0; i < count; i++) {
        size_t length = 0;
        enum vtrn_status status = vtrn_inst_decode(words + at, (size_t)(total - at), inst, &length, r->err);

        if (status >= 0) status = vtrn_prog_append(r->prog, core, inst, NULL, r->err);
        if (status < 0) {
            vtrn_error_prefix(r->err, "core %d instruction %llu", core, (unsigned long long)i);
            return status;
        }
        at += length;
    }
    BAD_IF(at != total, r, "core %d: %llu words stand behind the last instruction", core, (unsigned long long)(total - at));
    return VTRN_OK;
}

static enum vtrn_status read_edges(struct reader *r, int core)
{
    const struct section *edges = &r->edges[core];
    uint32_t count = 0;

    BAD_IF(!edges->present, r, "the edges of core %d are missing", core);
    VTRN_TRY(read_count(r, edges, "edges", 8, &count));
    for (uint32_t i = 0; i < count; i++)
        VTRN_TRY(vtrn_prog_edge(r->prog, core, file_get32(edges->data + 8 + (size_t)i * 8),
                                file_get32(edges->data + 12 + (size_t)i * 8), r->err));
    return VTRN_OK;
}

static enum vtrn_status check_born(struct reader *r)
{
    for (uint32_t i = 0; i < r->prog->tensors; i++) {
        const struct vtrn_tensor *tensor = &r->prog->tensor[i];
        uint32_t end = tensor->core < VTRN_CORES_MAX ? r->prog->code[tensor->core].count : 0;

        BAD_IF(tensor->born > end, r, "tensor %u: born at instruction %u of %u", i, tensor->born, end);
    }
    return VTRN_OK;
}

static enum vtrn_status read_program(struct reader *r, struct vtrn_inst *inst)
{
    uint32_t name = 0;

    VTRN_TRY(read_table(r));
    VTRN_TRY(check_strings(r));
    VTRN_TRY(read_target(r, &name));
    VTRN_TRY(read_strings(r, name));
    VTRN_TRY(read_locs(r));
    VTRN_TRY(read_tensors(r));
    for (int core = 0; core < r->prog->cores; core++) {
        VTRN_TRY(read_code(r, core, inst));
        VTRN_TRY(read_edges(r, core));
    }
    for (int core = r->prog->cores; core < VTRN_CORES_MAX; core++)
        BAD_IF(r->code[core].present || r->edges[core].present, r, "code of core %d in a program of %d", core, r->prog->cores);
    VTRN_TRY(check_born(r));
    return prog_check_closed(r->prog, r->err);
}

enum vtrn_status vtrn_prog_load(const void *bytes, size_t size_bytes, struct vtrn_prog **prog_out, struct vtrn_error *err)
{
    struct reader r = { .bytes = bytes, .size = size_bytes, .err = err };
    struct vtrn_inst *inst;
    void *aligned = NULL;
    enum vtrn_status status;

    if ((uintptr_t)bytes % sizeof(uint64_t) != 0) { /* instructions are read as words */
        aligned = malloc(size_bytes ? size_bytes : 1);
        VTRN_FAIL_IF(!aligned, err, VTRN_NOMEM, "no memory for a program of %zu bytes", size_bytes);
        memcpy(aligned, bytes, size_bytes);
        r.bytes = aligned;
    }
    inst = malloc(sizeof *inst);
    status = inst ? read_program(&r, inst) : vtrn_fail(err, VTRN_NOMEM, "no memory to load a program");
    free(inst);
    free(aligned);
    if (status < 0) {
        vtrn_prog_destroy(r.prog);
        return status;
    }
    *prog_out = r.prog;
    return VTRN_OK;
}
