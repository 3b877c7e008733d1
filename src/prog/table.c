/* The tables of a program: interned strings, source locations and tensor declarations. Front ends and loaders add to
 * them; instructions refer to them by index. A declaration is checked against the target here, so that everything
 * after it can rely on shape, size and space. Knows nothing of instructions. */
#include "prog/prog_int.h"

enum { STRING_HASH_START = 64 };

enum vtrn_status prog_grow(void *array, uint32_t *capacity, uint32_t need, size_t elem_bytes)
{
    uint32_t wanted = *capacity ? *capacity : 16;
    size_t bytes;
    void *data;

    if (need <= *capacity) return VTRN_OK;
    while (wanted < need) {
        if (wanted > UINT32_MAX / 2) return VTRN_LIMIT;
        wanted *= 2;
    }
    if (!vtrn_mul_size(wanted, elem_bytes, &bytes)) return VTRN_LIMIT;
    memcpy(&data, array, sizeof data); /* a pointer of any type: read and written as bytes */
    data = realloc(data, bytes);
    if (!data) return VTRN_NOMEM;
    memcpy(array, &data, sizeof data);
    *capacity = wanted;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- strings */
static uint32_t hash_text(const char *text, size_t length) { return (uint32_t)vtrn_hash_bytes(text, length, 0); }

static bool string_equals(const struct vtrn_prog *prog, uint32_t string, const char *text, size_t length)
{
    const char *held = vtrn_prog_text(prog, string);

    return strlen(held) == length && memcmp(held, text, length) == 0;
}

/* Slot of the text in the open-addressing table: the one that holds it, or the empty one (0) where it belongs. */
static uint32_t *find_slot(const struct vtrn_prog *prog, const char *text, size_t length)
{
    uint32_t mask = prog->string_hash_size - 1, at = hash_text(text, length) & mask;

    while (prog->string_hash[at] && !string_equals(prog, prog->string_hash[at], text, length)) at = (at + 1) & mask;
    return &prog->string_hash[at];
}

static enum vtrn_status grow_hash(struct vtrn_prog *prog)
{
    uint32_t size = prog->string_hash_size ? prog->string_hash_size * 2 : STRING_HASH_START;
    uint32_t *old = prog->string_hash;

    if (size <= prog->string_hash_size) return VTRN_LIMIT;
    prog->string_hash = calloc(size, sizeof *prog->string_hash);
    if (!prog->string_hash) {
        prog->string_hash = old;
        return VTRN_NOMEM;
    }
    prog->string_hash_size = size;
    for (uint32_t i = 1; i < prog->strings; i++) {
        const char *text = vtrn_prog_text(prog, i);

        *find_slot(prog, text, strlen(text)) = i;
    }
    free(old);
    return VTRN_OK;
}

bool prog_string_find(const struct vtrn_prog *prog, const char *text, size_t length, uint32_t *index_out)
{
    uint32_t found = length && prog->string_hash_size ? *find_slot(prog, text, length) : 0;

    if (length && !found) return false;
    *index_out = found;
    return true;
}

const char *vtrn_prog_text(const struct vtrn_prog *prog, uint32_t string)
{
    if (string >= prog->strings) return "";
    return (const char *)prog->string_bytes.data + prog->string_at[string];
}

enum vtrn_status vtrn_prog_string(struct vtrn_prog *prog, const char *text, size_t length, uint32_t *index_out)
{
    size_t start = prog->string_bytes.size;
    uint32_t *slot;

