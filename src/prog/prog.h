/* prog: the program, the middle of the system. A tensor table, source locations, strings, and for each core one list
 * of instructions in program order; an engine's stream is that list filtered by the engine column. Front ends append;
 * exec and time read. Printable, parseable, savable.
 *
 * Order: exec runs a core's instructions in list order, which is a legal order of the engines' streams because every
 * dependency (memory region, register, depends_on edge) points backwards in the list. */
#ifndef VTRN_PROG_H
#define VTRN_PROG_H
#include "arch/arch.h"
#include "isa/isa.h"

enum { VTRN_CORES_MAX = 2, VTRN_TENSOR_RANK = 8, VTRN_LOOP_DEPTH = 16 };
/* Sane limits of a program: what a file or a front end may ask for before it is an error. */
enum { VTRN_REGISTERS_MAX = 1 << 20, VTRN_STRING_MAX_BYTES = 1 << 20 };

enum vtrn_tensor_role {
    VTRN_ROLE_TEMP,   /* allocated by the program */
    VTRN_ROLE_INPUT,  /* bound by the caller; may also be written (in-out) */
    VTRN_ROLE_OUTPUT, /* allocated by the program, returned to the caller */
    VTRN_ROLE_CONST,  /* data held by the program */
};
struct vtrn_tensor {
    uint8_t space; /* enum vtrn_space */
    uint8_t dtype;
    uint8_t rank;
    uint8_t role;
    uint8_t core;       /* owner; VTRN_CORES_MAX: shared by all cores */
    uint8_t has_address;
    uint16_t partitions; /* on chip: partitions it spans (dim 0); HBM: 0 */
    uint32_t name;       /* string table; 0: none */
    uint32_t loc;
    int64_t dim[VTRN_TENSOR_RANK];
    int64_t row_bytes;   /* on chip: bytes in a partition; HBM: all its bytes */
    uint16_t addr_partition;
    uint32_t addr_byte;  /* with has_address: byte in the partition */
    /* Positions in `core`'s list (shared tensors: the lowest and the highest of all lists), counted from the last
     * vtrn_prog_forget_code. `born`: length of the list when the tensor was declared. first_use, last_use: index of the
     * first and last instruction that names it; UINT32_MAX / 0: never used. A tensor that is born before a loop and used
     * inside lives at least to the loop's end: the next turn of the loop may need it. */
    uint32_t born, first_use, last_use;
    uint32_t age;        /* code[core].forgets when it was declared: if they differ, it was born before the list */
    const void *data;    /* CONST: row_bytes bytes owned by the program */
};
struct vtrn_loc {
    uint32_t file; /* string table */
    uint32_t line;
};
struct vtrn_edge { /* depends_on */
    uint32_t consumer, producer;
};
struct vtrn_loop { /* a loop_begin or while_begin and its loop_end */
    uint32_t begin, end;  /* instructions; end is UINT32_MAX while the loop is open */
    uint32_t outer;       /* the loop around it; UINT32_MAX: none */
};
struct vtrn_code {
    struct vtrn_buf words;     /* wire form, back to back */
    uint32_t *start;           /* word index of each instruction; start[count] is the end */
    uint32_t count, capacity;
    struct vtrn_edge *edge;
    uint32_t edges, edge_capacity;
    struct vtrn_loop *loop; /* in order of their begin */
    uint32_t loops, loop_capacity;
    uint32_t loop_depth, open_loop; /* loops that are open, and the innermost of them (while loop_depth is not 0) */
    uint32_t forgets; /* how often the list was forgotten */
};
struct vtrn_prog {
    const struct vtrn_arch *arch;
    int cores;
    bool replayable;       /* false: Python looked at values while tracing */
    uint32_t name;         /* string table: the kernel's name */
    struct vtrn_tensor *tensor;
    uint32_t tensors, tensor_capacity;
    struct vtrn_loc *loc; /* [0] is "unknown" */
    uint32_t locs, loc_capacity;
    uint32_t loc_cache[64]; /* recent locations by hash: a loop in the kernel meets the same lines again and again */
    struct vtrn_buf string_bytes;
    uint32_t *string_at; /* offsets; [0] is "" */
    uint32_t strings, string_capacity;
    uint32_t *string_hash; /* open addressing, for interning */
    uint32_t string_hash_size;
    uint32_t *name_tensor; /* by string: 0: names no tensor, t+1: names tensor t alone, UINT32_MAX: names several */
    uint32_t name_tensor_capacity;
    uint32_t registers;    /* virtual registers in use: numbers below this */
    struct vtrn_code code[VTRN_CORES_MAX];
    struct vtrn_arena arena; /* constants, names */
};

