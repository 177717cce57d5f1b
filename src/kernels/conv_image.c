/* Convolutions of images with up to four channels: from channels first to channels last, or of
 * bytes that are channels last. */
#include <string.h>

#include "abi/conv_image.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/matmul.h"
#include "kernels/window.h"
#include "op/half.h"
#include "op/nhwc.h"

enum { ROWS, COLS, WARPS, EACH, SHARES, LINE };
#define CONFIG_NAMES "rows", "cols", "warps", "each", "shares", "line", NULL
const char *const zc_config_conv_image[] = {CONFIG_NAMES};
const char *const zc_config_conv_image_quant[] = {CONFIG_NAMES};

enum {
    PIECE = 16, /* pixels of one product */
    PIXEL = 8,  /* bytes of one in shared memory */
    SUMS_MOST = 128,
    WARPS_MOST = 16,
    SHARES_MOST = 3,
    REGISTERS = 512,    /* of a lane, in each of a multiprocessor's quarters */
    OTHERS = 53,        /* registers of a thread beside its sums */
    QUANT_OTHERS = 72,  /* where these become bytes */
    SMEM = 232448,      /* of a block on sm_90 */
    SMEM_LESS = 101376, /* elsewhere */
    SMEM_OWN = 1024,    /* that each block takes besides */
    LINE_CHANNELS = 64, /* of a warpgroup's product */
    QUANT_CHANNEL = 16  /* bytes: scale and bias */
};

/* ---- the specialisation ---- */

/* A tile of the result, and the pieces of a warp; or the warpgroups that compute its lines. */
typedef struct shape {
    int rows, cols, each, groups;
} shape;

static const shape plain[] = {
    {4, 56, 2, 0}, {16, 16, 2, 0}, {8, 16, 1, 0}, {2, 56, 1, 0}, {8, 16, 2, 0}};
static const shape pooled[] = {{7, 8, 2, 0},  {4, 8, 1, 0},  {2, 8, 1, 0},  {7, 8, 1, 0},
                               {4, 8, 2, 0},  {4, 16, 2, 0}, {7, 14, 0, 2}, {4, 14, 0, 2},
                               {4, 14, 0, 1}, {2, 14, 0, 2}, {4, 28, 0, 2}};

typedef struct image_problem {
    zc_window_attrs a;
    zc_attrs_MaxPool pool;    /* windows of one pixel where there is none */
    bool pools, lines;        /* may warpgroups compute lines? */
    bool quant;               /* of bytes */
    zc_tensor w;              /* its shape */
    int64_t images, sides[2]; /* of the result */
    int sm_count;
    int64_t smem_most;
} image_problem;

/* What the pooling's window is along an axis; 1 where it is not said. */
static int64_t of_axis(zc_ints list, int axis)
{
    return list.n ? list.v[axis] : 1;
}

/* Pixels of the convolution that a tile needs along an axis, and of the image. */
static int64_t tile_side(const image_problem *p, const shape *s, int axis)
{
    int64_t size = axis ? s->cols : s->rows;
    return (size - 1) * of_axis(p->pool.strides, axis) + of_axis(p->pool.kernel_shape, axis);
}

static int64_t image_side(const image_problem *p, const shape *s, int axis)
{
    return (tile_side(p, s, axis) - 1) * zc_window_stride(&p->a, axis) + p->w.dims[1 + axis];
}

static int64_t pixels_of(const image_problem *p, const shape *s)
{
    return tile_side(p, s, 0) * tile_side(p, s, 1);
}

/* Columns of a warpgroup's product; 0: by warps. */
static int64_t line_of(const image_problem *p, const shape *s)
{
    return s->groups ? zc_ceil_div(tile_side(p, s, 1), 8) * 8 : 0;
}

static int64_t warps_of(const image_problem *p, const shape *s)
{
    return s->groups ? (int64_t)4 * s->groups
                     : zc_ceil_div(pixels_of(p, s), (int64_t)PIECE * s->each);
}

/* Pairs of taps of a window's line, in pairs. */
static int64_t pairs_of(const image_problem *p)
{
    return (p->w.dims[2] + 3) / 4 * 2;
}

/* Sums of a thread, and by lines its weights. */
static int64_t kept_in_registers(const image_problem *p, const shape *s)
{
    const int64_t *w = p->w.dims;
    return s->groups ? line_of(p, s) / 2 + w[1] * pairs_of(p) * 2
                     : s->each * ((w[0] + 15) / 16 * 8);
}

