/* What the fuzz targets share. Each target is one function over bytes (libFuzzer's entry point); replay.c runs it over
 * the corpus in every build. A target checks more than survival: what is accepted must also come back the same. */
#ifndef VTRN_TESTS_FUZZ_H
#define VTRN_TESTS_FUZZ_H
#include "prog/prog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise: shows both sides and stops, so that the fuzzer keeps the input. */
#define FUZZ_CHECK(cond, ...) \
    do { \
        if (!(cond)) { \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
            abort(); \
        } \
    } while (0)

static inline bool fuzz_same(const struct vtrn_buf *a, const struct vtrn_buf *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* print -> parse -> print and save -> load -> save of an accepted program. */
static inline void fuzz_round_trips(const struct vtrn_prog *prog)
{
    struct vtrn_buf text = { 0 }, text2 = { 0 }, bytes = { 0 }, bytes2 = { 0 };
    struct vtrn_prog *parsed = NULL, *loaded = NULL;
    struct vtrn_error err = { 0 };

    FUZZ_CHECK(vtrn_prog_verify(prog, &err) >= 0, "accepted, but: %s", err.text);
    FUZZ_CHECK(vtrn_prog_print(prog, &text, &err) >= 0 && vtrn_prog_parse((char *)text.data, text.size, &parsed, &err) >= 0 &&
                   vtrn_prog_print(parsed, &text2, &err) >= 0,
               "%s\n%.*s", err.text, (int)text.size, (char *)text.data);
    FUZZ_CHECK(fuzz_same(&text, &text2), "%.*s\nprints again as\n%.*s", (int)text.size, (char *)text.data, (int)text2.size,
               (char *)text2.data);
    FUZZ_CHECK(vtrn_prog_save(prog, &bytes, &err) >= 0 && vtrn_prog_load(bytes.data, bytes.size, &loaded, &err) >= 0 &&
                   vtrn_prog_save(loaded, &bytes2, &err) >= 0,
               "%s", err.text);
    FUZZ_CHECK(fuzz_same(&bytes, &bytes2), "saves again as other bytes");
    vtrn_buf_fini(&text);
    vtrn_buf_fini(&text2);
    vtrn_buf_fini(&bytes);
    vtrn_buf_fini(&bytes2);
    vtrn_prog_destroy(parsed);
    vtrn_prog_destroy(loaded);
}
#endif
