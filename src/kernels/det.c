#include "abi/det.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_det(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 128, SMEM = BLOCK / 32 * 16, WORK = 1 << 28 };

zc_status zc_launch_det(zc_launch *l)
{
    const zc_tensor *x = &l->in[0];
    struct zc_det_params p = {
        .in = x->data, .out = l->out[0].data, .count = zc_tensor_numel(&l->out[0])};
    int64_t bytes, blocks = p.count < 8 * l->sm_count ? p.count : 8 * l->sm_count;
    p.n = x->dims[x->rank - 1];
    if (p.n != x->dims[x->rank - 2])
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "Det needs square matrices (got %lld x %lld)",
                       (long long)x->dims[x->rank - 2], p.n);
    if (p.count == 0) return ZC_OK;
    if (!zc_mul_i64(p.n, p.n, &bytes) || !zc_mul_i64(bytes, sizeof(double), &bytes))
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "matrix too large (got %lld rows)", p.n);
    if (bytes && blocks > WORK / bytes) blocks = WORK / bytes ? WORK / bytes : 1;
    ZC_TRY(zc_launch_scratch(l, (size_t)(bytes ? bytes : 8) * (size_t)blocks, &p.work));
    return zc_launch_kernel(l, 0, (zc_dim3){(uint32_t)blocks, 1, 1}, BLOCK, SMEM, &p, sizeof p);
}
