/* Convolutions of f16 and bf16 on Hopper, channels last: the product of gemm_sm90.cu, whose copy
 * engine gathers the patches. */
#include <string.h>

#include "base/number.h"
#include "kernels/gemm_sm90.h"
#include "kernels/matmul.h"
#include "kernels/window.h"

const char *const zc_config_conv_sm90[] = {ZC_SM90_CONFIG};

enum {
    PAD_MOST = 127, /* padding, and how far a tap lies from where its window begins */
    STRIDE_MOST = 8,
    PIECE = 8 /* channels that the copy engine can address */
};

/* ---- the specialisation ---- */

/* Do windows of 1 x 1 see every pixel, so that pixels are rows of a matrix? */
static bool is_product(const zc_window_attrs *a, const int64_t kernel[2])
{
    bool plain = kernel[0] == 1 && kernel[1] == 1;
    for (int i = 0; i < 2; i++)
        plain = plain && zc_window_stride(a, i) == 1 && zc_window_pad(a, 2, i, 0) == 0 &&
                zc_window_pad(a, 2, i, 1) == 0;
    return plain;
}

static bool window_fits(const zc_window_attrs *a, const int64_t kernel[2])
{
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        fits = fits && zc_window_stride(a, i) <= STRIDE_MOST && kernel[i] <= PAD_MOST &&
               zc_window_dilation(a, i) <= PAD_MOST &&
               (kernel[i] - 1) * zc_window_dilation(a, i) <= PAD_MOST;
        for (int end = 0; end < 2; end++) {
            int64_t pad = zc_window_pad(a, 2, i, end);
            fits = fits && pad >= 0 && pad <= PAD_MOST;
        }
    }
    return fits;
}

static bool in_pieces(int64_t channels)
{
    return channels > 0 && channels % PIECE == 0;
}

static zc_matmul_form form_of(const zc_attrs_ConvNhwc *at, bool bias)
{
    return (zc_matmul_form){.a = 0,
                            .b = 1,
                            .c = bias ? 2 : -1,
                            .a_along_k = true,
                            .b_along_k = true,
                            .flat = true,
                            .alpha = 1,
                            .beta = 1,
                            .activation = *at->activation ? at->activation : NULL};
}

/* Why its types or operands are not taken; NULL: they are. */
static const char *not_these(const zc_gen *g, const zc_attrs_ConvNhwc *at)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    if (dtype != ZC_F16 && dtype != ZC_BF16) return "no product of warpgroups of its type";
    if (zc_gen_in_type(g, 1) != dtype || (bias != ZC_NONE && bias != dtype))
        return "weights or bias of another type";
    if (at->group != 1) return "groups";
    if (!at->taps_first) return "weights whose channels do not lie side by side";
    if (zc_gen_in_type(g, 3) != ZC_NONE) return "a residual before the activation";
    if (!zc_gen_static(zc_gen_in(g, 1))) return "weights whose shape only a run knows";
    if (*at->activation && strcmp(at->activation, "Relu") != 0) return "its activation";
    return NULL;
}

/* Pixels of the result: the most of the range that is asked for. */
static int64_t pixels_of(zc_gen *g)
{
    static const int64_t bounds[] = {1024, 8192, 32768};
    int64_t low, high;
    zc_gen_size(g, zc_gen_out(g, 0)->dims, 3, bounds, ZC_COUNTOF(bounds), &low, &high);
    return high == INT64_MAX ? 4 * bounds[ZC_COUNTOF(bounds) - 1] : high;
}

zc_status zc_gen_conv_sm90(zc_gen *g)
{
    const zc_attrs_ConvNhwc *at = ZC_ATTRS(g, ConvNhwc);
    const char *why = not_these(g, at);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_window_attrs a;
    zc_tensor w;
    int64_t group;
    zc_window_attrs_of(g->step->op, at, &a, &group);
    zc_gen_tensor(zc_gen_in(g, 1), &w);
    int64_t kernel[2] = {w.dims[1], w.dims[2]}, channels = w.dims[3];
    if (!in_pieces(channels) || !in_pieces(w.dims[0]))
        return zc_gen_decline(g, "channels that are no multiple of %d", PIECE);
    if (!window_fits(&a, kernel))
        return zc_gen_decline(g, "windows that the copy engine cannot gather");
    int64_t blocks = zc_ceil_div(channels, ZC_SM90_DEPTH);
    zc_sm90_problem p = {
        .m = pixels_of(g), .n = w.dims[0], .steps = kernel[0] * kernel[1] * blocks, .items = 1};
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    if (!is_product(&a, kernel)) {
        zc_gen_define(g, "PATCHES", "1");
        zc_gen_define(g, "BLOCKS", "%d", (int)blocks);
        zc_gen_define(g, "ACROSS", "%d", (int)kernel[1]);
    }
    zc_gen_define(g, "WGMMA", "%s", zc_gen_out_type(g, 0) == ZC_F16 ? "F16" : "BF16");
    if (zc_gen_in(g, 1)->kind == ZC_P_CONST) zc_gen_define(g, "B_CONSTANT", "1");
    zc_matmul_form form = form_of(at, zc_gen_in_type(g, 2) != ZC_NONE);
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    if (!zc_gen_epilogue_cells(g))
        return zc_gen_decline(g, "pointwise work whose operands are no rows or columns");
    return ZC_OK;
}

