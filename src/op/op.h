/* The op table: everything that is known of an operation without a graph.
 *
 * ops.def lists every operation once, by family files in defs/. Enum, names, attribute structs,
 * field tables, shape functions (infer.c) and CPU kernels (cpu/kernels.c) expand from it, so a
 * missing piece is a build error. An operation means what ONNX's newest opset says; the importer
 * brings older forms to it. */
#ifndef ZC_OP_OP_H
#define ZC_OP_OP_H

#include "op/dim.h"
#include "op/tensor.h"

typedef struct zc_ints {
    int n;
    const int64_t *v;
} zc_ints;

typedef struct zc_floats {
    int n;
    const float *v;
} zc_floats;

/* Attribute structs, one an operation: struct zc_attrs_Conv { uint64_t set; ... }. Bit i of `set`
 * says that field i was given rather than defaulted. All are plain data in one arena. */
#define OP(name, ...)                                                                              \
    typedef struct zc_attrs_##name {                                                               \
        uint64_t set;
#define PW(name, ...)           OP(name, 0)
#define A_INT(op, field, def)   int64_t field;
#define A_FLOAT(op, field, def) float field;
#define A_STR(op, field, def)   const char *field;
#define A_INTS(op, field)       zc_ints field;
#define A_FLOATS(op, field)     zc_floats field;
#define A_TENSOR(op, field)     const zc_tensor *field;
#define A_DTYPE(op, field, def) zc_dtype field;
#define END(name)                                                                                  \
    }                                                                                              \
    zc_attrs_##name;
#include "op/ops.def"

typedef enum zc_op {
    ZC_OP_NONE = 0,
#define OP(name, ...) ZC_OP_##name,
#define PW(name, ...) ZC_OP_##name,
#include "op/ops.def"
    ZC_OP_COUNT
} zc_op;

/* Index of each input: ZC_IN_Conv_bias. */
#define OP(name, ...) enum {
#define IN(op, input) ZC_IN_##op##_##input,
#define END(name)                                                                                  \
    ZC_IN_##name##_COUNT                                                                           \
    }                                                                                              \
    ;
#define PW(name, ...) OP(name, 0)
#include "op/ops.def"

/* Index of each attribute in its operation's field table: ZC_AT_Conv_group. */
#define OP(name, ...)           enum {
#define PW(name, ...)           enum {
#define A_INT(op, field, def)   ZC_AT_##op##_##field,
#define A_FLOAT(op, field, def) ZC_AT_##op##_##field,
#define A_STR(op, field, def)   ZC_AT_##op##_##field,
#define A_INTS(op, field)       ZC_AT_##op##_##field,
#define A_FLOATS(op, field)     ZC_AT_##op##_##field,
#define A_TENSOR(op, field)     ZC_AT_##op##_##field,
#define A_DTYPE(op, field, def) ZC_AT_##op##_##field,
#define END(name)                                                                                  \
    ZC_AT_##name##_COUNT                                                                           \
    }                                                                                              \
    ;
#include "op/ops.def"

