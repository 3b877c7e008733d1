/* The loader of .vtrn files. Checksums would stop every mutation at the door, so the bytes are also tried with magic,
 * size and checksums made right. */
#include "fuzz.h"

#include "prog/file_int.h"
#include "time/time.h"

static void seal(uint8_t *bytes, size_t size)
{
    uint64_t sections;

    if (size < FILE_HEADER_BYTES) return;
    memcpy(bytes, file_magic, sizeof file_magic);
    file_put32(bytes + 8, FILE_VERSION);
    file_put64(bytes + 16, size);
    sections = file_get32(bytes + 12);
    if (sections > FILE_SECTIONS_MAX || FILE_HEADER_BYTES + sections * FILE_ENTRY_BYTES > size) return;
    for (uint64_t i = 0; i < sections; i++) {
        uint8_t *entry = bytes + FILE_HEADER_BYTES + i * FILE_ENTRY_BYTES;
        uint64_t offset = file_get64(entry + 8), length = file_get64(entry + 16);

        if (offset <= size && length <= size - offset) file_put64(entry + 24, vtrn_hash_bytes(bytes + offset, (size_t)length, 0));
    }
    file_put64(bytes + 24, vtrn_hash_bytes(bytes + FILE_HEADER_BYTES, (size_t)sections * FILE_ENTRY_BYTES, 0));
}

/* A legal program has a time, or a reason why not. */
static void check_time(const struct vtrn_prog *prog)
{
    struct vtrn_time_options options;
    struct vtrn_time *time = NULL;
    struct vtrn_error err = { 0 };

    vtrn_time_options_init(&options);
    options.most_steps = 500;
    if (vtrn_time_run(prog, &options, &time, &err) < 0) {
        FUZZ_CHECK(err.text[0], "not timed without a message");
        return;
    }
    FUZZ_CHECK(time->span_ps >= time->count_ps, "faster than counting allows");
    vtrn_time_destroy(time);
}

static void load(const uint8_t *data, size_t size)
{
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };

    if (vtrn_prog_load(data, size, &prog, &err) < 0) {
        FUZZ_CHECK(err.text[0], "refused without a message");
        return;
    }
    fuzz_round_trips(prog);
    check_time(prog);
    vtrn_prog_destroy(prog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = malloc(size ? size : 1);

    load(data, size);
    if (sealed) {
        if (size) memcpy(sealed, data, size);
        seal(sealed, size);
        load(sealed, size);
    }
    free(sealed);
    return 0;
}
