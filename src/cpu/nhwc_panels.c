#include "cpu/nhwc_panels.h"

#include <string.h>

#include "cpu/panels.h"

enum {
    BLOCK = ZC_PANEL_BLOCK,
    STRETCHES_MAX = 49,
    /* Of windows whose pixels side by side are one stretch. */
    CHANNELS_MAX = 31,
    WINDOW_MAX = 1024 /* floats */
};

/* A window as stretches of floats that lie one after the other in the input: the pixels of a row
 * where they do and are short, else each pixel. */
typedef struct stretches {
    int64_t rows, columns;           /* of stretches */
    int64_t width;                   /* pixels of one */
    int64_t channels;                /* of all groups */
    int64_t distance[STRETCHES_MAX]; /* floats from a window's first stretch to each */
} stretches;

typedef struct panels_job {
    const zc_kctx *k;
    const zc_conv *c;
    stretches s;
    zc_panel_product p; /* of group 0 */
    const float *x, *padding;
    float *borders; /* stretches that lie on the input in part, of each part */
    size_t room;    /* floats of a part's, which are a block's */
    const zc_finish *epilogue;
    int64_t pixels, panels; /* of all images; of a group */
    int64_t pixel_parts, panel_parts;
} panels_job;

static stretches stretches_of(const zc_conv *c)
{
    const zc_window *w = &c->w;
    const bool joined = c->groups == 1 && w->dilation[1] == 1 && c->ic <= CHANNELS_MAX &&
                        c->taps * c->ic <= WINDOW_MAX;
    stretches s = {.rows = w->kernel[0],
                   .columns = joined ? 1 : w->kernel[1],
                   .width = joined ? w->kernel[1] : 1,
                   .channels = c->groups * c->ic};
    for (int64_t i = 0; i < s.rows * s.columns && i < STRETCHES_MAX; i++)
        s.distance[i] =
            (i / s.columns * w->dilation[0] * w->in[1] + i % s.columns * w->dilation[1]) *
            s.channels;
    return s;
}

/* The stretch from a pixel on; where it lies on the input in part it is put together in *room. */
static const float *stretch_from(const panels_job *j, const float *image, int64_t ih, int64_t iw,
                                 float **room)
{
    const int64_t *in = j->c->w.in, width = j->s.width, channels = j->s.channels;
    if (ih < 0 || ih >= in[0] || iw + width <= 0 || iw >= in[1]) return j->padding;
    const float *row = image + ih * in[1] * channels;
    if (iw >= 0 && iw + width <= in[1]) return row + iw * channels;
    const int64_t from = iw < 0 ? 0 : iw, to = iw + width < in[1] ? iw + width : in[1];
    float *border = *room;
    *room += j->p.depth;
    memset(border, 0, (size_t)(width * channels) * sizeof *border);
    memcpy(border + (from - iw) * channels, row + from * channels,
           (size_t)((to - from) * channels) * sizeof *border);
    return border;
}

/* The stretches of the window whose first pixel is (ih, iw), the i-th of a block. */
static void find_at_border(const panels_job *j, const float *image, int64_t ih, int64_t iw,
                           int64_t i, float **room, const float **to)
{
    const zc_window *w = &j->c->w;
    for (int64_t t = 0; t < j->p.taps; t++)
        to[t * BLOCK + i] = stretch_from(j, image, ih + t / j->s.columns * w->dilation[0],
                                         iw + t % j->s.columns * w->dilation[1], room);
}

/* Does the window lie on the input along this axis? */
static bool is_inside(const zc_window *w, int axis, int64_t at)
{
    return at >= 0 && at + (w->kernel[axis] - 1) * w->dilation[axis] < w->in[axis];
}

