/* The generations, expanded from gen2.def, gen3.def and gen4.def: once as plain numbers for those who compute with
 * them, once as facts with basis and source for those who report. Also the names by which users call a target.
 * Must not know what the numbers are used for. */
#include "arch/arch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A fact takes unit and doc from the list of fields, value, basis and source from the generation's row. */
#define FIELD(name, unit, doc) static const char unit_of_##name[] = unit, doc_of_##name[] = doc;
VTRN_ARCH_SIZES(FIELD)
#undef FIELD

#define SIZE(name, value, basis, source) [VTRN_FACT_##name] = { #name, unit_of_##name, doc_of_##name, source, value, VTRN_##basis },
static const struct vtrn_arch_fact trn1_facts[VTRN_FACTS + 1] = {
#include "arch/gen2.def"
};
static const struct vtrn_arch_fact inf2_facts[VTRN_FACTS + 1] = {
#define ARCH_INF2
#include "arch/gen2.def"
#undef ARCH_INF2
};
static const struct vtrn_arch_fact trn2_facts[VTRN_FACTS + 1] = {
#include "arch/gen3.def"
};
static const struct vtrn_arch_fact trn3_facts[VTRN_FACTS + 1] = {
#include "arch/gen4.def"
};
#undef SIZE

#define SIZE(name, value, basis, source) .name = value,
static const struct vtrn_arch trn1 = { .name = "gen2", .chip = "trn1", .doc = "Trainium1, NeuronCore-v2", .facts = trn1_facts,
#include "arch/gen2.def"
};
static const struct vtrn_arch inf2 = { .name = "gen2", .chip = "inf2", .doc = "Inferentia2, NeuronCore-v2", .facts = inf2_facts,
#define ARCH_INF2
#include "arch/gen2.def"
#undef ARCH_INF2
};
static const struct vtrn_arch trn2 = { .name = "gen3", .chip = "trn2", .doc = "Trainium2, NeuronCore-v3", .facts = trn2_facts,
#include "arch/gen3.def"
};
static const struct vtrn_arch trn3 = { .name = "gen4", .chip = "trn3", .doc = "Trainium3, NeuronCore-v4", .facts = trn3_facts,
#include "arch/gen4.def"
};
#undef SIZE

const struct vtrn_arch_source vtrn_arch_sources[] = {
#define SOURCE(letters, document) { letters, document },
#include "arch/sources.def"
#undef SOURCE
    { NULL, NULL },
};

const struct vtrn_arch *vtrn_arch_list(int i)
{
    static const struct vtrn_arch *const list[] = { &trn1, &inf2, &trn2, &trn3 };

    return i >= 0 && i < (int)(sizeof list / sizeof list[0]) ? list[i] : NULL;
}

/* Names of the same chip in other places: AWS's instance types (trn1n, trn2u: more network, UltraServer links) and what
 * Neuron's compiler calls chips before their release (trn3pre). A size after a dot, as in inf2.xlarge, changes nothing. */
static const char *const other_name[][2] = { { "trn1n", "trn1" }, { "trn2u", "trn2" }, { "trn3u", "trn3" }, { "trn3pre", "trn3" } };

static const char *chip_of(const char *target, char *text, size_t size)
{
    snprintf(text, size, "%.*s", (int)strcspn(target, "."), target);
    for (size_t i = 0; i < sizeof other_name / sizeof other_name[0]; i++)
        if (strcasecmp(text, other_name[i][0]) == 0) return other_name[i][1];
    return text;
}

/* Chip names first; a generation's name means the first chip of it: gen2 and v2 are trn1. */
const struct vtrn_arch *vtrn_arch_find(const char *target)
{
    const struct vtrn_arch *arch;
    char text[32];

    if (!target) return NULL;
    target = chip_of(target, text, sizeof text);
    for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++) {
        char version[8];

        snprintf(version, sizeof version, "v%d", (int)arch->nc_version);
        if (strcasecmp(target, arch->chip) == 0 || strcasecmp(target, arch->name) == 0 || strcasecmp(target, version) == 0)
            return arch;
    }
    return NULL;
}

const char *vtrn_basis_name(enum vtrn_basis basis)
{
    switch (basis) {
    case VTRN_DOCUMENTED: return "documented";
    case VTRN_MEASURED: return "measured";
    case VTRN_DERIVED: return "derived";
    case VTRN_ASSUMED: return "assumed";
    }
    return "unknown";
}
