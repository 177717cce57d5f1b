/* Convolutions of 8-bit integers on Hopper, channels last: the patches of conv_sm90, the product of
 * gemm_quant_sm90.cu, which may have the pixels of 3 x 3 windows once, with a rim, and for few
 * pixels conv_few_quant_sm90.cu. */
#include <math.h>
#include <string.h>

#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/conv_few.h"
#include "kernels/conv_rim.h"
#include "op/nhwc.h"

const char *const zc_config_conv_quant_sm90[] = {ZC_SM90_BYTES_CONFIG};
const char *const zc_config_conv_rim_quant_sm90[] = {ZC_RIM_CONFIG};
const char *const zc_config_conv_few_quant_sm90[] = {ZC_FEW_CONFIG};

enum {
    PIECE = 16,   /* channels that the copy engine can address */
    FEW_PIECE = 8 /* channels of a thread's results, of few pixels */
};

/* ---- the specialisation ---- */

/* May windows reach beyond the image? */
static bool has_edges(const zc_window_attrs *a, int axes, const int64_t *kernel)
{
    zc_auto_pad mode;
    bool edges = false;
    zc_auto_pad_parse(a->auto_pad, &mode);
    if (mode == ZC_PAD_VALID) return false;
    for (int i = 0; i < axes; i++)
        edges = edges || (mode == ZC_PAD_EXPLICIT
                              ? zc_window_pad(a, axes, i, 0) > 0 || zc_window_pad(a, axes, i, 1) > 0
                              : kernel[i] > 1);
    return edges;
}

/* Why it is none of these convolutions; NULL: it is one. */
static const char *not_these(const zc_gen *g, const zc_quant_roles *r, int64_t group)
{
    const zc_pvalue *w = zc_gen_in(g, r->in[ZC_GQ_B]);
    if (!zc_conv_channels_last(g->step->op, g->attrs)) return "channels first";
    if (!zc_conv_taps_first(g->step->op, g->attrs))
        return "weights whose channels do not lie side by side";
    const int64_t band = zc_conv_banded(g->step->op, g->attrs);
    if (group != 1 && !band) return "groups";
    if (band && zc_gen_zero_point(g, r->in[ZC_GQ_B_ZERO])) return "groups with a zero point";
    if (!zc_gen_static(w)) return "weights whose shape only a run knows";
    if (zc_conv_pools(g->step->op, g->attrs)) return "its pooling";
    return NULL;
}

/* All families: operands, windows, weights and sizes. */
typedef struct conv {
    zc_quant_roles r;
    zc_window_attrs a;
    zc_tensor w;
    zc_sm90_problem p;
} conv;

/* Sums of columns, where x has a zero point: of the taps on the image, which are fewer at its
 * edges, of one or two axes. */
static zc_status put_edges(zc_gen *g, conv *c)
{
    const zc_tensor *w = &c->w;
    const int axes = w->rank - 2;
    const int64_t down = axes > 1 ? w->dims[1] : 1, across = w->dims[axes];
    if (!zc_gen_zero_point(g, c->r.in[ZC_GQ_A_ZERO]) || !has_edges(&c->a, axes, w->dims + 1))
        return ZC_OK;
    if (axes > 2) return zc_gen_decline(g, "a zero point around images of three axes");
    c->p.column_words = (int)((down + 1) * (across + 1));
    zc_gen_define(g, "EDGES", "1");
    zc_gen_define(g, "DOWN", "%d", (int)down);
    if (axes == 1) zc_gen_define(g, "ACROSS", "%d", (int)across);
    return ZC_OK;
}

