/* Writes docs/isa.md, the manual of the instruction set, from what the program itself is built of: the descriptor tables
 * (isa/, arch/), the comment above each instruction's body in src/exec/ (its Does, Rounding, Faults and Differs parts), the
 * cost rules in words, and the head comments of the printer and the encoder, which define the two forms of an instruction.
 *
 *   isadoc [ROOT]           writes ROOT/docs/isa.md (ROOT: the project's folder, default ".")
 *   isadoc --check [ROOT]   exits 1 when a page lacks a part or the file is not what would be written
 *
 * Must not know any instruction by name: a new row of ops.def gets its page without a change here. */
#include <dirent.h>
#include <errno.h>

#include "arch/arch.h"

enum { PARTS = 4, WRAP = 118 };
static const char *const part_key[PARTS] = { "Does:", "Rounding:", "Faults:", "Differs:" };
static const char *const part_title[PARTS] = { "Does", "Rounding", "Faults", "Differs from hardware" };

struct page {
    char *part[PARTS]; /* NULL: the comment lacks it */
    bool has_body;
};
struct doc {
    const char *root;
    struct vtrn_buf out;
    struct page page[VTRN_OPCODES];
    struct vtrn_arena arena;
    int problems;
};

static void die(const char *what, const char *path)
{
    fprintf(stderr, "isadoc: %s %s: %s\n", what, path, strerror(errno));
    exit(2);
}

static void *check_memory(void *ptr)
{
    if (!ptr) die("no memory for", "the manual");
    return ptr;
}

/* printf into the manual. */
static void say(struct doc *doc, const char *fmt, ...) VTRN_PRINTF(2, 3);
static void say(struct doc *doc, const char *fmt, ...)
{
    char text[8192];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (vtrn_buf_append(&doc->out, text, strlen(text)) < 0) die("no memory for", "the manual");
}

static void problem(struct doc *doc, const char *fmt, ...) VTRN_PRINTF(2, 3);
static void problem(struct doc *doc, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "isadoc: ");
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    doc->problems++;
}

/* A file's text in the arena; NULL: it is not there. */
static char *slurp(struct doc *doc, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text;
    long size;

    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0) die("cannot read", path);
    text = check_memory(vtrn_arena_alloc(&doc->arena, (size_t)size + 1));
    if (fread(text, 1, (size_t)size, file) != (size_t)size) die("cannot read", path);
    fclose(file);
    return text;
}

/* ---------------------------------------------------------------- comments of the bodies */
/* The text of a comment that ends right before `at`: from its opening on. NULL: there is none. */
static const char *comment_before(const char *text, const char *at, const char **end_out)
{
    const char *end = at, *open;

    while (end > text && (end[-1] == '\n' || end[-1] == ' ')) end--;
    if (end - text < 4 || end[-1] != '/' || end[-2] != '*') return NULL;
    end -= 2;
    for (open = end - 2; open > text && !(open[0] == '/' && open[1] == '*'); open--) continue;
    *end_out = end;
    return open + 2;
}

/* The end of the line at `c`, which is trimmed of " * " in front. */
static const char *comment_line(const char **c, const char *end)
{
    const char *stop = memchr(*c, '\n', (size_t)(end - *c));

    if (!stop) stop = end;
    while (*c < stop && **c == ' ') (*c)++;
    if (*c < stop && **c == '*') (*c)++;
    while (*c < stop && **c == ' ') (*c)++;
    return stop;
}

static void add_text(struct doc *doc, char **part, const char *text, size_t length)
{
    size_t before = *part ? strlen(*part) : 0;
    char *joined = check_memory(vtrn_arena_alloc(&doc->arena, before + length + 2));

    while (length && text[length - 1] == ' ') length--;
    if (before) memcpy(joined, *part, before);
    if (before && length) joined[before++] = ' ';
    memcpy(joined + before, text, length);
    *part = joined;
}

static void read_comment(struct doc *doc, struct page *page, const char *c, const char *end)
{
    int part = -1;

    while (c < end) {
        const char *stop = comment_line(&c, end);

        for (int i = 0; i < PARTS; i++) {
            size_t length = strlen(part_key[i]);

            if ((size_t)(stop - c) < length || memcmp(c, part_key[i], length) != 0) continue;
            part = i;
            c += length;
            while (c < stop && *c == ' ') c++;
        }
        if (part >= 0) add_text(doc, &page->part[part], c, (size_t)(stop - c));
        c = stop < end ? stop + 1 : end;
    }
}