    if (length > VTRN_STRING_MAX_BYTES || start + length >= UINT32_MAX) return VTRN_LIMIT;
    if (length && memchr(text, '\0', length)) return VTRN_INVALID;
    if (length == 0 && prog->strings) {
        *index_out = 0;
        return VTRN_OK;
    }
    if (prog->strings >= prog->string_hash_size / 2) VTRN_TRY(grow_hash(prog));
    slot = find_slot(prog, text, length);
    if (*slot) {
        *index_out = *slot;
        return VTRN_OK;
    }
    VTRN_TRY(prog_grow(&prog->string_at, &prog->string_capacity, prog->strings + 1, sizeof *prog->string_at));
    VTRN_TRY(vtrn_buf_reserve(&prog->string_bytes, length + 1));
    if (length) VTRN_TRY(vtrn_buf_append(&prog->string_bytes, text, length));
    VTRN_TRY(vtrn_buf_append(&prog->string_bytes, "", 1));
    prog->string_at[prog->strings] = (uint32_t)start;
    *slot = prog->strings; /* the empty string, number 0, is found without the table */
    *index_out = prog->strings++;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- locations */
enum vtrn_status prog_loc_add(struct vtrn_prog *prog, uint32_t file_string, uint32_t line, uint32_t *loc_out)
{
    if (file_string >= prog->strings) return VTRN_INVALID;
    if (prog->locs == UINT32_MAX) return VTRN_LIMIT;
    VTRN_TRY(prog_grow(&prog->loc, &prog->loc_capacity, prog->locs + 1, sizeof *prog->loc));
    prog->loc[prog->locs] = (struct vtrn_loc){ file_string, line };
    *loc_out = prog->locs++;
    return VTRN_OK;
}

enum vtrn_status vtrn_prog_loc(struct vtrn_prog *prog, uint32_t file_string, uint32_t line, uint32_t *loc_out)
{
    uint32_t slot = (file_string * 31u + line) % (sizeof prog->loc_cache / sizeof prog->loc_cache[0]);
    uint32_t recent = prog->loc_cache[slot];

    if (file_string >= prog->strings) return VTRN_INVALID;
    if (recent < prog->locs && prog->loc[recent].file == file_string && prog->loc[recent].line == line) {
        *loc_out = recent;
        return VTRN_OK;
    }
    VTRN_TRY(prog_loc_add(prog, file_string, line, loc_out));
    prog->loc_cache[slot] = *loc_out;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensors */
static const char *label(const struct vtrn_prog *prog, const struct vtrn_tensor *tensor)
{
    const char *name = vtrn_prog_text(prog, tensor->name);

    return name[0] ? name : "(unnamed)";
}

static enum vtrn_status check_shape(const struct vtrn_prog *prog, struct vtrn_tensor *tensor, struct vtrn_error *err)
{
    bool on_chip = vtrn_space_on_chip(tensor->space);
    int first = on_chip ? 1 : 0;
    int64_t bytes = vtrn_dtypes[tensor->dtype].size_bytes;

    VTRN_FAIL_IF(tensor->rank < first + 1 || tensor->rank > VTRN_TENSOR_RANK, err, VTRN_ILLEGAL,
                 "tensor %s: rank %d is outside %d..%d (%s)", label(prog, tensor), tensor->rank, first + 1, VTRN_TENSOR_RANK,
                 on_chip ? "on chip: a partition and at least one free dimension" : "HBM");
    for (int i = 0; i < tensor->rank; i++) {
        VTRN_FAIL_IF(tensor->dim[i] < 1, err, VTRN_ILLEGAL, "tensor %s: dimension %d is %lld; it must be at least 1",
                     label(prog, tensor), i, (long long)tensor->dim[i]);
        if (i >= first && !vtrn_mul_i64(bytes, tensor->dim[i], &bytes))
            return vtrn_fail(err, VTRN_LIMIT, "tensor %s: its size does not fit in 63 bits", label(prog, tensor));
    }
    VTRN_FAIL_IF(on_chip && tensor->dim[0] > prog->arch->partitions, err, VTRN_ILLEGAL,
                 "tensor %s: partition dimension %lld > %lld (partitions of %s on %s); tile it", label(prog, tensor),
                 (long long)tensor->dim[0], (long long)prog->arch->partitions, vtrn_space_name(tensor->space), prog->arch->chip);
    tensor->partitions = on_chip ? (uint16_t)tensor->dim[0] : 0;
    tensor->row_bytes = bytes;
    return VTRN_OK;
}

static enum vtrn_status check_size(const struct vtrn_prog *prog, const struct vtrn_tensor *tensor, struct vtrn_error *err)
{
    const struct vtrn_arch *arch = prog->arch;
    bool psum = tensor->space == VTRN_PSUM, hbm = vtrn_space_is_hbm(tensor->space);
    int64_t capacity = hbm ? arch->hbm_bytes : psum ? arch->psum_banks * arch->psum_bank_bytes : arch->sbuf_partition_bytes;

