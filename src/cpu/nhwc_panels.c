#include "cpu/nhwc_panels.h"

#include <string.h>

#include "cpu/panels.h"

typedef struct panels_job {
    const zc_kctx *k;
    const zc_conv *c;
    zc_panel_product p; /* of group 0 */
    const float *x, *padding;
    const zc_finish *epilogue;
    int64_t pixels, panels; /* of all images; of a group */
    int64_t parts;
} panels_job;

enum { BLOCK = ZC_PANEL_BLOCK, TAPS_MAX = 49 };

/* A window's first tap, and its output pixel. */
typedef struct window_at {
    int64_t image, oh, ow, ih, iw;
} window_at;

static void settle(const zc_window *w, window_at *at)
{
    at->ih = at->oh * w->stride[0] - w->begin[0];
    at->iw = at->ow * w->stride[1] - w->begin[1];
}

static void step(const zc_window *w, window_at *at)
{
    if (++at->ow == w->out[1]) {
        at->ow = 0;
        if (++at->oh == w->out[0]) {
            at->oh = 0;
            at->image++;
        }
    }
    settle(w, at);
}

/* Where the taps of output pixels [first, first + n) of all images are. */
static void find_taps(const panels_job *j, int64_t first, int64_t n, const float **to)
{
    const zc_conv *c = j->c;
    const zc_window *w = &c->w;
    const int64_t channels = c->groups * c->ic, in_pixel = first % c->out_plane;
    window_at at = {first / c->out_plane, in_pixel / w->out[1], in_pixel % w->out[1], 0, 0};
    settle(w, &at);
    for (int64_t i = 0; i < n; i++, step(w, &at)) {
        const float *x = j->x + at.image * c->in_plane * channels, **tap = to + i;
        for (int64_t kh = 0; kh < w->kernel[0]; kh++)
            for (int64_t kw = 0; kw < w->kernel[1]; kw++, tap += BLOCK) {
                const int64_t ih = at.ih + kh * w->dilation[0], iw = at.iw + kw * w->dilation[1];
                const bool inside = ih >= 0 && ih < w->in[0] && iw >= 0 && iw < w->in[1];
                *tap = inside ? x + (ih * w->in[1] + iw) * channels : j->padding;
            }
    }
}

/* All groups of output pixels [first, first + n). */
static void multiply(const panels_job *j, int64_t first, int64_t n, const float *const *x)
{
    const zc_conv *c = j->c;
    const int64_t group = j->panels * ZC_PANEL * c->taps * c->ic;
    for (int64_t g = 0; g < c->groups; g++) {
        zc_panel_product p = j->p;
        const int64_t at = first * p.ldy + g * c->oc;
        p.w += g * group;
        p.y += at;
        if (p.bias) p.bias += g * c->oc;
        if (p.residual) p.residual += at;
        zc_panels_multiply(&p, n, x, g * c->ic, 0, j->panels);
    }
}

static void conv_part(void *arg, int part)
{
    const panels_job *j = arg;
    const int64_t first = j->pixels * part / j->parts;
    const int64_t n = j->pixels * (part + 1) / j->parts - first;
    const int64_t blocks = (n + BLOCK - 1) / BLOCK; /* of about the same number of pixels */
    const float *x[TAPS_MAX * BLOCK];
    for (int64_t b = 0; b < blocks && !zc_stopped(j->k); b++) {
        const int64_t from = n * b / blocks, rows = n * (b + 1) / blocks - from;
        find_taps(j, first + from, rows, x);
        multiply(j, first + from, rows, x);
    }
    zc_finish_run(j->epilogue, first * j->p.ldy, 1, n * j->p.ldy, 0);
}

/* Each part reads all weights. */
static int64_t parts_of(int64_t pixels)
{
    enum { PARTS = 8, LEAST_PIXELS = 96 };
    const int64_t parts = pixels / LEAST_PIXELS;
    return parts > PARTS ? PARTS : parts > 2 ? parts : pixels > 1 ? 2 : 1;
}

/* Where oneDNN's kernels for AVX2 were measured slower: groups of whole panels, and 1 x 1 windows
 * that leave out pixels of many channels. */
static bool suits(const zc_conv *c)
{
    const bool grouped = c->groups > 1 && c->ic > 1 && c->oc >= ZC_PANEL;
    const bool sparse = c->taps == 1 && c->ic >= 64 && c->w.stride[0] * c->w.stride[1] > 1;
    return zc_panels_wanted() && c->taps <= TAPS_MAX && (grouped || sparse);
}

zc_status zc_conv_panels(zc_kctx *k, const zc_conv *c, bool *done)
{
    const zc_panel_matrix m = {.groups = c->groups,
                               .n = c->oc,
                               .depth = c->ic,
                               .taps = c->taps,
                               .group_step = c->oc * c->ic * c->taps,
                               .column_step = c->ic * c->taps,
                               .depth_step = c->taps,
                               .tap_step = 1};
    panels_job j = {.k = k,
                    .c = c,
                    .p = {.n = c->oc,
                          .depth = c->ic,
                          .taps = c->taps,
                          .relu = *ZC_ATTRS(k, ConvNhwc)->activation != 0,
                          .y = k->out[0].data,
                          .ldy = c->groups * c->oc},
                    .x = k->in[0].data,
                    .pixels = c->batch * c->out_plane,
                    .panels = zc_panels_of(c->oc)};
    const void *packed;
    *done = false;
    if (!suits(c)) return ZC_OK;
    ZC_TRY(zc_panels_packed(k, ZC_IN_ConvNhwc_w, &m, &packed));
    j.p.w = packed;
    if (zc_input(k, ZC_IN_ConvNhwc_bias)) j.p.bias = k->in[ZC_IN_ConvNhwc_bias].data;
    if (zc_input(k, ZC_IN_ConvNhwc_residual)) j.p.residual = k->in[ZC_IN_ConvNhwc_residual].data;
    const size_t bytes = (size_t)(c->groups * c->ic) * sizeof(float);
    float *padding = zc_scratch_get(k->scratch, bytes);
    if (!padding) return zc_fail_nomem(k->diag, "convolution", bytes);
    memset(padding, 0, bytes);
    j.padding = padding;
    j.parts = parts_of(j.pixels);
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    zc_parts(k, (int)j.parts, conv_part, &j);
    *done = true;
    return ZC_OK;
}
