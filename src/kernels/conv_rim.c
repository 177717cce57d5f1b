#include "kernels/conv_rim.h"

#include <math.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/conv_few.h"
#include "kernels/divisor.h"

enum {
    SIDE = 8, /* pixels of a box, which are 64 rows of a product */
    RIM = 1,  /* around it */
    SPAN = SIDE + 2 * RIM,
    TAPS = 9,
    STAGES_LEAST = 2,
    STAGES_MOST = 4,
    TAPS_LEAST = 3 /* stages of weights that do not stay */
};

_Static_assert(ZC_RIM_ROWS == SIDE * SIDE && ZC_RIM_BYTES == SPAN * SPAN * ZC_SM90_LINE, "a box");

/* ---- the choice ---- */

typedef struct shape {
    int tile_m, tile_n, pingpong;
} shape;

/* Of equal cost the first is taken: of a block's only tile no turn is hidden. */
static const shape shapes[] = {{256, 64, 0},  {256, 64, 1},  {128, 64, 0},  {128, 64, 1},
                               {256, 128, 0}, {128, 128, 0}, {128, 128, 1}, {128, 256, 0}};

typedef struct problem {
    const zc_sm90_problem *p;
    int64_t boxes, lines; /* of all images; of 128 bytes of a pixel's channels */
} problem;

/* A tile's boxes, the stages of these and of weights, and what the latter take: all of them where
 * they stay. */
typedef struct plan {
    int boxes, stages, tap_stages, groups;
    bool stays;
    int64_t smem;
} plan;

