/* Losses: reference kernels. */
#include <math.h>
#include <string.h>

#include "cpu/copy.h"

typedef struct job {
    const zc_tensor *x, *labels, *weights; /* weights NULL: all 1 */
    zc_tensor *log_prob;                   /* NULL: not wanted */
    double *loss;                          /* of each label */
    int64_t classes, inner;                /* x is [N, classes, inner] */
    bool softmax, ignores;
    int64_t ignored;
} job;

static bool is_ignored(const job *j, int64_t label)
{
    return j->ignores && label == j->ignored;
}

static double weight_of(const job *j, int64_t label)
{
    if (is_ignored(j, label)) return 0;
    return j->weights ? zc_get(j->weights, label) : 1;
}

/* Logarithm of the sum of the exponentials of a label's scores, which begin at x[at]. */
static double log_sum_exp(const job *j, int64_t at)
{
    double max = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < j->classes; c++) max = fmax(max, zc_get(j->x, at + c * j->inner));
    for (int64_t c = 0; c < j->classes; c++) sum += exp(zc_get(j->x, at + c * j->inner) - max);
    return max + log(sum);
}

static void positions(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / j->inner * j->classes * j->inner + i % j->inner;
        int64_t label = zc_geti(j->labels, i);
        double norm = j->softmax ? log_sum_exp(j, at) : 0;
        j->loss[i] = 0;
        if (!is_ignored(j, label))
            j->loss[i] = weight_of(j, label) * (norm - zc_get(j->x, at + label * j->inner));
        for (int64_t c = at; j->log_prob && c < at + j->classes * j->inner; c += j->inner)
            zc_put(j->log_prob, c, zc_get(j->x, c) - norm);
    }
}

static zc_status check_labels(zc_kctx *k, const job *j, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t label = zc_geti(j->labels, i);
        if (!is_ignored(j, label) && (label < 0 || label >= j->classes))
            return zc_kernel_fail(k, "label out of range (got %lld, need [0, %lld])",
                                  (long long)label, (long long)j->classes - 1);
    }
    return ZC_OK;
}

static zc_status check_shapes(zc_kctx *k, const job *j, int64_t n)
{
    const zc_tensor *x = j->x;
    int64_t dims[ZC_MAX_RANK] = {x->dims[0]};
    for (int d = 2; d < x->rank; d++) dims[d - 1] = x->dims[d];
    ZC_TRY(zc_check_shape(k, j->labels, x->rank - 1, dims, "labels"));
    if (j->weights)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(j->weights), j->classes, "number of weights"));
    return check_labels(k, j, n);
}

/* Over no weight at all the mean is NaN. */
static void reduce(const job *j, int64_t n, bool mean, zc_tensor *y)
{
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += j->loss[i];
        if (mean) weight += weight_of(j, zc_geti(j->labels, i));
    }
    zc_put(y, 0, mean ? sum / weight : sum);
}

static zc_status loss(zc_kctx *k, job *j, const char *reduction)
{
    j->x = &k->in[0];
    j->labels = &k->in[1];
    j->weights = zc_input(k, 2);
    j->log_prob = zc_output(k, 1);
    j->classes = j->x->dims[1];
    j->inner = zc_dims_span(j->x->dims, 2, j->x->rank);
    int64_t n = zc_tensor_numel(j->labels);
    ZC_TRY(check_shapes(k, j, n));
    j->loss = zc_scratch_get(k->scratch, (size_t)n * sizeof *j->loss);
    if (!j->loss) return zc_fail_nomem(k->diag, "losses", (size_t)n * sizeof *j->loss);
    zc_parallel(k, n, 1 + 1024 / (j->classes + 1), positions, j);
    if (!zc_output(k, 0)) return ZC_OK;
    if (strcmp(reduction, "none") != 0) {
        reduce(j, n, strcmp(reduction, "mean") == 0, &k->out[0]);
        return ZC_OK;
    }
    for (int64_t i = 0; i < n; i++) zc_put(&k->out[0], i, j->loss[i]);
    return ZC_OK;
}

zc_status zc_k_SoftmaxCrossEntropyLoss(zc_kctx *k)
{
    const zc_attrs_SoftmaxCrossEntropyLoss *a = ZC_ATTRS(k, SoftmaxCrossEntropyLoss);
    job j = {.softmax = true,
             .ignores = ZC_ATTR_GIVEN(SoftmaxCrossEntropyLoss, a, ignore_index),
             .ignored = a->ignore_index};
    return loss(k, &j, a->reduction);
}

zc_status zc_k_NegativeLogLikelihoodLoss(zc_kctx *k)
{
    const zc_attrs_NegativeLogLikelihoodLoss *a = ZC_ATTRS(k, NegativeLogLikelihoodLoss);
    job j = {.ignores = ZC_ATTR_GIVEN(NegativeLogLikelihoodLoss, a, ignore_index),
             .ignored = a->ignore_index};
    return loss(k, &j, a->reduction);
}