static void read_bodies(struct doc *doc, const char *path)
{
    static const char key[] = "\nenum vtrn_status vtrn_exec_";
    const char *text = slurp(doc, path), *at = text;

    while (at && (at = strstr(at, key)) != NULL) {
        const char *name = at + sizeof key - 1, *end;
        size_t length = strcspn(name, "( ");
        enum vtrn_opcode op = vtrn_op_by_name(name, length);
        const char *comment = comment_before(text, at, &end);

        at = name;
        if (op == VTRN_OP_NONE) continue; /* a helper that is named alike */
        if (doc->page[op].has_body) problem(doc, "%s: a second body of %s", path, vtrn_ops[op].name);
        doc->page[op].has_body = true;
        if (comment) read_comment(doc, &doc->page[op], comment, end);
    }
}

static void read_exec(struct doc *doc)
{
    char folder[4096], path[8192];
    struct dirent *entry;
    DIR *dir;

    snprintf(folder, sizeof folder, "%s/src/exec", doc->root);
    dir = opendir(folder);
    if (!dir) die("cannot open", folder);
    while ((entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length < 3 || strcmp(entry->d_name + length - 2, ".c") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_bodies(doc, path);
    }
    closedir(dir);
}

/* ---------------------------------------------------------------- Markdown */
/* Whether Markdown would take a line that starts with this word for a list, a heading or a quotation. */
static bool starts_block(const char *word, size_t length)
{
    if (strchr("#>", word[0])) return true;
    if (length == 1) return strchr("-+=*", word[0]) != NULL;
    return (word[length - 1] == '.' || word[length - 1] == ')') && strspn(word, "0123456789") == length - 1;
}

/* A paragraph, wrapped, with the characters escaped that Markdown would act on. */
static void say_paragraph(struct doc *doc, const char *title, const char *text)
{
    size_t column = 0, word;

    if (title) {
        say(doc, "**%s.**", title);
        column = strlen(title) + 5;
    }
    while (*(text += strspn(text, " ")) != '\0') {
        word = strcspn(text, " ");
        if (column && column + 1 + word > WRAP && !starts_block(text, word)) {
            say(doc, "\n");
            column = 0;
        }
        if (column) say(doc, " ");
        for (size_t i = 0; i < word; i++) say(doc, strchr("*<", text[i]) ? "\\%c" : "%c", text[i]);
        column += word + (column != 0);
        text += word;
    }
    say(doc, "\n\n");
}

/* Text of a table's cell. */
static void say_cell(struct doc *doc, const char *text)
{
    say(doc, " ");
    for (; *text; text++) say(doc, strchr("*<|", *text) ? "\\%c" : "%c", *text);
    say(doc, " |");
}

/* The comment at the head of a source file, as it stands there. */
static void say_head_comment(struct doc *doc, const char *file)
{
    char path[4096];
    const char *text, *end, *c;

    snprintf(path, sizeof path, "%s/%s", doc->root, file);
    text = slurp(doc, path);
    if (!text || memcmp(text, "/*", 2) != 0 || (end = strstr(text, "*/")) == NULL) {
        problem(doc, "%s: no comment at its head", file);
        return;
    }
    say(doc, "```text\n");
    for (c = text + 2; c < end;) {
        const char *stop = memchr(c, '\n', (size_t)(end - c));

        if (!stop) stop = end;
        if (c[0] == ' ' && c[1] == '*') c += 2;
        if (c < stop && *c == ' ') c++;
        while (stop > c && stop[-1] == ' ') stop--;
        say(doc, "%.*s\n", (int)(stop - c), c);
        c = strchr(stop, '\n') && strchr(stop, '\n') < end ? strchr(stop, '\n') + 1 : end;
    }
    say(doc, "```\n\n(from `%s`)\n\n", file);
}

/* ---------------------------------------------------------------- one instruction */
/* Names of the dtype sets that rows use most; others are listed in full. */
static const struct {
    const char *name, *doc;
    uint32_t dtypes;
} dtype_set[] = {
    { "any", "every data type", VTRN_DTS_ANY },
    { "plain", "one value an element: all but the MX types", VTRN_DTS_PLAIN },
    { "float", "floating point, one value an element", VTRN_DTS_FLOATS },
    { "int", "integers and bool", VTRN_DTS_INTS },
    { "word", "integers", VTRN_DTS_WORD },
    { "mx", "four values an element", VTRN_DTS_MX },
};

static void say_dtype_list(struct doc *doc, uint32_t dtypes)
{
    for (int i = 1; i < VTRN_DT_COUNT; i++)
        if (dtypes >> i & 1) say(doc, " %s", vtrn_dtypes[i].text);
}

static void say_dtypes(struct doc *doc, uint32_t dtypes)
{
    for (size_t i = 0; i < sizeof dtype_set / sizeof dtype_set[0]; i++) {
        if (dtype_set[i].dtypes != dtypes) continue;
        say(doc, " [%s](#dtype-sets)", dtype_set[i].name);
        return;
    }
    say_dtype_list(doc, dtypes);
}

static const char *alu_set_name(int set)
{
    static const char *const name[] = {
        [VTRN_ALUSET_ANY] = "any operator", [VTRN_ALUSET_ARITH] = "arithmetic operator", [VTRN_ALUSET_REDUCE] = "operator that reduces",
        [VTRN_ALUSET_PARTITION_REDUCE] = "add, average, maximum, bitwise_or or bitwise_and", [VTRN_ALUSET_DMA] = "add",
    };

    return name[set];
}

static void say_kind(struct doc *doc, const struct vtrn_operand_info *info)
{
    static const char *const access[] = { "", "read", "written", "read and written" };

    switch (info->kind) {
    case VTRN_K_TENSOR: say(doc, " tensor, %s |", access[info->access]); return;
    case VTRN_K_TENSORS: say(doc, " list of up to %d tensors, read |", info->max_count); return;
    case VTRN_K_TENSOR_OR_NUM: say(doc, " tensor, read, or number |"); return;
    case VTRN_K_SCALAR: say(doc, " number, or tensor of one value a partition, read |"); return;
    case VTRN_K_NUM: say(doc, " number |"); return;
    case VTRN_K_INT: say(doc, " integer, %lld .. %lld |", (long long)info->min, (long long)info->max); return;
    case VTRN_K_REG: say(doc, info->access & VTRN_WRITE ? " register, written |" : " register or integer |"); return;
    case VTRN_K_FLAG: say(doc, " bool |"); return;
    case VTRN_K_TRI: say(doc, " None, False or True |"); return;
    case VTRN_K_ENUM: say(doc, " [%s](#enums) |", vtrn_enum_set_name((enum vtrn_enum_set)info->set)); return;
    case VTRN_K_ALU: say(doc, " [%s](#operators) |", alu_set_name(info->set)); return;
    case VTRN_K_ACT: say(doc, " [function](#activation-functions) |"); return;
    case VTRN_K_INTS: say(doc, " list of up to %d integers |", info->max_count); return;
    case VTRN_K_ENGINE: say(doc, " the engine that executes it |"); return;
    case VTRN_K_STRING: say(doc, " string |"); return;
    default: problem(doc, "operand %s: a kind that isadoc does not know", info->name);
    }
}

static void say_default(struct doc *doc, const struct vtrn_operand_info *info)
{
    bool integer = info->kind == VTRN_K_INT || info->kind == VTRN_K_REG;

    if (info->kind == VTRN_K_ENGINE) say(doc, "unknown");
    else if (!info->has_default) say(doc, "%s", info->optional ? "None" : "");
    else if (info->kind == VTRN_K_FLAG) say(doc, "%s", info->dflt != 0 ? "True" : "False");
    else if (info->kind == VTRN_K_ENUM) say(doc, "%s", vtrn_enum_name((enum vtrn_enum_set)info->set, (int)info->dflt));
    else if (integer) say(doc, "%lld", (long long)info->dflt);
    else say(doc, (float)info->dflt == (float)(int)info->dflt && info->dflt < 1e9 && info->dflt > -1e9 ? "%.1f" : "%.9g", info->dflt);
}

static void say_operands(struct doc *doc, const struct vtrn_op_info *row)
{
    static const struct {
        const char *name;
        int mask;
    } where[] = { { "SBUF", VTRN_IN_S }, { "PSUM", VTRN_IN_P }, { "HBM", VTRN_IN_H } };

    if (row->operands == 0) return;
    say(doc, "| Operand | Is | In | dtypes | Default |\n|---|---|---|---|---|\n");
    for (int i = 0; i < row->operands; i++) {
        const struct vtrn_operand_info *info = &row->operand[i];

        say(doc, "| `%s` |", info->name);
        say_kind(doc, info);
        for (int k = 0; k < 3; k++)
            if (info->spaces & where[k].mask) say(doc, " %s", where[k].name);
        say(doc, " |");
        if (info->dtypes) say_dtypes(doc, info->dtypes);
        say(doc, " | ");
        say_default(doc, info);
        say(doc, " |\n");
    }
    say(doc, "\n");
}

static void say_signature(struct doc *doc, const struct vtrn_op_info *row)
{
    say(doc, "`%s(", row->name);
    for (int i = 0; i < row->operands; i++) {
        const struct vtrn_operand_info *info = &row->operand[i];

        say(doc, "%s%s", i ? ", " : "", info->name);
        if (!info->has_default && !info->optional) continue;
        say(doc, "=");
        say_default(doc, info);
    }
    say(doc, ")`\n\n");
}

static void say_engines(struct doc *doc, const struct vtrn_op_info *row)
{
    say(doc, "%s", vtrn_engine_name(row->default_engine));
    for (int engine = 1; engine < VTRN_ENGINES; engine++)
        if (engine != row->default_engine && row->engines >> engine & 1) say(doc, ", %s", vtrn_engine_name(engine));
}

static void say_targets(struct doc *doc, const struct vtrn_op_info *row)
{
    const struct vtrn_arch *arch;

    say(doc, "NeuronCore-v%d on:", row->first_version);
    for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++)
        if (arch->nc_version >= row->first_version) say(doc, " %s", arch->chip);
}