/* As conv_image.cu lays it out. */
static int64_t smem_of(const image_problem *p, const shape *s)
{
    const int64_t *w = p->w.dims, line = line_of(p, s);
    int64_t across = line ? line : tile_side(p, s, 1), stride = zc_window_stride(&p->a, 1);
    int64_t wide = ((across - 1) * stride + pairs_of(p) * 2 + 1) / 2 * 2;
    int64_t planes = 1 + (line ? w[2] : stride) % 2;
    int64_t image = planes * image_side(p, s, 0) * wide * PIXEL;
    int64_t weights = (w[0] + 15) / 16 * 16 * (w[1] * pairs_of(p) + 1) * 2 * PIXEL;
    int64_t kept = p->pools ? pixels_of(p, s) * (w[0] / 8 | 1) * 16 : 0;
    int64_t channels = p->quant ? w[0] * QUANT_CHANNEL : 0;
    return channels + image + (!line ? weights + kept : weights > kept ? weights : kept);
}

/* Blocks of a multiprocessor, by shared memory and by registers, which warps are given in eights.
 */
static int64_t shares_of(const image_problem *p, const shape *s)
{
    int64_t shares = (p->smem_most + SMEM_OWN) / (smem_of(p, s) + SMEM_OWN);
    int64_t registers = kept_in_registers(p, s) + (p->quant ? QUANT_OTHERS : OTHERS);
    if (shares > SHARES_MOST) shares = SHARES_MOST;
    for (; shares > 1; shares--) {
        int64_t warps = zc_ceil_div(shares * warps_of(p, s), 4);
        if (REGISTERS / warps / 8 * 8 >= registers) break;
    }
    return shares;
}

static bool shape_fits(const image_problem *p, const shape *s)
{
    if (s->groups && !p->lines) return false;
    return kept_in_registers(p, s) <= SUMS_MOST && warps_of(p, s) <= WARPS_MOST &&
           smem_of(p, s) <= p->smem_most;
}

/* Microseconds: the pixels of x that the tiles read; where all run at once, the convolution's that
 * one writes. What is kept for the pooling is written and read besides. By lines: not measured. */
static double image_us(const image_problem *p, const shape *s)
{
    const double start = 5, once = 9, each_written = 0.01, each_kept = 0.004;
    const double each_read = s->groups ? 0.005 : 0.0075;
    int64_t tiles =
        p->images * zc_ceil_div(p->sides[0], s->rows) * zc_ceil_div(p->sides[1], s->cols);
    double read = (double)(image_side(p, s, 0) * image_side(p, s, 1));
    double written = (double)pixels_of(p, s), kept = p->pools ? written * each_kept : 0;
    double waves = (double)tiles / (2.0 * p->sm_count);
    return waves < 1 ? once + written * each_written + kept
                     : start + waves * (read * each_read + kept);
}

static bool image_candidate(const void *of, int number, zc_candidate *out)
{
    const image_problem *p = of;
    const shape *s = p->pools ? &pooled[number] : &plain[number];
    if (!shape_fits(p, s)) return false;
    *out = (zc_candidate){.config = {[ROWS] = s->rows,
                                     [COLS] = s->cols,
                                     [WARPS] = warps_of(p, s),
                                     [EACH] = s->each,
                                     [SHARES] = shares_of(p, s),
                                     [LINE] = line_of(p, s)},
                          .threads = (uint32_t)warps_of(p, s) * 32,
                          .smem = (uint32_t)smem_of(p, s),
                          .cluster = 1,
                          .us = image_us(p, s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d by %lld warps%s", s->rows, s->cols,
                (long long)warps_of(p, s), s->groups ? ", lines" : "");
    return true;
}

/* Pairs of taps come to whole steps of 16, or nearly: a last tap by itself has a copy of the image.
 */
static bool lines_fit(const zc_gen *g, const image_problem *p)
{
    bool asked = g->candidate || g->regardless; /* not measured yet */
    return asked && g->arch == 90 && p->pools && p->w.dims[0] == LINE_CHANNELS &&
           p->w.dims[2] > pairs_of(p) * 2 - 2 && zc_window_stride(&p->a, 1) == 2;
}

static void sizes_of(zc_gen *g, image_problem *p)
{
    enum { USUAL = 112, MANY = 32, PIXELS = 32768 /* of the convolution */ };
    const zc_pvalue *y = zc_gen_out(g, 0);
    int64_t low, high, steps[2];
    for (int i = 0; i < 2; i++) steps[i] = of_axis(p->pool.strides, i);
    const int64_t bound = PIXELS / (steps[0] * steps[1]);
    p->sm_count = g->sm_count;
    p->smem_most = g->arch == 90 ? SMEM : SMEM_LESS;
    for (int i = 0; i < 2; i++) p->sides[i] = zc_gen_const_dim(y, 1 + i);
    zc_gen_size(g, y->dims, 3, &bound, 1, &low, &high);
    if (p->sides[0] <= 0 || p->sides[1] <= 0)
        for (int i = 0; i < 2; i++) p->sides[i] = USUAL / steps[i];
    p->images = high == INT64_MAX ? MANY : zc_ceil_div(high, p->sides[0] * p->sides[1]);
}

/* x's sides begin at axis `first`. Where the convolution is pooled, its result's sizes are as
 * certain as x's. */
static void put_window(zc_gen *g, const image_problem *p, int first)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *y = zc_gen_out(g, 0);
    zc_gen_window_dims d = {.axes = 2};
    for (int i = 0; i < 2; i++) {
        const zc_dim in = x->dims[first + i];
        const int64_t kernel = p->w.dims[1 + i];
        d.in[i] = in;
        d.out[i] = !p->pools ? y->dims[1 + i]
                   : zc_dim_is_const(in)
                       ? zc_dim_const(zc_window_out_size(&p->a, 2, i, in.k, kernel))
                       : in;
        d.kernel[i] = zc_dim_const(kernel);
    }
    zc_gen_window(g, &p->a, &d);
}

