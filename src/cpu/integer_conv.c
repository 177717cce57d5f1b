/* ConvInteger and QLinearConv of bytes: products of windows that are gathered from channels-last
 * planes, and one a channel tap by tap. Planes that are channels-first are turned around it. */
#include <stdlib.h>
#include <string.h>

#include "cpu/bytes.h"
#include "cpu/bytes_winograd.h"
#include "cpu/conv.h"
#include "cpu/fast.h"
#include "cpu/integer.h"
#include "op/nhwc.h"

/* A tap's place in the window. */
typedef struct tap {
    int64_t h, w, at; /* at: bytes from the window's first tap */
} tap;

typedef struct conv_job {
    const zc_kctx *k;
    const zc_conv *c;
    const uint8_t *x;       /* [batch][pixels][channels] */
    uint8_t *y;             /* the same of results */
    const void **w;         /* packed, a group each */
    const void *each;       /* packed, where there is one a channel */
    const uint8_t *padding; /* a pixel of zero points */
    const int32_t *offsets; /* zc_bytes_room() a group, or of all channels */
    const int32_t *bias;    /* NULL: none */
    int x_zero, w_zero;
    size_t size; /* of a result */
    zc_byte_scaling s;
    const tap *taps;
    int64_t run; /* taps of a row that lie side by side, 1 when some do not */
    int64_t in_height, width, channels, results; /* width: of y; results: its channels */
    int64_t lda, block;                          /* a gathered window, and windows at a time */
    bool direct;                                 /* a window is a pixel, as it stands */
    bool shared;                                 /* all windows are gathered first */
    uint8_t *rooms; /* a part: block * lda; or all windows, a group each, where they are shared */
    int64_t bands;  /* of a group's channels of the result */
    int64_t down, across; /* parts of the pixels, and of all bands */
    const zc_finish *epilogue;
} conv_job;

/* Windows of whole tiles, whatever multiplies them. */
enum { PARTS = 8, PART_UNIT = 16, BLOCK_BYTES = 48 << 10, BLOCK_UNIT = 48, BAND = 64 };
_Static_assert(BAND % ZC_BYTE_COLUMNS == 0, "where columns may begin");

/* Where a window lies. */
typedef struct place {
    const uint8_t *image;
    int64_t n, oh, ow; /* of the result */
    int64_t ih, iw;    /* of its first tap */
    bool inside;       /* no tap is in the padding */
} place;

static void settle(const conv_job *j, place *p)
{
    const zc_window *w = &j->c->w;
    const int h = w->axes - 2, v = w->axes - 1;
    const tap *last = &j->taps[j->c->taps - 1];
    p->image = j->x + p->n * j->c->in_plane * j->channels;
    p->ih = h >= 0 ? p->oh * w->stride[h] - w->begin[h] : 0;
    p->iw = p->ow * w->stride[v] - w->begin[v];
    p->inside =
        p->ih >= 0 && p->ih + last->h < j->in_height && p->iw >= 0 && p->iw + last->w < w->in[v];
}

/* The window of output pixel p of all images, and the next one. */
static place place_of(const conv_job *j, int64_t p)
{
    const int64_t at = p % j->c->out_plane;
    place r = {.n = p / j->c->out_plane, .oh = at / j->width, .ow = at % j->width};
    settle(j, &r);
    return r;
}

static void next_place(const conv_job *j, place *p)
{
    if (++p->ow == j->width) {
        p->ow = 0;
        if (++p->oh == j->c->out_plane / j->width) {
            p->oh = 0;
            p->n++;
        }
    }
    settle(j, p);
}

/* The channels of a tap; NULL: in the padding. */
static const uint8_t *tap_at(const conv_job *j, const place *p, int64_t t)
{
    const int64_t width = j->c->w.in[j->c->w.axes - 1];
    const int64_t ih = p->ih + j->taps[t].h, iw = p->iw + j->taps[t].w;
    if (!p->inside && (ih < 0 || ih >= j->in_height || iw < 0 || iw >= width)) return NULL;
    return p->image + (p->ih * width + p->iw) * j->channels + j->taps[t].at;
}