static void say_page(struct doc *doc, enum vtrn_opcode op)
{
    const struct vtrn_op_info *row = &vtrn_ops[op];
    const struct page *page = &doc->page[op];

    say(doc, "### %s\n\n", row->name);
    say_signature(doc, row);
    say_paragraph(doc, NULL, row->doc);
    say(doc, "Engine: ");
    say_engines(doc, row);
    say(doc, ". From ");
    say_targets(doc, row);
    say(doc, ". Code 0x%02x.\n\n", row->code);
    say_operands(doc, row);
    if (!page->has_body) problem(doc, "%s: no body vtrn_exec_%s in src/exec", row->name, row->name);
    for (int i = 0; i < PARTS && page->has_body; i++) {
        if (page->part[i] && page->part[i][0]) say_paragraph(doc, part_title[i], page->part[i]);
        else problem(doc, "%s: the comment above its body has no \"%s\" part", row->name, part_key[i]);
    }
    say_paragraph(doc, "Cost", vtrn_rule_text((enum vtrn_rule)row->rule));
}

/* ---------------------------------------------------------------- the tables */
static void say_index(struct doc *doc)
{
    for (int engine = 1; engine < VTRN_ENGINES; engine++) {
        say(doc, "**%s**\n\n| Instruction | From | |\n|---|---|---|\n", vtrn_engine_name(engine));
        for (int op = 1; op < VTRN_OPCODES; op++) {
            const struct vtrn_op_info *row = &vtrn_ops[op];

            if (!row->name || row->default_engine != engine) continue;
            say(doc, "| [%s](#%s) | v%d |", row->name, row->name, row->first_version);
            say_cell(doc, row->doc);
            say(doc, "\n");
        }
        say(doc, "\n");
    }
}