/* of: what is multiplied. */
static void put_spec(zc_gen *g, const image_problem *p, zc_dtype of)
{
    bool f16 = of == ZC_F16;
    zc_gen_define(g, "POOLS", "%d", p->pools);
    for (int i = 0; i < 2; i++) {
        const char *const names[][2] = {{"POOL_KERNEL1", "POOL_STRIDE1"},
                                        {"POOL_KERNEL2", "POOL_STRIDE2"}};
        zc_gen_define(g, names[i][0], "%d", (int)of_axis(p->pool.kernel_shape, i));
        zc_gen_define(g, names[i][1], "%d", (int)of_axis(p->pool.strides, i));
    }
    zc_gen_type(g, "X", zc_gen_in_type(g, 0));
    zc_gen_type(g, "T", of);
    zc_gen_define(g, "CHANNELS", "%d", (int)p->w.dims[3]);
    zc_gen_define(g, "OUT", "%d", (int)p->w.dims[0]);
    zc_gen_define(g, "MMA", "%s", f16 ? "zc_mma_m16n8k16_f16" : "zc_mma_m16n8k16_bf16");
    zc_gen_define(g, "WGMMA", "%s", f16 ? "F16" : "BF16");
    zc_gen_define(g, "MOST", "%.9g", zc_half_max(of));
}

zc_status zc_gen_conv_image(zc_gen *g)
{
    const zc_attrs_ConvImage *at = ZC_ATTRS(g, ConvImage);
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1);
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    image_problem p = {.pool = zc_nchw_conv_image_pool(at), .pools = zc_conv_image_pools(at)};
    int64_t group;
    zc_window_attrs_of(g->step->op, at, &p.a, &group);
    if (bias != ZC_NONE && bias != dtype) return zc_gen_decline(g, "bias of another type");
    if (x->dtype != ZC_F32 && x->dtype != dtype) return zc_gen_decline(g, "type of the image");
    if (!zc_gen_static(w)) return zc_gen_decline(g, "weights whose shape only a run knows");
    zc_gen_tensor(w, &p.w);
    const zc_attrs_Conv conv = zc_nchw_conv_image(at);
    if (!zc_conv_image_fits(&conv, &p.w)) return zc_gen_decline(g, "its windows or channels");
    if (p.pools && !zc_conv_image_pool_fits(&p.pool)) return zc_gen_decline(g, "its pooling");
    sizes_of(g, &p);
    p.lines = lines_fit(g, &p);
    ZC_TRY(zc_gen_candidates(g, "mma.m16n8k16", image_candidate, &p,
                             p.pools ? ZC_COUNTOF(pooled) : ZC_COUNTOF(plain)));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, g->config[LINE] ? "wgmma" : "mma", dtype);
    put_window(g, &p, 2);
    put_spec(g, &p, dtype);
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
    ZC_TRY(zc_gen_candidates(g, "mma.m16n8k16", image_candidate, &p, ZC_COUNTOF(plain)));
    if (g->declined[0]) return ZC_OK;
    put_window(g, &p, 1);
    put_spec(g, &p, ZC_F16);
    zc_gen_define(g, "QUANT", "1");
    zc_gen_type(g, "W", zc_gen_in_type(g, ZC_IN_QLinearConv_w));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_type(g, "PLAIN", zc_gen_plain_result(g));
    zc_gen_type(g, "XS", zc_gen_in_type(g, ZC_IN_QLinearConv_x_scale));
    zc_gen_type(g, "WS", zc_gen_in_type(g, ZC_IN_QLinearConv_w_scale));
    zc_gen_type(g, "YS", zc_gen_in_type(g, ZC_IN_QLinearConv_y_scale));
    zc_gen_define(g, "HAS_BIAS", "%d", zc_gen_in(g, ZC_IN_QLinearConv_bias) != NULL);
    const zc_quant_roles roles = zc_quant_roles_of(ZC_OP_QLinearConv);
    zc_gen_small_scales(g, &roles);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

