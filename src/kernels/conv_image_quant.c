/* Convolutions of images of bytes with up to four channels, and the largest of windows of what they
 * give, by integer tensor cores. */
#include <math.h>

#include "abi/conv_image_quant.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/conv_image.h"
#include "kernels/matmul.h"
#include "kernels/sm90.h"
#include "kernels/window.h"
#include "op/nhwc.h"

enum { ROWS, COLS, EACH, PARTS, WARPS, SHARES, TEAM };
const char *const zc_config_conv_image_quant[] = {"rows",  "cols",   "each", "parts",
                                                  "warps", "shares", "team", NULL};

enum {
    PIECE = 16, /* columns of one product; bytes of a piece of shared memory */
    SUMS_MOST = 96,
    WARPS_MOST = 8,
    SHARES_MOST = 4,
    REGISTERS = 512, /* of a lane, in each of a multiprocessor's quarters */
    PLAIN = 128,     /* of a thread, on sm_90 */
    OTHERS = 128,    /* beside sums: elsewhere, with branches, weights' zero points, fused work */
    SMEM = 232448,   /* of a multiprocessor on sm_90 */
    SMEM_LESS = 101376, /* elsewhere */
    SMEM_OWN = 1024,    /* that each block takes besides */
    CHANNEL = 16,       /* bytes: scale and bias */
    CHANNEL_ZERO = 8    /* and a zero point */
};

/* ---- the specialisation ---- */

/* Rows of a tile, and strips of 16 `each` columns of the convolution for each warp of a team: one,
 * or a warpgroup. */
typedef struct shape {
    int rows, strips, team;
} shape;

static const shape shapes[] = {{14, 4, 1}, {7, 4, 1}, {4, 4, 1},  {7, 8, 1}, {4, 8, 1},
                               {2, 4, 1},  {1, 4, 1}, {4, 2, 1},  {2, 2, 1}, {1, 2, 1},
                               {8, 1, 1},  {7, 2, 4}, {14, 2, 4}, {4, 2, 4}, {2, 2, 4},
                               {14, 1, 4}, {7, 1, 4}, {4, 1, 4},  {2, 1, 4}, {1, 1, 4}};

typedef struct image_problem {
    zc_image_form f;
    bool teams; /* may warpgroups compute? */
    bool zeros; /* have weights zero points? */
    bool plain; /* nothing but sums and their bytes, without branches, on sm_90? */
    int sm_count;
    int64_t smem_most;
} image_problem;

static bool runs_ahead(const image_problem *p)
{
    return zc_image_pool_kernel(&p->f, 0) > zc_image_pool_stride(&p->f, 0);
}

/* Lines that a warp computes at once. */
static int64_t at_once(const image_problem *p)
{
    return runs_ahead(p) ? zc_image_pool_stride(&p->f, 0) : zc_image_pool_kernel(&p->f, 0);
}

/* Products of as many sums read each weight once: where windows are one line apart, two of
 * columns. A warpgroup's do anyhow. */
static int64_t each_of(const image_problem *p, const shape *s)
{
    return s->team == 1 && at_once(p) == 1 ? 2 : 1;
}

/* Columns of the convolution that a strip has. */
static int64_t side_of(const image_problem *p, const shape *s)
{
    return PIECE * each_of(p, s) * s->team;
}

/* Groups of eight channels of a team of so many. */
static int64_t own_of(const image_problem *p, int64_t parts)
{
    return zc_ceil_div((p->f.w.dims[0] + 15) / 16, parts) * 2;
}

/* A thread's sums, and the largest so far. */
static int64_t sums_of(const image_problem *p, const shape *s, int64_t parts)
{
    return (at_once(p) + runs_ahead(p)) * each_of(p, s) * own_of(p, parts) * 4;
}

static int64_t parts_of(const image_problem *p, const shape *s)
{
    int64_t parts = 1;
    while (sums_of(p, s, parts) > SUMS_MOST && own_of(p, parts) > 2) parts++;
    return parts;
}