static void say_dtype_table(struct doc *doc)
{
    static const char *const class_name[] = {
        [VTRN_CLASS_FLOAT] = "float", [VTRN_CLASS_INT] = "signed", [VTRN_CLASS_UINT] = "unsigned", [VTRN_CLASS_BOOL] = "bool",
        [VTRN_CLASS_PACKED] = "packed",
    };

    say(doc, "## Data types\n\n| nki.language | In text | Bytes | Class | Values an element | |\n|---|---|---|---|---|---|\n");
    for (int i = 1; i < VTRN_DT_COUNT; i++) {
        const struct vtrn_dtype_info *info = &vtrn_dtypes[i];

        say(doc, "| `%s` | `%s` | %d | %s | %d |", info->nki_name, info->text, info->size_bytes, class_name[info->cls], info->lanes);
        say_cell(doc, info->doc);
        say(doc, "\n");
    }
    say(doc, "\n### dtype sets\n\n| Set | Members | |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof dtype_set / sizeof dtype_set[0]; i++) {
        say(doc, "| %s |", dtype_set[i].name);
        say_dtype_list(doc, dtype_set[i].dtypes);
        say(doc, " | %s |\n", dtype_set[i].doc);
    }
    say(doc, "\n");
}

static void say_operator_tables(struct doc *doc)
{
    say(doc, "## Operators\n\n`op(lhs, rhs)`; a reverse flag swaps the two. Arithmetic operators compute in fp32 (32-bit integers\n"
             "exactly where the page of an instruction says so), the others on the raw bits of integers.\n\n"
             "| Operator | Class | Operands | Reduces | From | |\n|---|---|---|---|---|---|\n");
    for (int i = 1; i < VTRN_ALU_COUNT; i++) {
        const struct vtrn_alu_info *info = &vtrn_alus[i];

        say(doc, "| `%s` | %s | %d | %s | v%d |", info->nki_name, info->cls == VTRN_ALU_ARITH ? "arithmetic" : "bits", info->arity,
            info->reduces ? "yes" : "", info->first_version);
        say_cell(doc, info->doc);
        say(doc, "\n");
    }
    say(doc, "\n## Activation functions\n\n| Function | Formula | Valid for |\n|---|---|---|\n");
    for (int i = 1; i < VTRN_ACT_COUNT; i++) {
        say(doc, "| `%s` |", vtrn_acts[i].nki_name);
        say_cell(doc, vtrn_acts[i].formula);
        say_cell(doc, vtrn_acts[i].range);
        say(doc, "\n");
    }
    say(doc, "\n");
}