/* Channels of group g of the window, tap by tap; `run` of them lie side by side. */
static void gather(const conv_job *j, const place *p, int64_t g, uint8_t *to)
{
    const zc_conv *c = j->c;
    const int64_t run = p->inside ? j->run : 1;
    for (int64_t t = 0; t < c->taps; t += run, to += run * c->ic) {
        const uint8_t *from = tap_at(j, p, t);
        if (from)
            memcpy(to, from + g * c->ic, (size_t)(run * c->ic));
        else
            memset(to, j->x_zero, (size_t)c->ic);
    }
}

/* Windows [first, first + n). */
static void gather_all(const conv_job *j, int64_t first, int64_t n, int64_t g, uint8_t *to)
{
    place at = place_of(j, first);
    for (int64_t i = 0; i < n; i++, to += j->lda) {
        if (i) next_place(j, &at);
        gather(j, &at, g, to);
    }
}

static zc_byte_product product_of(const conv_job *j, int64_t g)
{
    const zc_conv *c = j->c;
    zc_byte_product p = {.b = j->w[g],
                         .k = c->ic * c->taps,
                         .n = c->oc,
                         .b_zero = j->w_zero,
                         .offset = j->offsets + g * zc_bytes_room(c->oc),
                         .s = j->s};
    if (p.s.scale) {
        p.s.scale += g * c->oc;
        p.s.near += g * c->oc;
    }
    return p;
}

typedef struct range {
    int64_t from, to;
} range;

/* Part i of n, in whole units. */
static range part_of(int64_t all, int64_t unit, int64_t i, int64_t n)
{
    const int64_t units = (all + unit - 1) / unit, to = units * (i + 1) / n * unit;
    return (range){units * i / n * unit, to < all ? to : all};
}

/* Where a band of all groups' begins. */
static int64_t band_begin(const conv_job *j, int64_t band)
{
    return band / j->bands * j->c->oc + band % j->bands * BAND;
}

static int64_t pixels_of(const conv_job *j)
{
    return j->c->batch * j->c->out_plane;
}

/* Of all, where they are shared. */
static uint8_t *window_at(const conv_job *j, int64_t p, int64_t g)
{
    return j->rooms + (g * pixels_of(j) + p) * j->lda;
}

static void gather_part(void *arg, int i)
{
    const conv_job *j = arg;
    const range pixels = part_of(pixels_of(j), 1, i, PARTS);
    for (int64_t g = 0; g < j->c->groups; g++)
        gather_all(j, pixels.from, pixels.to - pixels.from, g, window_at(j, pixels.from, g));
}

/* Of n windows from p on, the bands of group g that are among these. */
static void multiply_group(const conv_job *j, int64_t p, int64_t n, int64_t g, range bands,
                           uint8_t *room)
{
    const zc_byte_product product = product_of(j, g);
    const int64_t first = g * j->bands, last = first + j->bands;
    const int64_t from = bands.from > first ? (bands.from - first) * BAND : 0;
    const int64_t to = bands.to < last ? (bands.to - first) * BAND : j->c->oc;
    const uint8_t *a = j->direct ? j->x + p * j->lda : j->shared ? window_at(j, p, g) : room;
    if (!j->direct && !j->shared) gather_all(j, p, n, g, room);
    zc_bytes_multiply(&product, n, a, j->lda, from, to,
                      j->y + (size_t)(p * j->results + g * j->c->oc + from) * j->size, j->results);
}