/* Those of n windows side by side. */
static void find_in_row(const panels_job *j, const float *image, int64_t oh, int64_t ow, int64_t n,
                        int64_t i, float **room, const float **to)
{
    const zc_window *w = &j->c->w;
    const int64_t ih = oh * w->stride[0] - w->begin[0], move = w->stride[1] * j->s.channels;
    const bool inside = is_inside(w, 0, ih);
    for (int64_t end = i + n; i < end;) {
        const int64_t iw = ow * w->stride[1] - w->begin[1],
                      last = w->in[1] - 1 - iw - (w->kernel[1] - 1) * w->dilation[1];
        int64_t run = inside && iw >= 0 && last >= 0 ? last / w->stride[1] + 1 : 0;
        if (run > end - i) run = end - i;
        const float *start = image + (ih * w->in[1] + iw) * j->s.channels;
        for (int64_t t = 0; t < j->p.taps; t++)
            for (int64_t r = 0; r < run; r++)
                to[t * BLOCK + i + r] = start + j->s.distance[t] + r * move;
        if (run == 0) {
            find_at_border(j, image, ih, iw, i, room, to);
            run = 1;
        }
        i += run;
        ow += run;
    }
}

/* Those of output pixels [first, first + n) of all images. */
static void find_stretches(const panels_job *j, int64_t first, int64_t n, float *room,
                           const float **to)
{
    const zc_conv *c = j->c;
    for (int64_t i = 0; i < n;) {
        const int64_t pixel = (first + i) % c->out_plane, ow = pixel % c->w.out[1];
        const int64_t row = c->w.out[1] - ow, run = row < n - i ? row : n - i;
        const float *image = j->x + (first + i) / c->out_plane * c->in_plane * j->s.channels;
        find_in_row(j, image, pixel / c->w.out[1], ow, run, i, &room, to);
        i += run;
    }
}

/* Panels [from, to) of all groups of output pixels [first, first + n), and what follows them. */
static void multiply(const panels_job *j, int64_t first, int64_t n, const float *const *x,
                     int64_t from, int64_t to)
{
    const zc_conv *c = j->c;
    const int64_t group = j->panels * ZC_PANEL * c->taps * c->ic, row = first * j->p.ldy;
    for (int64_t g = 0; g < c->groups; g++) {
        zc_panel_product p = j->p;
        const int64_t at = row + g * c->oc;
        p.w += g * group;
        p.y += at;
        if (p.bias) p.bias += g * c->oc;
        if (p.residual) p.residual += at;
        zc_panels_multiply(&p, n, x, g * c->ic, from, to);
    }
    if (from == 0 && to == j->panels) {
        zc_finish_run(j->epilogue, row, 1, n * j->p.ldy, 0);
    } else { /* of the only group */
        const int64_t column = from * ZC_PANEL, end = to == j->panels ? c->oc : to * ZC_PANEL;
        zc_finish_run(j->epilogue, row + column, n, end - column, j->p.ldy);
    }
}

static void conv_part(void *arg, int part)
{
    const panels_job *j = arg;
    const int64_t pp = part / j->panel_parts, cp = part % j->panel_parts;
    const int64_t first = j->pixels * pp / j->pixel_parts;
    const int64_t n = j->pixels * (pp + 1) / j->pixel_parts - first;
    const int64_t from = j->panels * cp / j->panel_parts,
                  to = j->panels * (cp + 1) / j->panel_parts;
    const int64_t blocks = (n + BLOCK - 1) / BLOCK; /* of about the same number of pixels */
    float *room = j->borders ? j->borders + (size_t)part * j->room : NULL;
    const float *x[STRETCHES_MAX * BLOCK];
    for (int64_t b = 0; b < blocks && !zc_stopped(j->k); b++) {
        const int64_t at = n * b / blocks, rows = n * (b + 1) / blocks - at;
        find_stretches(j, first + at, rows, room, x);
        multiply(j, first + at, rows, x, from, to);
    }
}

static int64_t within(int64_t n, int64_t most)
{
    return n < 1 ? 1 : n < most ? n : most;
}

