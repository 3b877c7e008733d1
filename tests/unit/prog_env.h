/* A program with tensors of every kind, for tests of prog/. Instructions come as text, so that a test reads like the
 * assembly it is about. */
#ifndef VTRN_TESTS_PROG_ENV_H
#define VTRN_TESTS_PROG_ENV_H
#include "unit.h"

#include "prog/prog.h"

/* On chip 128 partitions by 512 elements unless the name says otherwise. */
static const char env_tensors[] = "loc 1 \"kernels/kernel.py\" 41\n"
                                  "tensor 0 \"a\" sbuf bf16 [128, 512]\n"
                                  "tensor 1 \"b\" sbuf bf16 [128, 1024]\n"
                                  "tensor 2 \"f\" sbuf f32 [128, 512]\n"
                                  "tensor 3 \"g\" sbuf f32 [128, 512]\n"
                                  "tensor 4 \"h\" sbuf f16 [128, 512]\n"
                                  "tensor 5 \"i\" sbuf i32 [128, 512]\n"
                                  "tensor 6 \"j\" sbuf i32 [128, 512]\n"
                                  "tensor 7 \"u\" sbuf u32 [128, 512]\n"
                                  "tensor 8 \"u16\" sbuf u16 [128, 512]\n"
                                  "tensor 9 \"u8\" sbuf u8 [128, 512]\n"
                                  "tensor 10 \"e4\" sbuf f8e4 [128, 1024]\n"
                                  "tensor 11 \"e5\" sbuf f8e5 [128, 1024]\n"
                                  "tensor 12 \"fn\" sbuf f8e4fn [128, 1024]\n"
                                  "tensor 13 \"x4\" sbuf f8e4fnx4 [128, 512]\n"
                                  "tensor 14 \"x5\" sbuf f8e5x4 [128, 512]\n"
                                  "tensor 15 \"f4\" sbuf f4x4 [128, 512]\n"
                                  "tensor 16 \"s8\" sbuf u8 [128, 512]\n"
                                  "tensor 17 \"e8\" sbuf e8m0 [128, 512]\n"
                                  "tensor 18 \"t\" sbuf tf32 [128, 512]\n"
                                  "tensor 19 \"bl\" sbuf b8 [128, 512]\n"
                                  "tensor 20 \"p\" psum f32 [128, 512]\n"
                                  "tensor 21 \"q\" psum f32 [128, 512]\n"
                                  "tensor 22 \"pall\" psum f32 [128, 4096]\n"
                                  "tensor 23 \"pb\" psum bf16 [128, 1024]\n"
                                  "tensor 24 \"pi\" psum i32 [128, 512]\n"
                                  "tensor 25 \"v\" sbuf f32 [128, 1]\n"
                                  "tensor 26 \"w\" sbuf f32 [128, 1]\n"
                                  "tensor 27 \"vb\" sbuf bf16 [128, 1]\n"
                                  "tensor 28 \"vi\" sbuf u32 [128, 4]\n"
                                  "tensor 29 \"big\" sbuf u8 [128, 100000]\n"
                                  "tensor 30 \"x\" hbm bf16 [1024, 512] input\n"
                                  "tensor 31 \"xf\" hbm f32 [1024, 512] input\n"
                                  "tensor 32 \"y\" shared_hbm bf16 [1024, 512] output core=all\n"
                                  "tensor 33 \"xi\" hbm i32 [1024] input\n"
                                  "tensor 34 \"x4h\" hbm f8e4fnx4 [128, 512] input\n"
                                  "tensor 35 \"at\" sbuf f32 [128, 512] address=0:4096\n"
                                  "tensor 36 \"at32\" sbuf f32 [96, 512] address=32:8192\n"
                                  "tensor 37 \"patb\" psum f32 [128, 512] address=0:1024\n"
                                  "tensor 38 \"ix\" sbuf u16 [128, 32] address=0:0\n"
                                  "tensor 39 \"ix16\" sbuf u16 [64, 32] address=16:0\n"
                                  "tensor 40 \"pt\" psum f8e4 [128, 512]\n"
                                  "tensor 41 \"two\" sbuf f32 [128, 512] address=0:12288\n"
                                  "tensor 42 \"p16\" psum f16 [128, 512]\n"
                                  "tensor 43 \"c\" hbm f32 [2, 2] const\n"
                                  "  data 0000803f000000000000000000008040\n";

/* The program; `cores` 2 gives core 1 two tensors of its own, %r1 and %s1. */
static inline struct vtrn_prog *env_create(const char *target, int cores)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = NULL;
    struct vtrn_buf text = { 0 };

    assert_int_equal(
        vtrn_buf_printf(&text, "vtrn 1\ntarget %s\ncores %d\nname \"env\"\n%s%s", target, cores, env_tensors,
                        cores < 2 ? "" : "tensor 44 \"r1\" sbuf f32 [128, 512] core=1\ntensor 45 \"s1\" sbuf f32 [128, 512] core=1\n"),
        VTRN_OK);
    if (vtrn_prog_parse((const char *)text.data, text.size, &prog, &err) < 0) fail_msg("%s", err.text);
    vtrn_buf_fini(&text);
    return prog;
}

/* Parses one instruction; the caller's test fails when the text is malformed. */
static inline void env_inst(struct vtrn_prog *prog, const char *text, struct vtrn_inst *inst)
{
    struct vtrn_text_names names = vtrn_prog_names(prog);
    struct vtrn_error err = { 0 };

    if (vtrn_inst_parse(text, strlen(text), &names, inst, &err) < 0) fail_msg("%s\n%s", text, err.text);
}

static inline enum vtrn_status env_append(struct vtrn_prog *prog, int core, const char *text, struct vtrn_error *err)
{
    static struct vtrn_inst inst;

    env_inst(prog, text, &inst);
    return vtrn_prog_append(prog, core, &inst, NULL, err);
}
#endif
