/* Reductions of f32, accumulated in double. The order of additions depends on the shape alone, so
 * that any number of threads gives the same bits. */
#include <math.h>

#include "cpu/fast.h"
#include "cpu/reduce.h"

/* Accumulators side by side, for the vector unit. */
#define LANES 16
/* Outputs that one unit of work holds when neighbouring outputs are reduced together. */
#define TILE 512
/* A longer contiguous run is cut, so that one output can be shared by threads. */
#define RUN ((int64_t)1 << 14)
/* With fewer units than this, and work enough, the reduced elements are cut into this many parts.
 */
#define PARTS     64
#define PARTS_MIN ((int64_t)1 << 17)

/* ---- inner loops ---- */

typedef struct inner {
    double first; /* what an empty reduction gives */
    double (*row)(const float *x, int64_t n, const double *shift);
    void (*col)(double *acc, const float *x, int64_t n, const double *shift);
    double (*join)(double a, double b);
} inner;

/* STEP makes the new accumulator of a, the element v and the shift s; JOIN joins a and b. Lanes are
 * the same for every instruction set, and so are the results. */
#define INNER(name, FIRST, STEP, JOIN)                                                             \
    SIMD_FUNC double SIMD_FN(name##_join)(double a, double b)                                      \
    {                                                                                              \
        return JOIN;                                                                               \
    }                                                                                              \
    SIMD_FUNC double SIMD_FN(name##_row)(const float *restrict x, int64_t n, const double *shift)  \
    {                                                                                              \
        double lane[LANES], s = *shift, a = FIRST, v;                                              \
        int64_t i = 0;                                                                             \
        (void)s;                                                                                   \
        if (n >= LANES) {                                                                          \
            for (int l = 0; l < LANES; l++) lane[l] = FIRST;                                       \
            for (; i + LANES <= n; i += LANES) {                                                   \
                for (int l = 0; l < LANES; l++) {                                                  \
                    a = lane[l];                                                                   \
                    v = (double)x[i + l];                                                          \
                    lane[l] = STEP;                                                                \
                }                                                                                  \
            }                                                                                      \
            a = lane[0];                                                                           \
            for (int l = 1; l < LANES; l++) a = SIMD_FN(name##_join)(a, lane[l]);                  \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            v = (double)x[i];                                                                      \
            a = STEP;                                                                              \
        }                                                                                          \
        return a;                                                                                  \
    }                                                                                              \
    SIMD_FUNC void SIMD_FN(name##_col)(double *restrict acc, const float *restrict x, int64_t n,   \
                                       const double *restrict shift)                               \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            for (int l = 0; l < LANES; l++) {                                                      \
                double a = acc[i + l], v = (double)x[i + l], s = shift[i + l];                     \
                (void)s;                                                                           \
                acc[i + l] = STEP;                                                                 \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            double a = acc[i], v = (double)x[i], s = shift[i];                                     \
            (void)s;                                                                               \
            acc[i] = STEP;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static const inner SIMD_FN(name) = {FIRST, SIMD_FN(name##_row), SIMD_FN(name##_col),           \
                                        SIMD_FN(name##_join)};

#define SIMD_SOURCE "cpu/reduce_tmpl.h"
#include "cpu/simd_each.h"

static inner inner_of(zc_op op)
{
    zc_simd level = zc_simd_level();
    switch (op) {
    case ZC_OP_ReduceMax:
        return SIMD_PICK(level, greatest);
    case ZC_OP_ReduceMin:
        return SIMD_PICK(level, least);
    case ZC_OP_ReduceProd:
        return SIMD_PICK(level, product);
    case ZC_OP_ReduceL1:
        return SIMD_PICK(level, total_abs);
    case ZC_OP_ReduceL2:
    case ZC_OP_ReduceSumSquare:
        return SIMD_PICK(level, total_square);
    case ZC_OP_ReduceLogSumExp:
        return SIMD_PICK(level, total_exp);
    default:
        return SIMD_PICK(level, total);
    }
}

/* ---- one pass over the input ---- */

typedef struct pass {
    zc_reduce_shape shape;
    inner fn;
    const float *x;
    double *acc;         /* parts * outputs */
    const double *shift; /* one an output */
    int64_t run;         /* contiguous elements of a piece: reduced, or of neighbouring outputs */
    int64_t cuts;        /* pieces of the innermost group, when that is reduced */
    int64_t pieces;      /* of one unit */
    int64_t tiles;       /* units of the innermost group, when that is kept; else 1 */
    int64_t units, parts;
} pass;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The shape is not empty. */
static void plan_pass(pass *p)
{
    const zc_reduce_shape *s = &p->shape;
    bool rows = s->inner_reduced;
    int64_t length = rows      ? s->reduced_dims[s->reduced - 1]
                     : s->kept ? s->kept_dims[s->kept - 1]
                               : 1;
    p->run = rows ? RUN : TILE;
    if (p->run > length) p->run = length;
    p->cuts = rows ? ceil_div(length, RUN) : 1;
    p->tiles = rows ? 1 : ceil_div(length, TILE);
    p->pieces = rows ? s->count / length * p->cuts : s->count;
    p->units = rows ? s->outputs : s->outputs / length * p->tiles;
    bool cut = p->units < PARTS && p->pieces > 1 && s->outputs * s->count >= PARTS_MIN;
    p->parts = !cut ? 1 : p->pieces < PARTS ? p->pieces : PARTS;
}

/* The outputs [*first, *first + *n) of a unit and where their elements start. */
static int64_t locate_unit(const pass *p, int64_t unit, int64_t *first, int64_t *n)
{
    const zc_reduce_shape *s = &p->shape;
    int64_t rest = unit, base = 0;
    int last = s->kept - 1;
    *first = unit;
    *n = 1;
    if (!s->inner_reduced && last >= 0) {
        int64_t at = unit % p->tiles * TILE, length = s->kept_dims[last];
        rest /= p->tiles;
        *first = rest * length + at;
        *n = length - at < TILE ? length - at : TILE;
        base = at;
        last--;
    }
    for (int d = last; d >= 0; d--) {
        base += rest % s->kept_dims[d] * s->kept_strides[d];
        rest /= s->kept_dims[d];
    }
    return base;
}

/* The offset of a piece within its unit, and its number of reduced elements in a row. */
static int64_t locate_piece(const pass *p, int64_t piece, int64_t *n)
{
    const zc_reduce_shape *s = &p->shape;
    int64_t at = 0, rest = piece;
    int last = s->reduced - 1;
    if (s->inner_reduced) {
        int64_t from = piece % p->cuts * RUN, length = s->reduced_dims[last];
        rest /= p->cuts;
        *n = length - from < RUN ? length - from : RUN;
        at = from;
        last--;
    }
    for (int d = last; d >= 0; d--) {
        at += rest % s->reduced_dims[d] * s->reduced_strides[d];
        rest /= s->reduced_dims[d];
    }
    return at;
}

/* Parts of units: index unit*parts + part. */
static void run_parts(void *arg, int64_t begin, int64_t end)
{
    const pass *p = arg;
    bool plain = p->shape.inner_reduced && p->shape.reduced == 1 && p->shape.kept == 1;
    for (int64_t i = begin; plain && p->pieces == 1 && i < end; i++)
        p->acc[i] = p->fn.row(p->x + i * p->run, p->run, p->shift + i);
    for (int64_t i = begin; !(plain && p->pieces == 1) && i < end; i++) {
        int64_t part = i % p->parts, first, n, length = 1;
        const float *x = p->x + locate_unit(p, i / p->parts, &first, &n);
        double *acc = p->acc + part * p->shape.outputs + first;
        int64_t from = p->pieces * part / p->parts, to = p->pieces * (part + 1) / p->parts;
        for (int64_t j = 0; j < n; j++) acc[j] = p->fn.first;
        for (int64_t piece = from; piece < to; piece++) {
            const float *at = x + locate_piece(p, piece, &length);
            if (p->shape.inner_reduced)
                *acc = p->fn.join(*acc, p->fn.row(at, length, p->shift + first));
            else
                p->fn.col(acc, at, n, p->shift + first);
        }
    }
}

/* Joins the parts of outputs [begin, end) in order. */
static void join_parts(void *arg, int64_t begin, int64_t end)
{
    const pass *p = arg;
    for (int64_t part = 1; part < p->parts; part++) {
        const double *from = p->acc + part * p->shape.outputs;
        for (int64_t o = begin; o < end; o++) p->acc[o] = p->fn.join(p->acc[o], from[o]);
    }
}

/* Leaves a new array with one number an output in *acc. */
static zc_status run_pass(zc_kctx *k, pass *p, const double *shift, inner fn, double **acc)
{
    const zc_reduce_shape *s = &p->shape;
    size_t bytes;
    p->fn = fn;
    p->shift = shift;
    bool fits = zc_mul_size((size_t)p->parts, (size_t)s->outputs, &bytes) &&
                zc_mul_size(bytes, sizeof *p->acc, &bytes);
    p->acc = fits ? zc_scratch_get(k->scratch, bytes) : NULL;
    if (!p->acc) return zc_fail_nomem(k->diag, "partial results", fits ? bytes : SIZE_MAX);
    int64_t work = p->pieces / p->parts * p->run + 1;
    zc_parallel(k, p->units * p->parts, 32768 / work + 1, run_parts, p);
    if (p->parts > 1) zc_parallel(k, s->outputs, 4096, join_parts, p);
    *acc = p->acc;
    return ZC_OK;
}

/* ---- entry ---- */

typedef struct finish {
    zc_op op;
    int64_t count;
    const double *acc, *shift;
    float *out;
} finish;

static void finish_outputs(void *arg, int64_t begin, int64_t end)
{
    const finish *f = arg;
    for (int64_t o = begin; o < end; o++)
        f->out[o] = (float)zc_reduce_finish(f->op, f->acc[o], f->shift[o], f->count);
}

bool zc_fits_reduce_f32(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_reduce_f32(zc_kctx *k)
{
    pass p = {.x = k->in[0].data};
    ZC_TRY(zc_reduce_shape_of(k, &p.shape));
    plan_pass(&p);
    int64_t n = p.shape.outputs;
    double *acc, *shift = zc_scratch_get(k->scratch, (size_t)n * sizeof *shift);
    if (!shift) return zc_fail_nomem(k->diag, "partial results", (size_t)n * sizeof *shift);
    for (int64_t o = 0; o < n; o++) shift[o] = 0;
    if (k->op == ZC_OP_ReduceLogSumExp) {
        ZC_TRY(run_pass(k, &p, shift, inner_of(ZC_OP_ReduceMax), &acc));
        shift = acc;
        ZC_TRY(run_pass(k, &p, shift, inner_of(k->op), &acc));
    } else {
        ZC_TRY(run_pass(k, &p, shift, inner_of(k->op), &acc));
    }
    finish f = {
        .op = k->op, .count = p.shape.count, .acc = acc, .shift = shift, .out = k->out[0].data};
    zc_parallel(k, n, 4096, finish_outputs, &f);
    return ZC_OK;
}
