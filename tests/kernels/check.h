/* The kernel check: every row of the CUDA kernel table against the CPU's reference kernels.
 *
 * A case (cases_*.def) is data: an operation, its attributes and operands as text, the element
 * types and sizes it is run with, and what its results are held to. Each case becomes a program of
 * the same step twice, so that a second run replays a CUDA graph; its outputs lie in guarded,
 * poisoned device memory. */
#ifndef ZC_TESTS_KERNELS_CHECK_H
#define ZC_TESTS_KERNELS_CHECK_H

#include "codegen/codegen.h"
#include "cpu/kernel.h"
#include "cuda/device.h"
#include "driver/target.h"
#include "ir/graph.h"
#include "kernels/choose.h"
#include "zc/rt.h"

enum {
    KC_OPERANDS = 24,
    KC_OUTPUTS = 8,
    KC_SYMBOLS = 26, /* dimensions named a to z */
    KC_RESULT = 1 << KC_OPERANDS
};

/* What the numbers of operands without a kind of their own are. */
typedef enum kc_kind {
    KC_NORMAL,  /* normal, variance 1; integers in [-100, 100] */
    KC_BIG,     /* magnitudes of 1e4 to 6e4; the whole range of integers */
    KC_CANCEL,  /* pairs of +v and -v, and small rests */
    KC_EQUAL,   /* all the same */
    KC_TINY,    /* subnormal numbers of the type */
    KC_MASKED,  /* -inf here and there, and in whole rows */
    KC_SPECIAL, /* NaN, infinities and negative zero among others */
    KC_KINDS
} kc_kind;

enum {
    KC_EXACT = 1 << 0, /* results are the same bits (NaN is NaN) as the reference kernel's in the
                          same type */
    KC_FUSED = 1 << 1, /* rounds values in between to the type where it is evaluated step by step */
    KC_STATIC = 1 << 3, /* needs its dimensions when it is compiled */
    KC_WIDE = 1 << 4,   /* f32 sums in a fixed order over long rows: the slack counts 8 times */
    KC_BENCH_ONLY = 1 << 5,
    KC_OFF_BY_ONE = 1 << 7, /* integers may be: they are truncated where sums lie near one */
    KC_CANCELS = 1 << 6,    /* its formula leaves small rests of numbers of the operand's size */
    KC_CLIPS = 1 << 14,  /* clips in between, which hides what wrong inputs do to some elements: all
                            get the slack that a quarter of them has */
    KC_COARSE = 1 << 15, /* sums of e4m3 in the tensor cores, which cut off 2^-14 of a sum at each
                            32 of up to 1,024 products: all elements get 2^-9 of the largest (one of
                            9,360 was 2^-9.8 of it off) */
    /* Kinds beside KC_NORMAL. */
    KC_WITH_BIG = 1 << 8,
    KC_WITH_CANCEL = 1 << 9,
    KC_WITH_EQUAL = 1 << 10,
    KC_WITH_TINY = 1 << 11,
    KC_WITH_MASKED = 1 << 12,
    KC_WITH_SPECIAL = 1 << 13,
    KC_MOVES = KC_EXACT | KC_WITH_SPECIAL | KC_WITH_BIG,
    KC_NUMBERS = KC_WITH_BIG | KC_WITH_CANCEL | KC_WITH_EQUAL | KC_WITH_TINY | KC_WITH_SPECIAL
};

/* Operands, with ';' between them:
 *   T[n,4]              an input of the case's type, U for the second of a pair "f32:i8"
 *   i64[m]~int(0,9)     ... of integers in [0, 9]; ~pos in [0.5, 2); ~unit in [0, 1); ~small: a
 *                       tenth; ~angle in [-pi, pi); ~rising: about 0 first and about 8 in the end;
 *                       ~places: of sparse matrices (op/sparse.h);
 *                       ~band(columns,groups,in): small, weights of a convolution in such a band
 *   i64[2]~val(n,4)     ... of just these numbers, in host memory
 *   i64[2]=[0,1]        a constant
 *   _                   left out
 * sizes: "n=1; n=33,m=7" are two shapes. In attributes, $T and $U are the types' names. */
