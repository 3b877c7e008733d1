/* isa: what an instruction is. Enums and descriptors expanded from ops.def, dtypes.def, aluops.def, actfuncs.def
 * and enums.def; the access pattern; the decoded instruction; its wire form and its text form.
 * Knows no sizes of a generation (arch/) and no program (prog/). */
#ifndef VTRN_ISA_H
#define VTRN_ISA_H
#include "base/base.h"

/* ---------------------------------------------------------------- data types */
enum vtrn_dtype {
    VTRN_DT_NONE = 0,
#define DTYPE(NAME, code, size, cls, lanes, nki, text, doc) VTRN_DT_##NAME = code,
#include "isa/dtypes.def"
#undef DTYPE
    VTRN_DT_COUNT
};
enum vtrn_dtype_class { VTRN_CLASS_FLOAT = 1, VTRN_CLASS_INT, VTRN_CLASS_UINT, VTRN_CLASS_BOOL, VTRN_CLASS_PACKED };
struct vtrn_dtype_info {
    const char *nki_name, *text, *doc; /* "bfloat16", "bf16" */
    uint8_t size_bytes, cls, lanes;
};
extern const struct vtrn_dtype_info vtrn_dtypes[VTRN_DT_COUNT];
enum vtrn_dtype vtrn_dtype_by_text(const char *text, size_t length); /* "bf16"; VTRN_DT_NONE: unknown */
enum vtrn_dtype vtrn_dtype_by_nki_name(const char *name);            /* "bfloat16", and synonyms "float8e4" ... */

/* dtype sets of the table, as bit masks 1 << dtype */
#define VTRN_DTBIT(NAME) (UINT32_C(1) << VTRN_DT_##NAME)
#define VTRN_DTS_F8 (VTRN_DTBIT(F8E4M3) | VTRN_DTBIT(F8E4M3FN) | VTRN_DTBIT(F8E5M2))
#define VTRN_DTS_F16SET (VTRN_DTBIT(BF16) | VTRN_DTBIT(F16))
#define VTRN_DTS_WORD (VTRN_DTBIT(I32) | VTRN_DTBIT(U32) | VTRN_DTBIT(I16) | VTRN_DTBIT(U16) | VTRN_DTBIT(I8) | VTRN_DTBIT(U8))
#define VTRN_DTS_INTS (VTRN_DTS_WORD | VTRN_DTBIT(BOOL))
#define VTRN_DTS_FLOATS (VTRN_DTBIT(F32) | VTRN_DTBIT(TF32) | VTRN_DTS_F16SET | VTRN_DTS_F8)
#define VTRN_DTS_PLAIN (VTRN_DTS_FLOATS | VTRN_DTS_INTS | VTRN_DTBIT(F8E8M0)) /* one value an element */
#define VTRN_DTS_MX (VTRN_DTBIT(F8E5M2X4) | VTRN_DTBIT(F8E4M3FNX4) | VTRN_DTBIT(F4E2M1FNX4))
#define VTRN_DTS_ANY (VTRN_DTS_PLAIN | VTRN_DTS_MX)
#define VTRN_DTS_MM VTRN_DTS_FLOATS
#define VTRN_DTS_MMDST (VTRN_DTBIT(F32) | VTRN_DTS_F16SET | VTRN_DTS_F8) /* 16 and 8 bit: transposes, bf16 on v4 */
#define VTRN_DTS_SCALE (VTRN_DTBIT(F8E8M0) | VTRN_DTBIT(U8))
#define VTRN_DTS_PRED VTRN_DTS_INTS
#define VTRN_DTS_INDEX (VTRN_DTBIT(U16) | VTRN_DTBIT(U32) | VTRN_DTBIT(I32) | VTRN_DTBIT(I16))
#define VTRN_DTS_I32SET (VTRN_DTBIT(I32) | VTRN_DTBIT(U32))
#define VTRN_DTS_U32SET (VTRN_DTBIT(U32) | VTRN_DTBIT(I32))
#define VTRN_DTS_U16SET (VTRN_DTBIT(U16) | VTRN_DTBIT(I16))
#define VTRN_DTS_F32I32 (VTRN_DTBIT(F32) | VTRN_DTBIT(I32) | VTRN_DTBIT(U32))

