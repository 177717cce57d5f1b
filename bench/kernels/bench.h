/* zc's kernels one by one beside NVIDIA's libraries.
 *
 * A case is one operation as a user's plan has it: constant weights, fused bias, activation and
 * residual, the kernel that the compiler takes with the measurements that zc brings along. It is
 * compiled as a graph of copies of the operation, each with weights, inputs and results of its own,
 * together more than twice the L2 cache, so that all data come from memory; the copies are one CUDA
 * graph, whose time by their number is the operation's. The yardstick is the same number of the
 * library's calls on copies of its own, captured into one CUDA graph. Both run in turn, in rounds;
 * times are their medians, and the ratio is the median of the rounds', as the clock that a GPU
 * allows itself falls while it works. What a launch costs behind another is in both times, and zc's
 * kernels may begin before the one in front has ended (programmatic launches), as they do in a
 * plan.
 *
 * Everything is random: normal numbers, weights a 32nd of those, bytes 20 times as large. Elements
 * of both results, taken at random from all copies, are compared with the operation computed in f64
 * from the same numbers. */
#ifndef ZC_BENCH_KERNELS_BENCH_H
#define ZC_BENCH_KERNELS_BENCH_H

#include "base/file.h"
#include "base/mem.h"
#include "cuda/device.h"
#include "op/dtype.h"
#include "zc/rt.h"

enum { KB_RANK = 4, KB_ROUNDS = 101, KB_COPIES = 256 };

/* ---- cases.c ---- */

typedef enum kb_kind { KB_PRODUCT, KB_CONV, KB_ATTENTION, KB_LAYER_NORM, KB_SOFTMAX } kb_kind;
typedef enum kb_act { KB_PLAIN, KB_RELU, KB_GELU, KB_GELU_TANH } kb_act;

typedef struct kb_case {
    const char *group, *name;
    kb_kind kind;
    zc_dtype type;
    double goal;     /* how many times as fast as the yardstick; 0: its group has a goal alone */
    int64_t batch;   /* PRODUCT: x[batch, rows, k], or [rows, k] with batch 0, by w[k, n] */
    int64_t rows;    /* ATTENTION: positions. LAYER_NORM, SOFTMAX: of x[rows, n] */
    int64_t k, n;    /* CONV: channels of x[batch, size, size, k] and of the result. ATTENTION: k
                        elements a head */
    bool transposed; /* w[n, k] */
    bool scaled;     /* of 8 bits: floats, by scales of the columns; other bytes give i32 */
    bool f32_sums;   /* of e4m3: the yardstick's do not stay in the tensor cores */
    bool variable;   /* w is an input, too */
    bool bias;       /* one for each column */
    bool residual;   /* added last, before CONV's activation. LAYER_NORM: added to x */
    bool wide;       /* results of f32 */
    bool gated;      /* SiLU of it multiplies a second product, of the same sizes */
    kb_act act;      /* on the result */
    int64_t size;    /* CONV: pixels a side */
    int64_t kernel;  /* taps a side */
    int64_t stride;
    bool image;    /* x is f32[batch, k, size, size] */
    bool first;    /* the residual is the first term, as a shortcut's convolution has it */
    int64_t heads; /* ATTENTION: queries, keys and values lie in x[batch, rows, 3 * heads * k] */
    bool causal;
    const char *scale; /* as the model says it; NULL: 1 / sqrt(k) */
} kb_case;

typedef struct kb_group {
    const char *name;
    double goal;      /* for the geometric mean; 0: none */
    double least;     /* for each case; 0: none */
    bool is_optional; /* only with a filter that names it */
} kb_group;

extern const kb_case kb_cases[];
extern const size_t kb_case_count;
extern const kb_group kb_groups[];
extern const size_t kb_group_count;
const kb_group *kb_group_of(const kb_case *c);

/* Operands by what they are. */
/* KB_SCALE: of the columns of a product of 8 bits, 1 as the libraries have none. */
typedef enum kb_role {
    KB_X,
    KB_W,
    KB_SECOND_W, /* what a gate multiplies is a product by this one */
    KB_SCALE,
    KB_BIAS,
    KB_RESIDUAL,
    KB_OUT,
    KB_ROLES
} kb_role;

