#include <string.h>

#include "cuda/launch.h"

zc_status zc_launch_broadcast(const zc_launch *l, const zc_tensor *to, int n,
                              const zc_tensor *operands, int most, zc_collapsed *out)
{
    zc_collapse_broadcast(to, n, operands, out);
    if (out->rank <= most) return ZC_OK;
    return zc_fail(
        l->diag, ZC_ERR_LIMIT, l->subject,
        "broadcast pattern too irregular for the GPU kernel (got %d axes, need at most %d)",
        out->rank, most);
}

_Static_assert((int)ZC_FUSED_INPUTS >= (int)ZC_PROLOGUE_INPUTS &&
                   (int)ZC_FUSED_INPUTS >= (int)ZC_EPILOGUE_INPUTS,
               "room for all operands of fused work");

/* Inputs [first, end) that broadcast to a tensor. */
static zc_status set_operands(const zc_launch *l, const zc_tensor *to, int first, int end,
                              struct zc_fused_params *p)
{
    zc_collapsed c;
    int n = end - first;
    memset(p, 0, sizeof *p);
    if (n <= 0) return ZC_OK;
    ZC_TRY(zc_launch_broadcast(l, to, n, l->in + first, ZC_FUSED_RANK, &c));
    p->rank = c.rank;
    for (int d = 0; d < c.rank; d++) p->dims[d] = c.dims[d];
    for (int i = 0; i < n; i++) {
        p->in[i] = l->in[first + i].data;
        for (int d = 0; d < c.rank; d++) p->strides[i][d] = c.strides[i][d];
    }
    return ZC_OK;
}

zc_status zc_launch_prologue(const zc_launch *l, struct zc_fused_params *p)
{
    int extras;
    zc_op_prologue(l->info, l->attrs, &extras);
    if (extras > l->nin - l->info->max_in) extras = l->nin - l->info->max_in;
    return set_operands(l, &l->in[0], l->info->max_in, l->info->max_in + extras, p);
}

zc_status zc_launch_epilogue(const zc_launch *l, struct zc_fused_params *p)
{
    return set_operands(l, &l->out[0], zc_op_epilogue_first(l->info, l->attrs), l->nin, p);
}