/* ---------------------------------------------------------------- operators, functions, enums */
enum vtrn_alu {
    VTRN_ALU_NONE = 0,
#define ALUOP(NAME, code, nki, cls, arity, reduces, version, doc) VTRN_ALU_##NAME = code,
#include "isa/aluops.def"
#undef ALUOP
    VTRN_ALU_COUNT
};
enum { VTRN_ALU_ARITH = 1, VTRN_ALU_BITS = 2 };
struct vtrn_alu_info {
    const char *nki_name, *doc;
    uint8_t cls, arity, reduces, first_version;
};
extern const struct vtrn_alu_info vtrn_alus[VTRN_ALU_COUNT];
enum vtrn_alu vtrn_alu_by_name(const char *name, size_t length);

enum vtrn_act {
    VTRN_ACT_NONE = 0,
#define ACTFUNC(NAME, code, nki, formula, range) VTRN_ACT_##NAME = code,
#include "isa/actfuncs.def"
#undef ACTFUNC
    VTRN_ACT_COUNT
};
struct vtrn_act_info {
    const char *nki_name, *formula, *range;
};
extern const struct vtrn_act_info vtrn_acts[VTRN_ACT_COUNT];
enum vtrn_act vtrn_act_by_name(const char *name, size_t length);

enum vtrn_enum_set {
    VTRN_ENUMS_NONE = 0,
#define ENUM_SET(SET, name) VTRN_ENUMS_##SET,
#define MEMBER(SET, NAME, value, name)
#include "isa/enums.def"
#undef ENUM_SET
#undef MEMBER
    VTRN_ENUMS_COUNT
};
enum { /* VTRN_DGE_HWDGE, VTRN_OOB_SKIP, VTRN_ENGINE_VECTOR, ... */
#define ENUM_SET(SET, name)
#define MEMBER(SET, NAME, value, name) VTRN_##SET##_##NAME = value,
#include "isa/enums.def"
#undef ENUM_SET
#undef MEMBER
};
enum { VTRN_ENGINES = 7 }; /* engine numbers are below this */
const char *vtrn_enum_set_name(enum vtrn_enum_set set);              /* "dge_mode" */
const char *vtrn_enum_name(enum vtrn_enum_set set, int value);       /* "hwdge"; NULL: no such member */
bool vtrn_enum_value(enum vtrn_enum_set set, const char *name, size_t length, int *value_out);
/* The i-th member of a set in table order; false past the end. */
bool vtrn_enum_member(enum vtrn_enum_set set, int i, const char **name_out, int *value_out);
const char *vtrn_engine_name(int engine); /* "tensor", ... */

/* ---------------------------------------------------------------- memory spaces */
enum vtrn_space { VTRN_SPACE_NONE, VTRN_SBUF, VTRN_PSUM, VTRN_HBM /* private to a core */, VTRN_HBM_SHARED };
static inline bool vtrn_space_on_chip(int space) { return space == VTRN_SBUF || space == VTRN_PSUM; }
static inline bool vtrn_space_is_hbm(int space) { return space == VTRN_HBM || space == VTRN_HBM_SHARED; }
const char *vtrn_space_name(int space); /* "sbuf", "psum", "hbm", "shared_hbm" */

/* ---------------------------------------------------------------- access patterns
 * An operand names a tensor of the program's tensor table and walks it.
 *   on chip (SBUF, PSUM): dim[0] is the partition dimension: stride in partitions (1; DMA may use others),
 *     `part0` the first partition relative to the tensor; dim[1..] strides in elements of `dtype` inside a
 *     partition; `offset` elements from the start of the partition.
 *   HBM: every dim's stride, and `offset`, in elements of `dtype` from the tensor's start; part0 is 0.
 * `dtype` may differ from the tensor's (a reinterpreting view); sizes then count in the view's elements.
 * Element order of an operand: row-major over dim[0], dim[1], ... Strides may be 0 (broadcast), never negative
 * beyond the tensor. */
