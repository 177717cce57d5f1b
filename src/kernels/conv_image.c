/* Convolutions of images with up to four channels: from channels first to channels last, or of
 * bytes that are channels last. */
#include <string.h>

#include "abi/conv_image.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/window.h"
#include "op/nhwc.h"

enum { ACROSS, DOWN, WARPS, EACH };
#define CONFIG_NAMES "across", "down", "warps", "each", NULL
const char *const zc_config_conv_image[] = {CONFIG_NAMES};
const char *const zc_config_conv_image_quant[] = {CONFIG_NAMES};

enum { PIECE_COLS = 8, PIECE_ROWS = 2, PIXEL = 8, SUMS_MOST = 128 /* of a thread */ };
enum { QUANT_CHANNEL = 16 /* bytes: scale and bias */ };

/* ---- the specialisation ---- */

/* A tile's pieces, and the warps that share them. */
typedef struct shape {
    int across, down, warps;
} shape;

static const shape shapes[] = {{7, 2, 7}, {2, 8, 8}, {2, 4, 8}, {7, 1, 7}, {2, 4, 4}};

static int pieces_of(const shape *s)
{
    return s->across * s->down / s->warps;
}

/* As conv_image.cu lays it out. */
static int64_t smem_of(const shape *s, const zc_window_attrs *a, const zc_tensor *w, bool quant)
{
    int64_t pairs = (w->dims[2] + 3) / 4 * 2, groups = (w->dims[0] + 15) / 16 * 2;
    int64_t wide = ((s->across * PIECE_COLS - 1) * zc_window_stride(a, 1) + pairs * 2 + 1) / 2 * 2;
    int64_t high = (s->down * PIECE_ROWS - 1) * zc_window_stride(a, 0) + w->dims[1];
    int64_t planes = 1 + zc_window_stride(a, 1) % 2;
    return groups * 8 * (w->dims[1] * pairs + 1) * 2 * PIXEL + planes * high * wide * PIXEL +
           (quant ? w->dims[0] * QUANT_CHANNEL : 0);
}

static bool shape_fits(const shape *s, const zc_tensor *w)
{
    return pieces_of(s) * ((w->dims[0] + 15) / 16 * 2) * 4 <= SUMS_MOST;
}

typedef struct image_problem {
    zc_window_attrs a;
    zc_tensor w;              /* its shape */
    int64_t images, sides[2]; /* of the result */
    int sm_count;
    bool quant; /* of bytes */
} image_problem;

/* Microseconds: the pixels of x that the tiles read; where all run at once, the pixels of y that
 * one writes. */
static double image_us(const image_problem *p, const shape *s)
{
    const double start = 5, once = 9, each_read = 0.0075, each_written = 0.01;
    int64_t size[2] = {s->down * PIECE_ROWS, s->across * PIECE_COLS}, tiles = p->images;
    double read = 1, written = 1;
    for (int i = 0; i < 2; i++) {
        tiles *= zc_ceil_div(p->sides[i], size[i]);
        read *= (double)((size[i] - 1) * zc_window_stride(&p->a, i) + p->w.dims[1 + i]);
        written *= (double)size[i];
    }
    double waves = (double)tiles / (2.0 * p->sm_count);
    return waves < 1 ? once + written * each_written : start + waves * read * each_read;
}

