#include "abi/causal_conv.h"
#include "cuda/launch.h"

static zc_status check(zc_launch *l, int i, int64_t need, const char *what)
{
    if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) == need) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                   "%s has a wrong size (got %lld elements, need %lld)", what,
                   (long long)zc_tensor_numel(&l->in[i]), (long long)need);
}

zc_status zc_launch_causal_conv(zc_launch *l)
{
    enum { BLOCK = 256 };
    const zc_tensor *x = &l->in[0], *w = &l->in[1];
    struct zc_causal_conv_params p = {.x = x->data,
                                      .w = w->data,
                                      .bias = zc_launch_in(l, 2),
                                      .past = zc_launch_in(l, 3),
                                      .rows = x->dims[0] * x->dims[1],
                                      .channels = x->dims[1],
                                      .length = x->dims[2],
                                      .kept = w->dims[2] - 1};
    int64_t most = 32 * (int64_t)l->sm_count;
    ZC_TRY(check(l, 1, p.channels * w->dims[2], "weight"));
    ZC_TRY(check(l, 2, p.channels, "bias"));
    ZC_TRY(check(l, 3, p.rows * p.kept, "past_state"));
    if (p.kept < 0)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "the kernel is empty (need at least 1 tap)");
    if (l->nout > 0 && zc_present(&l->out[0])) {
        p.y = l->out[0].data;
        zc_dim3 grid = {zc_launch_blocks(p.rows * p.length, BLOCK, most), 1, 1};
        ZC_TRY(zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p));
    }
    if (l->nout < 2 || !zc_present(&l->out[1])) return ZC_OK;
    p.state = l->out[1].data;
    zc_dim3 grid = {zc_launch_blocks(p.rows * p.kept, BLOCK, most), 1, 1};
    return zc_launch_kernel(l, 1, grid, BLOCK, 0, &p, sizeof p);
}