enum { VTRN_AP_DIMS = 8, VTRN_AP_DYNS = 3 };
struct vtrn_dim {
    int64_t stride;
    int64_t count;
};
enum vtrn_dyn_kind {
    VTRN_DYN_NONE,
    VTRN_DYN_REG,      /* offset += register * scale */
    VTRN_DYN_SCALAR,   /* offset += element of a (1,1) on-chip or HBM tensor * scale */
    VTRN_DYN_VECTOR,   /* step w of dim[0] starts at offset + index[w] * scale; dim[0].stride is not used */
    VTRN_DYN_INDIRECT, /* v4: free element i of partition group g starts at the free offset that the index tile names */
};
struct vtrn_dyn {
    uint8_t kind;
    uint8_t dtype;       /* of the index elements: an integer */
    uint16_t part0;      /* index tensor: first partition */
    uint32_t ref;        /* register number, or tensor of the table */
    int64_t offset;      /* index tensor: element offset (on chip: in the partition) */
    int64_t stride;      /* HBM index vectors: elements from one index to the next; on chip: from one index column to the
                          * next (VECTOR: index w is in partition part0 + w % 128, column w / 128; INDIRECT: column i / G) */
    int64_t count;       /* number of indices (VECTOR, INDIRECT) */
    int64_t scale;       /* elements of the operand per index step */
    int64_t limit;       /* legal index values are 0 .. limit-1; 0: only the tensor's end limits */
};
struct vtrn_ap {
    uint32_t tensor;
    uint8_t dtype;
    uint8_t ndim; /* 1..VTRN_AP_DIMS, on chip at least 2 */
    uint8_t ndyn;
    uint8_t reserved;
    uint16_t part0;
    int64_t offset;
    struct vtrn_dim dim[VTRN_AP_DIMS];
    struct vtrn_dyn *dyn; /* ndyn entries, in the instruction's own storage; NULL when ndyn is 0 */
};
/* Number of elements per step of dim[0] (per partition on chip), and in all. Saturate at INT64_MAX. */
int64_t vtrn_ap_free_elems(const struct vtrn_ap *ap);
int64_t vtrn_ap_elems(const struct vtrn_ap *ap);
/* Lowest and highest static element offset inside a partition (on chip) or the tensor (HBM), dynamic parts left out. */
bool vtrn_ap_extent(const struct vtrn_ap *ap, bool on_chip, int64_t *lowest_out, int64_t *highest_out);

/* ---------------------------------------------------------------- instruction descriptors */
enum vtrn_opcode {
    VTRN_OP_NONE = 0,
#define OP(name, code, engines, dflt, version, args, rule, doc) VTRN_OP_##name = code,
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
    VTRN_OPCODES = 0x100
};
enum vtrn_operand_kind { /* letters of the table */
    VTRN_K_NONE, VTRN_K_TENSOR, VTRN_K_TENSORS, VTRN_K_TENSOR_OR_NUM, VTRN_K_SCALAR, VTRN_K_NUM, VTRN_K_INT, VTRN_K_REG,
    VTRN_K_FLAG, VTRN_K_TRI, VTRN_K_ENUM, VTRN_K_ALU, VTRN_K_ACT, VTRN_K_INTS, VTRN_K_ENGINE, VTRN_K_STRING
};
enum { VTRN_READ = 1, VTRN_WRITE = 2 };
enum { VTRN_IN_S = 1 << VTRN_SBUF, VTRN_IN_P = 1 << VTRN_PSUM, VTRN_IN_H = 1 << VTRN_HBM | 1 << VTRN_HBM_SHARED,
       VTRN_IN_SP = VTRN_IN_S | VTRN_IN_P, VTRN_IN_SH = VTRN_IN_S | VTRN_IN_H, VTRN_IN_SPH = VTRN_IN_SP | VTRN_IN_H };
