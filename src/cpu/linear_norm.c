/* LinearNorm: the product by Linear's kernel, then rows by those of the normalisations. */
#include "cpu/fast.h"

static zc_status product(zc_kctx *k, zc_tensor *sum, bool reference_only)
{
    const zc_attrs_LinearNorm *a = ZC_ATTRS(k, LinearNorm);
    zc_attrs_Linear attrs = {.transB = a->transB, .alpha = a->alpha};
    zc_kctx inner = zc_inner(k, ZC_OP_Linear, &attrs, k->nin < 3 ? k->nin : 3, k->in, sum);
    inner.const_in = k->const_in;
    inner.state = k->state;
    return zc_kernel_run(&inner, reference_only);
}

static zc_status plain_norm(zc_kctx *k, zc_tensor *sum, bool reference_only)
{
    const zc_attrs_LinearNorm *a = ZC_ATTRS(k, LinearNorm);
    const zc_attrs_LayerNormalization layer = {
        .axis = -1, .epsilon = a->epsilon, .stash_type = ZC_F32};
    const zc_attrs_RMSNormalization rms = {.axis = -1, .epsilon = a->epsilon, .stash_type = ZC_F32};
    zc_tensor in[3] = {*sum, k->in[ZC_IN_LinearNorm_gamma]};
    if (zc_input(k, ZC_IN_LinearNorm_beta)) in[2] = k->in[ZC_IN_LinearNorm_beta];
    zc_kctx inner = a->rms ? zc_inner(k, ZC_OP_RMSNormalization, &rms, 2, in, k->out)
                           : zc_inner(k, ZC_OP_LayerNormalization, &layer, 3, in, k->out);
    inner.state = k->epilogue_state;
    return zc_kernel_run(&inner, reference_only);
}

/* sum += skip, then the norm of it. */
static zc_status skip_norm(zc_kctx *k, zc_tensor *sum, bool reference_only)
{
    const zc_attrs_LinearNorm *a = ZC_ATTRS(k, LinearNorm);
    const zc_attrs_SkipLayerNormalization layer = {.epsilon = a->epsilon};
    const zc_attrs_SkipSimplifiedLayerNormalization rms = {.epsilon = a->epsilon};
    zc_tensor in[4] = {*sum, k->in[ZC_IN_LinearNorm_skip], k->in[ZC_IN_LinearNorm_gamma]},
              out[4] = {k->out[0]};
    if (zc_input(k, ZC_IN_LinearNorm_beta)) in[3] = k->in[ZC_IN_LinearNorm_beta];
    zc_kctx inner = a->rms ? zc_inner(k, ZC_OP_SkipSimplifiedLayerNormalization, &rms, 3, in, out)
                           : zc_inner(k, ZC_OP_SkipLayerNormalization, &layer, 4, in, out);
    if (zc_output(k, 1)) out[3] = k->out[1];
    inner.nout = 4;
    inner.state = k->epilogue_state;
    return zc_kernel_run(&inner, reference_only);
}

static zc_status run(zc_kctx *k, bool reference_only)
{
    zc_tensor sum = k->out[0];
    size_t bytes;
    if (!zc_tensor_bytes(&sum, &bytes)) return zc_fail_nomem(k->diag, "product", bytes);
    bool keep =
        zc_output(k, 1) && !zc_input(k, ZC_IN_LinearNorm_skip); /* the product itself is wanted */
    sum.data = keep ? k->out[1].data : zc_scratch_get(k->scratch, bytes);
    if (!sum.data) return zc_fail_nomem(k->diag, "product", bytes);
    ZC_TRY(product(k, &sum, reference_only));
    return zc_input(k, ZC_IN_LinearNorm_skip) ? skip_norm(k, &sum, reference_only)
                                              : plain_norm(k, &sum, reference_only);
}

zc_status zc_k_LinearNorm(zc_kctx *k)
{
    return run(k, true);
}

bool zc_fits_linear_norm(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32;
}

zc_status zc_fast_linear_norm(zc_kctx *k)
{
    return run(k, false);
}