/* Some bands of output pixels of all images. */
static void windows(const conv_job *j, range pixels, range bands, uint8_t *room)
{
    const int64_t from = band_begin(j, bands.from), width = band_begin(j, bands.to) - from;
    for (int64_t p = pixels.from; p < pixels.to && !zc_stopped(j->k); p += j->block) {
        const int64_t n = pixels.to - p < j->block ? pixels.to - p : j->block;
        for (int64_t g = bands.from / j->bands; g * j->bands < bands.to; g++)
            multiply_group(j, p, n, g, bands, room);
        const bool whole = width == j->results;
        zc_finish_run(j->epilogue, p * j->results + from, whole ? 1 : n, whole ? n * width : width,
                      j->results);
    }
}

/* One a channel. */
static void each_channel(const conv_job *j, range pixels)
{
    const int64_t from = pixels.from, to = pixels.to;
    const zc_byte_each e = {.w = j->each,
                            .taps = j->c->taps,
                            .channels = j->channels,
                            .w_zero = j->w_zero,
                            .offset = j->offsets,
                            .s = j->s};
    const uint8_t *x[ZC_BYTE_TAPS];
    place at = place_of(j, from);
    for (int64_t p = from; p < to; p++) {
        if (p > from) next_place(j, &at);
        for (int64_t t = 0; t < e.taps; t++) {
            x[t] = tap_at(j, &at, t);
            if (!x[t]) x[t] = j->padding;
        }
        zc_bytes_each(&e, x, j->y + (size_t)(p * j->results) * j->size);
    }
    zc_finish_run(j->epilogue, from * j->results, 1, (to - from) * j->results, 0);
}

static void conv_part(void *arg, int i)
{
    const conv_job *j = arg;
    const range pixels = part_of(pixels_of(j), PART_UNIT, i % j->down, j->down);
    if (j->each)
        each_channel(j, pixels);
    else
        windows(j, pixels, part_of(j->c->groups * j->bands, 1, i / j->down, j->across),
                j->shared ? NULL : j->rooms + i * j->block * j->lda);
}

/* Of the pixels, or where they are few of the results' channels: then all parts multiply the same
 * windows. */
static void divide(conv_job *j, bool each)
{
    const zc_conv *c = j->c;
    const int64_t pixels = pixels_of(j);
    const double work = (double)pixels * (double)j->results * (double)(c->ic * c->taps);
    j->bands = (c->oc + BAND - 1) / BAND;
    j->down = pixels < PARTS * PART_UNIT ? 1 : PARTS;
    j->across = 1;
    if (j->down > 1 || each || work < 1e6) return;
    const int64_t bands = c->groups * j->bands;
    j->across = bands < PARTS ? bands : PARTS;
}

/* ---- setting up ---- */

static zc_status no_memory(zc_kctx *k, int64_t bytes)
{
    return zc_fail_nomem(k->diag, "integer convolution", (size_t)bytes);
}

static zc_status list_taps(zc_kctx *k, conv_job *j)
{
    const zc_conv *c = j->c;
    const zc_window *w = &c->w;
    const int h = w->axes - 2, v = w->axes - 1;
    tap *taps = zc_scratch_get(k->scratch, (size_t)c->taps * sizeof *taps);
    if (!taps) return no_memory(k, c->taps);
    for (int64_t t = 0; t < c->taps; t++) {
        taps[t].h = h >= 0 ? t / w->kernel[v] * w->dilation[h] : 0;
        taps[t].w = t % w->kernel[v] * w->dilation[v];
        taps[t].at = (taps[t].h * w->in[v] + taps[t].w) * j->channels;
    }
    j->taps = taps;
    j->run = c->groups == 1 && w->dilation[v] == 1 ? w->kernel[v] : 1;
    return ZC_OK;
}

/* to[b][a] = from[a][b]. */
#define TURN(name, type)                                                                           \
    static void name(const type *from, int64_t a, int64_t b, type *to)                             \
    {                                                                                              \
        enum { TILE = 16 };                                                                        \
        for (int64_t p = 0; p < a; p += TILE)                                                      \
            for (int64_t q = 0; q < b; q++)                                                        \
                for (int64_t i = p; i < a && i < p + TILE; i++) to[q * a + i] = from[i * b + q];   \
    }