enum vtrn_alu_set { VTRN_ALUSET_NONE, VTRN_ALUSET_ANY, VTRN_ALUSET_ARITH, VTRN_ALUSET_REDUCE, VTRN_ALUSET_PARTITION_REDUCE,
                    VTRN_ALUSET_DMA };
bool vtrn_alu_in_set(enum vtrn_alu op, enum vtrn_alu_set set);
enum vtrn_rule {
    VTRN_RULE_NONE, VTRN_RULE_MATMUL, VTRN_RULE_TRANSPOSE, VTRN_RULE_ELEMS, VTRN_RULE_ELEMS2, VTRN_RULE_MEMSET,
    VTRN_RULE_PREDICATED, VTRN_RULE_RECIPROCAL, VTRN_RULE_ACTIVATION, VTRN_RULE_EXPONENTIAL, VTRN_RULE_GPSIMD_ELEMS,
    VTRN_RULE_REDUCE, VTRN_RULE_SCALAR_REDUCE, VTRN_RULE_SCAN, VTRN_RULE_BN_AGGR, VTRN_RULE_TOPK, VTRN_RULE_LOCAL_GATHER,
    VTRN_RULE_QUANTIZE, VTRN_RULE_RAND2, VTRN_RULE_DMA, VTRN_RULE_DMA_TRANSPOSE, VTRN_RULE_DMA_COMPUTE, VTRN_RULE_SENDRECV,
    VTRN_RULE_BARRIER, VTRN_RULE_CONTROL, VTRN_RULES
};
const char *vtrn_rule_text(enum vtrn_rule rule); /* what the rule counts, with its formula and source, for the manual */

struct vtrn_operand_info {
    const char *name;
    uint8_t kind;     /* enum vtrn_operand_kind */
    uint8_t access;   /* VTRN_READ | VTRN_WRITE, tensors and registers */
    uint8_t spaces;   /* mask of VTRN_IN_*, tensors */
    uint8_t optional; /* may be absent */
    uint8_t set;      /* enum_set or alu_set */
    uint8_t has_default;
    uint16_t max_count; /* lists */
    uint32_t dtypes;  /* mask, tensors */
    int64_t min, max; /* integers */
    double dflt;
    uint8_t start_kind; /* enum vtrn_value_kind, and the value: what vtrn_inst_init gives the operand */
    union {
        int64_t i;
        double num;
    } start;
};
struct vtrn_op_info {
    const char *name, *doc;
    const struct vtrn_operand_info *operand;
    uint8_t operands, code, engines /* mask of 1 << engine */, default_engine, first_version, rule;
};
enum { VTRN_MAX_OPERANDS = 16 };
extern const struct vtrn_op_info vtrn_ops[VTRN_OPCODES]; /* name NULL: no such code */
enum vtrn_opcode vtrn_op_by_name(const char *name, size_t length);
const char *vtrn_op_retired(int code); /* the name that a retired code had; NULL: not a retired one */

