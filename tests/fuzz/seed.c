/* Writes the seed corpus: random legal programs as files, as text, and their instructions one by one.
 * seed FOLDER writes FOLDER/load, FOLDER/text and FOLDER/inst; run it when a format changes, and check the result in. */
#include "prog_random.h"

#include <sys/stat.h>

enum { PROGRAMS = 12, PATH_BYTES = 1024 };

static void write_file(const char *folder, const char *kind, const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, kind);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, kind, name);
    file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
}

/* One instruction of each opcode, the first that comes. */
static void write_instructions(const char *folder, const struct vtrn_prog *prog, bool *seen)
{
    struct vtrn_inst inst;

    for (int core = 0; core < prog->cores; core++) {
        const struct vtrn_code *code = &prog->code[core];

        for (uint32_t i = 0; i < code->count; i++) {
            vtrn_prog_get(prog, core, i, &inst);
            if (seen[inst.op]) continue;
            seen[inst.op] = true;
            write_file(folder, "inst", vtrn_ops[inst.op].name, code->words.data + 4 * (size_t)code->start[i],
                       4 * (size_t)(code->start[i + 1] - code->start[i]));
        }
    }
}

static void write_seeds(void **state)
{
    const char *folder = *state;
    bool seen[VTRN_OPCODES] = { false };

    for (uint64_t seed = 0; seed < 400; seed++) {
        struct vtrn_prog *prog = random_program(seed);
        struct vtrn_buf bytes = { 0 }, text = { 0 };
        char name[32];

        write_instructions(folder, prog, seen);
        assert_int_equal(vtrn_prog_save(prog, &bytes, NULL), VTRN_OK);
        assert_int_equal(vtrn_prog_print(prog, &text, NULL), VTRN_OK);
        snprintf(name, sizeof name, "program-%d", (int)seed);
        if (seed < PROGRAMS) {
            write_file(folder, "load", name, bytes.data, bytes.size);
            write_file(folder, "text", name, text.data, text.size);
        }
        vtrn_buf_fini(&bytes);
        vtrn_buf_fini(&text);
        vtrn_prog_destroy(prog);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(write_seeds, argc > 1 ? argv[1] : ".") };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
