/* Convolutions of e4m3 and of bytes on Hopper whose sums have a scale a channel, channels last: the
 * patches of conv_sm90, the product of gemm_f8_sm90. */
#include <string.h>

#include "kernels/conv_patches.h"
#include "op/nhwc.h"
#include "op/scaled.h"

const char *const zc_config_conv_f8_sm90[] = {ZC_SM90_CONFIG};

enum { PIECE = 16 /* channels that the copy engine can address */ };

/* ---- the specialisation ---- */

/* Why it is none of these convolutions; NULL: it is one. */
static const char *not_these(const zc_gen *g, int64_t group)
{
    const zc_pvalue *w = zc_gen_in(g, ZC_IN_ScaledConv_w);
    if (!zc_conv_channels_last(g->step->op, g->attrs)) return "channels first";
    if (!zc_conv_taps_first(g->step->op, g->attrs))
        return "weights whose channels do not lie side by side";
    if (group != 1 && !zc_conv_banded(g->step->op, g->attrs)) return "groups";
    if (!zc_gen_static(w)) return "weights whose shape only a run knows";
    return NULL;
}

static zc_matmul_form form_of(const zc_gen *g)
{
    const int bias = zc_gen_in(g, ZC_IN_ScaledConv_bias) ? ZC_IN_ScaledConv_bias : -1;
    return (zc_matmul_form){.a = ZC_IN_ScaledConv_x,
                            .b = ZC_IN_ScaledConv_w,
                            .c = bias,
                            .scale = ZC_IN_ScaledConv_scale,
                            .a_along_k = true,
                            .b_along_k = true,
                            .flat = true,
                            .alpha = 1,
                            .beta = 1};
}

zc_status zc_gen_conv_f8_sm90(zc_gen *g)
{
    zc_window_attrs a;
    zc_tensor w;
    int64_t group;
    zc_window_attrs_of(g->step->op, g->attrs, &a, &group);
    const char *why = not_these(g, group);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_gen_tensor(zc_gen_in(g, ZC_IN_ScaledConv_w), &w);
    const int axes = w.rank - 2;
    const int64_t depth = w.dims[axes + 1], taps = zc_dims_span(w.dims, 1, 1 + axes);
    if (w.dims[0] <= 0 || w.dims[0] % 2 || depth <= 0 || depth % PIECE)
        return zc_gen_decline(
            g, "channels that are no multiple of %d, or of the result an odd number", PIECE);
    if (!zc_conv_window_fits(&a, axes, w.dims + 1))
        return zc_gen_decline(g, "windows that the copy engine cannot gather");
    const bool bytes = zc_dtype_is_int(zc_gen_in_type(g, ZC_IN_ScaledConv_x));
    if (bytes) zc_gen_define(g, "INTEGERS", "1");
    if (bytes && taps * depth > ZC_SCALED_BYTES_MOST)
        return zc_gen_decline(g, "sums beyond 32 bits");
    const int64_t blocks = zc_ceil_div(depth, ZC_SM90_LINE);
    zc_sm90_problem p = {.m = zc_gen_conv_pixels(g),
                         .n = w.dims[0],
                         .steps = taps * blocks,
                         .items = 1,
                         .sm_count = g->sm_count,
                         .band = (int)zc_conv_banded(g->step->op, g->attrs),
                         .fused_tile =
                             zc_sm90_in_pieces(w.dims[0]) ? zc_gen_epilogue_tile(g, 16) : -1,
                         .piece = zc_sm90_piece(w.dims[0], zc_gen_out_type(g, 0)),
                         .scales = true,
                         .stepwise = !bytes && taps * depth > ZC_SM90_F8_SHORT};
    zc_gen_patches(g, &a, &w);
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    if (!zc_sm90_sends(p.n, zc_gen_out_type(g, 0), g->config))
        zc_gen_define(g, "PIECE", "%d", p.piece);
    zc_gen_sm90_factors(g, zc_gen_in_type(g, ZC_IN_ScaledConv_x),
                        zc_gen_in_type(g, ZC_IN_ScaledConv_w));
    if (zc_gen_in(g, ZC_IN_ScaledConv_w)->kind == ZC_P_CONST) zc_gen_define(g, "B_CONSTANT", "1");
    zc_gen_band(g, ZC_IN_ScaledConv_w);
    const zc_matmul_form form = form_of(g);
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

static void fill(zc_launch *l, struct zc_gemm_sm90_params *p)
{
    const zc_tensor *w = &l->in[ZC_IN_ScaledConv_w], *y = &l->out[0];
    p->g.y = y->data;
    p->g.c = zc_launch_in(l, ZC_IN_ScaledConv_bias);
    p->g.scale = l->in[ZC_IN_ScaledConv_scale].data;
    p->g.c_col = 1;
    p->g.alpha = p->g.beta = 1;
    p->g.m = zc_dims_span(y->dims, 0, y->rank - 1);
    p->g.n = p->g.y_ld = w->dims[0];
    p->g.k = w->dims[w->rank - 1];
    p->items = 1;
    p->b_items = (int)zc_dims_span(w->dims, 1, w->rank - 1);
}

zc_status zc_launch_conv_f8_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *w = &l->in[ZC_IN_ScaledConv_w];
    struct zc_gemm_sm90_params p;
    zc_window window;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_conv_check(l, w, ZC_IN_ScaledConv_bias));
    if (zc_tensor_numel(&l->out[0]) == 0) return ZC_OK;
    ZC_TRY(zc_launch_conv_window(l, w, &window, &p.window));
    fill(l, &p);
    ZC_TRY(zc_launch_epilogue(l, &p.g.fused));
    ZC_TRY(zc_launch_conv_maps(l, w, &window, (int)config[ZC_SM90_TILE_M],
                               (int)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]), 0, &p));
    ZC_TRY(zc_sm90_y_map(l, &p));
    return zc_launch_sm90(l, &p);
}
