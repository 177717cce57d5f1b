/* QLinearConvPair, QLinearConvChain and QLinearConvNext: two convolutions of bytes, one after the
 * other; then a byte of both their results, or the second one's, whose input is what the first one
 * gives, by itself or with a residual. */
#include "cpu/fast.h"
#include "op/nhwc.h"

/* One of the two convolutions; its context reads what stands here. */
typedef struct half {
    zc_attrs_QLinearConv attrs;
    zc_tensor in[ZC_QLINEAR_CONV_INPUTS], out;
    zc_kctx k;
} half;

/* first: what the second one may read. */
static void set_half(const zc_kctx *k, bool second, const zc_tensor *first, half *h)
{
    const int *at = zc_conv_half_inputs(k->op, second);
    for (int i = 0; i < ZC_QLINEAR_CONV_INPUTS; i++) {
        const zc_tensor *in = at[i] < 0 ? first : zc_input(k, at[i]);
        h->in[i] = in ? *in : (zc_tensor){.dtype = ZC_NONE};
    }
    h->attrs = zc_conv_half_attrs(k->op, k->attrs, second);
    h->out = k->out[second ? k->nout - 1 : 0];
    h->out.dtype = h->in[ZC_IN_QLinearConv_y_zero].dtype;
    h->k = zc_inner(k, ZC_OP_QLinearConv, &h->attrs, ZC_QLINEAR_CONV_INPUTS, h->in, &h->out);
}

/* Runs it with a result of its own. */
static zc_status run_half(zc_kctx *k, half *h, bool reference_only)
{
    size_t bytes;
    h->out.data = zc_tensor_bytes(&h->out, &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    if (!h->out.data) return zc_fail_nomem(k->diag, "result of a convolution", 0);
    return zc_kernel_run(&h->k, reference_only);
}

/* The step's first result: that byte of two. */
static zc_status run_sum(zc_kctx *k, const char *sum, zc_tensor both[2], bool reference_only)
{
    const zc_attrs_Pointwise attrs = {.expr = sum};
    zc_kctx inner = zc_inner(k, ZC_OP_Pointwise, &attrs, 2, both, &k->out[0]);
    return zc_kernel_run(&inner, reference_only);
}

/* ---- QLinearConvPair ---- */

static zc_status pair(zc_kctx *k, bool reference_only)
{
    zc_tensor both[2];
    for (int i = 0; i < 2; i++) {
        half h;
        set_half(k, i == 1, NULL, &h);
        ZC_TRY(run_half(k, &h, reference_only));
        both[i] = h.out;
    }
    return run_sum(k, ZC_ATTRS(k, QLinearConvPair)->sum, both, reference_only);
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
        set_half(k, i == 1, NULL, &h);
        fits = fits && zc_fits_qlinear_conv(&h.k);
    }
    return fits;
}

zc_status zc_fast_qlinear_conv_pair(zc_kctx *k)
{
    return pair(k, false);
}

/* ---- QLinearConvChain ---- */

/* The first convolution, whose result has as many pixels as the second one's. */
static void set_first(const zc_kctx *k, half *h)
{
    set_half(k, false, NULL, h);
    h->out.dims[h->out.rank - 1] = h->in[ZC_IN_QLinearConv_w].dims[0];
}

static zc_status chain(zc_kctx *k, bool reference_only)
{
    half first, second;
    set_first(k, &first);
    ZC_TRY(run_half(k, &first, reference_only));
    set_half(k, true, &first.out, &second);
    return zc_kernel_run(&second.k, reference_only);
}

zc_status zc_k_QLinearConvChain(zc_kctx *k)
{
    return chain(k, true);
}

bool zc_fits_qlinear_conv_chain(const zc_kctx *k)
{
    half first, second;
    set_first(k, &first);
    set_half(k, true, &first.out, &second);
    return zc_fits_qlinear_conv(&first.k) && zc_fits_qlinear_conv(&second.k);
}

zc_status zc_fast_qlinear_conv_chain(zc_kctx *k)
{
    return chain(k, false);
}

/* ---- QLinearConvNext ---- */

static zc_status next(zc_kctx *k, bool reference_only)
{
    const char *sum = ZC_ATTRS(k, QLinearConvNext)->sum;
    half first, second;
    set_half(k, false, NULL, &first);
    if (sum) {
        ZC_TRY(run_half(k, &first, reference_only));
        zc_tensor both[2] = {first.out, k->in[ZC_IN_QLinearConvNext_residual]};
        ZC_TRY(run_sum(k, sum, both, reference_only));
    } else {
        ZC_TRY(zc_kernel_run(&first.k, reference_only));
    }
    set_half(k, true, &k->out[0], &second);
    return zc_kernel_run(&second.k, reference_only);
}

zc_status zc_k_QLinearConvNext(zc_kctx *k)
{
    return next(k, true);
}

bool zc_fits_qlinear_conv_next(const zc_kctx *k)
{
    half first, second;
    set_half(k, false, NULL, &first);
    set_half(k, true, &k->out[0], &second);
    return zc_fits_qlinear_conv(&first.k) && zc_fits_qlinear_conv(&second.k);
}

zc_status zc_fast_qlinear_conv_next(zc_kctx *k)
{
    return next(k, false);
}