/* ---------------------------------------------------------------- the decoded instruction */
enum vtrn_value_kind {
    VTRN_V_NONE, /* absent */
    VTRN_V_AP,   /* ap */
    VTRN_V_APS,  /* list: aps[count] */
    VTRN_V_NUM,  /* num, is_int says that the source was an integer (exact bit patterns for BITS operators) */
    VTRN_V_INT,  /* i: INT, FLAG, TRI (0, 1; absent = None), ENUM, ALU, ACT, STRING (index of the string table) */
    VTRN_V_REG,  /* i: register number */
    VTRN_V_INTS, /* list: ints[count] */
};
struct vtrn_value {
    uint8_t kind;
    uint8_t is_int;
    uint16_t count;
    union {
        struct vtrn_ap ap;
        struct vtrn_ap *aps;
        double num;
        int64_t i;
        int64_t *ints;
    };
};
enum { VTRN_INST_DYNS = 8, VTRN_INST_APS = 16, VTRN_INST_INTS = 96 };
struct vtrn_inst {
    uint8_t op, engine;
    uint16_t flags;
    uint32_t loc;  /* source location of the program's table; 0: none */
    uint32_t name; /* string of the program's table (the name= of the call); 0: none */
    struct vtrn_value arg[VTRN_MAX_OPERANDS]; /* in the order of the row */
    /* storage that lists and dynamic parts of `arg` point into */
    int ndyns, naps, nints;
    struct vtrn_dyn dyns[VTRN_INST_DYNS];
    struct vtrn_ap aps[VTRN_INST_APS];
    int64_t ints[VTRN_INST_INTS];
};
/* Empties an instruction of `op`: every operand absent or at its default. Cheap: touches only the row's operands. */
void vtrn_inst_init(struct vtrn_inst *inst, enum vtrn_opcode op);
/* The same for one operand; and whether one is as init leaves it. */
static inline void vtrn_value_init(struct vtrn_value *value, const struct vtrn_operand_info *info)
{
    value->kind = info->start_kind;
    value->is_int = 0;
    value->count = 0;
    value->i = info->start.i; /* the bits of start.num, where that is the value */
}
static inline bool vtrn_value_is_initial(const struct vtrn_value *value, const struct vtrn_operand_info *info)
{
    if (value->kind != info->start_kind) return false;
    return value->kind == VTRN_V_NONE || (value->i == info->start.i && !(value->is_int && value->kind == VTRN_V_NUM));
}
/* Storage inside `inst`; NULL when it is full. Lists and dynamic parts point there: a copied struct vtrn_inst still
 * points into the original. */
struct vtrn_dyn *vtrn_inst_new_dyns(struct vtrn_inst *inst, int count);
int64_t *vtrn_inst_new_ints(struct vtrn_inst *inst, int count);
struct vtrn_ap *vtrn_inst_new_aps(struct vtrn_inst *inst, int count);

/* Typed view of the operands: VTRN_ARGS(nc_matmul, inst)->moving.ap. A misspelt operand does not compile. */
#define VTRN_ARG_FIELD(name, ...) struct vtrn_value name;
#define WR VTRN_ARG_FIELD
#define RD VTRN_ARG_FIELD
#define RW VTRN_ARG_FIELD
#define OWR VTRN_ARG_FIELD
#define ORD VTRN_ARG_FIELD
#define LRD VTRN_ARG_FIELD
#define TI VTRN_ARG_FIELD
#define SC(name) VTRN_ARG_FIELD(name, 0)
#define SCD VTRN_ARG_FIELD
#define SCN(name) VTRN_ARG_FIELD(name, 0)
#define NUM(name) VTRN_ARG_FIELD(name, 0)
#define NUMD VTRN_ARG_FIELD
#define INT VTRN_ARG_FIELD
#define INTD VTRN_ARG_FIELD
#define INTN VTRN_ARG_FIELD
#define REG(name) VTRN_ARG_FIELD(name, 0)
#define REGW(name) VTRN_ARG_FIELD(name, 0)
#define REGD VTRN_ARG_FIELD
#define FLAG VTRN_ARG_FIELD
#define TRI(name) VTRN_ARG_FIELD(name, 0)
#define ENUM VTRN_ARG_FIELD
#define ALU VTRN_ARG_FIELD
#define OALU VTRN_ARG_FIELD
#define ACT(name) VTRN_ARG_FIELD(name, 0)
#define INTS VTRN_ARG_FIELD
#define OINTS VTRN_ARG_FIELD
#define ENG(name) VTRN_ARG_FIELD(name, 0)
#define STR(name) VTRN_ARG_FIELD(name, 0)
#define OP(name, code, engines, dflt, version, args, rule, doc) \
    struct vtrn_args_##name { \
        args struct vtrn_value end_; \
    };
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
#undef WR
#undef RD
#undef RW
#undef OWR
#undef ORD
#undef LRD
#undef TI
#undef SC
#undef SCD
#undef SCN
#undef NUM
#undef NUMD
#undef INT
#undef INTD
#undef INTN
#undef REG
#undef REGW
#undef REGD
#undef FLAG
#undef TRI
#undef ENUM
#undef ALU
#undef OALU
#undef ACT
#undef INTS
#undef OINTS
#undef ENG
#undef STR
#define VTRN_ARGS(opname, inst) ((const struct vtrn_args_##opname *)(const void *)(inst)->arg)