TURN(turn_bytes, uint8_t)
TURN(turn_sums, int32_t)
#undef TURN

/* The planes of a channels-first input, channels last. */
static zc_status turn_input(zc_kctx *k, conv_job *j)
{
    const int64_t image = j->channels * j->c->in_plane, all = image * j->c->batch;
    uint8_t *x = zc_scratch_get(k->scratch, (size_t)all);
    if (!x) return no_memory(k, all);
    for (int64_t n = 0; n < j->c->batch; n++)
        turn_bytes(j->x + n * image, j->channels, j->c->in_plane, x + n * image);
    j->x = x;
    return ZC_OK;
}

static void turn_output(const conv_job *j, void *y)
{
    const int64_t image = j->results * j->c->out_plane, pixels = j->c->out_plane;
    for (int64_t at = 0; at < j->c->batch * image; at += image)
        if (j->s.scale)
            turn_bytes(j->y + at, pixels, j->results, (uint8_t *)y + at);
        else
            turn_sums((const int32_t *)(const void *)j->y + at, pixels, j->results,
                      (int32_t *)y + at);
}

/* Weights of a group: row tap * ic + channel. */
static zc_byte_matrix weights_of(const zc_kctx *k, int wi, const zc_conv *c)
{
    const bool turned = zc_conv_taps_first(k->op, k->attrs);
    return (zc_byte_matrix){.k = c->ic * c->taps,
                            .n = c->oc,
                            .inner = c->ic,
                            .outer_step = turned ? c->ic : 1,
                            .inner_step = turned ? 1 : c->taps,
                            .column_step = c->ic * c->taps,
                            .is_signed = k->in[wi].dtype == ZC_I8};
}

static zc_status pack_groups(zc_kctx *k, int wi, conv_job *j)
{
    const zc_conv *c = j->c;
    const zc_byte_matrix m = weights_of(k, wi, c);
    j->w = zc_scratch_get(k->scratch, (size_t)c->groups * sizeof *j->w);
    if (!j->w) return no_memory(k, c->groups);
    for (int64_t g = 0; g < c->groups; g++)
        ZC_TRY(zc_bytes_packed(k, wi, g * c->oc * m.k, &m, &j->w[g]));
    return ZC_OK;
}

/* Room for gathered windows, unless they need none. */
static zc_status make_room(zc_kctx *k, conv_job *j)
{
    const zc_conv *c = j->c;
    const zc_window *w = &c->w;
    int64_t depth = c->ic * c->taps, bytes;
    j->lda = zc_bytes_row(depth);
    j->block = BLOCK_BYTES / j->lda / BLOCK_UNIT * BLOCK_UNIT;
    if (j->block < BLOCK_UNIT) j->block = BLOCK_UNIT;
    j->direct = c->groups == 1 && c->taps == 1 && j->lda == depth && c->in_plane == c->out_plane;
    for (int i = 0; i < w->axes; i++)
        j->direct = j->direct && w->stride[i] == 1 && w->begin[i] == 0;
    if (j->direct) return ZC_OK;
    j->shared = j->across > 1;
    if (j->shared) j->block = pixels_of(j);
    const int64_t windows = j->block * (j->shared ? c->groups : j->down);
    if (!zc_mul_i64(windows, j->lda, &bytes)) return no_memory(k, 0);
    j->rooms = zc_scratch_get(k->scratch, (size_t)bytes);
    if (!j->rooms) return no_memory(k, bytes);
    if (j->lda > depth) memset(j->rooms, 0, (size_t)bytes); /* what is behind a window's end */
    return ZC_OK;
}

