/* The reader of program text. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* a block of exactly the size: a read beyond it is seen */
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };

    if (!text) return 0;
    if (size) memcpy(text, data, size);
    if (vtrn_prog_parse(text, size, &prog, &err) < 0) FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'), "message: %s", err.text);
    else fuzz_round_trips(prog);
    vtrn_prog_destroy(prog);
    free(text);
    return 0;
}
