/* Convolutions of images with up to four channels, from channels first to channels last. */
#include "kernels/conv_image.h"

#include <string.h>

#include "abi/conv_image.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/matmul.h"
#include "kernels/window.h"
#include "op/half.h"
#include "op/nhwc.h"

enum { ROWS, COLS, WARPS, EACH, SHARES, LINE };
const char *const zc_config_conv_image[] = {"rows",   "cols", "warps", "each",
                                            "shares", "line", NULL};

enum {
    PIECE = 16, /* pixels of one product */
    PIXEL = 8,  /* bytes of one in shared memory */
    SUMS_MOST = 128,
    WARPS_MOST = 16,
    SHARES_MOST = 3,
    REGISTERS = 512,    /* of a lane, in each of a multiprocessor's quarters */
    OTHERS = 53,        /* registers of a thread beside its sums */
    SMEM = 232448,      /* of a block on sm_90 */
    SMEM_LESS = 101376, /* elsewhere */
    SMEM_OWN = 1024,    /* that each block takes besides */
    LINE_CHANNELS = 64  /* of a warpgroup's product */
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
    zc_image_form f;
    bool lines; /* may warpgroups compute lines? */
    int sm_count;
    int64_t smem_most;
} image_problem;

/* Pixels of the convolution that a tile needs along an axis, and of the image. */
static int64_t tile_side(const image_problem *p, const shape *s, int axis)
{
    int64_t size = axis ? s->cols : s->rows;
    return (size - 1) * zc_image_pool_stride(&p->f, axis) + zc_image_pool_kernel(&p->f, axis);
}

static int64_t image_side(const image_problem *p, const shape *s, int axis)
{
    return (tile_side(p, s, axis) - 1) * zc_window_stride(&p->f.a, axis) + p->f.w.dims[1 + axis];
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
    return (p->f.w.dims[2] + 3) / 4 * 2;
}

/* Sums of a thread, and by lines its weights. */
static int64_t kept_in_registers(const image_problem *p, const shape *s)
{
    const int64_t *w = p->f.w.dims;
    return s->groups ? line_of(p, s) / 2 + w[1] * pairs_of(p) * 2
                     : s->each * ((w[0] + 15) / 16 * 8);
}

/* As conv_image.cu lays it out. */
static int64_t smem_of(const image_problem *p, const shape *s)
{
    const int64_t *w = p->f.w.dims, line = line_of(p, s);
    int64_t across = line ? line : tile_side(p, s, 1), stride = zc_window_stride(&p->f.a, 1);
    int64_t wide = ((across - 1) * stride + pairs_of(p) * 2 + 1) / 2 * 2;
    int64_t planes = 1 + (line ? w[2] : stride) % 2;
    int64_t image = planes * image_side(p, s, 0) * wide * PIXEL;
    int64_t weights = (w[0] + 15) / 16 * 16 * (w[1] * pairs_of(p) + 1) * 2 * PIXEL;
    int64_t kept = p->f.pools ? pixels_of(p, s) * (w[0] / 8 | 1) * 16 : 0;
    return image + (!line ? weights + kept : weights > kept ? weights : kept);
}

/* Blocks of a multiprocessor, by shared memory and by registers, which warps are given in eights.
 */
static int64_t shares_of(const image_problem *p, const shape *s)
{
    int64_t shares = (p->smem_most + SMEM_OWN) / (smem_of(p, s) + SMEM_OWN);
    int64_t registers = kept_in_registers(p, s) + OTHERS;
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
        p->f.images * zc_ceil_div(p->f.sides[0], s->rows) * zc_ceil_div(p->f.sides[1], s->cols);
    double read = (double)(image_side(p, s, 0) * image_side(p, s, 1));
    double written = (double)pixels_of(p, s), kept = p->f.pools ? written * each_kept : 0;
    double waves = (double)tiles / (2.0 * p->sm_count);
    return waves < 1 ? once + written * each_written + kept
                     : start + waves * (read * each_read + kept);
}

static bool image_candidate(const void *of, int number, zc_candidate *out)
{
    const image_problem *p = of;
    const shape *s = p->f.pools ? &pooled[number] : &plain[number];
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
    return asked && g->arch == 90 && p->f.pools && p->f.w.dims[0] == LINE_CHANNELS &&
           p->f.w.dims[2] > pairs_of(p) * 2 - 2 && zc_window_stride(&p->f.a, 1) == 2;
}

zc_status zc_gen_conv_image(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1);
    const zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    const bool f16 = dtype == ZC_F16;
    image_problem p = {.sm_count = g->sm_count, .smem_most = g->arch == 90 ? SMEM : SMEM_LESS};
    const char *why = zc_gen_image_form(g, ZC_IN_ConvImage_w, &p.f);
    if (why) return zc_gen_decline(g, "%s", why);
    if (bias != ZC_NONE && bias != dtype) return zc_gen_decline(g, "bias of another type");
    if (x->dtype != ZC_F32 && x->dtype != dtype) return zc_gen_decline(g, "type of the image");
    zc_gen_image_sizes(g, &p.f);
    p.lines = lines_fit(g, &p);
    ZC_TRY(zc_gen_candidates(g, "mma.m16n8k16", image_candidate, &p,
                             p.f.pools ? ZC_COUNTOF(pooled) : ZC_COUNTOF(plain)));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, g->config[LINE] ? "wgmma" : "mma", dtype);
    zc_gen_image_spec(g, &p.f);
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "T", dtype);
    zc_gen_define(g, "MMA", "%s", f16 ? "zc_mma_m16n8k16_f16" : "zc_mma_m16n8k16_bf16");
    zc_gen_define(g, "WGMMA", "%s", f16 ? "F16" : "BF16");
    zc_gen_define(g, "MOST", "%.9g", zc_half_max(dtype));
    if (w->kind == ZC_P_CONST) zc_gen_define(g, "W_CONSTANT", "1");
    zc_gen_define(g, "HAS_BIAS", "%d", bias != ZC_NONE);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_conv_image(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *w = &l->in[ZC_IN_ConvImage_w], *y = &l->out[0];
    struct zc_conv_image_params p = {.x = l->in[0].data,
                                     .w = w->data,
                                     .bias = zc_launch_in(l, ZC_IN_ConvImage_bias),
                                     .y = y->data};
    ZC_TRY(zc_launch_image_check(l, w));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(zc_launch_image_windows(l, w, &p.window, p.before));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    ZC_TRY(zc_launch_image_tiles(l, config[ROWS], config[COLS], &p.down, &p.across, &p.tiles));
    for (int i = 0; i < 2; i++) p.sides[i] = (int)y->dims[1 + i];
    zc_dim3 grid = {zc_launch_blocks(p.tiles, 1, config[SHARES] * l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
