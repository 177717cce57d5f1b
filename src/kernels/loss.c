#include <string.h>

#include "abi/loss.h"
#include "kernels/gen.h"
#include "kernels/groups.h"

/* ---- the specialisation ---- */

static const bool classes_axis[ZC_MAX_RANK] = {false, true};

const char *const zc_config_loss[] = {ZC_GROUPS_CONFIG, NULL};

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
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (!zc_kernel_type(label)) return zc_gen_decline(g, "element type %s", zc_dtype_name(label));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "LABEL", label);
    zc_gen_define(g, "ACC", "%s", t == ZC_F64 ? "f64" : "f32");
    put_flag(g, "SOFTMAX", softmax);
    put_flag(g, "IGNORES",
             softmax ? ZC_ATTR_GIVEN(SoftmaxCrossEntropyLoss, a, ignore_index)
                     : ZC_ATTR_GIVEN(NegativeLogLikelihoodLoss, b, ignore_index));
    put_flag(g, "MEAN", strcmp(softmax ? a->reduction : b->reduction, "mean") == 0);
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_gen_groups(g, x->rank, x->dims, classes_axis, zc_dtype_bits(t) / 8, false);
    g->smem = ZC_GROUP_BLOCK * ZC_LOSS_STATE;
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status check_shapes(zc_launch *l, const struct zc_loss_params *p)
{
    const zc_tensor *x = &l->in[0], *labels = &l->in[1];
    bool fits = labels->rank == x->rank - 1 && labels->dims[0] == x->dims[0];
    for (int d = 2; fits && d < x->rank; d++) fits = labels->dims[d - 1] == x->dims[d];
    if (!fits)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "labels do not have the scores' shape");
    if (p->weights && zc_tensor_numel(&l->in[2]) != p->classes)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "number of weights (got %lld, need %lld)",
                       (long long)zc_tensor_numel(&l->in[2]), p->classes);
    return ZC_OK;
}

zc_status zc_launch_loss(zc_launch *l)
{
    struct zc_loss_params p;
    const zc_tensor *x = &l->in[0];
    bool softmax = l->op == ZC_OP_SoftmaxCrossEntropyLoss;
    const char *reduction = softmax ? ZC_ATTRS(l, SoftmaxCrossEntropyLoss)->reduction
                                    : ZC_ATTRS(l, NegativeLogLikelihoodLoss)->reduction;
    memset(&p, 0, sizeof p);
    p.x = x->data;
    p.labels = l->in[1].data;
    p.weights = zc_launch_in(l, 2);
    p.classes = x->dims[1];
    p.inner = zc_dims_span(x->dims, 2, x->rank);
    p.ignored = softmax ? ZC_ATTRS(l, SoftmaxCrossEntropyLoss)->ignore_index
                        : ZC_ATTRS(l, NegativeLogLikelihoodLoss)->ignore_index;
    p.fault = l->fault;
    p.step = l->step_id;
    if (l->nout > 1 && l->out[1].dtype != ZC_NONE) p.log_prob = l->out[1].data;
    if (l->out[0].dtype != ZC_NONE) p.y = l->out[0].data;
    ZC_TRY(check_shapes(l, &p));
    zc_groups_of(x, classes_axis, &p.g);
    zc_dim3 grid = zc_groups_plan(l, &p.g, zc_dtype_bits(x->dtype) / 8);
    p.blocks = grid.x;
    bool summed = p.y && strcmp(reduction, "none") != 0;
    if (summed) ZC_TRY(zc_launch_scratch(l, (size_t)(p.blocks + 1) * ZC_LOSS_STATE, &p.sums));
    ZC_TRY(zc_launch_configured(l, grid, &p, sizeof p));
    if (!summed) return ZC_OK;
    return zc_launch_kernel(l, 1, (zc_dim3){1, 1, 1}, l->kernel->threads, l->kernel->smem, &p,
                            sizeof p);
}