/* ---- the launch ---- */

/* Patches of x, or its pixels as rows. */
static zc_tensor_box patches_of(const zc_launch *l, const zc_window *w, bool product,
                                int64_t pixels)
{
    const zc_tensor *x = &l->in[0];
    int64_t channels = x->dims[3], tile = l->kernel->config[ZC_SM90_TILE_M];
    zc_tensor_box b = zc_sm90_box(x->data, x->dtype, channels, pixels, 1, channels, 0);
    b.box[1] = (uint32_t)tile;
    if (product) return b;
    b.rank = 4;
    b.pixels = (uint32_t)tile;
    for (int i = 0; i < 2; i++) { /* innermost first */
        int side = 1 - i;
        b.dims[1 + i] = w->in[side];
        b.first[i] = (int)-w->begin[side];
        b.beyond[i] = (int)(w->end[side] - (w->kernel[side] - 1) * w->dilation[side]);
        b.step[i] = (int)w->stride[side];
    }
    b.dims[3] = x->dims[0];
    b.strides[1] = channels * 2;
    b.strides[2] = b.strides[1] * w->in[1];
    b.strides[3] = b.strides[2] * w->in[0];
    return b;
}

static zc_status put_maps(zc_launch *l, const zc_window *w, struct zc_gemm_sm90_params *p)
{
    const int64_t *config = l->kernel->config;
    zc_window_attrs a;
    int64_t group;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    const zc_tensor *weights = &l->in[1];
    int64_t channels = weights->dims[3], taps = w->kernel[0] * w->kernel[1];
    zc_tensor_box x = patches_of(l, w, is_product(&a, w->kernel), p->g.m);
    zc_tensor_box b = zc_sm90_box(weights->data, weights->dtype, channels, p->g.n, taps,
                                  taps * channels, channels);
    zc_tensor_box y = zc_sm90_box(p->g.y, l->out[0].dtype, p->g.n, p->g.m, 1, p->g.n, 0);
    b.box[1] = (uint32_t)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]);
    ZC_TRY(zc_launch_tensor_map(l, &x, &p->a));
    ZC_TRY(zc_launch_tensor_map(l, &b, &p->b));
    return zc_launch_tensor_map(l, &y, &p->y);
}

static zc_status check(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *w = &l->in[1], *y = &l->out[0];
    bool fits = x->rank == 4 && w->rank == 4 && y->rank == 4 && x->dims[0] == y->dims[0] &&
                x->dims[3] == w->dims[3] && y->dims[3] == w->dims[0] &&
                (!zc_launch_has(l, 2) || zc_tensor_numel(&l->in[2]) == w->dims[0]);
    char t[128], u[128];
    if (fits) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

zc_status zc_launch_conv_sm90(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *w = &l->in[1], *y = &l->out[0];
    struct zc_gemm_sm90_params p;
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    memset(&p, 0, sizeof p);
    ZC_TRY(check(l));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + 1, y->dims + 1, w->dims + 1, &window);
    ZC_TRY(zc_launch_window(l, &window, &p.window));
    p.g.y = y->data;
    p.g.c = zc_launch_in(l, 2);
    p.g.c_col = 1;
    p.g.alpha = p.g.beta = 1;
    p.g.m = zc_dims_span(y->dims, 0, 3);
    p.g.n = w->dims[0];
    p.g.k = w->dims[3];
    p.g.y_ld = p.g.n;
    p.items = 1;
    p.b_items = (int)(w->dims[1] * w->dims[2]);
    ZC_TRY(zc_launch_epilogue(l, &p.g.fused));
    ZC_TRY(put_maps(l, &window, &p));
    return zc_launch_sm90(l, &p);
}
