/* Reference kernels of poolings. */
#include "cpu/pooling.h"

#include <math.h>

/* ---- geometry ---- */

#define POOL_OPS(X) X(AveragePool) X(MaxPool) X(LpPool)

static bool window_attrs(const zc_kctx *k, zc_window_attrs *a)
{
    switch (k->op) {
#define X(NAME)                                                                                    \
    case ZC_OP_##NAME: {                                                                           \
        const zc_attrs_##NAME *at = ZC_ATTRS(k, NAME);                                             \
        *a = ZC_WINDOW_ATTRS(at);                                                                  \
        a->auto_pad = at->auto_pad;                                                                \
        return true;                                                                               \
    }
        POOL_OPS(X)
#undef X
    default:
        return false;
    }
}

void zc_pooling_of(const zc_kctx *k, zc_pooling *p)
{
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    int axes = x->rank - 2;
    zc_window_attrs a = {0};
    bool windows = window_attrs(k, &a);
    bool empty = zc_tensor_numel(y) == 0;
    p->planes = empty ? 0 : x->dims[0] * x->dims[1];
    p->in_plane = empty ? 0 : zc_dims_span(x->dims, 2, x->rank);
    p->out_plane = empty ? 0 : zc_dims_span(y->dims, 2, y->rank);
    zc_window_resolve(&a, axes, x->dims + 2, y->dims + 2, windows ? a.kernel.v : x->dims + 2,
                      &p->w);
}

/* ---- reference ---- */

typedef struct job {
    const zc_kctx *k;
    zc_pooling p;
    int64_t lp; /* the exponent of Lp poolings */
    bool count_pad, column_major;
    bool whole; /* the window is the plane */
} job;

/* Calls f for every output element in [begin, end). */
#define FOR_WINDOWS(j, begin, end, i, base, at)                                                    \
    for (int64_t i = begin, base, at[ZC_WINDOW_AXES];                                              \
         i < end && (base = i / (j)->p.out_plane * (j)->p.in_plane,                                \
                    zc_coords(i % (j)->p.out_plane, (j)->p.w.axes, (j)->p.w.out, at), true);       \
         i++)

int64_t zc_padded_taps(const zc_window *w, const int64_t *at)
{
    int64_t n = 1;
    for (int i = 0; i < w->axes; i++) {
        int64_t start = at[i] * w->stride[i], size = w->in[i] + w->begin[i] + w->end[i];
        int64_t fit = start < size ? (size - start - 1) / w->dilation[i] + 1 : 0;
        n *= fit < w->kernel[i] ? fit : w->kernel[i];
    }
    return n;
}

static void average(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    FOR_WINDOWS(j, begin, end, i, base, at)
    {
        double sum = 0, n = 0;
        zc_taps t;
        for (zc_taps_begin(&j->p.w, at, &t); t.any; zc_taps_next(&t), n++)
            sum += zc_get(&j->k->in[0], base + t.x);
        if (j->count_pad) n = (double)zc_padded_taps(&j->p.w, at);
        /* The mean of an empty plane is no number, as that of an empty axis. */
        zc_put(&j->k->out[0], i, n > 0 || j->whole ? sum / n : 0);
    }
}

static void lp(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    double p = (double)j->lp;
    FOR_WINDOWS(j, begin, end, i, base, at)
    {
        double sum = 0;
        zc_taps t;
        for (zc_taps_begin(&j->p.w, at, &t); t.any; zc_taps_next(&t))
            sum += pow(fabs(zc_get(&j->k->in[0], base + t.x)), p);
        zc_put(&j->k->out[0], i, pow(sum, 1 / p));
    }
}

/* The index ONNX gives for element `at` of plane base / in_plane. */
static int64_t index_of(const job *j, int64_t base, int64_t at)
{
    if (!j->column_major) return base + at;
    int64_t pos[ZC_WINDOW_AXES], index = 0, step = 1;
    zc_coords(at, j->p.w.axes, j->p.w.in, pos);
    for (int d = 0; d < j->p.w.axes; d++) {
        index += pos[d] * step;
        step *= j->p.w.in[d];
    }
    return base + index;
}

/* The first largest element; NaN counts as largest. A window on padding alone gives the type's
 * least value and index -1. */
static void maximum(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_tensor *x = &j->k->in[0];
    zc_tensor *y = &j->k->out[0];
    zc_tensor *index = j->k->nout > 1 && zc_present(&j->k->out[1]) ? &j->k->out[1] : NULL;
    double least = zc_dtype_is_float(x->dtype) ? -(double)INFINITY : x->dtype == ZC_I8 ? -128 : 0;
    FOR_WINDOWS(j, begin, end, i, base, at)
    {
        double best = least;
        int64_t where = -1;
        zc_taps t;
        for (zc_taps_begin(&j->p.w, at, &t); t.any; zc_taps_next(&t)) {
            double v = zc_get(x, base + t.x);
            if (where >= 0 && !(v > best) && !(isnan(v) && !isnan(best))) continue;
            best = v;
            where = t.x;
        }
        zc_put(y, i, best);
        if (index) zc_puti(index, i, where < 0 ? -1 : index_of(j, base, where));
    }
}

static zc_status run(zc_kctx *k, job *j, void (*fn)(void *arg, int64_t begin, int64_t end))
{
    j->k = k;
    zc_pooling_of(k, &j->p);
    zc_parallel(k, j->p.planes * j->p.out_plane, 16, fn, j);
    return ZC_OK;
}

zc_status zc_k_AveragePool(zc_kctx *k)
{
    job j = {.count_pad = ZC_ATTRS(k, AveragePool)->count_include_pad != 0};
    return run(k, &j, average);
}

zc_status zc_k_MaxPool(zc_kctx *k)
{
    job j = {.column_major = ZC_ATTRS(k, MaxPool)->storage_order == 1};
    return run(k, &j, maximum);
}

zc_status zc_k_LpPool(zc_kctx *k)
{
    job j = {.lp = ZC_ATTRS(k, LpPool)->p};
    return run(k, &j, lp);
}

zc_status zc_k_GlobalAveragePool(zc_kctx *k)
{
    job j = {.whole = true};
    return run(k, &j, average);
}

zc_status zc_k_GlobalMaxPool(zc_kctx *k)
{
    job j = {0};
    return run(k, &j, maximum);
}

zc_status zc_k_GlobalLpPool(zc_kctx *k)
{
    job j = {.lp = ZC_ATTRS(k, GlobalLpPool)->p};
    return run(k, &j, lp);
}
