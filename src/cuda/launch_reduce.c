#include "abi/reduce.h"

#include <string.h>

#include "cuda/groups.h"
#include "op/reduce.h"

static zc_status chosen_axes(zc_launch *l, bool mask[ZC_MAX_RANK])
{
    int64_t axes[ZC_MAX_RANK];
    int n, rank = l->in[0].rank;
    ZC_TRY(zc_launch_ints(l, 1, axes, ZC_MAX_RANK, &n));
    bool all = n <= 0 && !zc_reduce_attrs_of(l->op, l->attrs).noop_with_empty_axes;
    for (int d = 0; d < ZC_MAX_RANK; d++) mask[d] = all;
    for (int i = 0; i < n; i++) {
        if (axes[i] < -rank || axes[i] >= rank)
            return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                           "axis out of range (got %lld, need [%d, %d])", (long long)axes[i], -rank,
                           rank - 1);
        mask[zc_launch_axis(axes[i], rank)] = true;
    }
    return ZC_OK;
}

/* Pass 2: the states of each output's splits. */
static zc_status join_splits(zc_launch *l, struct zc_reduce_params *p, uint32_t splits)
{
    int64_t outputs = p->g.outputs;
    zc_groups_rows(outputs, splits, &p->g);
    zc_dim3 grid = zc_groups_plan(l, &p->g, p->states, ZC_REDUCE_STATE, false);
    p->in = p->states;
    p->states = NULL;
    return zc_launch_kernel(l, 1, grid, ZC_GROUP_BLOCK, ZC_GROUP_BLOCK * ZC_REDUCE_STATE, p,
                            sizeof *p);
}

zc_status zc_launch_reduce(zc_launch *l)
{
    struct zc_reduce_params p;
    bool mask[ZC_MAX_RANK] = {false};
    zc_op op = l->op;
    const zc_tensor *x = &l->in[0];
    bool arg = op == ZC_OP_ArgMax || op == ZC_OP_ArgMin;
    memset(&p, 0, sizeof p);
    if (op == ZC_OP_ArgMax)
        mask[zc_launch_axis(ZC_ATTRS(l, ArgMax)->axis, x->rank)] = true;
    else if (op == ZC_OP_ArgMin)
        mask[zc_launch_axis(ZC_ATTRS(l, ArgMin)->axis, x->rank)] = true;
    else
        ZC_TRY(chosen_axes(l, mask));
    zc_groups_of(x, mask, &p.g);
    if (p.g.outputs != zc_tensor_numel(&l->out[0]))
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "wrong number of results (got room for %lld, need %lld)",
                       (long long)zc_tensor_numel(&l->out[0]), (long long)p.g.outputs);
    if (p.g.outputs && p.g.count == 0 && arg)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "an axis of length 0 has no extreme");
    zc_dim3 grid = zc_groups_plan(l, &p.g, x->data, zc_dtype_bits(x->dtype) / 8, true);
    p.in = x->data;
    p.out = l->out[0].data;
    p.elements = p.g.count;
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (grid.y > 1) {
        size_t bytes = (size_t)p.g.outputs * grid.y * ZC_REDUCE_STATE;
        ZC_TRY(zc_launch_scratch(l, bytes, &p.states));
    }
    ZC_TRY(zc_launch_kernel(l, 0, grid, ZC_GROUP_BLOCK, ZC_GROUP_BLOCK * ZC_REDUCE_STATE, &p,
                            sizeof p));
    return grid.y > 1 ? join_splits(l, &p, grid.y) : ZC_OK;
}
