/* Convolutions of f16 and bf16 on Hopper, channels last, whose patches the copy engine gathers: the
 * product of gemm_sm90.cu, which may have the pixels of 3 x 3 windows once, with a rim, and for few
 * pixels conv_few_sm90.cu, whose clusters share the summed axis. */
#include <math.h>
#include <string.h>

#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/conv_few.h"
#include "kernels/conv_rim.h"
#include "op/nhwc.h"

const char *const zc_config_conv_sm90[] = {ZC_SM90_CONFIG};
const char *const zc_config_conv_rim_sm90[] = {ZC_RIM_CONFIG};
const char *const zc_config_conv_few_sm90[] = {ZC_FEW_CONFIG};

enum { PIECE = 8 /* channels that the copy engine can address */ };

/* ---- the specialisation ---- */

static bool in_pieces(int64_t channels)
{
    return channels > 0 && channels % PIECE == 0;
}

static zc_matmul_form form_of(const char *activation, int bias)
{
    return (zc_matmul_form){.a = 0,
                            .b = 1,
                            .c = bias,
                            .a_along_k = true,
                            .b_along_k = true,
                            .flat = true,
                            .alpha = 1,
                            .beta = 1,
                            .activation = *activation ? activation : NULL};
}

static int bias_of(zc_op op)
{
    return op == ZC_OP_ConvPair ? ZC_IN_ConvPair_bias : ZC_IN_ConvNhwc_bias;
}

static const char *activation_of(zc_op op, const void *attrs)
{
    return op == ZC_OP_ConvPair ? "" : ((const zc_attrs_ConvNhwc *)attrs)->activation;
}

/* Why it is none of these convolutions; NULL: it is one. */
static const char *not_plain(const zc_gen *g)
{
    const zc_attrs_ConvNhwc *at = ZC_ATTRS(g, ConvNhwc);
    if (g->step->op == ZC_OP_ConvPair) return NULL;
    if (at->group != 1 && !at->band) return "groups";
    if (!at->taps_first) return "weights whose channels do not lie side by side";
    if (zc_gen_in_type(g, 3) != ZC_NONE) return "a residual before the activation";
    if (*at->activation && strcmp(at->activation, "Relu") != 0) return "its activation";
    return NULL;
}

/* Why its types or operands are not taken; NULL: they are. */
static const char *not_these(const zc_gen *g)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, bias_of(g->step->op));
    if (zc_gen_in_type(g, 1) != dtype || (bias != ZC_NONE && bias != dtype))
        return "weights or bias of another type";
    if (!zc_gen_static(zc_gen_in(g, 1))) return "weights whose shape only a run knows";
    return not_plain(g);
}

/* Channels of a phase, none of whose tiles has another's; 0: there are none. */
static int64_t phase_of(const zc_window_attrs *a, int64_t channels)
{
    return a->phases.n ? channels / zc_window_phases(a) : 0;
}

/* All families: windows, weights and sizes; may decline. */
typedef struct conv {
    zc_window_attrs a;
    zc_tensor w;
    zc_sm90_problem p;
} conv;

static zc_status sizes_of(zc_gen *g, conv *c)
{
    const char *why = not_these(g);
    if (why) return zc_gen_decline(g, "%s", why);
    const zc_window_attrs *a = &c->a;
    const zc_tensor *w = &c->w;
    int64_t group;
    zc_window_attrs_of(g->step->op, g->attrs, &c->a, &group);
    zc_gen_tensor(zc_gen_in(g, 1), &c->w);
    const int axes = w->rank - 2;
    const int64_t depth = w->dims[axes + 1];
    if (!in_pieces(w->dims[0]) || !in_pieces(depth))
        return zc_gen_decline(g, "channels that are no multiple of %d", PIECE);
    if (!zc_conv_window_fits(a, axes, w->dims + 1))
        return zc_gen_decline(g, "windows that the copy engine cannot gather");
    int64_t blocks = zc_ceil_div(depth, ZC_SM90_DEPTH), second = zc_gen_conv_second(g, PIECE);
    if (second < 0) return zc_gen_decline(g, "the second pair of operands");
    c->p = (zc_sm90_problem){.m = zc_gen_conv_pixels(g),
                             .n = w->dims[0],
                             .steps = zc_dims_span(w->dims, 1, 1 + axes) * blocks + second,
                             .items = 1,
                             .sm_count = g->sm_count,
                             .parts = true,
                             .band = (int)zc_conv_banded(g->step->op, g->attrs),
                             .phase = phase_of(a, w->dims[0]),
                             .fused_tile = zc_gen_epilogue_tile(g, 16)};
    return ZC_OK;
}