static int64_t warps_of(const image_problem *p, const shape *s)
{
    return s->strips * s->team * parts_of(p, s);
}

/* Columns of the result that a strip has: fewer where as many strips have them all. */
static int64_t taken_of(const image_problem *p, const shape *s)
{
    int64_t kernel = zc_image_pool_kernel(&p->f, 1), stride = zc_image_pool_stride(&p->f, 1);
    int64_t most = (side_of(p, s) - kernel) / stride + 1;
    return s->team == 1 ? most : zc_ceil_div(p->f.sides[1], zc_ceil_div(p->f.sides[1], most));
}

/* Lines of four pixels that lie together. */
static int64_t quad_high(const shape *s)
{
    return s->team == 1 ? 1 : 2;
}

/* Fours of a window along an axis. */
static int64_t quads_of(const image_problem *p, const shape *s, int axis)
{
    return zc_ceil_div(p->f.w.dims[1 + axis], axis ? 4 / quad_high(s) : quad_high(s));
}

static int64_t steps_of(const image_problem *p, const shape *s)
{
    return (quads_of(p, s, 0) * quads_of(p, s, 1) + 1) / 2;
}

/* Pixels of the image that a tile needs, by rows of whole fours. */
static int64_t pixels_of(const image_problem *p, const shape *s)
{
    int64_t lines = (s->rows - 1) * zc_image_pool_stride(&p->f, 0) + zc_image_pool_kernel(&p->f, 0);
    int64_t high = (lines - 1) * zc_window_stride(&p->f.a, 0) + quads_of(p, s, 0) * quad_high(s);
    int64_t cols =
        (s->strips - 1) * taken_of(p, s) * zc_image_pool_stride(&p->f, 1) + side_of(p, s) - 1;
    int64_t wide = cols * zc_window_stride(&p->f.a, 1) + quads_of(p, s, 1) * 4 / quad_high(s);
    return high * ((wide + 3) / 4 * 4);
}

/* As conv_image_quant.cu lays it out. */
static int64_t smem_of(const image_problem *p, const shape *s)
{
    int64_t parts = parts_of(p, s), own = own_of(p, parts);
    int64_t channel = (steps_of(p, s) * 2 + (s->team == 1)) * PIECE + CHANNEL +
                      (p->zeros ? (int64_t)CHANNEL_ZERO : 0);
    int64_t kept = warps_of(p, s) / s->team * side_of(p, s) * (own / 2 | 1) * PIECE;
    return own * 8 * parts * channel + pixels_of(p, s) * 4 + kept;
}

/* Blocks of a multiprocessor, by shared memory and by registers, which warps are given in eights.
 */
static int64_t shares_of(const image_problem *p, const shape *s)
{
    int64_t shares = (p->smem_most + SMEM_OWN) / (smem_of(p, s) + SMEM_OWN);
    int64_t registers = p->plain ? PLAIN : sums_of(p, s, parts_of(p, s)) + OTHERS;
    if (shares > SHARES_MOST) shares = SHARES_MOST;
    for (; shares > 1; shares--) {
        int64_t warps = zc_ceil_div(shares * warps_of(p, s), 4);
        if (REGISTERS / warps / 8 * 8 >= registers) break;
    }
    return shares;
}

/* Cycles of a multiprocessor by itself that a tile's products take, and its results. Counted in
 * machine code, not measured. */
typedef struct cost {
    double products, results;
} cost;

/* A warp's integer products by mma.sync take six cycles of its quarter. */
static cost warps_cost(const image_problem *p, const shape *s)
{
    const double product = 6, result = 10;
    double groups = (double)(each_of(p, s) * own_of(p, parts_of(p, s)));
    double all = (double)warps_of(p, s) / 4 * groups * (double)(s->rows + runs_ahead(p));
    return (cost){all * (double)(steps_of(p, s) * at_once(p)) * product, all * 4 * result};
}

