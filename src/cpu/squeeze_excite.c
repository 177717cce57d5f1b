/* SqueezeExcite: its numbers of each image in f64. */
#include "cpu/kernel.h"
#include "cpu/pointwise.h"

/* Room for rows of f64. */
static zc_status rows_of(zc_kctx *k, int64_t rows, int64_t columns, zc_tensor *out)
{
    size_t bytes;
    *out = (zc_tensor){.dtype = ZC_F64, .rank = 2, .dims = {rows, columns}};
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "means of channels", 0);
    return ZC_OK;
}

/* Each image's means, of planes of so many pixels. */
static void put_means(const zc_tensor *x, int64_t pixels, zc_tensor *out)
{
    int64_t channels = out->dims[1];
    for (int64_t i = 0; i < zc_tensor_numel(out); i++) {
        int64_t image = i / channels, at = image * pixels * channels + i % channels;
        double sum = 0;
        for (int64_t pixel = 0; pixel < pixels; pixel++) sum += zc_get(x, at + pixel * channels);
        zc_put(out, i, sum / (double)pixels);
    }
}

/* x times w[hidden][channels], turned where x has a column for each channel. */
static void multiply(const zc_tensor *x, const zc_tensor *w, bool turned, const zc_tensor *bias,
                     zc_tensor *out)
{
    int64_t n = out->dims[1], depth = x->dims[1], channels = w->dims[1];
    for (int64_t i = 0; i < zc_tensor_numel(out); i++) {
        int64_t row = i / n, column = i % n;
        double sum = bias ? zc_get(bias, column) : 0;
        for (int64_t d = 0; d < depth; d++)
            sum += zc_get(x, row * depth + d) *
                   zc_get(w, turned ? column * channels + d : d * channels + column);
        zc_put(out, i, sum);
    }
}

zc_status zc_k_SqueezeExcite(zc_kctx *k)
{
    const zc_attrs_SqueezeExcite *a = ZC_ATTRS(k, SqueezeExcite);
    const zc_tensor *x = &k->in[0], *w1 = &k->in[ZC_IN_SqueezeExcite_w1];
    int64_t hidden = w1->dims[0], channels = w1->dims[1];
    int64_t pixels = zc_dims_span(x->dims, 1, x->rank - 1);
    zc_tensor means, h, factors;
    ZC_TRY(rows_of(k, x->dims[0], channels, &means));
    ZC_TRY(rows_of(k, x->dims[0], hidden, &h));
    ZC_TRY(rows_of(k, x->dims[0], channels, &factors));
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    put_means(x, pixels, &means);
    multiply(&means, w1, true, zc_input(k, ZC_IN_SqueezeExcite_bias1), &h);
    ZC_TRY(zc_activate(k, a->activation, a->activation_params.v, a->activation_params.n, &h));
    multiply(&h, &k->in[ZC_IN_SqueezeExcite_w2], false, zc_input(k, ZC_IN_SqueezeExcite_bias2),
             &factors);
    ZC_TRY(zc_activate(k, a->gate, a->gate_params.v, a->gate_params.n, &factors));
    for (int64_t i = 0; i < zc_tensor_numel(x); i++) {
        int64_t image = i / (pixels * channels);
        zc_put(&k->out[0], i, zc_get(x, i) * zc_get(&factors, image * channels + i % channels));
    }
    return ZC_OK;
}
