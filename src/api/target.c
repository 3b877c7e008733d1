/* Public API: targets as data with evidence, and the library's small services. A view of arch/, nothing is decided here. */
#include "api/api_int.h"

const char *vtrn_version(void) { return VTRN_VERSION; }

void vtrn_free(void *ptr) { free(ptr); }

uint64_t vtrn_digest(const void *bytes, size_t size_bytes) { return vtrn_hash_bytes(bytes, size_bytes, 0); }

/* ---------------------------------------------------------------- targets */
int vtrn_target_count(void)
{
    int count = 0;

    while (vtrn_arch_list(count)) count++;
    return count;
}

static int count_facts(const struct vtrn_arch *arch)
{
    int count = 0;

    while (arch->facts[count].name) count++;
    return count;
}

enum vtrn_status vtrn_target_get(int target, struct vtrn_target_info *info, size_t info_size)
{
    const struct vtrn_arch *arch = vtrn_arch_list(target);
    struct vtrn_target_info full;

    if (!arch) return VTRN_INVALID;
    full = (struct vtrn_target_info){ .name = arch->chip,
                                      .generation = arch->name,
                                      .doc = arch->doc,
                                      .nc_version = (int)arch->nc_version,
                                      .facts = count_facts(arch) };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

enum vtrn_status vtrn_target_fact(int target, int fact, struct vtrn_fact_info *info, size_t info_size)
{
    const struct vtrn_arch *arch = vtrn_arch_list(target);
    const struct vtrn_arch_fact *from;
    struct vtrn_fact_info full;

    if (!arch || fact < 0 || fact >= count_facts(arch)) return VTRN_INVALID;
    from = &arch->facts[fact];
    full = (struct vtrn_fact_info){ .name = from->name,
                                    .unit = from->unit,
                                    .doc = from->doc,
                                    .value = from->value,
                                    .basis = vtrn_basis_name(from->basis),
                                    .source = from->source };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

bool vtrn_source_get(int i, struct vtrn_source_info *info, size_t info_size)
{
    struct vtrn_source_info full;
    int count = 0;

    while (vtrn_arch_sources[count].letters) count++;
    if (i < 0 || i >= count) return false;
    full = (struct vtrn_source_info){ vtrn_arch_sources[i].letters, vtrn_arch_sources[i].document };
    api_give(info, info_size, &full, sizeof full);
    return true;
}

enum vtrn_status vtrn_target_find(const char *name, int *target_out, struct vtrn_error *err)
{
    const struct vtrn_arch *wanted = vtrn_arch_find(name);
    char known[128] = "";

    for (int i = 0; vtrn_arch_list(i); i++) {
        size_t length = strlen(known);

        if (wanted && vtrn_arch_list(i) == wanted) {
            *target_out = i;
            return VTRN_OK;
        }
        snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", vtrn_arch_list(i)->chip);
    }
    return vtrn_fail(err, VTRN_INVALID, "no chip is called \"%s\"; there are %s", name ? name : "", known);
}