/* Was attribute `field` of an operation given? (attrs: pointer to its struct) */
#define ZC_ATTR_GIVEN(op, attrs, field) (((attrs)->set >> ZC_AT_##op##_##field) & 1)
/* Gives attribute `field` a value. */
#define ZC_ATTR_SET(op, attrs, field, ...)                                                         \
    ((attrs)->field = __VA_ARGS__, zc_attr_mark((attrs), ZC_AT_##op##_##field))
/* Says that field i was given: `set` is the first field of every struct. */
static inline void zc_attr_mark(void *attrs, int i)
{
    *(uint64_t *)attrs |= UINT64_C(1) << i;
}
static inline void zc_attr_unmark(void *attrs, int i)
{
    *(uint64_t *)attrs &= ~(UINT64_C(1) << i);
}

typedef enum zc_attr_kind {
    ZC_ATTR_INT,
    ZC_ATTR_FLOAT,
    ZC_ATTR_STR,
    ZC_ATTR_INTS,
    ZC_ATTR_FLOATS,
    ZC_ATTR_TENSOR,
    ZC_ATTR_DTYPE
} zc_attr_kind;

typedef struct zc_attr_field {
    const char *name;
    zc_attr_kind kind;
    size_t offset;
    int64_t def_int;     /* INT, DTYPE */
    float def_float;     /* FLOAT */
    const char *def_str; /* STR; may be NULL */
} zc_attr_field;

enum {
    ZC_OPF_COMMUTATIVE = 1 << 0, /* inputs 0 and 1 may be swapped */
    ZC_OPF_DYNAMIC = 1 << 1,     /* the kernel itself finds output shapes from values (NonZero) */
    ZC_OPF_RANDOM = 1 << 2,      /* never folded or merged */
    ZC_OPF_REGIONS = 1 << 3,     /* If, Loop, Scan: executed by the runtime, not by a kernel */
    ZC_OPF_VIEW = 1 << 4,        /* output 0 is input 0's bytes, or the first of them (First),
                                    under another shape */
    ZC_OPF_INPLACE = 1 << 5,     /* output 0 may overwrite input 0 when shape and dtype agree */
    ZC_OPF_SHAPE_ONLY = 1 << 6,  /* reads its inputs' shapes, never their elements */
    ZC_OPF_SUBBYTE = 1 << 7,     /* the kernel handles packed 4- and 2-bit operands itself; for the
                                    others dispatch unpacks them to 8-bit carriers and back */
    ZC_OPF_RANKLESS = 1 << 8,    /* the shape function accepts inputs of unknown rank */
    ZC_OPF_POINTWISE = 1 << 9,   /* has a scalar expression */
    ZC_OPF_INPLACE_LAST = 1 << 10, /* as INPLACE, for the last input (a residual) */
    ZC_OPF_EPILOGUE = 1 << 11,     /* has attribute `epilogue`: see zc_op_epilogue */
    ZC_OPF_PROLOGUE = 1 << 12,     /* has attribute `prologue`, too: see zc_op_prologue */
    ZC_OPF_WIDENS = 1 << 13,       /* the epilogue may make f32 of input 0's type: then x0 is f32 */
    ZC_OPF_SUMS = 1 << 14,      /* the plain result is i32, of which the epilogue may make floats */
    ZC_OPF_QUANTISES = 1 << 15, /* the epilogue may make f8e4m3fn, i8 or u8 of the plain result */
    ZC_OPF_BYTES = 1 << 17,     /* the plain result has 8-bit integers, of which the epilogue may
                                   make others */
    ZC_OPF_ALSO = 1 << 18, /* has attribute `also`, and prologue and epilogue: see zc_op_also */
    ZC_OPF_DEQUANTISES =
        1 << 19, /* of up to two inputs; the prologue may make floats of i8 or u8 of the first */
    ZC_OPF_GIVEN_EPILOGUE = 1 << 20, /* by the pass that makes the operation: no other fuses one */
    ZC_OPF_ASSOCIATIVE = 1 << 16     /* of two operands of one kind; of more, the order of doing it
                                      makes no difference but rounding */
};

#define ZC_VARIADIC 1000000

typedef struct zc_op_info {
    const char *name;
    int min_in, max_in, min_out, max_out;
    unsigned flags;
    const char
        *expr; /* POINTWISE: scalar expression over x, y, z and attribute names; see expr.h */
    size_t attrs_size;
    const zc_attr_field *fields;
    int field_count;
} zc_op_info;

/* Never NULL; row 0 for values out of range. */
const zc_op_info *zc_op_get(zc_op op);
/* Bit i: input i is a HOST one of ops.def. */
uint64_t zc_op_host_inputs(zc_op op);
/* What an operand is (ROLE in ops.def); 0: nothing is said. */
typedef enum zc_op_role {
    ZC_ROLE_ROWS = 1 << 0,
    ZC_ROLE_INDEX = 1 << 1,
    ZC_ROLE_MATRIX = 1 << 2,
    ZC_ROLE_BIAS = 1 << 3,
    ZC_ROLE_SCALE = 1 << 4,
    ZC_ROLE_TRUTH = 1 << 5,
    ZC_ROLE_FILL = 1 << 6,
    ZC_ROLE_LIMIT = 1 << 7,
    ZC_ROLE_TABLE = 1 << 8
} zc_op_role;
unsigned zc_op_role_of(zc_op op, int input);
enum { ZC_MOMENTS_COLUMNS = 64 }; /* of a row, that have moments of their own */
enum { ZC_EPILOGUE_INPUTS = 8, ZC_PROLOGUE_INPUTS = 8 }; /* at most, beside x0 */
/* The pointwise work that is done on input 0 when it is read: an expression over x0, the plain
 * operand, and x1, x2 ..., the *extras inputs from max_in on, which broadcast to it. It keeps shape
 * and, but for ZC_OPF_DEQUANTISES, element type. NULL: none. */
const char *zc_op_prologue(const zc_op_info *info, const void *attrs, int *extras);
/* The pointwise work that is done on output 0 before it is written, the only output then: an
 * expression over x0, the plain result, and x1, x2 ..., the inputs from zc_op_epilogue_first on,
 * behind the prologue's, which broadcast to it. It keeps shape and element type, the latter but for
 * ZC_OPF_WIDENS, ZC_OPF_SUMS, ZC_OPF_QUANTISES and ZC_OPF_BYTES. NULL: none. */
const char *zc_op_epilogue(const zc_op_info *info, const void *attrs);
int zc_op_epilogue_first(const zc_op_info *info, const void *attrs);
/* What the last output is, of the first one's shape: an expression over x0, an element of output 0.
 * There is no epilogue then. NULL: there is no such output. */
const char *zc_op_also(const zc_op_info *info, const void *attrs);
int zc_op_also_field(const zc_op_info *info); /* the attribute's number; -1: it has none */
/* How many of the attributes are an operation's own: the others are for what is fused into it. */
int zc_op_own_fields(const zc_op_info *info);
/* Most inputs of a node with these attributes. */
int zc_op_max_in(const zc_op_info *info, const void *attrs);
/* Of nin inputs, those that are not its prologue's and epilogue's. */
static inline int zc_op_own_inputs(const zc_op_info *info, int nin)
{
    return nin < info->max_in ? nin : info->max_in;
}
/* ZC_OP_NONE when unknown. */
zc_op zc_op_find(const char *name, size_t len);
/* Fills attrs (info->attrs_size bytes) with the defaults. */
void zc_attrs_default(const zc_op_info *info, void *attrs);
/* Index into info->fields, or -1. */
int zc_attr_find(const zc_op_info *info, const char *name, size_t len);
/* Address of field i inside attrs. */
static inline void *zc_attr_at(const zc_op_info *info, void *attrs, int i)
{
    return (char *)attrs + info->fields[i].offset;
}
/* Gives an operation's attributes the values that another's of the same name and kind were given.
 */
void zc_attrs_take(const zc_op_info *info, void *attrs, const zc_op_info *from_info,
                   const void *from);
bool zc_attrs_equal(const zc_op_info *info, const void *a, const void *b);
uint64_t zc_attrs_hash(const zc_op_info *info, const void *attrs);

#endif