static void say_enum_table(struct doc *doc)
{
    const char *name;
    int value;

    say(doc, "## Enums\n\n| Enum | Members |\n|---|---|\n");
    for (int set = 1; set < VTRN_ENUMS_COUNT; set++) {
        say(doc, "| `%s` |", vtrn_enum_set_name((enum vtrn_enum_set)set));
        for (int i = 0; vtrn_enum_member((enum vtrn_enum_set)set, i, &name, &value); i++)
            say(doc, "%s `%s` = %d", i ? "," : "", name, value);
        say(doc, " |\n");
    }
    say(doc, "\n");
}

/* A value in the largest unit that shows it exactly. */
static void say_quantity(struct doc *doc, int64_t value, const char *unit)
{
    static const char *const binary[] = { "B", "KiB", "MiB", "GiB" };
    int power = 0;

    if (strcmp(unit, "B") == 0) {
        for (; power < 3 && value >= 1024 && value % 1024 == 0; power++) value /= 1024;
        say(doc, "%lld %s", (long long)value, binary[power]);
    } else if (value >= 100000000 && value % 1000000 == 0) {
        say(doc, "%.15g G%s", (double)value / 1e9, unit);
    } else {
        say(doc, "%lld%s%s", (long long)value, unit[0] ? " " : "", unit);
    }
}

/* Facts of a chip; those that `other` has alike are left out. */
static void say_sources(struct doc *doc, const struct vtrn_arch *arch, const struct vtrn_arch *other)
{
    say(doc, "### %s\n\n%s.%s%s\n\n| | Value | Basis | Source |\n|---|---|---|---|\n", arch->chip, arch->doc,
        other ? " Where it differs from " : "", other ? other->chip : "");
    for (int i = 0; arch->facts[i].name; i++) {
        const struct vtrn_arch_fact *fact = &arch->facts[i];

        if (other && fact->value == other->facts[i].value) continue;
        say(doc, "| %s | ", fact->doc);
        say_quantity(doc, fact->value, fact->unit);
        say(doc, " | %s |", vtrn_basis_name(fact->basis));
        say_cell(doc, fact->source);
        say(doc, "\n");
    }
    say(doc, "\n");
}