/* Parts for the threads, of pixels first: each reads the weights of its panels. */
static void divide(panels_job *j)
{
    enum { PARTS = 8, LEAST_PIXELS = 96, LEAST_PANELS = 8 };
    j->pixel_parts = within(j->pixels / LEAST_PIXELS, PARTS);
    j->panel_parts =
        j->c->groups > 1 ? 1 : within(j->panels / LEAST_PANELS, PARTS / j->pixel_parts);
}

/* The most windows of a block that reach beyond a row of the input. */
static int64_t at_borders(const zc_window *w)
{
    int64_t in_row = 0;
    for (int64_t ow = 0; ow < w->out[1]; ow++)
        in_row += !is_inside(w, 1, ow * w->stride[1] - w->begin[1]);
    return within((BLOCK / w->out[1] + 2) * in_row, BLOCK);
}

/* Zeros for what lies beside the input, and room for what does in part. */
static zc_status make_padding(zc_kctx *k, panels_job *j)
{
    const zc_window *w = &j->c->w;
    const size_t stretch = (size_t)(j->s.width * j->s.channels) * sizeof(float);
    const int64_t reach = (w->out[1] - 1) * w->stride[1] - w->begin[1] + w->kernel[1];
    float *padding = zc_scratch_get(k->scratch, stretch);
    if (!padding) return zc_fail_nomem(k->diag, "convolution", stretch);
    memset(padding, 0, stretch);
    j->padding = padding;
    if (j->s.width == 1 || (w->begin[1] == 0 && reach <= w->in[1])) return ZC_OK;
    j->room = (size_t)(at_borders(w) * j->p.taps * j->p.depth);
    const size_t bytes = j->room * (size_t)(j->pixel_parts * j->panel_parts) * sizeof(float);
    j->borders = zc_scratch_get(k->scratch, bytes);
    return j->borders ? ZC_OK : zc_fail_nomem(k->diag, "convolution", bytes);
}

/* Where oneDNN's kernels for AVX2 were measured slower: groups of whole panels, windows of long
 * stretches where panels are mostly full or there is one, and 1 x 1 windows that leave out pixels
 * of many channels.
 */
static bool suits(const zc_conv *c, const stretches *s)
{
    enum { LEAST_STRETCH = 32 };
    const bool full = c->oc < ZC_PANEL || zc_panels_of(c->oc) * ZC_PANEL * 4 <= c->oc * 5;
    const bool grouped = c->groups > 1 && c->ic > 1 && c->oc >= ZC_PANEL;
    const bool wide = c->groups == 1 && c->taps > 1 && full && s->width * c->ic >= LEAST_STRETCH;
    const bool sparse = c->taps == 1 && c->ic >= 64 && c->w.stride[0] * c->w.stride[1] > 1;
    return zc_panels_wanted() && s->rows * s->columns <= STRETCHES_MAX &&
           (grouped || wide || sparse);
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
                    .s = stretches_of(c),
                    .p = {.n = c->oc,
                          .relu = *ZC_ATTRS(k, ConvNhwc)->activation != 0,
                          .y = k->out[0].data,
                          .ldy = c->groups * c->oc},
                    .x = k->in[0].data,
                    .pixels = c->batch * c->out_plane,
                    .panels = zc_panels_of(c->oc)};
    const void *packed;
    *done = false;
    if (!suits(c, &j.s)) return ZC_OK;
    ZC_TRY(zc_panels_packed(k, ZC_IN_ConvNhwc_w, &m, &packed));
    j.p.w = packed;
    j.p.taps = j.s.rows * j.s.columns;
    j.p.depth = j.s.width * c->ic;
    if (zc_input(k, ZC_IN_ConvNhwc_bias)) j.p.bias = k->in[ZC_IN_ConvNhwc_bias].data;
    if (zc_input(k, ZC_IN_ConvNhwc_residual)) j.p.residual = k->in[ZC_IN_ConvNhwc_residual].data;
    divide(&j);
    ZC_TRY(make_padding(k, &j));
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    zc_parts(k, (int)(j.pixel_parts * j.panel_parts), conv_part, &j);
    *done = true;
    return ZC_OK;
}