/* Where patches are gathered tap by tap. */
static void put_patches(zc_gen *g, const conv *c)
{
    zc_gen_patches(g, &c->a, &c->w);
    if (c->p.phase) zc_gen_define(g, "PHASE", "%d", (int)c->p.phase);
    zc_gen_phases(g, &c->a, c->w.rank - 2);
}

/* The fused work's operand that comes by a map has a pitch that only the launch function knows. */
static void map_tile(zc_gen *g, const zc_sm90_problem *p)
{
    if (p->fused_tile >= 0)
        g->mapped |= ZC_PITCHED_INPUT << (zc_op_epilogue_first(g->info, g->attrs) + p->fused_tile);
}

/* All families: the rest of the header. */
static zc_status put_spec(zc_gen *g)
{
    const zc_op op = g->step->op;
    zc_gen_band(g, 1);
    int bias = zc_gen_in_type(g, bias_of(op)) != ZC_NONE ? bias_of(op) : -1;
    zc_matmul_form form = form_of(activation_of(op, g->attrs), bias);
    zc_gen_define(g, "WGMMA", "%s", zc_gen_out_type(g, 0) == ZC_F16 ? "F16" : "BF16");
    if (zc_gen_in(g, 1)->kind == ZC_P_CONST &&
        (op != ZC_OP_ConvPair || zc_gen_in(g, ZC_IN_ConvPair_v)->kind == ZC_P_CONST))
        zc_gen_define(g, "B_CONSTANT", "1");
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    zc_gen_epilogue_cells(g);
    zc_gen_epilogue_pitches(g);
    g->mapped |= ZC_PITCHED_INPUT << 0 | ZC_PITCHED_RESULTS;
    if (op == ZC_OP_ConvPair) g->mapped |= ZC_PITCHED_INPUT << ZC_IN_ConvPair_z;
    g->pitched |= g->mapped;
    return ZC_OK;
}

zc_status zc_gen_conv_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (g->declined[0]) return ZC_OK;
    put_patches(g, &c);
    ZC_TRY(zc_gen_sm90(g, &c.p));
    map_tile(g, &c.p);
    return g->declined[0] ? ZC_OK : put_spec(g);
}

zc_status zc_gen_conv_rim_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (!g->declined[0]) ZC_TRY(zc_gen_conv_rim(g, &c.a, &c.w, &c.p));
    if (g->declined[0]) return ZC_OK;
    zc_gen_define(g, "WHOLE", "%d", c.p.n % g->config[ZC_SM90_TILE_N] == 0);
    map_tile(g, &c.p);
    return put_spec(g);
}

zc_status zc_gen_conv_few_sm90(zc_gen *g)
{
    conv c;
    ZC_TRY(sizes_of(g, &c));
    if (g->declined[0]) return ZC_OK;
    put_patches(g, &c);
    ZC_TRY(zc_gen_conv_few(g, &c.p));
    return g->declined[0] ? ZC_OK : put_spec(g);
}

/* Channels of a band, or in the pieces that the layout pass pads them to. */
static int64_t depth_of(const zc_conv_work *w, int64_t *band)
{
    zc_conv_band b = {.groups = w->groups, .in = w->in, .out = w->out, .piece = PIECE};
    *band = 0;
    if (w->groups == 1) return zc_ceil_div(w->in, PIECE) * PIECE;
    b.columns = *band = zc_conv_band_columns(&b);
    return zc_conv_band_depth(&b);
}