/* May decline. */
static zc_status sizes_of(zc_gen *g, conv *c)
{
    const zc_tensor *w = &c->w;
    int64_t group;
    c->r = zc_quant_roles_of(g->step->op);
    zc_window_attrs_of(g->step->op, g->attrs, &c->a, &group);
    const char *why = not_these(g, &c->r, group);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_gen_tensor(zc_gen_in(g, c->r.in[ZC_GQ_B]), &c->w);
    const int axes = w->rank - 2;
    const int64_t depth = w->dims[axes + 1], taps = zc_dims_span(w->dims, 1, 1 + axes);
    if (w->dims[0] <= 0 || depth <= 0 || depth % PIECE)
        return zc_gen_decline(g, "channels that are no multiple of %d", PIECE);
    if (!zc_conv_window_fits(&c->a, axes, w->dims + 1))
        return zc_gen_decline(g, "windows that the copy engine cannot gather");
    zc_dtype y = zc_gen_out_type(g, 0);
    if (y != ZC_I32 && taps * depth > ZC_GQ_DEPTH_MOST)
        return zc_gen_decline(g, "sums that may not fit 32 bits");
    const int piece = zc_sm90_byte_piece(w->dims[0], y);
    c->p = (zc_sm90_problem){.m = zc_gen_conv_pixels(g),
                             .n = w->dims[0],
                             .steps = taps * zc_ceil_div(depth, ZC_SM90_LINE),
                             .items = 1,
                             .sm_count = g->sm_count,
                             .band = (int)zc_conv_banded(g->step->op, g->attrs),
                             .fused_tile = piece ? -1 : zc_gen_epilogue_tile(g, 8),
                             .piece = piece,
                             .column_words = 1};
    return ZC_OK;
}

/* Where patches are gathered tap by tap; may decline. */
static zc_status put_patches(zc_gen *g, conv *c)
{
    zc_gen_patches(g, &c->a, &c->w);
    zc_gen_define(g, "TAP_STEPS", "%d", (int)zc_ceil_div(c->w.dims[c->w.rank - 1], ZC_SM90_LINE));
    return put_edges(g, c);
}

/* All families: the rest of the header; across: pixels are the product's columns. */
static zc_status put_spec(zc_gen *g, const zc_sm90_problem *p, bool across)
{
    const int weights = zc_quant_roles_of(g->step->op).in[ZC_GQ_B];
    const zc_dtype x = zc_gen_in_type(g, 0), w = zc_gen_in_type(g, weights);
    zc_quant_roles second;
    zc_gen_sm90_factors(g, across ? w : x, across ? x : w);
    if (zc_gen_in(g, weights)->kind == ZC_P_CONST &&
        (!zc_quant_second_of(g->step->op, &second) ||
         zc_gen_in(g, second.in[ZC_GQ_B])->kind == ZC_P_CONST))
        zc_gen_define(g, "B_CONSTANT", "1");
    zc_gen_band(g, weights);
    if (!across) zc_gen_dealt(g, p);
    ZC_TRY(zc_gen_quant_sm90_spec(g, p));
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

const char *zc_gen_conv_not_two(const zc_gen *g, const zc_quant_roles *a, const zc_quant_roles *b)
{
    static const int alike[] = {ZC_GQ_A_SCALE, ZC_GQ_A_ZERO, ZC_GQ_B, ZC_GQ_B_SCALE, ZC_GQ_B_ZERO};
    for (size_t i = 0; i < ZC_COUNTOF(alike); i++)
        if (zc_gen_in_type(g, a->in[alike[i]]) != zc_gen_in_type(g, b->in[alike[i]]))
            return "operands of several types";
    if (zc_gen_in_type(g, a->y_scale) != zc_gen_in_type(g, b->y_scale)) return "scales";
    if (zc_gen_in_type(g, a->bias) != zc_gen_in_type(g, b->bias)) return "a bias of one of both";
    const int zeros[] = {a->in[ZC_GQ_A_ZERO], a->in[ZC_GQ_B_ZERO], b->in[ZC_GQ_A_ZERO],
                         b->in[ZC_GQ_B_ZERO]};
    for (size_t i = 0; i < ZC_COUNTOF(zeros); i++)
        if (zc_gen_zero_point(g, zeros[i])) return "zero points";
    return NULL;
}

/* The second of two convolutions, where there is one; may decline. */
static zc_status put_second(zc_gen *g, conv *c)
{
    zc_quant_roles second;
    if (!zc_quant_second_of(g->step->op, &second)) return ZC_OK;
    const zc_attrs_QLinearConvPair *a = ZC_ATTRS(g, QLinearConvPair);
    const char *why = zc_gen_conv_not_two(g, &c->r, &second);
    const int64_t steps = why ? 0 : zc_gen_conv_second(g, PIECE);
    if (why) return zc_gen_decline(g, "%s", why);
    if (steps < 0 || steps * ZC_SM90_LINE > ZC_GQ_DEPTH_MOST)
        return zc_gen_decline(g, "the second pair of operands");
    if (c->p.piece) return zc_gen_decline(g, "channels of the result that are in no pieces");
    c->p.steps += steps;
    c->p.pair = true;
    return zc_gen_sum_of_bytes(g, a->sum, c->r.y_zero, second.y_zero);
}

zc_status zc_gen_conv_quant_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (!g->declined[0]) ZC_TRY(put_second(g, &c));
    if (!g->declined[0]) ZC_TRY(put_patches(g, &c));
    c.p.crossed = !c.p.piece && zc_gen_quant_crosses(g, c.p.steps * ZC_SM90_LINE);
    if (!g->declined[0]) ZC_TRY(zc_gen_sm90(g, &c.p));
    return g->declined[0] ? ZC_OK : put_spec(g, &c.p, false);
}