/* ---------------------------------------------------------------- wire form
 * Little-endian 32-bit words; an instruction's first word holds its length, so a stream can be walked.
 * Decoding checks everything against `size_words`: hostile bytes give FORMAT, never a wild read. Legality against
 * the tensor table and the target is prog/legal.c's work. */
enum vtrn_status vtrn_inst_encode(const struct vtrn_inst *inst, struct vtrn_buf *out, struct vtrn_error *err);
/* Decodes the instruction at words[0]; *words_out: its length. `inst` needs no init. */
enum vtrn_status vtrn_inst_decode(const uint32_t *words, size_t size_words, struct vtrn_inst *inst, size_t *words_out,
                                  struct vtrn_error *err);
/* The same for words that vtrn_inst_encode wrote or vtrn_inst_decode accepted: checks nothing. */
void vtrn_inst_decode_own(const uint32_t *words, struct vtrn_inst *inst);
/* Source location of a well-formed instruction, without decoding. */
uint32_t vtrn_inst_loc(const uint32_t *words);
/* Length in words of the instruction at words[0], without decoding (0: malformed). */
size_t vtrn_inst_length(const uint32_t *words, size_t size_words);

/* ---------------------------------------------------------------- text form of one instruction
 *   tensor  nc_matmul dst=%acc[0:128; 0+1x512] stationary=%w:bf16[0:128; 0+1x128] moving=%x[0:128; 0+1x512] @3
 * print.c has the grammar. `tensor_name`, `string` map table indices to text; `names` or any of its functions may be
 * NULL: then numbers are printed (%3, $5). print -> parse -> print is the identity. */
struct vtrn_text_names {
    const void *self;
    const char *(*tensor_name)(const void *self, uint32_t tensor);       /* unique, or NULL: %N is printed */
    bool (*tensor_index)(const void *self, const char *name, size_t length, uint32_t *tensor_out);
    int (*tensor_space)(const void *self, uint32_t tensor);
    const char *(*string)(const void *self, uint32_t index);
    bool (*string_index)(void *self, const char *text, size_t length, uint32_t *index_out);
    int (*tensor_dtype)(const void *self, uint32_t tensor); /* NULL: every pattern prints its dtype and must have one */
};
/* Appends the line without a line feed; a zero byte that out->size does not count follows it. */
enum vtrn_status vtrn_inst_print(const struct vtrn_inst *inst, const struct vtrn_text_names *names, struct vtrn_buf *out);
enum vtrn_status vtrn_inst_parse(const char *text, size_t length, const struct vtrn_text_names *names,
                                 struct vtrn_inst *inst, struct vtrn_error *err);
/* A string as the text form writes it: "text" with \" \\ \n \t \xNN. Unquoting appends the text of the string that begins
 * at text[*at] (spaces are skipped) to `out` and moves *at behind the closing quote; FORMAT names the column in `text`. */
enum vtrn_status vtrn_text_quote(struct vtrn_buf *out, const char *text);
enum vtrn_status vtrn_text_unquote(const char *text, size_t length, size_t *at, struct vtrn_buf *out, struct vtrn_error *err);
#endif
