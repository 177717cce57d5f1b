/* Softmax and LogSoftmax: reference kernels. */
#include <math.h>

#include "cpu/kernel.h"

typedef struct job {
    const zc_tensor *x;
    zc_tensor *y;
    int64_t n, step; /* elements along the axis, and their distance */
    bool log;
} job;

/* A row of minus infinities, which is one that is masked everywhere, gives zeros: no weight at all
 * (docs/precision.md). */
static void row(const job *j, int64_t at)
{
    double max = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < j->n; i++) {
        double v = zc_get(j->x, at + i * j->step);
        if (!(v <= max)) max = v;
    }
    if (max == -(double)INFINITY) max = 0;
    for (int64_t i = 0; i < j->n; i++) sum += exp(zc_get(j->x, at + i * j->step) - max);
    double log_sum = log(sum);
    for (int64_t i = 0; i < j->n; i++) {
        double v = zc_get(j->x, at + i * j->step) - max;
        zc_put(j->y, at + i * j->step, j->log ? v - log_sum : sum == 0 ? 0 : exp(v) / sum);
    }
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) row(j, r / j->step * j->n * j->step + r % j->step);
}

static zc_status softmax(zc_kctx *k, int64_t axis_given, bool log)
{
    const zc_tensor *x = &k->in[0];
    int axis = zc_axis(axis_given, x->rank);
    int64_t all = zc_tensor_numel(x);
    if (all == 0) return ZC_OK;
    job j = {.x = x, .y = &k->out[0], .n = x->dims[axis], .log = log};
    j.step = zc_dims_span(x->dims, axis + 1, x->rank);
    zc_parallel(k, all / j.n, 1 + 4096 / j.n, rows, &j);
    return ZC_OK;
}

zc_status zc_k_Softmax(zc_kctx *k)
{
    return softmax(k, ZC_ATTRS(k, Softmax)->axis, false);
}

zc_status zc_k_LogSoftmax(zc_kctx *k)
{
    return softmax(k, ZC_ATTRS(k, LogSoftmax)->axis, true);
}