typedef struct kc_case {
    const char *op, *family, *in;
    const char *attrs; /* "{axis = 1}"; may be NULL */
    const char *types; /* "f32 f16 f32:i8" */
    const char *sizes; /* NULL: all dimensions are numbers */
    const char *outs;  /* one letter an output, '_' where it is left out; NULL: one */
    unsigned flags;
    const char *large; /* sizes for a real GPU only; may be NULL */
    const char *bench; /* sizes to measure; NULL: not measured */
    const char *flops; /* operations of one run, an expression of the dimensions; NULL: 0 */
    int candidate;     /* the configuration, from 1; 0: by cost */
    const char *local; /* why its kernels may keep something in local memory; NULL: they may not */
    unsigned finite;   /* bit i: operand i never holds NaN or infinity */
    const char *because; /* ... and why */
    const char *mixes;   /* why what is infinite in the reference may be NaN; NULL: it may not */
    unsigned pitched; /* bit i: operand i is the second half of each line of something larger's last
                         axis; KC_RESULT: the two copies' results are halves, too */
} kc_case;

extern const kc_case kc_cases[];
extern const size_t kc_case_count;

/* Of the cases for its operation and family. */
/* How many cases of its row come before it. */
int kc_row_number(const kc_case *c);

typedef struct kc_sizes {
    int64_t v[KC_SYMBOLS]; /* -1: not given */
} kc_sizes;

typedef struct kc_options {
    const char *filter;
    int ordinal, jobs;
    int turn;        /* the file that a worker locks while it measures; -1: it is alone */
    int part, parts; /* every parts-th variant, from number `part` (0 is the first) on */
    uint64_t seed;
    zc_targets targets; /* to compile for; none: kernels are run */
    bool bench, json, list, verbose, brief, rows;
    bool cpu;       /* the CPU's kernels */
    bool takes;     /* what rows take of pointwise work, without running them */
    bool no_graphs; /* issue every kernel by itself */
    bool planted;   /* also with NaN and infinity in the operands */
    bool small;     /* leave out sizes for a real GPU */
    bool real;      /* not the driver of the tests */
    bool noted;     /* compile them as profiles of graphs do (kernels/stamps.h) */
} kc_options;

/* A case for one pair of element types. */
typedef struct kc_variant {
    const kc_case *c;
    char t[16], u[16];
    bool fixed; /* of its case: it is the one that is also built with fixed sizes */
} kc_variant;

typedef struct kc_operand {
    zc_tensor t; /* data: host memory; NULL until filled */
    bool absent, constant, listed;
    bool of_t; /* has the case's type T */
    int input; /* index among the program's inputs; -1 */
    char kind[96];
} kc_operand;

/* A compiled variant. */
typedef struct kc_program {
    zc_arena arena;
    zc_graph *graph;
    zc_program program;
    zc_plan *plan;
    int nin, nout, copies;
    int ninputs; /* of one copy */
    bool wanted[KC_OUTPUTS];
    char why[256];
    const zc_pstep *step; /* the case's operation */
    const char *family;   /* of its kernel; NULL: none */
} kc_program;

typedef struct kc_result {
    int runs, failed;
    int without_f64; /* comparisons that had no f64 reference */
    double worst;    /* error in units in the last place */
    double tightest; /* error by what is allowed */
} kc_result;

/* ---- text.c ---- */
/* Calls fn for each item of a list separated by `by`; stops when it returns false. */
bool kc_each(const char *list, char by, bool (*fn)(void *arg, const char *item), void *arg);
bool kc_sizes_parse(const char *text, kc_sizes *out);
/* Writes text with the dimensions in [...] and (...) that `sizes` has replaced by numbers. */
void kc_substitute(const char *text, const kc_sizes *sizes, zc_buf *out);
/* The operands of a variant for concrete sizes; false: the case is wrong (says why). */
bool kc_operands(const kc_variant *v, const kc_sizes *sizes, kc_operand *out, int *n);
double kc_evaluate(const char *expression, const kc_sizes *sizes);
bool kc_variant_of(const kc_case *c, const char *pair, kc_variant *out);