/* For `count` packed matrices of n columns. */
static zc_status make_offsets(zc_kctx *k, const void *const *packed, int64_t count, int64_t n,
                              conv_job *j)
{
    const int64_t room = zc_bytes_room(n);
    size_t bytes;
    int32_t *to = NULL;
    if (zc_mul_size((size_t)(room * count), sizeof *to, &bytes))
        to = zc_scratch_get(k->scratch, bytes);
    if (!to) return no_memory(k, room);
    for (int64_t g = 0; g < count; g++)
        zc_bytes_offset(packed[g], j->c->ic * j->c->taps, n, j->x_zero, j->w_zero,
                        j->bias ? j->bias + g * n : NULL, to + g * room);
    j->offsets = to;
    return ZC_OK;
}

static zc_status pad_channels(zc_kctx *k, conv_job *j)
{
    uint8_t *padding = zc_scratch_get(k->scratch, (size_t)j->channels);
    if (!padding) return no_memory(k, j->channels);
    memset(padding, j->x_zero, (size_t)j->channels);
    j->padding = padding;
    return ZC_OK;
}

/* ---- the three ways ---- */

static zc_status convolve_each(zc_kctx *k, int wi, conv_job *j)
{
    divide(j, true);
    ZC_TRY(pad_channels(k, j));
    ZC_TRY(zc_bytes_packed_each(k, wi, j->c->groups, j->c->taps, &j->each));
    ZC_TRY(make_offsets(k, &j->each, 1, j->c->groups, j));
    zc_parts(k, (int)j->down, conv_part, j);
    return ZC_OK;
}

static zc_status convolve_windows(zc_kctx *k, int wi, conv_job *j)
{
    divide(j, false);
    ZC_TRY(make_room(k, j));
    ZC_TRY(pack_groups(k, wi, j));
    ZC_TRY(make_offsets(k, j->w, j->c->groups, j->c->oc, j));
    if (j->shared) zc_parts(k, PARTS, gather_part, j);
    zc_parts(k, (int)(j->down * j->across), conv_part, j);
    return ZC_OK;
}

static bool takes_winograd(const zc_kctx *k, int wi, const conv_job *j)
{
    return k->packs && (k->const_in >> wi & 1) && !j->w_zero && zc_winograd_step(j->c);
}

static zc_status convolve_winograd(zc_kctx *k, int wi, conv_job *j)
{
    const zc_byte_matrix m = weights_of(k, wi, j->c);
    const void *packed;
    ZC_TRY(pad_channels(k, j));
    ZC_TRY(zc_winograd_packed(k, wi, &m, zc_winograd_step(j->c), &packed));
    ZC_TRY(make_offsets(k, &packed, 1, j->c->oc, j));
    const zc_winograd w = {.c = j->c,
                           .x = j->x,
                           .padding = j->padding,
                           .w = packed,
                           .offset = j->offsets,
                           .s = j->s,
                           .y = j->y,
                           .epilogue = j->epilogue};
    return zc_winograd_run(k, &w);
}

static zc_status convolve(zc_kctx *k, int xi, int wi, int x_zero, int w_zero, const zc_conv *c,
                          const zc_byte_scaling *s, const int32_t *bias)
{
    const bool last = zc_conv_channels_last(k->op, k->attrs);
    const bool each = c->ic == 1 && c->oc == 1 && c->taps <= ZC_BYTE_TAPS;
    conv_job j = {.k = k,
                  .c = c,
                  .y = k->out[0].data,
                  .x_zero = zc_zero_of(k, x_zero),
                  .w_zero = zc_zero_of(k, w_zero) - (k->in[wi].dtype == ZC_U8 ? 128 : 0),
                  .size = zc_dtype_bits(k->out[0].dtype) / 8,
                  .s = *s,
                  .bias = bias,
                  .in_height = c->w.axes == 2 ? c->w.in[0] : 1,
                  .width = c->w.out[c->w.axes - 1],
                  .channels = c->groups * c->ic,
                  .results = c->groups * c->oc};
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    ZC_TRY(zc_bytes_unsigned(k, xi, &j.x_zero, &j.x));
    if (!last) ZC_TRY(turn_input(k, &j));
    if (!last) j.y = zc_scratch_get(k->scratch, (size_t)zc_tensor_numel(&k->out[0]) * j.size);
    if (!j.y) return no_memory(k, zc_tensor_numel(&k->out[0]));
    ZC_TRY(list_taps(k, &j));
    if (last) ZC_TRY(zc_finish_begin(k, &j.epilogue));
    const bool winograd = takes_winograd(k, wi, &j);
    ZC_TRY((each ? convolve_each : winograd ? convolve_winograd : convolve_windows)(k, wi, &j));
    if (!last) turn_output(&j, k->out[0].data);
    return ZC_OK;
}