static bool image_candidate(const void *of, int number, zc_candidate *out)
{
    const image_problem *p = of;
    const shape *s = &shapes[number];
    if (!shape_fits(s, &p->w)) return false;
    *out = (zc_candidate){
        .config =
            {[ACROSS] = s->across, [DOWN] = s->down, [WARPS] = s->warps, [EACH] = pieces_of(s)},
        .threads = (uint32_t)s->warps * 32,
        .smem = (uint32_t)smem_of(s, &p->a, &p->w, p->quant),
        .cluster = 1,
        .us = image_us(p, s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d by %d warps", s->down * PIECE_ROWS,
                s->across * PIECE_COLS, s->warps);
    return true;
}

static void sizes_of(zc_gen *g, image_problem *p)
{
    enum { USUAL = 112, MANY = 32 };
    static const int64_t bounds[] = {32768};
    const zc_pvalue *y = zc_gen_out(g, 0);
    int64_t low, high;
    p->sm_count = g->sm_count;
    for (int i = 0; i < 2; i++) p->sides[i] = zc_gen_const_dim(y, 1 + i);
    zc_gen_size(g, y->dims, 3, bounds, ZC_COUNTOF(bounds), &low, &high);
    if (p->sides[0] <= 0 || p->sides[1] <= 0) p->sides[0] = p->sides[1] = USUAL;
    p->images = high == INT64_MAX ? MANY : zc_ceil_div(high, p->sides[0] * p->sides[1]);
}

/* first: of x's sides; `of`: what is multiplied. */
static void put_spec(zc_gen *g, const image_problem *p, int first, zc_dtype of)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *y = zc_gen_out(g, 0);
    const zc_tensor *w = &p->w;
    bool f16 = of == ZC_F16;
    zc_gen_window_dims d = {.axes = 2};
    for (int i = 0; i < 2; i++) {
        d.in[i] = x->dims[first + i];
        d.out[i] = y->dims[1 + i];
        d.kernel[i] = zc_dim_const(w->dims[1 + i]);
    }
    zc_gen_window(g, &p->a, &d);
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "T", of);
    zc_gen_define(g, "CHANNELS", "%d", (int)w->dims[3]);
    zc_gen_define(g, "OUT", "%d", (int)w->dims[0]);
    zc_gen_define(g, "MMA", "%s", f16 ? "zc_mma_m16n8k16_f16" : "zc_mma_m16n8k16_bf16");
    zc_gen_define(g, "MOST", "%s", f16 ? "65504.0" : "3.38953139e38");
}

