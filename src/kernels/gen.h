/* Writing the specialisation header of one step: what a family's generator sees.
 *
 * A generator looks at the step's operation, attributes, element types and dimensions, and writes
 * #defines and straight-line inline functions into the header that its template includes as
 * "spec.h"; or it declines, and the step runs on the CPU with that reason. Equal headers share one
 * kernel, so write nothing that is not needed. No text of the model (names, strings) ever enters
 * the header. A rule file's own names do: its kernels are the user's code. */
#ifndef ZC_KERNELS_GEN_H
#define ZC_KERNELS_GEN_H

#include "op/affine.h"
#include "op/expr.h"
#include "op/kernels.h"
#include "planfile/program.h"

enum { ZC_CONFIG_MAX = 16, ZC_GEN_BOUNDS = 7 };

/* Sizes that are not certain and decide a configuration: see zc_gen_size. */
typedef struct zc_gen_sizes {
    zc_dim factors[ZC_RANGE_FACTORS];
    int nfactors, nbounds; /* nfactors 0: no such sizes */
    int64_t bounds[ZC_GEN_BOUNDS];
    int now; /* number of the range that is asked for */
} zc_gen_sizes;

typedef struct zc_gen {
    const zc_program *program;
    const zc_pstep *step;
    const zc_op_info *info;
    const void *attrs;  /* zc_attrs_<op>: ZC_ATTRS(g, Conv) works */
    int arch;           /* 80, 89, 90, 120 */
    int sm_count;       /* of the architecture's usual chip */
    int candidate;      /* number, from 1, of the configuration to take; 0: the best by cost */
    int refused;        /* of the best configurations, which are to be left out */
    int configurations; /* set by a generator that has more than one */
    bool regardless;    /* another family that is held to be faster is no reason to decline */
    double us;          /* set by a generator that has a model of cost: what it says */
    zc_gen_sizes sizes;
    /* Of a family with CONFIG: its numbers, which the header gets as Z_<NAME>, and how a block of
     * entry 0 is launched. */
    int64_t config[ZC_CONFIG_MAX];
    uint32_t threads, smem, cluster;
    uint32_t pitched;  /* ZC_PITCHED_...: operands that it takes with a pitch; 0 at first */
    uint32_t mapped;   /* of these, those whose pitch only the launch function knows */
    char why[384];     /* the choice: what else there was */
    char products[16]; /* zc_gen_tensor_cores; empty: products are the ordinary cores' */
    zc_buf spec;       /* the header so far */
    char label[64];    /* the kernel's readable name part: set by default to the operation's name */
    char declined[160];          /* why not; empty: accepted */
    float literals[ZC_LITERALS]; /* numbers of fused work that are not in the header */
    int nliterals;
    bool divides;      /* set by zc_gen_epilogue and zc_gen_prologue: where their operands lie takes
                          divisions by what only a run knows, so that code for each of several elements
                          is long */
    zc_psource source; /* of a user, that the header names; name NULL: none */
    zc_arena *arena;
    zc_diag *diag;
} zc_gen;

typedef zc_status (*zc_gen_fn)(zc_gen *g);

/* n / by, rounded up; without overflow. */
static inline int64_t zc_ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* Operand i, or NULL when absent. rank may be -1. */
const zc_pvalue *zc_gen_in(const zc_gen *g, int i);
const zc_pvalue *zc_gen_out(const zc_gen *g, int i);
/* ZC_NONE when absent. */
zc_dtype zc_gen_in_type(const zc_gen *g, int i);
zc_dtype zc_gen_out_type(const zc_gen *g, int i);
/* The type that the operation's first result has unless its epilogue widens it. */
zc_dtype zc_gen_plain_result(const zc_gen *g);
/* Of input 0 as the operation has it: of bytes (ZC_OPF_DEQUANTISES) what the prologue makes. */
zc_dtype zc_gen_read_type(const zc_gen *g);
/* Dimension d of a value of known rank, as a constant; -1 when symbolic. */
int64_t zc_gen_const_dim(const zc_pvalue *v, int d);

/* The shape of a value of known rank; those of inputs first to first + n - 1. */
zc_shape zc_gen_shape(const zc_pvalue *v);
void zc_gen_shapes(const zc_gen *g, int first, int n, zc_shape *out);
/* Are all dimensions certain, of one value, of all operands? */
bool zc_gen_static(const zc_pvalue *v);
bool zc_gen_all_static(const zc_gen *g);
/* The shape of a value whose dimensions are certain. */
void zc_gen_tensor(const zc_pvalue *v, zc_tensor *out);
/* Operand i with its elements; false: it is no constant, or absent (also where i is negative). */
bool zc_gen_constant(const zc_gen *g, int i, zc_tensor *out);

/* The product of dimensions that decides the configuration. Where it is certain, low and high are
 * it. Else the generator is called for each range of it, up to bounds[0], bounds[1] ... and beyond
 * the last: low and high are those of the range that is asked for now. Once a step, and
 * the families of one operation name the same bounds. */
void zc_gen_size(zc_gen *g, const zc_dim *factors, int nfactors, const int64_t *bounds, int nbounds,
                 int64_t *low, int64_t *high);

