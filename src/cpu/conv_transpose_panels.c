/* f32 transposed convolutions by packed weights, channels last inside: an output row is the sum of
 * products of input rows by the taps that fall on it, each with its results a stride apart. */
#include <string.h>

#include "cpu/conv_transpose_fast.h"
#include "cpu/copy.h"
#include "cpu/panels.h"

typedef struct panels_job {
    const zc_transposed *c;
    const float *x, *w, *bias; /* bias: NULL: 0 */
    float *y;
    int64_t panels; /* of a tap */
} panels_job;

/* to[n][b][a] = from[n][a][b] */
static void turn(zc_kctx *k, int64_t n, int64_t a, int64_t b, const float *from, float *to)
{
    zc_copy c = {0};
    zc_copy_axis(&c, n, a * b, a * b);
    zc_copy_axis(&c, b, a, 1);
    zc_copy_axis(&c, a, 1, b);
    zc_copy_run(k, &c, sizeof *to, to, from);
}

static void start_from_bias(const panels_job *j, float *y)
{
    const int64_t oc = j->c->oc;
    for (int64_t i = 0; i < j->c->out[1]; i++, y += oc)
        if (j->bias)
            memcpy(y, j->bias, (size_t)oc * sizeof *y);
        else
            memset(y, 0, (size_t)oc * sizeof *y);
}

/* Adds what a tap makes of an input row. */
static void add_tap(const panels_job *j, int64_t tap, const float *x, float *y)
{
    const zc_transposed *c = j->c;
    const int64_t tw = tap % c->kernel[1];
    int64_t left, right;
    zc_transposed_inside(c, 1, tw, &left, &right);
    zc_panel_product p = {.w = j->w + tap * j->panels * ZC_PANEL * c->ic,
                          .n = c->oc,
                          .depth = c->ic,
                          .taps = 1,
                          .ldy = c->stride[1] * c->oc};
    const float *rows[ZC_PANEL_BLOCK];
    for (int64_t at = left; at < right;) {
        const int64_t n = right - at < ZC_PANEL_BLOCK ? right - at : ZC_PANEL_BLOCK;
        for (int64_t r = 0; r < n; r++) rows[r] = x + (at + r) * c->ic;
        p.y = y + (at * c->stride[1] + tw * c->dilation[1] - c->begin[1]) * c->oc;
        p.residual = p.y;
        zc_panels_multiply(&p, n, rows, 0, 0, j->panels);
        at += n;
    }
}

static void output_rows(void *arg, int64_t begin, int64_t end)
{
    const panels_job *j = arg;
    const zc_transposed *c = j->c;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / c->out[0], oh = i % c->out[0];
        float *y = j->y + i * c->out[1] * c->oc;
        start_from_bias(j, y);
        for (int64_t th = 0; th < c->kernel[0]; th++) {
            const int64_t at = oh + c->begin[0] - th * c->dilation[0], ih = at / c->stride[0];
            if (at < 0 || at % c->stride[0] || ih >= c->in[0]) continue;
            const float *x = j->x + (image * c->in[0] + ih) * c->in[1] * c->ic;
            for (int64_t tw = 0; tw < c->kernel[1]; tw++) add_tap(j, th * c->kernel[1] + tw, x, y);
        }
    }
}

/* Each tap's weights are a matrix of their own. */
static zc_status pack(zc_kctx *k, panels_job *j)
{
    const zc_transposed *c = j->c;
    const zc_panel_matrix m = {.groups = c->taps,
                               .n = c->oc,
                               .depth = c->ic,
                               .taps = 1,
                               .group_step = 1,
                               .column_step = c->taps,
                               .depth_step = c->oc * c->taps};
    const void *packed;
    ZC_TRY(zc_panels_packed(k, ZC_IN_ConvTranspose_w, &m, &packed));
    j->w = packed;
    return ZC_OK;
}

/* Of few channels the products are too short for what is around them. */
static bool suits(const zc_kctx *k, const zc_transposed *c)
{
    enum { LEAST_CHANNELS = 32 };
    return zc_panels_wanted() && k->packs && (k->const_in & 2) && c->groups == 1 &&
           c->ic >= LEAST_CHANNELS;
}

zc_status zc_conv_transpose_panels(zc_kctx *k, const zc_transposed *c, bool *done)
{
    const zc_tensor *bias = zc_input(k, ZC_IN_ConvTranspose_bias), *out = &k->out[0];
    panels_job j = {.c = c, .bias = bias ? bias->data : NULL, .panels = zc_panels_of(c->oc)};
    size_t in_bytes, out_bytes;
    *done = suits(k, c);
    if (!*done) return ZC_OK;
    ZC_TRY(pack(k, &j));
    float *x = NULL;
    if (zc_tensor_bytes(&k->in[0], &in_bytes) && zc_tensor_bytes(out, &out_bytes)) {
        x = zc_scratch_get(k->scratch, in_bytes);
        j.y = zc_scratch_get(k->scratch, out_bytes);
    }
    if (!x || !j.y) return zc_fail_nomem(k->diag, "transposed convolution", 0);
    turn(k, c->batch, c->ic, c->in[0] * c->in[1], k->in[0].data, x);
    j.x = x;
    zc_parallel(k, c->batch * c->out[0], 1, output_rows, &j);
    turn(k, c->batch, c->out[0] * c->out[1], c->oc, j.y, out->data);
    return ZC_OK;
}
