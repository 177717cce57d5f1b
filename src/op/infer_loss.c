/* Types and shapes of losses. */
#include <string.h>

#include "op/infer_common.h"

zc_status zc_dt_loss(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(zc_infer_need_int(f, 1, "labels"));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

static zc_status check_reduction(zc_infer *f, const char *reduction)
{
    static const char *const names[] = {"none", "sum", "mean"};
    for (size_t i = 0; reduction && i < ZC_COUNTOF(names); i++)
        if (strcmp(reduction, names[i]) == 0) return ZC_OK;
    return zc_infer_fail(f, "reduction must be none, sum or mean (got \"" ZC_NAME "\")",
                         reduction ? reduction : "");
}

/* Scores [N, C, D...], labels [N, D...], weights [C]. */
zc_status zc_infer_loss(zc_infer *f)
{
    const char *reduction = f->op == ZC_OP_SoftmaxCrossEntropyLoss
                                ? ZC_ATTRS(f, SoftmaxCrossEntropyLoss)->reduction
                                : ZC_ATTRS(f, NegativeLogLikelihoodLoss)->reduction;
    ZC_TRY(check_reduction(f, reduction));
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    const zc_type *x = zc_in(f, 0), *labels = zc_in(f, 1);
    ZC_TRY(zc_infer_need_rank(f, 1, x->rank - 1, x->rank - 1));
    for (int d = 0; d < labels->rank; d++)
        ZC_TRY(zc_infer_same(f, labels->dims[d], x->dims[d ? d + 1 : 0],
                             "dimensions of labels and scores"));
    if (zc_in_present(f, 2)) {
        ZC_TRY(zc_infer_need_rank(f, 2, 1, 1));
        ZC_TRY(zc_infer_same(f, zc_in(f, 2)->dims[0], x->dims[1], "classes and weights"));
    }
    zc_infer_copy(f, 1, 0);
    if (strcmp(reduction, "none") == 0)
        zc_infer_copy(f, 0, 1);
    else
        ZC_TRY(zc_infer_set(f, 0, 0, NULL));
    return ZC_OK;
}