static bool fits_conv(const zc_kctx *k, int xi, int wi, int x_zero, int w_zero)
{
    const zc_tensor *x = &k->in[xi], *w = &k->in[wi];
    return !zc_conv_banded(k->op, k->attrs) && zc_is_byte(x) && zc_is_byte(w) &&
           (x->rank == 3 || x->rank == 4) && zc_tensor_numel(x) > 0 && zc_tensor_numel(w) > 0 &&
           zc_tensor_numel(&k->out[0]) < INT32_MAX / PARTS && zc_is_single(k, x_zero) &&
           zc_is_single(k, w_zero);
}

bool zc_fits_conv_integer(const zc_kctx *k)
{
    return fits_conv(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, ZC_IN_ConvInteger_x_zero,
                     ZC_IN_ConvInteger_w_zero);
}

zc_status zc_fast_conv_integer(zc_kctx *k)
{
    zc_conv c;
    const zc_byte_scaling s = {.scale = NULL};
    ZC_TRY(zc_conv_of(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, &c));
    return convolve(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, ZC_IN_ConvInteger_x_zero,
                    ZC_IN_ConvInteger_w_zero, &c, &s, NULL);
}

bool zc_fits_qlinear_conv(const zc_kctx *k)
{
    const zc_tensor *scale = &k->in[ZC_IN_QLinearConv_w_scale];
    int64_t n = zc_tensor_numel(scale);
    return zc_is_byte(&k->out[0]) && !zc_conv_pools(k->op, k->attrs) &&
           (n == 1 || n == k->in[ZC_IN_QLinearConv_w].dims[0]) &&
           fits_conv(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, ZC_IN_QLinearConv_x_zero,
                     ZC_IN_QLinearConv_w_zero);
}

/* Do the sums, with the bias, fit 32 bits? */
static bool is_bounded(const zc_conv *c, const int32_t *bias)
{
    const int64_t depth = c->ic * c->taps;
    if (depth > ZC_BYTE_DEPTH_MAX) return false;
    const int64_t room = INT32_MAX - depth * 255 * 255;
    for (int64_t i = 0; bias && i < c->groups * c->oc; i++)
        if (bias[i] > room || bias[i] < -room) return false;
    return true;
}

zc_status zc_fast_qlinear_conv(zc_kctx *k)
{
    zc_conv c;
    ZC_TRY(zc_conv_of(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, &c));
    zc_byte_scaling s = {.y_zero = zc_zero_of(k, ZC_IN_QLinearConv_y_zero),
                         .y_signed = k->out[0].dtype == ZC_I8};
    const int32_t *bias = NULL;
    if (zc_input(k, ZC_IN_QLinearConv_bias)) bias = k->in[ZC_IN_QLinearConv_bias].data;
    if (!is_bounded(&c, bias)) return zc_k_QLinearConv(k);
    ZC_TRY(zc_scaling_of(k, &k->in[ZC_IN_QLinearConv_w_scale],
                         zc_get(&k->in[ZC_IN_QLinearConv_x_scale], 0),
                         zc_get(&k->in[ZC_IN_QLinearConv_y_scale], 0), c.groups * c.oc, &s));
    return convolve(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, ZC_IN_QLinearConv_x_zero,
                    ZC_IN_QLinearConv_w_zero, &c, &s, bias);
}
