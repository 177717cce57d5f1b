#include <string.h>

#include "cuda/collapse.h"
#include "cuda/launch.h"

zc_status zc_launch_epilogue(const zc_launch *l, struct zc_fused_params *p)
{
    zc_collapsed c;
    int first = l->info->max_in, n = l->nin - first;
    memset(p, 0, sizeof *p);
    if (n <= 0) return ZC_OK;
    zc_collapse_broadcast(&l->out[0], n, l->in + first, &c);
    if (c.rank > ZC_FUSED_RANK)
        return zc_fail(
            l->diag, ZC_ERR_LIMIT, l->subject,
            "broadcast pattern too irregular for the GPU kernel (got %d axes, need at most %d)",
            c.rank, ZC_FUSED_RANK);
    p->rank = c.rank;
    for (int d = 0; d < c.rank; d++) p->dims[d] = c.dims[d];
    for (int i = 0; i < n; i++) {
        p->in[i] = l->in[first + i].data;
        for (int d = 0; d < c.rank; d++) p->strides[i][d] = c.strides[i][d];
    }
    return ZC_OK;
}