zc_status zc_gen_conv_image(zc_gen *g)
{
    const zc_attrs_ConvImage *at = ZC_ATTRS(g, ConvImage);
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1);
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    image_problem p;
    int64_t group;
    zc_window_attrs_of(g->step->op, at, &p.a, &group);
    if (bias != ZC_NONE && bias != dtype) return zc_gen_decline(g, "bias of another type");
    if (x->dtype != ZC_F32 && x->dtype != dtype) return zc_gen_decline(g, "type of the image");
    if (!zc_gen_static(w)) return zc_gen_decline(g, "weights whose shape only a run knows");
    zc_gen_tensor(w, &p.w);
    const zc_attrs_Conv conv = zc_nchw_conv_image(at);
    if (!zc_conv_image_fits(&conv, &p.w)) return zc_gen_decline(g, "its windows or channels");
    sizes_of(g, &p);
    zc_gen_tensor_cores(g, "mma", dtype);
    ZC_TRY(zc_gen_candidates(g, "mma.m16n8k16", image_candidate, &p, ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    put_spec(g, &p, 2, dtype);
    if (w->kind == ZC_P_CONST) zc_gen_define(g, "W_CONSTANT", "1");
    zc_gen_define(g, "HAS_BIAS", "%d", bias != ZC_NONE);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* Why it is none of bytes; NULL: it is one. Sums of so few products of differences of bytes are
 * exact in f32. */
static const char *not_bytes(const zc_gen *g, zc_tensor *w)
{
    const zc_attrs_QLinearConv *at = ZC_ATTRS(g, QLinearConv);
    const zc_attrs_Conv conv = zc_nchw_qlinear_conv(at);
    const zc_pvalue *v = zc_gen_in(g, ZC_IN_QLinearConv_w);
    if (!at->channels_last || !at->taps_first) return "channels first";
    if (!zc_gen_static(v)) return "weights whose shape only a run knows";
    zc_gen_tensor(v, w);
    return zc_conv_image_fits(&conv, w) ? NULL : "its windows or channels";
}

zc_status zc_gen_conv_image_quant(zc_gen *g)
{
    image_problem p = {.quant = true};
    int64_t group;
    const char *why = not_bytes(g, &p.w);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_window_attrs_of(g->step->op, g->attrs, &p.a, &group);
    sizes_of(g, &p);
    zc_gen_tensor_cores(g, "mma", ZC_F16);
    ZC_TRY(zc_gen_candidates(g, "mma.m16n8k16", image_candidate, &p, ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    put_spec(g, &p, 1, ZC_F16);
    zc_gen_define(g, "QUANT", "1");
    zc_gen_type(g, "W", zc_gen_in_type(g, ZC_IN_QLinearConv_w));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_type(g, "PLAIN", zc_gen_plain_result(g));
    zc_gen_type(g, "XS", zc_gen_in_type(g, ZC_IN_QLinearConv_x_scale));
    zc_gen_type(g, "WS", zc_gen_in_type(g, ZC_IN_QLinearConv_w_scale));
    zc_gen_type(g, "YS", zc_gen_in_type(g, ZC_IN_QLinearConv_y_scale));
    zc_gen_define(g, "HAS_BIAS", "%d", zc_gen_in(g, ZC_IN_QLinearConv_bias) != NULL);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

/* x's sides begin at axis `first`. */
static zc_status launch(zc_launch *l, const zc_tensor *w, int first, struct zc_conv_image_params *p)
{
    enum { BLOCKS = 3 };
    const int64_t *config = l->kernel->config;
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    int channels = first == 1 ? 3 : 1;
    if (x->rank != 4 || x->dims[channels] != w->dims[3])
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "input and weights do not fit each other (got %lld channels, need %lld)",
                       (long long)x->dims[channels], (long long)w->dims[3]);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + first, y->dims + 1, w->dims + 1, &window);
    ZC_TRY(zc_launch_window(l, &window, &p->window));
    ZC_TRY(zc_launch_epilogue(l, &p->fused));
    int64_t down = zc_ceil_div(y->dims[1], config[DOWN] * PIECE_ROWS);
    int64_t across = zc_ceil_div(y->dims[2], config[ACROSS] * PIECE_COLS);
    if (down * across > INT32_MAX / y->dims[0])
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    p->down = (int)down;
    p->across = (int)across;
    p->tiles = (int)(down * across * y->dims[0]);
    zc_dim3 grid = {zc_launch_blocks(p->tiles, 1, BLOCKS * l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, p, sizeof *p);
}

zc_status zc_launch_conv_image(zc_launch *l)
{
    struct zc_conv_image_params p = {
        .x = l->in[0].data, .w = l->in[1].data, .bias = zc_launch_in(l, 2), .y = l->out[0].data};
    return launch(l, &l->in[1], 2, &p);
}

zc_status zc_launch_conv_image_quant(zc_launch *l)
{
    const zc_tensor *in = l->in, *w = &in[ZC_IN_QLinearConv_w];
    struct zc_conv_image_params p = {.x = in[0].data,
                                     .w = w->data,
                                     .bias = zc_launch_in(l, ZC_IN_QLinearConv_bias),
                                     .x_zero = in[ZC_IN_QLinearConv_x_zero].data,
                                     .w_zero = in[ZC_IN_QLinearConv_w_zero].data,
                                     .x_scale = in[ZC_IN_QLinearConv_x_scale].data,
                                     .w_scale = in[ZC_IN_QLinearConv_w_scale].data,
                                     .y_scale = in[ZC_IN_QLinearConv_y_scale].data,
                                     .y_zero = in[ZC_IN_QLinearConv_y_zero].data,
                                     .y = l->out[0].data};
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_zero, w->dims[0], &p.w_zero_step));
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_scale, w->dims[0], &p.w_scale_step));
    return launch(l, w, 1, &p);
}