zc_status zc_gen_conv_rim_quant_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (g->declined[0]) return ZC_OK;
    if (zc_gen_zero_point(g, c.r.in[ZC_GQ_A_ZERO]) || zc_gen_zero_point(g, c.r.in[ZC_GQ_B_ZERO]))
        return zc_gen_decline(g, "zero points");
    ZC_TRY(zc_gen_conv_rim(g, &c.a, &c.w, &c.p));
    return g->declined[0] ? ZC_OK : put_spec(g, &c.p, false);
}

zc_status zc_gen_conv_few_quant_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (!g->declined[0]) ZC_TRY(put_patches(g, &c));
    if (g->declined[0]) return ZC_OK;
    if (c.p.n % FEW_PIECE)
        return zc_gen_decline(g, "channels of the result that are no multiple of %d", FEW_PIECE);
    ZC_TRY(zc_gen_conv_few(g, &c.p));
    return g->declined[0] ? ZC_OK : put_spec(g, &c.p, true);
}

/* ---- what it is held to take ---- */

static int64_t lines_of(const zc_conv_work *w)
{
    return zc_dims_span(w->kernel, 0, w->axes) * zc_ceil_div(w->in, ZC_SM90_LINE);
}

static bool serves(const zc_conv_work *w)
{
    return w->groups == 1 && zc_conv_window_fits(&w->window, w->axes, w->kernel);
}

static zc_sm90_problem problem_of(const zc_conv_work *w)
{
    return (zc_sm90_problem){.m = zc_conv_work_pixels(w),
                             .n = w->out,
                             .steps = lines_of(w),
                             .items = 1,
                             .sm_count = zc_usual_processors(90),
                             .fused_tile = -1,
                             .piece = zc_sm90_byte_piece(w->out, ZC_U8),
                             .column_words = 1};
}

double zc_conv_quant_us(const zc_conv_work *w)
{
    const zc_sm90_problem p = problem_of(w);
    return serves(w) ? zc_conv_few_or_tall_us(&p) : INFINITY;
}

double zc_conv_pair_quant_us(const zc_conv_work *first, const zc_conv_work *second)
{
    const int64_t most = ZC_GQ_DEPTH_MOST / ZC_SM90_LINE;
    zc_sm90_problem p = problem_of(first);
    if (!serves(first) || !serves(second) || p.steps > most || lines_of(second) > most)
        return INFINITY;
    p.steps += lines_of(second);
    p.pair = true;
    return zc_sm90_us(&p);
}

/* ---- the launch ---- */

zc_status zc_launch_conv_quant(zc_launch *l, const zc_quant_roles *r,
                               struct zc_gemm_quant_params *q)
{
    const zc_tensor *w = &l->in[r->in[ZC_GQ_B]];
    for (int v = 0; v < ZC_GQ_OPERANDS; v++)
        if (r->in[v] >= 0) q->in[v] = zc_launch_in(l, r->in[v]);
    if (r->y_scale >= 0) {
        q->y_scale = l->in[r->y_scale].data;
        q->y_zero = l->in[r->y_zero].data;
    }
    q->y = l->out[0].data;
    q->m = zc_dims_span(l->out[0].dims, 0, l->out[0].rank - 1);
    q->n = w->dims[0];
    q->k = zc_dims_span(w->dims, 1, w->rank);
    q->batch = 1;
    for (int i = 0; i < 2; i++) {
        const int v = i ? ZC_GQ_B_ZERO : ZC_GQ_B_SCALE;
        int step;
        ZC_TRY(zc_launch_step(l, r->in[v], q->n, &step));
        q->line[v] = step;
    }
    if (r->bias >= 0) q->bias = zc_launch_in(l, r->bias);
    return ZC_OK;
}