typedef struct kb_tensor {
    zc_dtype dtype; /* ZC_NONE: there is none */
    int rank;
    int64_t dims[KB_RANK], count;
    size_t bytes;
    bool constant;
    bool weight; /* its values are a 32nd of normal numbers, but for those of 8 bits */
    bool ones;
} kb_tensor;

/* A case as an operation of zc's. */
typedef struct kb_problem {
    const char *op;
    char attrs[320];
    kb_tensor t[KB_ROLES];
    kb_role order[5]; /* of the operands; KB_OUT: one that is left out */
    int nin;
    double flops;
    uint64_t bytes; /* of all tensors */
} kb_problem;

/* false: the sizes are too large. */
bool kb_describe(const kb_case *c, kb_problem *out);

/* ---- values.c ---- */

/* Values repeat after so many, a prime: rows never begin alike. */
#define KB_POOL 4194301

typedef enum kb_pool_kind {
    KB_F16,
    KB_BF16,
    KB_F32,
    KB_F16_W,
    KB_BF16_W,
    KB_E4M3,
    KB_I8,
    KB_ONES,
    KB_POOLS
} kb_pool_kind;
typedef struct kb_pools {
    void *raw[KB_POOLS];    /* elements of their type */
    float *value[KB_POOLS]; /* the same as f32 */
} kb_pools;

zc_status kb_pools_make(kb_pools *p, zc_diag *diag);
void kb_pools_free(kb_pools *p);
kb_pool_kind kb_pool_of(const kb_tensor *t);
size_t kb_pool_bytes(kb_pool_kind kind);
/* Where in its pool the values of a tensor's copy begin. */
int64_t kb_place(kb_role role, int copy);
/* The tensor's bytes. */
void kb_values(const kb_pools *p, const kb_tensor *t, kb_role role, int copy, void *out);

/* ---- reference.c ---- */

/* What a side computes where it may differ from the case. */
typedef struct kb_form {
    bool transposed;    /* w[n, k] */
    bool channels_last; /* an image is [batch, size, size, k] */
    bool ungated;       /* of a gate's two products, the second one alone */
    kb_act act;
} kb_form;

/* One element of copy `copy`'s result, in f64. */
double kb_reference(const kb_case *c, const kb_problem *p, const kb_pools *pools,
                    const kb_form *form, int copy, int64_t index);

/* ---- ours.c ---- */

typedef struct kb_options {
    const char *filter, *json, *libraries, *tuned;
    int device, rounds;
    double seconds; /* the most that the rounds of a case take */
    bool offered, by_cost, list, compile, alone;
} kb_options;

/* A compiled case. */
typedef struct kb_plan {
    zc_plan *plan;
    int copies;
    char kernel[64], config[200], why[300];
    char failed[600]; /* why there is no plan */
} kb_plan;

/* Any thread may call it. */
void kb_compile(const kb_problem *p, const kb_pools *pools, const kb_options *o, int arch,
                int copies, kb_plan *out);

/* ---- rig.c ---- */

typedef struct kb_rig {
    zc_device device;
    bool is_open, is_real; /* not the tests' driver */
    zc_cu_stream stream;
    zc_cu_event start, end;
    kb_pools pools;
    zc_cu_ptr pool[KB_POOLS];
    zc_cu_ptr workspace;
    struct kb_cublaslt *cublaslt;
    struct kb_cudnn *cudnn;
    char no_cublaslt[400], no_cudnn[400]; /* why they are not there */
} kb_rig;

enum { KB_WAIT_MS = 20000 };
#define KB_WORKSPACE ((size_t)64 << 20)

zc_status kb_rig_open(kb_rig *rig, const kb_options *o, zc_diag *diag);
void kb_rig_close(kb_rig *rig);

/* One of the two that are compared. */
typedef struct kb_side {
    zc_session *session;    /* zc's */
    zc_cu_graph_exec graph; /* or the library's calls */
    zc_cu_ptr out;          /* its results, copy by copy */
    kb_form form;
    void (*release)(void *held); /* frees what the graph needs; may be NULL */
    void *held;
    double scale; /* of its time, to what the case asks for; 0: 1 */
    char how[320];
    double error;
    double us[KB_ROUNDS], median; /* of one copy */
    int rounds;
} kb_side;

