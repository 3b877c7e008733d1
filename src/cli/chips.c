/* `vtrn chips`: what each chip is, as data with the evidence of every number. */
#include "cli/cli.h"

static const char help[] =
    "usage: vtrn chips [NAME] [--json]\n"
    "\n"
    "Without a name: the chips that vtrn can be, with their main numbers.\n"
    "With one (trn1, inf2, trn2, trn3; also gen2..gen4, v2..v4): every number that vtrn knows of it, with its basis\n"
    "(documented, measured, derived, assumed) and where it comes from.\n"
    "\n"
    "  --json   the same rows for programs\n"
    "\n"
    "  vtrn chips\n"
    "  vtrn chips trn2\n"
    "  vtrn chips trn3 --json | jq '.facts[] | select(.basis == \"assumed\")'\n";

static int64_t fact_value(int target, const char *name)
{
    struct vtrn_fact_info fact;

    for (int i = 0; vtrn_target_fact(target, i, &fact, sizeof fact) == VTRN_OK; i++)
        if (strcmp(fact.name, name) == 0) return fact.value;
    return 0;
}

/* 2.4 GHz, 2.9 TB/s: decimal units, as data sheets have them. */
static void rate_text(int64_t value, const char *unit, char *out, size_t size)
{
    static const char *const prefix[] = { "", "k", "M", "G", "T", "P" };
    double real = (double)value;
    int p = 0;

    for (; p < 5 && real >= 1000; p++) real /= 1000;
    snprintf(out, size, "%.4g %s%s", real, prefix[p], unit);
}

static void value_text(const struct vtrn_fact_info *fact, char *out, size_t size)
{
    char number[32];

    if (strcmp(fact->unit, "B") == 0) {
        vtrn_bytes_text(fact->value, out);
    } else if (strcmp(fact->unit, "Hz") == 0 || strcmp(fact->unit, "B/s") == 0) {
        rate_text(fact->value, fact->unit, out, size);
    } else {
        vtrn_count_text(fact->value, number);
        snprintf(out, size, "%s%s%s", number, *fact->unit ? " " : "", fact->unit);
    }
}

static int list_chips(const struct cli_command *command, bool json)
{
    static const struct vtrn_column columns[] = {
        { "name", VTRN_COLUMN_TEXT },        { "what", VTRN_COLUMN_TEXT },         { "cores", VTRN_COLUMN_COUNT },
        { "sbuf_per_core", VTRN_COLUMN_BYTES }, { "psum_per_core", VTRN_COLUMN_BYTES }, { "hbm", VTRN_COLUMN_BYTES },
        { "hbm_bandwidth", VTRN_COLUMN_TEXT }, { "tensor_clock", VTRN_COLUMN_TEXT },
    };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_target_info info;
    enum vtrn_status status = VTRN_NOMEM;

    for (int i = 0; table && vtrn_target_get(i, &info, sizeof info) == VTRN_OK; i++) {
        char bandwidth[32], clock[32];
        int64_t partitions = fact_value(i, "partitions");

        rate_text(fact_value(i, "hbm_bandwidth"), "B/s", bandwidth, sizeof bandwidth);
        rate_text(fact_value(i, "pe_clock"), "Hz", clock, sizeof clock);
        vtrn_table_row(table, info.name, info.doc, fact_value(i, "cores_per_chip"),
                       partitions * fact_value(i, "sbuf_partition_bytes"),
                       partitions * fact_value(i, "psum_banks") * fact_value(i, "psum_bank_bytes"), fact_value(i, "hbm_bytes"),
                       bandwidth, clock);
    }
    if (table) status = json ? vtrn_json_print(vtrn_table_json(table), stdout) : vtrn_table_print(table, stdout);
    if (status == VTRN_OK && !json) printf("\nvtrn chips NAME lists every number with its basis and source.\n");
    vtrn_table_destroy(table);
    return cli_printed(command, status);
}

static json_t *facts_json(const struct vtrn_target_info *info, int target)
{
    static const struct vtrn_column columns[] = { { "name", VTRN_COLUMN_TEXT },  { "value", VTRN_COLUMN_COUNT },
                                                  { "unit", VTRN_COLUMN_TEXT },  { "basis", VTRN_COLUMN_TEXT },
                                                  { "source", VTRN_COLUMN_TEXT }, { "doc", VTRN_COLUMN_TEXT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_fact_info fact;
    json_t *facts;

    if (!table) return NULL;
    for (int i = 0; vtrn_target_fact(target, i, &fact, sizeof fact) == VTRN_OK; i++)
        vtrn_table_row(table, fact.name, fact.value, fact.unit, fact.basis, fact.source, fact.doc);
    facts = vtrn_table_json(table);
    vtrn_table_destroy(table);
    if (!facts) return NULL;
    return json_pack("{s:s, s:s, s:s, s:i, s:o}", "name", info->name, "generation", info->generation, "what", info->doc,
                     "nc_version", info->nc_version, "facts", facts);
}

/* Whether a fact of this chip names the source: its letters as a whole word. */
static bool names_source(int target, const char *letters)
{
    size_t length = strlen(letters);
    struct vtrn_fact_info fact;

    for (int i = 0; vtrn_target_fact(target, i, &fact, sizeof fact) == VTRN_OK; i++)
        for (const char *at = fact.source; (at = strstr(at, letters)) != NULL; at++)
            if ((at == fact.source || strchr(" ;,(", at[-1])) && (!at[length] || strchr(" :;,)", at[length]))) return true;
    return false;
}

static void print_sources(int target)
{
    struct vtrn_source_info source;

    printf("\nsources:\n");
    for (int i = 0; vtrn_source_get(i, &source, sizeof source); i++)
        if (names_source(target, source.letters)) printf("  %-4s %s\n", source.letters, source.document);
}

static enum vtrn_status print_facts(const struct vtrn_target_info *info, int target)
{
    static const struct vtrn_column columns[] = { { "fact", VTRN_COLUMN_TEXT },
                                                  { "value", VTRN_COLUMN_TEXT },
                                                  { "basis", VTRN_COLUMN_TEXT },
                                                  { "source", VTRN_COLUMN_TEXT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_fact_info fact;
    enum vtrn_status status;

    if (!table) return VTRN_NOMEM;
    printf("%s: %s (%s)\n\n", info->name, info->doc, info->generation);
    for (int i = 0; vtrn_target_fact(target, i, &fact, sizeof fact) == VTRN_OK; i++) {
        char value[64];

        value_text(&fact, value, sizeof value);
        vtrn_table_row(table, fact.doc, value, fact.basis, fact.source);
    }
    status = vtrn_table_print(table, stdout);
    if (status == VTRN_OK) print_sources(target);
    vtrn_table_destroy(table);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = { { "--json", 0, CLI_FLAG, &json }, { 0 } };
    struct vtrn_target_info info;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    int count, target, code = cli_options(command, argc, argv, options, &count);

    if (code >= 0) return code;
    if (count > 1) return cli_fail(command, CLI_USAGE, "one chip at a time; %s is too much", argv[1]);
    if (count == 0) return list_chips(command, json);
    status = vtrn_target_find(argv[0], &target, &err);
    if (status < 0) return cli_fail_status(command, status, &err);
    vtrn_target_get(target, &info, sizeof info);
    status = json ? vtrn_json_print(facts_json(&info, target), stdout) : print_facts(&info, target);
    return cli_printed(command, status);
}

const struct cli_command cli_chips = { "chips", "what each chip is, every number with its source", help, run };