zc_status zc_launch_conv_quant_second(zc_launch *l, const zc_quant_roles *r, struct zc_gq_second *s)
{
    int step;
    ZC_TRY(zc_launch_step(l, r->in[ZC_GQ_B_SCALE], l->in[r->in[ZC_GQ_B]].dims[0], &step));
    *s = (struct zc_gq_second){.a_scale = l->in[r->in[ZC_GQ_A_SCALE]].data,
                               .b_scale = l->in[r->in[ZC_GQ_B_SCALE]].data,
                               .y_scale = l->in[r->y_scale].data,
                               .y_zero = l->in[r->y_zero].data,
                               .bias = zc_launch_in(l, r->bias),
                               .b_scale_step = step};
    return ZC_OK;
}

/* All families: all but the maps; p->quant.m 0: nothing to do. */
static zc_status fill(zc_launch *l, const zc_tensor *w, zc_window *window,
                      struct zc_gemm_quant_sm90_params *p)
{
    const zc_quant_roles r = zc_quant_roles_of(l->op);
    zc_quant_roles second;
    memset(p, 0, sizeof *p);
    ZC_TRY(zc_launch_conv_check(l, w, r.bias));
    if (zc_tensor_numel(&l->out[0]) == 0) return ZC_OK;
    ZC_TRY(zc_launch_conv_window(l, w, window, &p->product.window));
    ZC_TRY(zc_launch_conv_quant(l, &r, &p->quant));
    if (zc_quant_second_of(l->op, &second))
        ZC_TRY(zc_launch_conv_quant_second(l, &second, &p->second));
    p->product.g.m = p->quant.m;
    p->product.g.n = p->quant.n;
    p->product.g.k = w->dims[w->rank - 1];
    p->product.items = 1;
    p->product.b_items = (int)zc_dims_span(w->dims, 1, w->rank - 1);
    return zc_launch_epilogue(l, &p->product.g.fused);
}

/* A family's maps, and its blocks. */
typedef zc_status put_fn(zc_launch *l, const zc_tensor *w, const zc_window *window,
                         struct zc_gemm_quant_sm90_params *p, zc_dim3 *grid);

static zc_status launch_by(zc_launch *l, put_fn *put)
{
    const zc_tensor *w = &l->in[zc_quant_roles_of(l->op).in[ZC_GQ_B]];
    struct zc_gemm_quant_sm90_params p;
    zc_window window;
    zc_dim3 grid;
    ZC_TRY(fill(l, w, &window, &p));
    if (!p.quant.m) return ZC_OK;
    ZC_TRY(put(l, w, &window, &p, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}

static zc_status put_tall(zc_launch *l, const zc_tensor *w, const zc_window *window,
                          struct zc_gemm_quant_sm90_params *p, zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config, tile = config[ZC_SM90_FUSED_TILE];
    const int rows = (int)config[ZC_SM90_TILE_M],
              columns = (int)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]);
    const int dealt = zc_sm90_bytes_dealt(p->quant.n, l->out[0].dtype, config);
    ZC_TRY(zc_launch_conv_maps(l, w, window, rows, columns, dealt, &p->product));
    ZC_TRY(zc_launch_conv_second(l, rows, columns, dealt, &p->product));
    ZC_TRY(zc_sm90_put_bytes(l, p));
    if (tile >= 0)
        ZC_TRY(zc_sm90_like_y(l, &p->product, p->product.g.fused.in[tile], ZC_U8, p->quant.n, rows,
                              &p->product.tile));
    return zc_sm90_grid(l, &p->product, grid);
}

static zc_status put_rim(zc_launch *l, const zc_tensor *w, const zc_window *window,
                         struct zc_gemm_quant_sm90_params *p, zc_dim3 *grid)
{
    return zc_launch_conv_rim(l, w, &p->product, grid);
}

static zc_status put_few(zc_launch *l, const zc_tensor *w, const zc_window *window,
                         struct zc_gemm_quant_sm90_params *p, zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config;
    ZC_TRY(zc_launch_conv_maps(l, w, window, (int)config[ZC_FEW_PIXELS],
                               zc_conv_few_channels(config), 0, &p->product));
    return zc_conv_few_grid(l, &p->product, grid);
}

zc_status zc_launch_conv_quant_sm90(zc_launch *l)
{
    return launch_by(l, put_tall);
}

zc_status zc_launch_conv_rim_quant_sm90(zc_launch *l)
{
    return launch_by(l, put_rim);
}

zc_status zc_launch_conv_few_quant_sm90(zc_launch *l)
{
    return launch_by(l, put_few);
}
