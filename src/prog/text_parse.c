/* Reads the text of a whole program (text.c has the form). Any text may come in: the first line that does not fit is
 * reported with its number; nothing is read beyond `length`. The program is built by the functions that front ends use,
 * so whatever parses is legal. Instructions are read by isa/parse.c. */
#include "prog/prog_int.h"

#include <ctype.h>

struct parser {
    const char *line, *at, *end; /* the current line, and where its rest begins and ends */
    struct vtrn_prog *prog;
    const struct vtrn_arch *arch;
    struct vtrn_text_names names;
    struct vtrn_inst *inst;
    int core; /* whose instructions follow; -1: still tables */
    bool has_version;
    struct vtrn_tensor constant; /* waits for its data lines, when `waits` */
    uint32_t constant_born;
    bool waits;
    struct vtrn_buf data, quoted;
    struct vtrn_error *err;
};

#define BAD_IF(cond, p, ...) VTRN_FAIL_IF(cond, (p)->err, VTRN_FORMAT, __VA_ARGS__)

/* ---------------------------------------------------------------- tokens of a directive */
static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool line_done(struct parser *p)
{
    skip_space(p);
    return p->at == p->end || *p->at == '#';
}

static bool eat(struct parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static size_t word_length(struct parser *p)
{
    const char *c;

    skip_space(p);
    for (c = p->at; c < p->end && (isalnum((unsigned char)*c) || *c == '_');) c++;
    return (size_t)(c - p->at);
}

static bool eat_word(struct parser *p, const char *word)
{
    size_t length = word_length(p);

    if (length != strlen(word) || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static enum vtrn_status parse_number(struct parser *p, const char *what, int64_t max, int64_t *out)
{
    int64_t value = 0;
    const char *start;

    skip_space(p);
    start = p->at;
    while (p->at < p->end && isdigit((unsigned char)*p->at)) {
        int digit = *p->at++ - '0';

        BAD_IF(digit > max || value > (max - digit) / 10, p, "%s must be in 0..%lld", what, (long long)max);
        value = value * 10 + digit;
    }
    BAD_IF(p->at == start, p, "%s (a number) is expected", what);
    *out = value;
    return VTRN_OK;
}

/* A quoted string, interned. */
static enum vtrn_status parse_string(struct parser *p, uint32_t *string_out)
{
    enum vtrn_status status;
    size_t at;

    skip_space(p);
    at = (size_t)(p->at - p->line);
    p->quoted.size = 0;
    VTRN_TRY(vtrn_text_unquote(p->line, (size_t)(p->end - p->line), &at, &p->quoted, p->err));
    p->at = p->line + at;
    status = vtrn_prog_string(p->prog, p->quoted.data ? (const char *)p->quoted.data : "", p->quoted.size, string_out);
    return status < 0 ? vtrn_fail(p->err, status, "the string does not fit in the table") : VTRN_OK;
}

/* ---------------------------------------------------------------- head */
static enum vtrn_status parse_version(struct parser *p)
{
    int64_t version = 0;

    BAD_IF(!eat_word(p, "vtrn"), p, "a program begins with \"vtrn 1\"");
    VTRN_TRY(parse_number(p, "version", INT32_MAX, &version));
    BAD_IF(version != 1, p, "version %lld of the text form; this vtrn reads version 1", (long long)version);
    p->has_version = true;
    return VTRN_OK;
}

static enum vtrn_status parse_target(struct parser *p)
{
    char chip[32];
    size_t length;

    BAD_IF(!eat_word(p, "target"), p, "\"target CHIP\" is expected");
    length = word_length(p);
    BAD_IF(length == 0 || length >= sizeof chip, p, "a target (trn1, inf2, trn2, trn3) is expected");
    memcpy(chip, p->at, length);
    chip[length] = '\0';
    p->at += length;
    p->arch = vtrn_arch_find(chip);
    BAD_IF(!p->arch, p, "target %s is not known; trn1, inf2, trn2, trn3 are", chip);
    return VTRN_OK;
}

static enum vtrn_status parse_cores(struct parser *p)
{
    int64_t cores = 0;

    BAD_IF(!eat_word(p, "cores"), p, "\"cores N\" is expected");
    VTRN_TRY(parse_number(p, "cores", VTRN_CORES_MAX, &cores));
    p->prog = vtrn_prog_create(p->arch, (int)cores, p->err);
    if (!p->prog) return cores ? VTRN_NOMEM : VTRN_FORMAT;
    p->names = vtrn_prog_names(p->prog);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tables */
static enum vtrn_status parse_registers(struct parser *p)
{
    int64_t registers = 0;

    VTRN_TRY(parse_number(p, "registers", VTRN_REGISTERS_MAX, &registers));
    p->prog->registers = (uint32_t)registers;
    return VTRN_OK;
}

static enum vtrn_status parse_loc(struct parser *p)
{
    int64_t number = 0, line = 0;
    uint32_t file = 0, index;

    VTRN_TRY(parse_number(p, "location", UINT32_MAX, &number));
    BAD_IF(number != p->prog->locs, p, "location %lld is not the next, which is %u", (long long)number, p->prog->locs);
    VTRN_TRY(parse_string(p, &file));
    VTRN_TRY(parse_number(p, "line", UINT32_MAX, &line));
    return prog_loc_add(p->prog, file, (uint32_t)line, &index) < 0 ? vtrn_fail(p->err, VTRN_NOMEM, "no memory for a location")
                                                                   : VTRN_OK;
}

static enum vtrn_status parse_shape(struct parser *p, struct vtrn_tensor *tensor)
{
    BAD_IF(!eat(p, '['), p, "a shape ([128, 512]) is expected");
    do {
        BAD_IF(tensor->rank == VTRN_TENSOR_RANK, p, "a tensor has at most %d dimensions", VTRN_TENSOR_RANK);
        VTRN_TRY(parse_number(p, "dimension", INT64_MAX, &tensor->dim[tensor->rank]));
        tensor->rank++;
    } while (eat(p, ','));
    BAD_IF(!eat(p, ']'), p, "\"]\" is expected at the end of the shape");
    return VTRN_OK;
}

static enum vtrn_status parse_kind(struct parser *p, struct vtrn_tensor *tensor)
{
    size_t length;

    for (int space = VTRN_SBUF; space <= VTRN_HBM_SHARED; space++)
        if (!tensor->space && eat_word(p, vtrn_space_name(space))) tensor->space = (uint8_t)space;
    BAD_IF(!tensor->space, p, "a memory (sbuf, psum, hbm, shared_hbm) is expected");
    length = word_length(p);
    tensor->dtype = (uint8_t)vtrn_dtype_by_text(p->at, length);
    BAD_IF(tensor->dtype == VTRN_DT_NONE, p, "a dtype (f32, bf16, i32, ...) is expected");
    p->at += length;
    VTRN_TRY(parse_shape(p, tensor));
    if (eat_word(p, "input")) tensor->role = VTRN_ROLE_INPUT;
    else if (eat_word(p, "output")) tensor->role = VTRN_ROLE_OUTPUT;
    else if (eat_word(p, "const")) tensor->role = VTRN_ROLE_CONST;
    return VTRN_OK;
}

static enum vtrn_status parse_address(struct parser *p, struct vtrn_tensor *tensor)
{
    int64_t partition = 0, byte = 0;

    BAD_IF(!eat(p, '='), p, "address=PARTITION:BYTE is expected");
    VTRN_TRY(parse_number(p, "partition", UINT16_MAX, &partition));
    BAD_IF(!eat(p, ':'), p, "address=PARTITION:BYTE is expected");
    VTRN_TRY(parse_number(p, "byte", UINT32_MAX, &byte));
    tensor->has_address = 1;
    tensor->addr_partition = (uint16_t)partition;
    tensor->addr_byte = (uint32_t)byte;
    return VTRN_OK;
}

static enum vtrn_status parse_attributes(struct parser *p, struct vtrn_tensor *tensor, uint32_t *born_out)
{
    int64_t core = 0, born = 0, loc = 0;

    while (!line_done(p)) {
        if (eat_word(p, "core")) {
            BAD_IF(!eat(p, '='), p, "core=N or core=all is expected");
            if (eat_word(p, "all")) core = VTRN_CORES_MAX;
            else VTRN_TRY(parse_number(p, "core", VTRN_CORES_MAX - 1, &core));
        } else if (eat_word(p, "address")) {
            VTRN_TRY(parse_address(p, tensor));
        } else if (eat_word(p, "born")) {
            BAD_IF(!eat(p, '='), p, "born=N is expected");
            VTRN_TRY(parse_number(p, "born", UINT32_MAX, &born));
        } else if (eat(p, '@')) {
            VTRN_TRY(parse_number(p, "location", UINT32_MAX, &loc));
        } else {
            return vtrn_fail(p->err, VTRN_FORMAT, "core=, address=, born= or @location is expected");
        }
    }
    tensor->core = (uint8_t)core;
    tensor->loc = (uint32_t)loc;
    *born_out = (uint32_t)born;
    return VTRN_OK;
}

static enum vtrn_status parse_tensor(struct parser *p)
{
    struct vtrn_tensor tensor = { 0 };
    int64_t number = 0;
    uint32_t born = 0, index;

    VTRN_TRY(parse_number(p, "tensor", UINT32_MAX, &number));
    BAD_IF(number != p->prog->tensors, p, "tensor %lld is not the next, which is %u", (long long)number, p->prog->tensors);
    skip_space(p);
    if (p->at < p->end && *p->at == '"') VTRN_TRY(parse_string(p, &tensor.name));
    VTRN_TRY(parse_kind(p, &tensor));
    VTRN_TRY(parse_attributes(p, &tensor, &born));
    if (tensor.role != VTRN_ROLE_CONST) return prog_tensor_add(p->prog, &tensor, born, &index, p->err);
    VTRN_TRY(prog_tensor_check(p->prog, &tensor, p->err));
    p->constant = tensor;
    p->constant_born = born;
    p->waits = true;
    p->data.size = 0;
    return VTRN_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One line of a constant's bytes; the tensor is added with the last. */
static enum vtrn_status parse_data(struct parser *p)
{
    uint32_t index;

    BAD_IF(!eat_word(p, "data"), p, "constant: %lld of its %lld bytes are missing; \"data HEX\" is expected",
           (long long)(p->constant.row_bytes - (int64_t)p->data.size), (long long)p->constant.row_bytes);
    skip_space(p);
    for (; p->at < p->end && hex_digit(*p->at) >= 0; p->at += 2) {
        uint8_t byte;

        BAD_IF(p->end - p->at < 2 || hex_digit(p->at[1]) < 0, p, "data: half a byte at the end of the line");
        byte = (uint8_t)(hex_digit(p->at[0]) << 4 | hex_digit(p->at[1]));
        if (vtrn_buf_append(&p->data, &byte, 1) < 0) return vtrn_fail(p->err, VTRN_NOMEM, "no memory for a constant");
    }
    BAD_IF((int64_t)p->data.size > p->constant.row_bytes, p, "data: more bytes than the tensor has (%lld)",
           (long long)p->constant.row_bytes);
    if ((int64_t)p->data.size < p->constant.row_bytes) return VTRN_OK;
    p->waits = false;
    p->constant.data = p->data.data;
    return prog_tensor_add(p->prog, &p->constant, p->constant_born, &index, p->err);
}

/* ---------------------------------------------------------------- code */
static enum vtrn_status parse_core(struct parser *p)
{
    int64_t core = 0;

    VTRN_TRY(parse_number(p, "core", VTRN_CORES_MAX - 1, &core));
    BAD_IF(core >= p->prog->cores, p, "core %lld, the program has %d", (long long)core, p->prog->cores);
    BAD_IF(core <= p->core, p, "core %lld stands behind core %d", (long long)core, p->core);
    p->core = (int)core;
    return VTRN_OK;
}

static enum vtrn_status parse_edge(struct parser *p)
{
    int64_t consumer = 0, producer = 0;

    BAD_IF(p->core < 0, p, "an edge belongs behind the instructions of a core");
    VTRN_TRY(parse_number(p, "consumer", UINT32_MAX, &consumer));
    VTRN_TRY(parse_number(p, "producer", UINT32_MAX, &producer));
    return vtrn_prog_edge(p->prog, p->core, (uint32_t)consumer, (uint32_t)producer, p->err);
}

static enum vtrn_status parse_inst(struct parser *p)
{
    BAD_IF(p->core < 0, p, "a directive (name, loc, tensor, core, ...) is expected");
    VTRN_TRY(vtrn_inst_parse(p->at, (size_t)(p->end - p->at), &p->names, p->inst, p->err));
    p->at = p->end;
    return vtrn_prog_append(p->prog, p->core, p->inst, NULL, p->err);
}

/* ---------------------------------------------------------------- lines */
/* "tensor" begins a declaration when a number follows, and an instruction of the tensor engine otherwise. */
static bool declares_tensor(struct parser *p)
{
    const char *start = p->at;

    if (p->core < 0 && eat_word(p, "tensor")) {
        skip_space(p);
        if (p->at < p->end && isdigit((unsigned char)*p->at)) return true;
        p->at = start;
    }
    return false;
}

static enum vtrn_status parse_directive(struct parser *p)
{
    if (p->waits) return parse_data(p);
    if (!p->has_version) return parse_version(p);
    if (!p->arch) return parse_target(p);
    if (!p->prog) return parse_cores(p);
    if (eat_word(p, "core")) return parse_core(p);
    if (eat_word(p, "edge")) return parse_edge(p);
    if (p->core >= 0) return parse_inst(p);
    if (eat_word(p, "name")) return parse_string(p, &p->prog->name);
    if (eat_word(p, "registers")) return parse_registers(p);
    if (eat_word(p, "loc")) return parse_loc(p);
    if (declares_tensor(p)) return parse_tensor(p);
    if (eat_word(p, "not_replayable")) {
        p->prog->replayable = false;
        return VTRN_OK;
    }
    return parse_inst(p);
}

static enum vtrn_status parse_line(struct parser *p)
{
    if (line_done(p)) return VTRN_OK;
    VTRN_TRY(parse_directive(p));
    BAD_IF(!line_done(p), p, "something stands behind the end of the directive");
    return VTRN_OK;
}

static enum vtrn_status parse_text(struct parser *p, const char *text, size_t length)
{
    const char *stop = text + length;
    unsigned line = 0;

    while (text < stop) {
        const char *newline = memchr(text, '\n', (size_t)(stop - text));
        enum vtrn_status status;

        p->line = p->at = text;
        p->end = newline ? newline : stop;
        line++;
        status = parse_line(p);
        if (status < 0) {
            vtrn_error_prefix(p->err, "line %u", line);
            return status;
        }
        text = newline ? newline + 1 : stop;
    }
    BAD_IF(p->waits, p, "the text ends within the data of a constant");
    BAD_IF(!p->prog, p, "the text ends before \"cores N\": it is no program");
    for (uint32_t i = 0; i < p->prog->tensors; i++) {
        const struct vtrn_tensor *tensor = &p->prog->tensor[i];
        uint32_t count = tensor->core < VTRN_CORES_MAX ? p->prog->code[tensor->core].count : 0;

        BAD_IF(tensor->born > count, p, "tensor %u: born at instruction %u of %u", i, tensor->born, count);
    }
    return prog_check_closed(p->prog, p->err);
}

enum vtrn_status vtrn_prog_parse(const char *text, size_t length, struct vtrn_prog **prog_out, struct vtrn_error *err)
{
    struct parser p = { .core = -1, .err = err };
    enum vtrn_status status = VTRN_NOMEM;

    p.inst = malloc(sizeof *p.inst);
    if (p.inst) status = parse_text(&p, text, length);
    else vtrn_fail(err, VTRN_NOMEM, "no memory to parse a program");
    free(p.inst);
    vtrn_buf_fini(&p.data);
    vtrn_buf_fini(&p.quoted);
    if (status < 0) {
        vtrn_prog_destroy(p.prog);
        return status;
    }
    *prog_out = p.prog;
    return VTRN_OK;
}