static int64_t limited(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

static plan plan_of(const problem *q, const shape *s)
{
    enum { BARRIERS = 2 * (int)sizeof(uint64_t) };
    const zc_sm90_problem *p = q->p;
    plan l = {.boxes = s->tile_m / ZC_RIM_ROWS};
    l.groups = p->column_words && l.boxes > 2 ? 4 : 2;
    const int64_t stage = l.boxes * ZC_RIM_ROOM + BARRIERS,
                  tap = s->tile_n * ZC_SM90_LINE + BARRIERS;
    const int64_t results = p->column_words
                                ? zc_sm90_byte_smem(p, s->tile_m, s->tile_n, s->pingpong)
                                : 2 * ZC_SM90_RESULTS;
    const int64_t room = ZC_SM90_SMEM - results, all = TAPS * q->lines;
    l.stays = p->n <= s->tile_n && all * tap + STAGES_LEAST * stage <= room;
    const int64_t taps =
        l.stays ? all : limited((room - STAGES_LEAST * stage) / tap, ZC_SM90_STAGES);
    l.tap_stages = (int)(taps > 0 ? taps : 0);
    l.stages = (int)limited((room - taps * tap) / stage, STAGES_MOST);
    l.smem = results + l.stages * stage + l.tap_stages * tap;
    return l;
}

/* Cycles of a tap of 128 bytes of channels; hidden: boxes come under other products. The copy
 * engine brings lines of 128 bytes at 35 bytes a cycle where all multiprocessors copy (measured);
 * products and shared memory as in gemm_sm90.c. */
static double tap_of(const shape *s, const plan *l, bool hidden)
{
    const double per_cycle = 2048 * 0.8, reached = 0.9, l2 = 35;
    const double boxes = (double)l->boxes * ZC_RIM_BYTES / TAPS;
    const double weights = l->stays ? 0 : s->tile_n * ZC_SM90_LINE;
    const double products = (double)s->tile_m * s->tile_n * ZC_SM90_DEPTH / per_cycle;
    const double read = (s->tile_m + (double)s->tile_n * l->boxes) * ZC_SM90_LINE;
    const double shared = (read + boxes + weights) / ZC_SM90_LINE / reached;
    return fmax(fmax(products, shared), (boxes + weights) / l2) + (hidden ? 0 : boxes / l2);
}

/* Stages that the fused work's operand takes. */
static int operand_stages(const zc_sm90_problem *p, const shape *s)
{
    const int bytes = s->tile_n * (p->column_words ? 1 : 2);
    return p->fused_tile < 0 ? 0 : (int)zc_ceil_div(bytes, ZC_SM90_LINE);
}

/* Of bytes by weights from a ring this stands beside what gemm_sm90.c says of patches, which is up
 * to a quarter too much where this is a tenth too little (ResNet-50, batch 32: 28 x 28, 14 x 14 and
 * 7 x 7). */
static double beside_patches(const zc_sm90_problem *p, const plan *l)
{
    return p->column_words && !l->stays ? 1.15 : 1;
}

/* Nothing of the next tile is copied, and no turn begins, while the operand has its stages. */
static double us_of(const problem *q, const shape *s, const plan *l)
{
    const zc_sm90_problem *p = q->p;
    const double clock = 1650, fill = 1000;
    const int64_t tiles = zc_ceil_div(q->boxes, l->boxes) * zc_ceil_div(p->n, s->tile_n);
    const bool hidden = l->stages - operand_stages(p, s) >= STAGES_LEAST;
    const double results = (double)s->tile_m * s->tile_n / zc_sm90_finish(p);
    const double cycles = zc_sm90_cycles(p, s->pingpong && hidden, zc_ceil_div(tiles, p->sm_count),
                                         (double)(TAPS * q->lines) * tap_of(s, l, hidden), results);
    return beside_patches(p, l) * (cycles + fill) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *q = of;
    const shape *s = &shapes[number];
    if (!zc_sm90_panels_fit(q->p, s->tile_n)) return false;
    const plan l = plan_of(q, s);
    if (l.groups > 2 && s->pingpong) return false;
    if (l.stages < STAGES_LEAST || l.tap_stages < TAPS_LEAST) return false;
    *out = (zc_candidate){.config = {[ZC_SM90_TILE_M] = s->tile_m,
                                     [ZC_SM90_TILE_N] = s->tile_n,
                                     [ZC_SM90_STAGES_SET] = l.stages,
                                     [ZC_SM90_CLUSTER] = 1,
                                     [ZC_SM90_PINGPONG] = s->pingpong,
                                     [ZC_SM90_RASTER] = 8,
                                     [ZC_SM90_FUSED_TILE] = q->p->fused_tile,
                                     [ZC_SM90_PARTS] = 1,
                                     [ZC_RIM_TAP_STAGES] = l.tap_stages,
                                     [ZC_RIM_STAYS] = l.stays},
                          .threads = (uint32_t)(l.groups + 1) * 128,
                          .smem = (uint32_t)l.smem,
                          .cluster = 1,
                          .us = us_of(q, s, &l)};
    zc_snprintf(out->name, sizeof out->name, "%d boxes x %d%s%s", l.boxes, s->tile_n,
                s->pingpong ? " in turn" : "", l.stays ? ", weights stay" : "");
    return true;
}

/* ---- the specialisation ---- */

bool zc_conv_has_rim(const zc_window_attrs *a, const zc_tensor *w)
{
    zc_auto_pad mode;
    bool fits = w->rank == 4 && !a->phases.n;
    zc_auto_pad_parse(a->auto_pad, &mode);
    for (int i = 0; fits && i < 2; i++) {
        fits = w->dims[1 + i] == 3 && zc_window_stride(a, i) == 1 && zc_window_dilation(a, i) == 1;
        if (mode == ZC_PAD_VALID) fits = false;
        for (int end = 0; mode == ZC_PAD_EXPLICIT && end < 2; end++)
            fits = fits && zc_window_pad(a, 2, i, end) == RIM;
    }
    return fits;
}

int64_t zc_rim_boxes(const int64_t *dims)
{
    return dims[0] * zc_ceil_div(dims[1], SIDE) * zc_ceil_div(dims[2], SIDE);
}

zc_status zc_gen_conv_rim(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w,
                          const zc_sm90_problem *p)
{
    zc_tensor y;
    if (!zc_conv_has_rim(a, w))
        return zc_gen_decline(g, "windows other than 3 x 3 around each pixel");
    if (p->band) return zc_gen_decline(g, "groups");
    if (p->piece) return zc_gen_decline(g, "results that threads store");
    if (!zc_gen_static(zc_gen_out(g, 0))) return zc_gen_decline(g, "sides that only a run knows");
    zc_gen_tensor(zc_gen_out(g, 0), &y);
    const int64_t bytes = w->dims[3] * (int64_t)zc_dtype_bits(w->dtype) / 8;
    const problem q = {
        .p = p, .boxes = zc_rim_boxes(y.dims), .lines = zc_ceil_div(bytes, ZC_SM90_LINE)};
    zc_gen_tensor_cores(g, "wgmma", zc_gen_in_type(g, 0));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &q, ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    if (!g->candidate && !g->regardless && g->us > zc_conv_few_or_tall_us(p))
        return zc_gen_decline(g, "patches tap by tap are faster");
    zc_gen_line_parts(g, bytes);
    zc_gen_define(g, "RIM", "1");
    return ZC_OK;
}

/* ---- the launch ---- */

zc_tensor_box zc_rim_box(const void *data, zc_dtype dtype, int64_t channels, int64_t pitch,
                         const zc_tensor *of, bool rim)
{
    const int64_t down = of->dims[1], across = of->dims[2];
    zc_tensor_box b = zc_sm90_box(data, dtype, channels, across, down, pitch, across * pitch);
    b.rank = 4;
    b.dims[3] = of->dims[0];
    b.strides[3] = b.strides[2] * down;
    b.box[1] = b.box[2] = rim ? SPAN : SIDE;
    b.box[3] = 1;
    return b;
}

void zc_rim_sides(const int64_t *dims, struct zc_gemm_sm90_params *p)
{
    p->by_side[0] = zc_divisor_of(zc_ceil_div(dims[2], SIDE));
    p->by_side[1] = zc_divisor_of(zc_ceil_div(dims[1], SIDE));
}

static zc_status put_order(zc_launch *l, struct zc_gemm_sm90_params *p, zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config, *dims = l->out[0].dims, rows = ZC_RIM_ROWS;
    const int64_t boxes = zc_rim_boxes(dims), most = (INT32_MAX - config[ZC_SM90_TILE_M]) / rows;
    int64_t down = zc_ceil_div(boxes, config[ZC_SM90_TILE_M] / rows),
            across = zc_ceil_div(p->g.n, config[ZC_SM90_TILE_N]), tiles;
    if (p->g.m > INT32_MAX || boxes > most || !zc_mul_i64(down, across, &tiles) ||
        tiles > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "convolution too large (got %lld pixels of %lld channels)",
                       (long long)p->g.m, (long long)p->g.n);
    p->order = zc_sm90_order(down, across, config[ZC_SM90_RASTER]);
    zc_rim_sides(dims, p);
    *grid = (zc_dim3){(uint32_t)limited(tiles, l->sm_count), 1, 1};
    return ZC_OK;
}

zc_status zc_launch_conv_rim(zc_launch *l, const zc_tensor *weights, struct zc_gemm_sm90_params *p,
                             zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config, tile = config[ZC_SM90_FUSED_TILE], n = p->g.n;
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    zc_tensor_box a = zc_rim_box(x->data, x->dtype, p->g.k, zc_launch_in_pitch(l, 0), x, true);
    zc_tensor_box b = zc_conv_weights_box(weights, (int)config[ZC_SM90_TILE_N],
                                          zc_sm90_dealt(n, y->dtype, config));
    zc_tensor_box out = zc_rim_box(y->data, y->dtype, n, zc_launch_out_pitch(l, 0), y, false);
    if (zc_dtype_bits(y->dtype) == 8)
        out.box[0] = (uint32_t)zc_sm90_byte_panel(config[ZC_SM90_TILE_N]);
    ZC_TRY(put_order(l, p, grid));
    ZC_TRY(zc_launch_tensor_map(l, &a, &p->a));
    ZC_TRY(zc_launch_tensor_map(l, &b, &p->b));
    ZC_TRY(zc_launch_tensor_map(l, &out, &p->y));
    if (tile < 0) return ZC_OK;
    zc_tensor_box like =
        zc_rim_box(p->g.fused.in[tile], y->dtype, n, p->g.fused.pitch[tile], y, false);
    return zc_launch_tensor_map(l, &like, &p->tile);
}