/* A warpgroup's products read 64 pixels and the weights, 128 bytes a cycle. */
static cost teams_cost(const image_problem *p, const shape *s)
{
    const double result = 0.12;
    double channels = (double)own_of(p, parts_of(p, s)) * 8, side = (double)side_of(p, s);
    double all = (double)warps_of(p, s) / s->team * (double)(s->rows + runs_ahead(p));
    return (cost){all * (double)(steps_of(p, s) * at_once(p)) * (side + channels) / 4,
                  all * side * channels * result};
}

/* Of a tile, with so many warpgroups beside each other: they hide each other's waiting, and one's
 * products by wgmma another one's results. */
static double tile_cycles(const image_problem *p, const shape *s, double beside)
{
    const double read = 0.13; /* a pixel */
    const cost c = s->team == 1 ? warps_cost(p, s) : teams_cost(p, s);
    const double pixels = (double)pixels_of(p, s) * read;
    if (s->team == 1) return (c.products + c.results + pixels) * (1 + 1 / beside);
    return fmax(c.products, c.results) + fmin(c.products, c.results) / beside +
           pixels * (1 + 1 / beside);
}

/* Microseconds: what a multiprocessor's tiles take. */
static double image_us(const image_problem *p, const shape *s)
{
    const double start = 4, cycles = 1700;
    int64_t tiles = p->f.images * zc_ceil_div(p->f.sides[0], s->rows) *
                    zc_ceil_div(p->f.sides[1], s->strips * taken_of(p, s));
    int64_t own = zc_ceil_div(tiles, p->sm_count), shares = shares_of(p, s);
    double beside = (double)warps_of(p, s) / 4 * (double)(own < shares ? own : shares);
    return start + (double)own * tile_cycles(p, s, beside) / cycles;
}