static void say_target_tables(struct doc *doc)
{
    const struct vtrn_arch *arch, *first = vtrn_arch_list(0);

    say(doc, "## Targets\n\n| |");
    for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++) say(doc, " %s |", arch->chip);
    say(doc, "\n|---|---|---|---|---|\n");
    for (int k = 0; first->facts[k].name; k++) {
        say(doc, "| %s |", first->facts[k].doc);
        for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++) {
            say(doc, " ");
            say_quantity(doc, arch->facts[k].value, arch->facts[k].unit);
            say(doc, " |");
        }
        say(doc, "\n");
    }
    say(doc, "\n");
    for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++) {
        const struct vtrn_arch *before = i ? vtrn_arch_list(i - 1) : NULL;

        say_sources(doc, arch, before && before->nc_version == arch->nc_version ? before : NULL);
    }
}

static void say_source_table(struct doc *doc)
{
    say(doc, "## Sources\n\nWhat the letters in costs and targets stand for.\n\n| | |\n|---|---|\n");
    for (const struct vtrn_arch_source *source = vtrn_arch_sources; source->letters; source++) {
        say(doc, "| %s |", source->letters);
        say_cell(doc, source->document);
        say(doc, "\n");
    }
    say(doc, "\n");
}

static void write_manual(struct doc *doc)
{
    say(doc, "<!-- Generated by tools/isadoc from src/isa, src/arch and the comments in src/exec. Do not edit. -->\n"
             "# The instruction set\n\n"
             "Every instruction of the virtual NeuronCore: what it does, how it rounds, when it faults, where it may differ from\n"
             "the hardware, and what it costs. An instruction stands for the `nki.isa` function of its name, with the\n"
             "operands in the order of that function; those without one (loops, register arithmetic, printing) come from\n"
             "`nki.language`. P is the number of partitions of an operand, N its elements per partition; elements\n"
             "correspond in row-major order. Faults are those of a run; what a static look can tell (shapes, spaces, dtypes,\n"
             "ranges, versions) is refused when the instruction is made.\n\n"
             "[Instructions](#instructions) | [Pages](#pages) | [Data types](#data-types) | [Operators](#operators) |\n"
             "[Activation functions](#activation-functions) | [Enums](#enums) | [Targets](#targets) | [Sources](#sources) |\n"
             "[Text form](#text-form) | [Wire form](#wire-form)\n\n"
             "## Instructions\n\n");
    say_index(doc);
    say(doc, "## Pages\n\n");
    for (int op = 1; op < VTRN_OPCODES; op++)
        if (vtrn_ops[op].name) say_page(doc, (enum vtrn_opcode)op);
    say_dtype_table(doc);
    say_operator_tables(doc);
    say_enum_table(doc);
    say_target_tables(doc);
    say_source_table(doc);
    say(doc, "## Text form\n\n");
    say_head_comment(doc, "src/isa/print.c");
    say(doc, "## Wire form\n\n");
    say_head_comment(doc, "src/isa/code.c");
    doc->out.size--; /* one line feed ends the file */
}

int main(int argc, char **argv)
{
    static struct doc doc;
    bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
    char path[4096];
    FILE *file;

    doc.root = argc > 1 + check ? argv[1 + check] : ".";
    snprintf(path, sizeof path, "%s/docs/isa.md", doc.root);
    read_exec(&doc);
    write_manual(&doc);
    if (check) {
        const char *held = slurp(&doc, path);

        if (!held || strlen(held) != doc.out.size || memcmp(held, doc.out.data, doc.out.size) != 0)
            problem(&doc, "%s is stale: write it anew with \"./dev docs\"", path);
    } else {
        file = fopen(path, "wb");
        if (!file || fwrite(doc.out.data, 1, doc.out.size, file) != doc.out.size || fclose(file) != 0) die("cannot write", path);
    }
    vtrn_buf_fini(&doc.out);
    vtrn_arena_fini(&doc.arena);
    return doc.problems ? 1 : 0;
}