double zc_conv_sm90_us(const zc_conv_work *w)
{
    int64_t band;
    const int64_t blocks = zc_ceil_div(depth_of(w, &band), ZC_SM90_DEPTH);
    if (!zc_conv_window_fits(&w->window, w->axes, w->kernel)) return INFINITY;
    const int64_t channels = zc_ceil_div(w->groups * w->out, PIECE) * PIECE;
    const zc_sm90_problem p = {.m = zc_conv_work_pixels(w),
                               .n = channels,
                               .steps = zc_dims_span(w->kernel, 0, w->axes) * blocks,
                               .items = 1,
                               .sm_count = zc_usual_processors(90),
                               .parts = true,
                               .band = (int)band,
                               .phase = phase_of(&w->window, channels),
                               .fused_tile = -1};
    return zc_conv_few_or_tall_us(&p);
}

/* ---- the launch ---- */

/* Maps of all operands, of which a tile has so many lines. */
static zc_status put_maps(zc_launch *l, const zc_window *w, int pixels, int channels,
                          struct zc_gemm_sm90_params *p)
{
    ZC_TRY(zc_launch_conv_maps(l, &l->in[1], w, pixels, channels, 0, p));
    return zc_launch_conv_second(l, pixels, channels, 0, p);
}

/* All families: all but the maps; p->g.m 0: nothing to do. */
static zc_status fill(zc_launch *l, zc_window *window, struct zc_gemm_sm90_params *p)
{
    const zc_tensor *w = &l->in[1], *y = &l->out[0];
    memset(p, 0, sizeof *p);
    ZC_TRY(zc_launch_conv_check(l, w, bias_of(l->op)));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(zc_launch_conv_window(l, w, window, &p->window));
    p->g.y = y->data;
    p->g.c = zc_launch_in(l, bias_of(l->op));
    p->g.c_col = 1;
    p->g.alpha = p->g.beta = 1;
    p->g.m = zc_dims_span(y->dims, 0, y->rank - 1);
    p->g.n = w->dims[0];
    p->g.k = w->dims[w->rank - 1];
    p->g.y_ld = zc_launch_out_pitch(l, 0);
    p->items = 1;
    p->b_items = (int)zc_dims_span(w->dims, 1, w->rank - 1);
    return zc_launch_epilogue(l, &p->g.fused);
}

zc_status zc_launch_conv_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    struct zc_gemm_sm90_params p;
    zc_window window;
    ZC_TRY(fill(l, &window, &p));
    if (!p.g.m) return ZC_OK;
    int columns = (int)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]);
    ZC_TRY(put_maps(l, &window, (int)config[ZC_SM90_TILE_M], columns, &p));
    ZC_TRY(zc_sm90_like_y(l, &p, p.g.y, ZC_U16, p.g.y_ld, ZC_SM90_DEPTH, &p.y));
    return zc_launch_sm90(l, &p);
}

zc_status zc_launch_conv_rim_sm90(zc_launch *l)
{
    struct zc_gemm_sm90_params p;
    zc_window window;
    zc_dim3 grid;
    ZC_TRY(fill(l, &window, &p));
    if (!p.g.m) return ZC_OK;
    ZC_TRY(zc_launch_conv_rim(l, &l->in[1], &p, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}

zc_status zc_launch_conv_few_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    struct zc_gemm_sm90_params p;
    zc_window window;
    zc_dim3 grid;
    ZC_TRY(fill(l, &window, &p));
    if (!p.g.m) return ZC_OK;
    ZC_TRY(put_maps(l, &window, (int)config[ZC_FEW_PIXELS], zc_conv_few_channels(config), &p));
    ZC_TRY(zc_conv_few_grid(l, &p, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}