/* The configuration of families that copy runs of neighbours, `unit`: the most bytes, 16 at most,
 * that certainly divide a run over these dimensions. What kernels are given begins at multiples of
 * 16 bytes. */
void zc_gen_unit(zc_gen *g, zc_dtype dtype, const zc_dim *run, int n);

/* #define Z_<name> <text> */
void zc_gen_define(zc_gen *g, const char *name, const char *fmt, ...) ZC_PRINTF(3, 4);
/* #define Z_<name> <the device type of dtype>: f32, f16, bf16, f8e4m3fn, i32, b8 (bool), ... */
void zc_gen_type(zc_gen *g, const char *name, zc_dtype dtype);
/* #define Z_<name> 768LL when the value is certain, else (p.<name>): the parameter struct has that
 * field. */
void zc_gen_dim(zc_gen *g, const char *name, zc_dim d);
/* Is it certain how n operands broadcast to a shape? The outermost collapsed axis may have any
 * length: where an element lies does not depend on it. */
bool zc_gen_broadcast_certain(zc_shape to, int n, const zc_shape *operands);
/* How they do, when it is: constants Z_<prefix>RANK, DIMS and STRIDES[n] over collapsed axes, one
 * at least; DIMS begins with 0 where that length is not certain. false: more than `most`. */
bool zc_gen_broadcast(zc_gen *g, const char *prefix, zc_shape to, int n, const zc_shape *operands,
                      int most);
/* Device function `name` from a scalar expression over inputs of these types: parameters and result
 * are in compute types (see device.cuh). at_end: input 0 is what the kernel computed, in the
 * compute type and not rounded, and the result is stored, which rounds it. */
zc_status zc_gen_expr(zc_gen *g, const char *name, const zc_expr *e, const zc_dtype *in,
                      bool at_end);
/* Z_name_PAIR(a, b): an expression of two neighbouring x0, not rounded, and what it makes packed as
 * it is stored; where both at once are fewer instructions. */
void zc_gen_pair(zc_gen *g, const char *name, const zc_expr *e);
/* Numbers that are no constants of the function, as far as there is room: they become the choice's,
 * and inputs of e behind the others, whose types `types` gets. Kernels that differ in such numbers
 * are one. */
void zc_gen_literals(zc_gen *g, zc_expr *e, zc_dtype *types);
/* Is the only result a sum of bytes? */
bool zc_gen_is_sum(const zc_expr *e, zc_affine *out);
/* As zc_gen_expr for an expression of one or several results, which are stored: returns struct
 * zc_<name>, whose fields y0, y1 ... they are. */
zc_status zc_gen_results(zc_gen *g, const char *name, const zc_expr *e, const zc_dtype *in);
/* Device function `name`: an activation (op/activation.h) of elements of this type, with the
 * parameters that are given; x itself when there is no such activation. */
zc_status zc_gen_activation(zc_gen *g, const char *name, const char *activation, int nparams,
                            const float *params, zc_dtype dtype);
const char *zc_gen_type_name(zc_dtype dtype);
const char *zc_gen_compute_type(zc_dtype dtype);
/* Its products are the tensor cores', by this instruction (wgmma, mma), of factors of this type:
 * f32 is rounded to tf32. */
void zc_gen_tensor_cores(zc_gen *g, const char *instruction, zc_dtype factors);
/* Writes what zc/fused.cuh needs of the step's epilogue, if it has one. The family's kernels
 * send output 0 through zc_fused, and its launch function calls zc_launch_epilogue. */
zc_status zc_gen_epilogue(zc_gen *g);
/* The same of a byte of two bytes, x0 and x1 of the types that these inputs have: Z_FUSED_SUM;
 * declines where it is no sum (op/affine.h). */
zc_status zc_gen_sum_of_bytes(zc_gen *g, const char *text, int x0, int x1);
/* With it, for kernels that have rows and columns of the result in hand and use zc_fused_cells,
 * where all operands are such (ZC_TAKES_CELLS). */
void zc_gen_epilogue_cells(zc_gen *g);
/* With them: operands of the result's shape may have a pitch. */
void zc_gen_epilogue_pitches(zc_gen *g);
/* The first operand of the epilogue that has the result's shape and is of 8 bits, or f16 or bf16;
 * -1: none. */
int zc_gen_epilogue_tile(const zc_gen *g, unsigned bits);
/* The same of the step's prologue: the kernels send input 0 through zc_pre
 * whenever they read it, and the launch function calls zc_launch_prologue. */
zc_status zc_gen_prologue(zc_gen *g);
/* Declines a step with pointwise work that the family does not take. */
zc_status zc_gen_takes(zc_gen *g, zc_takes takes);
/* Declines: returns ZC_OK. */
zc_status zc_gen_decline(zc_gen *g, const char *fmt, ...) ZC_PRINTF(2, 3);

#define FAMILY(name, template) zc_status zc_gen_##name(zc_gen *g);
#define CONFIG(name)           extern const char *const zc_config_##name[]; /* ended by NULL */
#include "op/kernels.def"

#endif