/* The convolution's window, whose result has these sides; x's begin at axis `first`. */
static zc_status set_window(zc_launch *l, const zc_tensor *w, int first, const int64_t sides[2],
                            struct zc_conv_image_params *p)
{
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, l->in[0].dims + first, sides, w->dims + 1, &window);
    return zc_launch_window(l, &window, &p->window);
}

/* The pooling's padding. */
static void set_pooling(zc_launch *l, const int64_t sides[2], struct zc_conv_image_params *p)
{
    const zc_attrs_ConvImage *at = ZC_ATTRS(l, ConvImage);
    const zc_attrs_MaxPool pool = zc_nchw_conv_image_pool(at);
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    if (!zc_conv_image_pools(at)) return;
    zc_window_attrs_of(ZC_OP_MaxPool, &pool, &a, &group);
    zc_window_resolve(&a, 2, sides, l->out[0].dims + 1, pool.kernel_shape.v, &window);
    for (int i = 0; i < 2; i++) p->before[i] = (int)window.begin[i];
}

static zc_status launch(zc_launch *l, struct zc_conv_image_params *p)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *y = &l->out[0];
    ZC_TRY(zc_launch_epilogue(l, &p->fused));
    int64_t down = zc_ceil_div(y->dims[1], config[ROWS]);
    int64_t across = zc_ceil_div(y->dims[2], config[COLS]);
    if (down * across > INT32_MAX / y->dims[0])
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    for (int i = 0; i < 2; i++) p->sides[i] = (int)y->dims[1 + i];
    p->down = (int)down;
    p->across = (int)across;
    p->tiles = (int)(down * across * y->dims[0]);
    zc_dim3 grid = {zc_launch_blocks(p->tiles, 1, config[SHARES] * l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, p, sizeof *p);
}

static zc_status check_channels(const zc_launch *l, const zc_tensor *w, int axis)
{
    const zc_tensor *x = &l->in[0];
    if (x->rank == 4 && x->dims[axis] == w->dims[3]) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %lld channels, need %lld)",
                   (long long)x->dims[axis], (long long)w->dims[3]);
}

zc_status zc_launch_conv_image(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *w = &l->in[1];
    struct zc_conv_image_params p = {
        .x = x->data, .w = w->data, .bias = zc_launch_in(l, 2), .y = l->out[0].data};
    int64_t sides[2];
    ZC_TRY(check_channels(l, w, 1));
    if (zc_tensor_numel(&l->out[0]) == 0) return ZC_OK;
    zc_conv_image_sides(ZC_ATTRS(l, ConvImage), x, w, sides);
    ZC_TRY(set_window(l, w, 2, sides, &p));
    set_pooling(l, sides, &p);
    return launch(l, &p);
}

zc_status zc_launch_conv_image_quant(zc_launch *l)
{
    const zc_tensor *in = l->in, *w = &in[ZC_IN_QLinearConv_w], *y = &l->out[0];
    struct zc_conv_image_params p = {.x = in[0].data,
                                     .w = w->data,
                                     .bias = zc_launch_in(l, ZC_IN_QLinearConv_bias),
                                     .x_zero = in[ZC_IN_QLinearConv_x_zero].data,
                                     .w_zero = in[ZC_IN_QLinearConv_w_zero].data,
                                     .x_scale = in[ZC_IN_QLinearConv_x_scale].data,
                                     .w_scale = in[ZC_IN_QLinearConv_w_scale].data,
                                     .y_scale = in[ZC_IN_QLinearConv_y_scale].data,
                                     .y_zero = in[ZC_IN_QLinearConv_y_zero].data,
                                     .y = y->data};
    ZC_TRY(check_channels(l, w, 3));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_zero, w->dims[0], &p.w_zero_step));
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_scale, w->dims[0], &p.w_scale_step));
    ZC_TRY(set_window(l, w, 1, y->dims + 1, &p));
    return launch(l, &p);
}
