/* QLinearConvPair: two convolutions of bytes, one after the other, and a byte of both their
 * results. */
#include "cpu/fast.h"
#include "op/nhwc.h"

/* One of the two convolutions; its context reads what stands here. */
typedef struct half {
    zc_conv_half of;
    zc_tensor in[ZC_QLINEAR_CONV_INPUTS], out;
    zc_kctx k;
} half;

static void set_half(const zc_kctx *k, bool second, half *h)
{
    h->of = zc_conv_half_of(ZC_ATTRS(k, QLinearConvPair), second);
    for (int i = 0; i < ZC_QLINEAR_CONV_INPUTS; i++) {
        const zc_tensor *in = zc_input(k, h->of.in[i]);
        h->in[i] = in ? *in : (zc_tensor){.dtype = ZC_NONE};
    }
    h->out = k->out[0];
    h->out.dtype = h->in[ZC_IN_QLinearConv_y_zero].dtype;
    h->k = zc_inner(k, ZC_OP_QLinearConv, &h->of.attrs, ZC_QLINEAR_CONV_INPUTS, h->in, &h->out);
}

static zc_status pair(zc_kctx *k, bool reference_only)
{
    const zc_attrs_Pointwise sum = {.expr = ZC_ATTRS(k, QLinearConvPair)->sum};
    zc_tensor both[2];
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        half h;
        set_half(k, i == 1, &h);
        h.out.data = zc_tensor_bytes(&h.out, &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
        if (!h.out.data) return zc_fail_nomem(k->diag, "result of a convolution", 0);
        ZC_TRY(zc_kernel_run(&h.k, reference_only));
        both[i] = h.out;
    }
    zc_kctx inner = zc_inner(k, ZC_OP_Pointwise, &sum, 2, both, &k->out[0]);
    return zc_kernel_run(&inner, reference_only);
}

zc_status zc_k_QLinearConvPair(zc_kctx *k)
{
    return pair(k, true);
}

bool zc_fits_qlinear_conv_pair(const zc_kctx *k)
{
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        half h;
        set_half(k, i == 1, &h);
        fits = fits && zc_fits_qlinear_conv(&h.k);
    }
    return fits;
}

zc_status zc_fast_qlinear_conv_pair(zc_kctx *k)
{
    return pair(k, false);
}