    VTRN_FAIL_IF(tensor->row_bytes > capacity, err, VTRN_ILLEGAL, "tensor %s: %lld bytes%s > %lld (%s of %s)%s",
                 label(prog, tensor), (long long)tensor->row_bytes, hbm ? "" : " per partition", (long long)capacity,
                 hbm ? "all HBM" : vtrn_space_name(tensor->space), arch->chip, hbm ? "" : "; tile the free dimensions");
    if (!tensor->has_address) return VTRN_OK;
    VTRN_FAIL_IF(hbm, err, VTRN_ILLEGAL, "tensor %s: address is only for SBUF and PSUM", label(prog, tensor));
    VTRN_FAIL_IF(tensor->addr_partition + tensor->partitions > arch->partitions, err, VTRN_ILLEGAL,
                 "tensor %s: address: partitions %d..%d end beyond %lld", label(prog, tensor), tensor->addr_partition,
                 tensor->addr_partition + tensor->partitions - 1, (long long)arch->partitions - 1);
    VTRN_FAIL_IF(tensor->addr_byte + tensor->row_bytes > capacity, err, VTRN_ILLEGAL,
                 "tensor %s: address: bytes %lld..%lld of the partition end beyond %lld (%s of %s)", label(prog, tensor),
                 (long long)tensor->addr_byte, (long long)(tensor->addr_byte + tensor->row_bytes - 1), (long long)capacity - 1,
                 vtrn_space_name(tensor->space), arch->chip);
    return VTRN_OK;
}

enum vtrn_status prog_tensor_check(const struct vtrn_prog *prog, struct vtrn_tensor *tensor, struct vtrn_error *err)
{
    VTRN_FAIL_IF(tensor->name >= prog->strings || tensor->loc >= prog->locs, err, VTRN_INVALID,
                 "tensor: no such string or location in the program");
    VTRN_FAIL_IF(tensor->space < VTRN_SBUF || tensor->space > VTRN_HBM_SHARED, err, VTRN_ILLEGAL,
                 "tensor %s: no such memory space (%d)", label(prog, tensor), tensor->space);
    VTRN_FAIL_IF(tensor->dtype == VTRN_DT_NONE || tensor->dtype >= VTRN_DT_COUNT || !vtrn_dtypes[tensor->dtype].size_bytes, err,
                 VTRN_ILLEGAL, "tensor %s: no such dtype (%d)", label(prog, tensor), tensor->dtype);
    VTRN_FAIL_IF(tensor->role > VTRN_ROLE_CONST, err, VTRN_ILLEGAL, "tensor %s: no such role (%d)", label(prog, tensor),
                 tensor->role);
    VTRN_FAIL_IF(tensor->role != VTRN_ROLE_TEMP && !vtrn_space_is_hbm(tensor->space), err, VTRN_ILLEGAL,
                 "tensor %s: inputs, outputs and constants live in HBM, not in %s", label(prog, tensor),
                 vtrn_space_name(tensor->space));
    VTRN_FAIL_IF(tensor->core > VTRN_CORES_MAX || (tensor->core < VTRN_CORES_MAX && tensor->core >= prog->cores), err, VTRN_ILLEGAL,
                 "tensor %s: core %d, the program has %d", label(prog, tensor), tensor->core, prog->cores);
    VTRN_FAIL_IF(tensor->core == VTRN_CORES_MAX && !vtrn_space_is_hbm(tensor->space), err, VTRN_ILLEGAL,
                 "tensor %s: %s belongs to one core and cannot be shared", label(prog, tensor), vtrn_space_name(tensor->space));
    VTRN_TRY(check_shape(prog, tensor, err));
    return check_size(prog, tensor, err);
}

/* Keeps track of which names stand for one tensor only. */
static enum vtrn_status note_name(struct vtrn_prog *prog, uint32_t name, uint32_t tensor)
{
    uint32_t had = prog->name_tensor_capacity;