/* A case on the GPU. */
typedef struct kb_run {
    kb_rig *rig;
    const kb_case *c;
    const kb_problem *p;
    int copies;
    zc_cu_ptr base[KB_ROLES]; /* operands, copy by copy; KB_OUT has none */
    zc_cu_ptr image;          /* the library's, where it reads another than zc; 0: none */
    kb_side ours, yardstick;
} kb_run;

size_t kb_stride(const kb_tensor *t);
static inline zc_cu_ptr kb_at(const kb_run *r, kb_role role, int copy)
{
    return r->base[role] + (zc_cu_ptr)copy * kb_stride(&r->p->t[role]);
}
static inline zc_cu_ptr kb_out_at(const kb_run *r, const kb_side *side, int copy)
{
    return side->out + (zc_cu_ptr)copy * kb_stride(&r->p->t[KB_OUT]);
}

/* Fills a copy of a tensor with its values. */
zc_status kb_fill(kb_rig *rig, zc_cu_ptr to, const kb_tensor *t, kb_role role, int copy,
                  zc_diag *diag);
/* Operands and results in device memory. */
zc_status kb_run_open(kb_run *r, zc_diag *diag);
void kb_run_close(kb_run *r);
/* zc's side, ready to be timed. */
zc_status kb_ours_open(kb_run *r, const kb_plan *plan, zc_diag *diag);

/* Issues copy `copy` on the rig's stream. */
typedef zc_status (*kb_issue)(void *user, int copy, zc_diag *diag);
/* Captures all copies, and keeps them in the yardstick when they are faster than what it has: then
 * *better. `best_us` is 0 at first. */
zc_status kb_try(kb_run *r, kb_issue issue, void *user, double *best_us, bool *better,
                 zc_diag *diag);
/* The greatest error of sampled elements, by the greatest of them. */
zc_status kb_check(kb_run *r, kb_side *side, zc_diag *diag);
/* Both in turn, for `rounds` rounds or `seconds`. */
zc_status kb_measure(kb_run *r, int rounds, double seconds, zc_diag *diag);

/* ---- yardsticks ---- */

/* Opens a library by its names, in the folders (with ':' between them; may be NULL) and where the
 * system looks; NULL: `why` says so. */
void *kb_library(const char *const *names, const char *folders, char *why, size_t n);
/* Puts the functions of these names at their places in a table. */
typedef struct kb_symbol {
    const char *name;
    size_t offset;
} kb_symbol;
bool kb_bind(void *library, const kb_symbol *symbols, size_t count, void *table, char *why,
             size_t n);

/* NULL: `why` says why not. */
struct kb_cublaslt *kb_cublaslt_open(const char *folders, char *why, size_t n);
void kb_cublaslt_close(struct kb_cublaslt **lt);
size_t kb_cublaslt_version(const struct kb_cublaslt *lt);
zc_status kb_cublaslt_product(kb_run *r, zc_diag *diag);

struct kb_cudnn *kb_cudnn_open(const char *folders, zc_cu_stream stream, char *why, size_t n);
void kb_cudnn_close(struct kb_cudnn **dnn);
size_t kb_cudnn_version(const struct kb_cudnn *dnn);
zc_status kb_cudnn_conv(kb_run *r, zc_diag *diag);
zc_status kb_cudnn_attention(kb_run *r, zc_diag *diag);

/* A copy of as many bytes as the operation reads and writes. */
zc_status kb_copy(kb_run *r, zc_diag *diag);

/* ---- table.c ---- */

typedef struct kb_result {
    const kb_case *c;
    const kb_problem *p;
    const kb_plan *plan;
    bool is_measured;
    char failed[600];        /* why it is not */
    kb_side ours, yardstick; /* what was measured; median 0: not */
    char no_yardstick[400];  /* why there is none */
} kb_result;

/* Of cuBLASLt, cuDNN or the copy. */
const char *kb_yardstick_name(const kb_case *c);
/* Is a result further off than rounding explains? Sums of bytes are exact. */
bool kb_is_wrong(const kb_case *c, double error);
/* How many times as fast as the yardstick; 0: one of them is not known, or wrong. */
double kb_ratio(const kb_result *r);

void kb_table_head(const kb_rig *rig);
void kb_table_row(const kb_result *r);
/* Geometric means by group. */
void kb_table_groups(const kb_result *results, size_t n);
zc_status kb_table_json(zc_writer *writer, const kb_rig *rig, const kb_result *results, size_t n,
                        zc_diag *diag);

#endif