/* ---- program.c ---- */
/* The program and its kernels, for each architecture. fixed: sizes that become constants; NULL:
 * symbolic. shared: the copies read the same inputs. */
zc_status kc_lower(const kc_variant *v, const kc_sizes *fixed, int copies, bool shared,
                   const int *archs, int narchs, kc_program *out, zc_diag *diag);
/* And the plan, compiled for one architecture. */
zc_status kc_build(const kc_variant *v, const kc_sizes *fixed, int copies, bool shared, int arch,
                   kc_program *out, zc_diag *diag);
void kc_program_free(kc_program *p);

/* ---- values.c ---- */
typedef struct kc_random {
    uint64_t key, count;
} kc_random;
double kc_unit(kc_random *r);
bool kc_fill(kc_operand *o, kc_kind kind, kc_random *r);
/* Puts NaN, inf and -inf at the beginning of the first row, in the middle of the middle one and at
 * the end of the last one; `turn` says which comes first. Fewer than three rows get one of them:
 * turns beyond the third put it elsewhere. */
void kc_plant(kc_operand *o, int turn);
/* Turns that put each of them at each place of operand i; 0: it holds no such numbers. */
int kc_plant_turns(const kc_case *c, const kc_operand *in, int i);

/* ---- reference.c ---- */
typedef struct kc_reference {
    const kc_variant *v;
    const kc_program *p;
    const kc_operand *in;
    zc_tensor same[KC_OUTPUTS],
        exact[KC_OUTPUTS]; /* in the same type; in f64 where that is possible */
    bool has_exact;
    bool planted; /* an operand holds NaN and infinity: results are held to be so at the same
                     places, and loosely near elsewhere */
    double *changes[KC_OUTPUTS]; /* by element: the most that perturbed inputs did to it */
    double *slack[KC_OUTPUTS];   /* and what they allow; NULL until needed */
    int rounds;                  /* of perturbation that they are from */
    kc_random random;            /* the next round's */
} kc_reference;
zc_status kc_reference_make(const kc_variant *v, const kc_program *p, const kc_operand *in,
                            bool planted, kc_reference *out, zc_diag *diag);
void kc_reference_free(kc_reference *r);
/* Holds output i against the references; false: `text` says what is wrong. */
bool kc_compare(kc_reference *r, int i, const void *got, kc_result *result, char *text, size_t n);

/* ---- gpu.c ---- */
bool kc_check_variant(const kc_options *o, zc_device *d, const kc_variant *v, kc_result *result);

/* ---- compile.c ---- */
typedef struct kc_compiler kc_compiler;
kc_compiler *kc_compile_create(const kc_options *o);
void kc_compile_destroy(kc_compiler *k);
/* Adds the variant's kernels, each once. */
bool kc_compile_add(kc_compiler *k, const kc_variant *v);
/* Compiles all for every target and says what they use. */
bool kc_compile_all(kc_compiler *k);

/* ---- cpu.c ---- */
enum { KC_FAST = 128 }; /* rows of fast.def, at most */
/* Notes in `ran` the rows whose kernel was run. */
bool kc_check_cpu(const kc_options *o, const kc_variant *v, bool ran[KC_FAST], kc_result *result);
/* Says which were not; returns their number. */
int kc_check_cpu_rows(const bool ran[KC_FAST]);

/* ---- takes.c ---- */
/* Holds the row to what the table says that it takes; returns the number of failures. */
int kc_check_takes(const char *op, const char *family);

/* ---- bench.c ---- */
bool kc_bench_variant(const kc_options *o, zc_device *d, const kc_variant *v);

#endif