static bool image_candidate(const void *of, int number, zc_candidate *out)
{
    const image_problem *p = of;
    const shape *s = &shapes[number];
    if (s->team > 1 && !p->teams) return false;
    if (warps_of(p, s) > WARPS_MOST || smem_of(p, s) > p->smem_most) return false;
    *out = (zc_candidate){.config = {[ROWS] = s->rows,
                                     [COLS] = s->strips * taken_of(p, s),
                                     [EACH] = each_of(p, s),
                                     [PARTS] = parts_of(p, s),
                                     [WARPS] = warps_of(p, s),
                                     [SHARES] = shares_of(p, s),
                                     [TEAM] = s->team},
                          .threads = (uint32_t)warps_of(p, s) * 32,
                          .smem = (uint32_t)smem_of(p, s),
                          .cluster = 1,
                          .us = image_us(p, s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%lld by %lld warp%ss", s->rows,
                (long long)(s->strips * taken_of(p, s)), (long long)(warps_of(p, s) / s->team),
                s->team == 1 ? "" : "group");
    return true;
}

/* Is it certain that larger sums have larger bytes? */
static bool rises(const zc_gen *g)
{
    const int scales[] = {ZC_IN_QLinearConv_x_scale, ZC_IN_QLinearConv_w_scale,
                          ZC_IN_QLinearConv_y_scale};
    for (size_t i = 0; i < ZC_COUNTOF(scales); i++) {
        zc_tensor t;
        if (!zc_gen_constant(g, scales[i], &t) ||
            !zc_scales_rise(t.dtype, t.data, zc_tensor_numel(&t)))
            return false;
    }
    return true;
}

/* Why it is none of these; NULL: it is one. */
static const char *not_these(zc_gen *g, zc_image_form *f)
{
    const zc_attrs_QLinearConv *at = ZC_ATTRS(g, QLinearConv);
    if (!at->channels_last || !at->taps_first) return "channels first";
    const char *why = zc_gen_image_form(g, ZC_IN_QLinearConv_w, f);
    if (why) return why;
    return f->pools && !rises(g) ? "pooling behind scales that may not be positive" : NULL;
}

/* What zc_mma_m16n8k32_... calls a pair of types. */
static const char *types_of(zc_dtype a, zc_dtype b)
{
    return a == b ? (a == ZC_I8 ? "s8" : "u8u8") : a == ZC_I8 ? "s8u8" : "u8s8";
}

/* A window for each two lines and columns, on Hopper; no sums of windows. */
static bool teams_fit(const zc_gen *g, const image_problem *p)
{
    return g->arch == 90 && !p->zeros && zc_window_stride(&p->f.a, 0) == 2 &&
           zc_window_stride(&p->f.a, 1) == 2;
}

zc_status zc_gen_conv_image_quant(zc_gen *g)
{
    image_problem p = {.zeros = zc_gen_zero_point(g, ZC_IN_QLinearConv_w_zero),
                       .sm_count = g->sm_count,
                       .smem_most = g->arch == 90 ? SMEM : SMEM_LESS};
    const char *why = not_these(g, &p.f);
    if (why) return zc_gen_decline(g, "%s", why);
    p.plain =
        zc_gen_small_scales(g) && !p.zeros && !zc_op_epilogue(g->info, g->attrs) && g->arch == 90;
    zc_gen_image_sizes(g, &p.f);
    p.teams = teams_fit(g, &p);
    ZC_TRY(zc_gen_candidates(g, p.teams ? "mma or wgmma" : "mma.m16n8k32", image_candidate, &p,
                             ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, g->config[TEAM] == 1 ? "mma" : "wgmma", ZC_I8);
    zc_gen_image_spec(g, &p.f);
    zc_gen_define(g, "TEAM_CHANNELS", "%lld", (long long)own_of(&p, g->config[PARTS]) * 8);
    const zc_dtype x = zc_gen_in_type(g, 0), w = zc_gen_in_type(g, ZC_IN_QLinearConv_w);
    zc_gen_define(g, "MMA", "zc_mma_m16n8k32_%s", types_of(x, w));
    zc_gen_sm90_factors(g, x, w);
    zc_gen_quant_channels(g, zc_dims_span(p.f.w.dims, 1, p.f.w.rank));
    if (zc_gen_in(g, ZC_IN_QLinearConv_w)->kind == ZC_P_CONST) zc_gen_define(g, "W_CONSTANT", "1");
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_conv_image_quant(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *in = l->in, *w = &in[ZC_IN_QLinearConv_w], *y = &l->out[0];
    struct zc_conv_image_quant_params p = {.x = in[0].data,
                                           .w = w->data,
                                           .bias = zc_launch_in(l, ZC_IN_QLinearConv_bias),
                                           .x_zero = in[ZC_IN_QLinearConv_x_zero].data,
                                           .w_zero = in[ZC_IN_QLinearConv_w_zero].data,
                                           .x_scale = in[ZC_IN_QLinearConv_x_scale].data,
                                           .w_scale = in[ZC_IN_QLinearConv_w_scale].data,
                                           .y_scale = in[ZC_IN_QLinearConv_y_scale].data,
                                           .y_zero = in[ZC_IN_QLinearConv_y_zero].data,
                                           .y = y->data,
                                           .bytes = zc_tensor_numel(&in[0])};
    ZC_TRY(zc_launch_image_check(l, w));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_zero, w->dims[0], &p.w_zero_step));
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_scale, w->dims[0], &p.w_scale_step));
    ZC_TRY(zc_launch_image_windows(l, w, &p.window, p.before));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    ZC_TRY(zc_launch_image_tiles(l, config[ROWS], config[COLS], &p.down, &p.across, &p.tiles));
    for (int i = 0; i < 2; i++) p.sides[i] = (int)y->dims[1 + i];
    zc_dim3 grid = {zc_launch_blocks(p.tiles, 1, config[SHARES] * l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