    if (name == 0) return VTRN_OK;
    VTRN_TRY(prog_grow(&prog->name_tensor, &prog->name_tensor_capacity, name + 1, sizeof *prog->name_tensor));
    if (prog->name_tensor_capacity > had)
        memset(prog->name_tensor + had, 0, (prog->name_tensor_capacity - had) * sizeof *prog->name_tensor);
    prog->name_tensor[name] = prog->name_tensor[name] == 0 ? tensor + 1 : UINT32_MAX;
    return VTRN_OK;
}

enum vtrn_status prog_tensor_add(struct vtrn_prog *prog, const struct vtrn_tensor *proto, uint32_t born, uint32_t *tensor_out,
                                 struct vtrn_error *err)
{
    struct vtrn_tensor tensor = *proto;

    VTRN_TRY(prog_tensor_check(prog, &tensor, err));
    VTRN_FAIL_IF((tensor.role == VTRN_ROLE_CONST) != (tensor.data != NULL), err, VTRN_INVALID,
                 "tensor %s: a constant has data, and nothing else has", label(prog, &tensor));
    VTRN_FAIL_IF(prog->tensors >= UINT32_MAX - 1, err, VTRN_LIMIT, "too many tensors");
    if (prog_grow(&prog->tensor, &prog->tensor_capacity, prog->tensors + 1, sizeof *prog->tensor) < 0)
        return vtrn_fail(err, VTRN_NOMEM, "no memory for the tensor table");
    if (tensor.data) {
        void *copy = vtrn_arena_alloc(&prog->arena, (size_t)tensor.row_bytes);

        VTRN_FAIL_IF(!copy, err, VTRN_NOMEM, "tensor %s: no memory for %lld bytes of data", label(prog, &tensor),
                     (long long)tensor.row_bytes);
        memcpy(copy, tensor.data, (size_t)tensor.row_bytes);
        tensor.data = copy;
    }
    if (note_name(prog, tensor.name, prog->tensors) < 0) return vtrn_fail(err, VTRN_NOMEM, "no memory for the tensor names");
    tensor.born = born;
    tensor.age = tensor.core < VTRN_CORES_MAX ? prog->code[tensor.core].forgets : 0;
    tensor.first_use = UINT32_MAX;
    tensor.last_use = 0;
    prog->tensor[prog->tensors] = tensor;
    *tensor_out = prog->tensors++;
    return VTRN_OK;
}

enum vtrn_status vtrn_prog_tensor(struct vtrn_prog *prog, const struct vtrn_tensor *proto, uint32_t *tensor_out,
                                  struct vtrn_error *err)
{
    uint32_t born = proto->core < VTRN_CORES_MAX ? prog->code[proto->core].count : 0;

    return prog_tensor_add(prog, proto, born, tensor_out, err);
}

enum vtrn_status vtrn_prog_output(struct vtrn_prog *prog, uint32_t tensor, const char *name, size_t length, struct vtrn_error *err)
{
    struct vtrn_tensor *entry = &prog->tensor[tensor];
    uint32_t string;

    VTRN_FAIL_IF(tensor >= prog->tensors || !vtrn_space_is_hbm(entry->space), err, VTRN_INVALID,
                 "tensor %u: an output is a tensor in HBM", tensor);
    if (entry->role == VTRN_ROLE_TEMP) entry->role = VTRN_ROLE_OUTPUT;
    if (entry->name || !length) return VTRN_OK;
    if (vtrn_prog_string(prog, name, length, &string) < 0 || note_name(prog, string, tensor) < 0)
        return vtrn_fail(err, VTRN_NOMEM, "no memory for the tensor names");
    entry->name = string;
    return VTRN_OK;
}

void vtrn_prog_tensor_again(struct vtrn_prog *prog, uint32_t tensor, uint32_t loc)
{
    struct vtrn_tensor *entry = &prog->tensor[tensor];

    VTRN_ASSERT(tensor < prog->tensors && loc < prog->locs);
    VTRN_ASSERT(entry->name == 0 && entry->role == VTRN_ROLE_TEMP && !entry->has_address && vtrn_space_on_chip(entry->space));
    entry->loc = loc;
    entry->born = prog->code[entry->core].count;
    entry->age = prog->code[entry->core].forgets;
    entry->first_use = UINT32_MAX;
    entry->last_use = 0;
}
