#include "abi/softmax.h"

#include <string.h>

#include "cuda/groups.h"
#include "cuda/rowplan.h"

enum { STATE = 16, ROW_SMEM = 32 * STATE };

static int axis_of(const zc_launch *l, zc_op op)
{
    int64_t axis = op == ZC_OP_Softmax      ? ZC_ATTRS(l, Softmax)->axis
                   : op == ZC_OP_LogSoftmax ? ZC_ATTRS(l, LogSoftmax)->axis
                   : op == ZC_OP_Hardmax    ? ZC_ATTRS(l, Hardmax)->axis
                                            : ZC_ATTRS(l, LpNormalization)->axis;
    return zc_launch_axis(axis, l->in[0].rank);
}

static zc_status rows(zc_launch *l, struct zc_softmax_params *p)
{
    int vec = (int)(16 / (zc_dtype_bits(l->in[0].dtype) / 8));
    bool whole = p->N % vec == 0 && ((uintptr_t)p->in | (uintptr_t)p->out) % 16 == 0;
    int entry = (zc_row_lanes(p->N) == 32 ? 1 : 3) + (whole ? 0 : 1);
    return zc_launch_kernel(l, entry, zc_row_grid(p->rows, p->N), zc_row_block(p->N), ROW_SMEM, p,
                            sizeof *p);
}

zc_status zc_launch_softmax(zc_launch *l)
{
    const zc_tensor *x = &l->in[0];
    zc_op op = l->op;
    struct zc_softmax_params p;
    bool mask[ZC_MAX_RANK] = {false};
    int64_t all = zc_tensor_numel(x);
    if (all == 0) return ZC_OK;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    mask[axis_of(l, op)] = true;
    p.in = x->data;
    p.out = l->out[0].data;
    p.N = x->dims[axis_of(l, op)];
    p.rows = all / p.N;
    bool neighbours = zc_dims_span(x->dims, axis_of(l, op) + 1, x->rank) == 1;
    if (neighbours && op != ZC_OP_Hardmax) return rows(l, &p);
    zc_groups_of(x, mask, &p.g);
    zc_dim3 grid = zc_groups_plan(l, &p.g, x->data, zc_dtype_bits(x->dtype) / 8, false);
    return zc_launch_kernel(l, 0, grid, ZC_GROUP_BLOCK, ZC_GROUP_BLOCK * STATE, &p, sizeof p);
}
