#include <string.h>

#include "codegen/gen.h"

static void put_flag(zc_gen *g, const char *name, bool value)
{
    zc_gen_define(g, name, "%s", value ? "true" : "false");
}

zc_status zc_gen_loss(zc_gen *g)
{
    const zc_attrs_SoftmaxCrossEntropyLoss *a = ZC_ATTRS(g, SoftmaxCrossEntropyLoss);
    const zc_attrs_NegativeLogLikelihoodLoss *b = ZC_ATTRS(g, NegativeLogLikelihoodLoss);
    bool softmax = g->step->op == ZC_OP_SoftmaxCrossEntropyLoss;
    zc_dtype t = zc_gen_in_type(g, 0), label = zc_gen_in_type(g, 1);
    if (!zc_gen_plain_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (!zc_gen_plain_type(label))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(label));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "LABEL", label);
    zc_gen_define(g, "ACC", "%s", t == ZC_F64 ? "f64" : "f32");
    put_flag(g, "SOFTMAX", softmax);
    put_flag(g, "IGNORES",
             softmax ? ZC_ATTR_GIVEN(SoftmaxCrossEntropyLoss, a, ignore_index)
                     : ZC_ATTR_GIVEN(NegativeLogLikelihoodLoss, b, ignore_index));
    put_flag(g, "MEAN", strcmp(softmax ? a->reduction : b->reduction, "mean") == 0);
    return ZC_OK;
}
