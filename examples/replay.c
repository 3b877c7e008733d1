/* Runs a recorded program from C: no Python, only libvtrn and its public headers.
 *
 *   cc -o replay replay.c $(pkg-config --cflags --libs vtrn)
 *   ./replay matmul.vtrn
 *
 * Every input gets the same simple ramp, the program runs twice on one machine, and the results are
 * named by digest: both runs must agree to the bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vtrn/vtrn.h>

static int fail(const struct vtrn_error *err)
{
    fprintf(stderr, "replay: %s\n", err->text);
    return 1;
}

/* Small numbers in every dtype: bytes 0, 1, 2, ... in the low half of each element, nothing in the exponent. */
static void *ramp(const struct vtrn_tensor_info *info)
{
    unsigned char *bytes = calloc(info->size_bytes, 1);

    for (size_t at = 0; bytes && at < info->size_bytes; at += info->element_bytes) bytes[at] = (unsigned char)(at / info->element_bytes % 7);
    return bytes;
}

static int bind_inputs(struct vtrn_program *program, struct vtrn_machine *machine, void **held, struct vtrn_error *err)
{
    struct vtrn_tensor_info info;
    uint32_t tensor;

    for (uint32_t i = 0; (tensor = vtrn_program_input(program, i)) != UINT32_MAX; i++) {
        vtrn_program_tensor(program, tensor, &info, sizeof info);
        held[i] = ramp(&info);
        if (!held[i]) {
            snprintf(err->text, sizeof err->text, "no memory for input %s", info.name);
            return -1;
        }
        if (vtrn_machine_bind(machine, tensor, held[i], info.size_bytes, err) < 0) return -1;
    }
    return 0;
}

/* One digest over all results. */
static int run_once(struct vtrn_program *program, struct vtrn_machine *machine, int show, uint64_t *digest_out, struct vtrn_error *err)
{
    struct vtrn_tensor_info info;
    uint64_t all = 0;
    uint32_t tensor;

    if (vtrn_machine_run(machine, err) < 0) return -1;
    for (uint32_t i = 0; (tensor = vtrn_program_output(program, i)) != UINT32_MAX; i++) {
        const void *bytes;
        uint64_t digest;
        size_t size;

        if (vtrn_machine_read(machine, tensor, &bytes, &size, err) < 0) return -1;
        digest = vtrn_digest(bytes, size);
        all = all * 31 + digest;
        vtrn_program_tensor(program, tensor, &info, sizeof info);
        if (show) printf("  %-10s %-10s %8zu bytes  %016llx\n", info.name, info.dtype, size, (unsigned long long)digest);
    }
    *digest_out = all;
    return 0;
}

int main(int argc, char **argv)
{
    struct vtrn_program *program;
    struct vtrn_program_info info;
    struct vtrn_machine_options options;
    struct vtrn_machine *machine = NULL;
    struct vtrn_counter_info counter;
    struct vtrn_fault_info fault;
    struct vtrn_error err;
    uint64_t first, second;
    void **held;
    int bad;

    if (argc != 2) {
        fprintf(stderr, "usage: replay PROGRAM.vtrn\n");
        return 2;
    }
    if (vtrn_program_load_file(argv[1], &program, &err) < 0) return fail(&err);
    vtrn_program_get(program, &info, sizeof info);
    printf("%s: %llu instructions for %s\n", info.name, (unsigned long long)info.instructions, info.target);

    vtrn_machine_options_init(&options);
    options.threads = 1;
    held = calloc(info.inputs + 1, sizeof *held);
    bad = !held || vtrn_machine_create(program, &options, &machine, &err) < 0 || bind_inputs(program, machine, held, &err) < 0 ||
          run_once(program, machine, 1, &first, &err) < 0 || run_once(program, machine, 0, &second, &err) < 0;
    if (bad) {
        fail(&err);
        if (machine && vtrn_machine_fault(machine, &fault, sizeof fault))
            fprintf(stderr, "  %s:%u: %s\n", fault.file, fault.line, fault.disassembly);
    } else {
        for (int i = 0; vtrn_machine_counter(machine, i, &counter, sizeof counter); i++)
            if (counter.value) printf("  %-20s %12llu  (%s)\n", counter.name, (unsigned long long)counter.value, counter.doc);
        bad = first != second;
        printf("%s\n", bad ? "the two runs differ" : "two runs, the same bits");
    }
    vtrn_machine_destroy(machine);
    vtrn_program_destroy(program);
    for (uint32_t i = 0; held && i < info.inputs; i++) free(held[i]);
    free(held);
    return bad;
}