/* ---- building (build.c) ---- */
struct vtrn_prog *vtrn_prog_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err);
void vtrn_prog_destroy(struct vtrn_prog *prog);
/* Interns text; the index is stable. */
enum vtrn_status vtrn_prog_string(struct vtrn_prog *prog, const char *text, size_t length, uint32_t *index_out);
const char *vtrn_prog_text(const struct vtrn_prog *prog, uint32_t string);
enum vtrn_status vtrn_prog_loc(struct vtrn_prog *prog, uint32_t file_string, uint32_t line, uint32_t *loc_out);
/* Checks shape, space, dtype, address against the target and adds the tensor. Copies CONST data. */
enum vtrn_status vtrn_prog_tensor(struct vtrn_prog *prog, const struct vtrn_tensor *proto, uint32_t *tensor_out,
                                  struct vtrn_error *err);
/* Makes an HBM tensor that the program allocated an output, named so when it has no name. Inputs stay inputs. */
enum vtrn_status vtrn_prog_output(struct vtrn_prog *prog, uint32_t tensor, const char *name, size_t length,
                                  struct vtrn_error *err);
/* Declares an unnamed automatic tensor again, at `loc`: the same entry for another tile of the same kind. Only after the code
 * that named it was forgotten (vtrn_prog_forget_code), so that a run that saves nothing needs a bounded table. */
void vtrn_prog_tensor_again(struct vtrn_prog *prog, uint32_t tensor, uint32_t loc);
/* Chooses the engine when inst->engine is UNKNOWN, checks legality (legal.h), encodes, appends. Nothing is appended on
 * error. *index_out (may be NULL): its index in the core's list. */
enum vtrn_status vtrn_prog_append(struct vtrn_prog *prog, int core, struct vtrn_inst *inst, uint32_t *index_out,
                                  struct vtrn_error *err);
enum vtrn_status vtrn_prog_edge(struct vtrn_prog *prog, int core, uint32_t consumer, uint32_t producer,
                                struct vtrn_error *err);
/* Decodes instruction `index` of a core's list (it was checked when it was appended). */
void vtrn_prog_get(const struct vtrn_prog *prog, int core, uint32_t index, struct vtrn_inst *inst_out);
/* Its opcode alone. */
static inline enum vtrn_opcode vtrn_prog_op(const struct vtrn_prog *prog, int core, uint32_t index)
{
    const struct vtrn_code *code = &prog->code[core];
    return (enum vtrn_opcode)((const uint32_t *)(const void *)code->words.data)[code->start[index]] & 0xff;
}
/* Sets written[t] for each tensor t that the instruction writes; leaves the others. */
void vtrn_inst_written(const struct vtrn_inst *inst, uint8_t *written);
/* Takes back the last instructions of a core's list, down to `count`: a front end found a better form. None of them may have
 * been executed, begin or end a loop, or have a dependency edge (false: nothing was taken back). */
bool vtrn_prog_take_back(struct vtrn_prog *prog, int core, uint32_t count);
/* Drops the code of a core that has been executed, keeps tensors, strings and locations (runs that save nothing). */
void vtrn_prog_forget_code(struct vtrn_prog *prog, int core);

/* ---- legality (legal*.c): the rules of nki.isa and of the target ---- */
/* Fills inst->engine when it is UNKNOWN. */
enum vtrn_status vtrn_legal_engine(const struct vtrn_prog *prog, struct vtrn_inst *inst, struct vtrn_error *err);
/* Everything a static look can tell: engine and version, spaces, dtypes, ranges, shapes, partitions, bounds of every
 * access pattern. The message names rule, operand, value, limit and what to do; the caller prefixes the location. */
enum vtrn_status vtrn_legal_check(const struct vtrn_prog *prog, int core, const struct vtrn_inst *inst,
                                  struct vtrn_error *err);

/* ---- structure (verify.c): a whole program, as after loading ---- */
enum vtrn_status vtrn_prog_verify(const struct vtrn_prog *prog, struct vtrn_error *err);

/* ---- files (file.c, load.c): .vtrn, little endian; file_int.h has the layout ---- */
enum vtrn_status vtrn_prog_save(const struct vtrn_prog *prog, struct vtrn_buf *out, struct vtrn_error *err);
/* Verifies; hostile bytes give an error, never a crash. */
enum vtrn_status vtrn_prog_load(const void *bytes, size_t size_bytes, struct vtrn_prog **prog_out, struct vtrn_error *err);
enum vtrn_status vtrn_prog_save_file(const struct vtrn_prog *prog, const char *path, struct vtrn_error *err);
enum vtrn_status vtrn_prog_load_file(const char *path, struct vtrn_prog **prog_out, struct vtrn_error *err);

/* ---- text (text.c has the form, text_parse.c): assembly; print -> parse -> print is the identity ---- */
enum vtrn_status vtrn_prog_print(const struct vtrn_prog *prog, struct vtrn_buf *out, struct vtrn_error *err);
enum vtrn_status vtrn_prog_parse(const char *text, size_t length, struct vtrn_prog **prog_out, struct vtrn_error *err);
/* "kernel.py:41 nisa.nc_matmul" of an instruction, for messages. */
void vtrn_prog_where(const struct vtrn_prog *prog, const struct vtrn_inst *inst, char *out, size_t size);
/* Names for the printer and the parser of one instruction. */
struct vtrn_text_names vtrn_prog_names(struct vtrn_prog *prog);
#endif
