/* The kernel table (kernels.def) without the kernels: which families there are, what each serves,
 * and what pointwise work it does with it. Passes read it before they fuse, src/kernels when it
 * chooses: what all rows of an operation take, no row declines. */
#ifndef ZC_OP_KERNELS_H
#define ZC_OP_KERNELS_H

#include "op/op.h"

typedef enum zc_family_id {
#define FAMILY(name, template) ZC_FAMILY_##name,
#include "op/kernels.def"
    ZC_FAMILY_COUNT
} zc_family_id;

/* How an operand of pointwise work lies to the rows, along the last axis, of what the work is done
 * on. */
enum {
    ZC_LIES_SCALAR = 1 << 0, /* one element */
    ZC_LIES_ROW = 1 << 1,    /* one row, the same for all */
    ZC_LIES_COLUMN = 1 << 2, /* an element a row */
    ZC_LIES_TILE = 1 << 3,   /* an element each */
    ZC_LIES_OTHER = 1 << 4   /* in another way, as when it belongs to one of the leading axes */
};

/* Operands of the work that a family takes. */
enum {
    ZC_TAKES_NONE = 0,
    ZC_TAKES_CELLS = ZC_LIES_SCALAR | ZC_LIES_ROW | ZC_LIES_COLUMN | ZC_LIES_TILE,
    ZC_TAKES_ANY = ZC_TAKES_CELLS | ZC_LIES_OTHER,
    ZC_TAKES_AXES = 6 /* of the work, once those are joined along which all operands go on */
};

typedef struct zc_takes {
    unsigned at_end, at_start; /* on output 0, on input 0 */
    bool widens;               /* the work at the end may make f32 of 16 bits */
} zc_takes;

/* A shape of known rank. */
typedef struct zc_shape {
    int rank;
    const zc_dim *dims;
} zc_shape;

/* Pointwise work on a value, with n operands that broadcast to it. */
typedef struct zc_work {
    bool at_end, widens; /* as in zc_takes */
    bool bytes;          /* on 8-bit integers, of an operation with ZC_OPF_BYTES */
    zc_dtype dtype;
    zc_shape to;
    int n;
    const zc_shape *in;
    const zc_dtype *types; /* of the operands */
} zc_work;

/* The ways in which n operands lie that broadcast to a shape. */
unsigned zc_lies(zc_shape to, int n, const zc_shape *operands);
/* Why kernels that can take so much do not take the work; NULL: they do. Passes ask before they
 * fuse, and each family before it serves. */
const char *zc_takes_not(zc_takes can, const zc_work *w);
/* Can kernels load and store it? (all but complex and packed 4- and 2-bit types) */
bool zc_kernel_type(zc_dtype dtype);

/* A zc_family_id; -1: there is none of this name. */
int zc_family_find(const char *name);
/* Is the family for this architecture (90 for sm_90), for results of this type? */
bool zc_family_serves(int family, int arch);
bool zc_family_makes(int family, zc_dtype dtype);
/* Elements of the longest row that linear_norm_sm90 normalises within its product. */
enum { ZC_NORM_SM90_MOST = 3072 };
/* Bytes that its code may keep in local memory, or else is refused, as is code that serialises; -1:
 * none is refused. */
int zc_family_lean(int family);
zc_takes zc_family_takes(int family);

/* Of products that the family serves; 0, 0: of a family without ROWS. */
typedef struct zc_rows {
    int low, high;
} zc_rows;
zc_rows zc_family_rows(int family);
/* Row i of the table that serves the operation; -1: there is none. */
int zc_family_of(zc_op op, int i);
/* Is the family's row of this operation one that only a measurement takes? */
bool zc_family_offered(zc_op op, int family);

/* What all families take that serve the operation unmeasured, with a result of this type, on one
 * of the architectures from low to high. */
zc_takes zc_takes_of(zc_op op, zc_dtype dtype, int low, int high);

#endif
