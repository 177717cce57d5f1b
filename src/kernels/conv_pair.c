/* ConvPair, QLinearConvPair, QLinearConvChain and QLinearConvNext on any architecture
 * (conv_pair.cu, conv_pair_quant.cu, conv_chain_quant.cu, conv_next_quant.cu); on Hopper they are
 * conv_sm90.c's, conv_quant_sm90.c's, conv_chain_sm90.c's and conv_next_sm90.c's. */
#include <string.h>

#include "abi/conv_chain_quant.h"
#include "abi/conv_next_quant.h"
#include "abi/conv_pair.h"
#include "abi/conv_pair_quant.h"
#include "kernels/conv_patches.h"
#include "kernels/matmul.h"

/* ---- what both launches share ---- */

enum { BLOCK = 256 };

/* w_at: the first's weights. */
static zc_status check(zc_launch *l, int w_at, const zc_conv_second *second)
{
    const zc_tensor *x = &l->in[0], *w = &l->in[w_at], *y = &l->out[0];
    const zc_tensor *z = &l->in[second->x], *v = &l->in[second->w];
    bool fits = x->rank == 4 && w->rank == 4 && z->rank == 4 && v->rank == 4 && y->rank == 4 &&
                x->dims[0] == y->dims[0] && z->dims[0] == y->dims[0] && x->dims[3] == w->dims[3] &&
                z->dims[3] == v->dims[3] && w->dims[0] == y->dims[3] && v->dims[0] == y->dims[3];
    char t[128], u[128];
    if (fits) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "inputs and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

static zc_status check_bias(zc_launch *l, int bias)
{
    if (!zc_launch_has(l, bias) || zc_tensor_numel(&l->in[bias]) == l->out[0].dims[3]) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject, "wrong bias (got %lld elements, need %lld)",
                   (long long)zc_tensor_numel(&l->in[bias]), (long long)l->out[0].dims[3]);
}

/* The first's windows, of weights w, and which pixels the second's points are. */
static zc_status put_windows(zc_launch *l, int w, const zc_conv_second *second,
                             struct zc_window_params *first, long long *in, long long *stride)
{
    const zc_tensor *x = &l->in[0], *z = &l->in[second->x], *y = &l->out[0];
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    for (int i = 0; i < 2; i++) {
        in[i] = z->dims[1 + i];
        stride[i] = zc_window_stride(&second->a, i);
        if (zc_ceil_div(in[i], stride[i]) != y->dims[1 + i])
            return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                           "axis %d of the second convolution gives %lld pixels, need %lld", i + 1,
                           (long long)zc_ceil_div(in[i], stride[i]), (long long)y->dims[1 + i]);
    }
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + 1, y->dims + 1, l->in[w].dims + 1, &window);
    return zc_launch_window(l, &window, first);
}

/* ---- floats ---- */

zc_status zc_gen_conv_pair(zc_gen *g)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, ZC_IN_ConvPair_bias);
    for (int i = 0; i < ZC_IN_ConvPair_bias; i++)
        if (zc_gen_in_type(g, i) != dtype) return zc_gen_decline(g, "operands of several types");
    if (dtype == ZC_F64 || (bias != ZC_NONE && bias != dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    zc_gen_type(g, "X", dtype);
    zc_gen_define(g, "HAS_BIAS", "%d", bias != ZC_NONE);
    return zc_gen_epilogue(g);
}

zc_status zc_launch_conv_pair(zc_launch *l)
{
    const zc_tensor *y = &l->out[0];
    struct zc_conv_pair_params p = {.x = l->in[ZC_IN_ConvPair_x].data,
                                    .w = l->in[ZC_IN_ConvPair_w].data,
                                    .z = l->in[ZC_IN_ConvPair_z].data,
                                    .v = l->in[ZC_IN_ConvPair_v].data,
                                    .bias = zc_launch_in(l, ZC_IN_ConvPair_bias),
                                    .y = y->data};
    zc_conv_second second;
    zc_conv_second_of(l->op, l->attrs, &second);
    ZC_TRY(check(l, ZC_IN_ConvPair_w, &second));
    ZC_TRY(check_bias(l, ZC_IN_ConvPair_bias));
    p.total = zc_tensor_numel(y);
    if (p.total == 0) return ZC_OK;
    p.n = y->dims[3];
    p.channels = l->in[ZC_IN_ConvPair_x].dims[3];
    p.second_channels = l->in[ZC_IN_ConvPair_z].dims[3];
    ZC_TRY(put_windows(l, ZC_IN_ConvPair_w, &second, &p.window, p.second_in, p.second_stride));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}

/* ---- bytes ---- */

/* Of both convolutions, in order. */
static void roles_of(zc_op op, zc_quant_roles roles[2])
{
    roles[0] = zc_quant_roles_of(op);
    zc_quant_second_of(op, &roles[1]);
}

/* zx_sum, of bytes of two types. */
static zc_status put_sum(zc_gen *g, const char *text, const zc_dtype types[2])
{
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "sum of bytes", sizeof *e);
    ZC_TRY(zc_expr_parse(text, types, 2, NULL, 0, e, g->step->name, g->diag));
    return zc_gen_expr(g, "zx_sum", e, types, false);
}

/* Types of scales, which both share. */
static zc_status put_scales(zc_gen *g, const zc_quant_roles roles[2])
{
    zc_dtype scales[2][3];
    for (int i = 0; i < 2; i++) {
        scales[i][0] = zc_gen_in_type(g, roles[i].in[ZC_GQ_A_SCALE]);
        scales[i][1] = zc_gen_in_type(g, roles[i].in[ZC_GQ_B_SCALE]);
        scales[i][2] = zc_gen_in_type(g, roles[i].y_scale);
    }
    if (memcmp(scales[0], scales[1], sizeof scales[0]) != 0)
        return zc_gen_decline(g, "scales of several types");
    zc_gen_type(g, "XS", scales[0][0]);
    zc_gen_type(g, "WS", scales[0][1]);
    zc_gen_type(g, "YS", scales[0][2]);
    return ZC_OK;
}

zc_status zc_gen_conv_pair_quant(zc_gen *g)
{
    static const char *const names[2][3] = {{"X0", "W0", "Y0"}, {"X1", "W1", "Y1"}};
    zc_dtype results[2];
    zc_quant_roles roles[2];
    roles_of(g->step->op, roles);
    for (int i = 0; i < 2; i++) {
        const zc_quant_roles *r = &roles[i];
        results[i] = zc_gen_in_type(g, r->y_zero);
        zc_gen_type(g, names[i][0], zc_gen_in_type(g, r->in[ZC_GQ_A]));
        zc_gen_type(g, names[i][1], zc_gen_in_type(g, r->in[ZC_GQ_B]));
        zc_gen_type(g, names[i][2], results[i]);
    }
    ZC_TRY(put_scales(g, roles));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    return put_sum(g, ZC_ATTRS(g, QLinearConvPair)->sum, results);
}

static zc_status put_half(zc_launch *l, const zc_quant_roles *r, struct zc_conv_quant_half *h)
{
    const zc_tensor *w = &l->in[r->in[ZC_GQ_B]];
    const int64_t n = w->dims[0];
    *h = (struct zc_conv_quant_half){.x = r->in[ZC_GQ_A] < 0 ? NULL : l->in[r->in[ZC_GQ_A]].data,
                                     .x_scale = l->in[r->in[ZC_GQ_A_SCALE]].data,
                                     .x_zero = l->in[r->in[ZC_GQ_A_ZERO]].data,
                                     .w = w->data,
                                     .w_scale = l->in[r->in[ZC_GQ_B_SCALE]].data,
                                     .w_zero = l->in[r->in[ZC_GQ_B_ZERO]].data,
                                     .y_scale = l->in[r->y_scale].data,
                                     .y_zero = l->in[r->y_zero].data,
                                     .bias = zc_launch_in(l, r->bias),
                                     .channels = w->dims[3]};
    ZC_TRY(zc_launch_step(l, r->in[ZC_GQ_B_SCALE], n, &h->w_scale_step));
    return zc_launch_step(l, r->in[ZC_GQ_B_ZERO], n, &h->w_zero_step);
}

zc_status zc_launch_conv_pair_quant(zc_launch *l)
{
    const zc_tensor *y = &l->out[0];
    struct zc_conv_pair_quant_params p = {.y = y->data};
    zc_quant_roles roles[2];
    zc_conv_second second;
    roles_of(l->op, roles);
    zc_conv_second_of(l->op, l->attrs, &second);
    ZC_TRY(check(l, roles[0].in[ZC_GQ_B], &second));
    p.total = zc_tensor_numel(y);
    if (p.total == 0) return ZC_OK;
    p.n = y->dims[3];
    for (int i = 0; i < 2; i++) {
        ZC_TRY(check_bias(l, roles[i].bias));
        ZC_TRY(put_half(l, &roles[i], &p.half[i]));
    }
    ZC_TRY(put_windows(l, roles[0].in[ZC_GQ_B], &second, &p.window, p.second_in, p.second_stride));
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}

/* ---- one behind the other ---- */

enum { HIDDEN_MOST = 48 << 10 /* channels of a pixel in shared memory */ };

zc_status zc_gen_conv_chain_quant(zc_gen *g)
{
    zc_quant_roles roles[2];
    roles_of(g->step->op, roles);
    zc_gen_type(g, "X", zc_gen_in_type(g, roles[0].in[ZC_GQ_A]));
    zc_gen_type(g, "W", zc_gen_in_type(g, roles[0].in[ZC_GQ_B]));
    zc_gen_type(g, "H", zc_gen_in_type(g, roles[0].y_zero));
    zc_gen_type(g, "V", zc_gen_in_type(g, roles[1].in[ZC_GQ_B]));
    zc_gen_type(g, "PLAIN", zc_gen_plain_result(g));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    ZC_TRY(put_scales(g, roles));
    return g->declined[0] ? ZC_OK : zc_gen_epilogue(g);
}

static zc_status check_chain(zc_launch *l, const zc_quant_roles roles[2])
{
    const zc_tensor *x = &l->in[0], *y = &l->out[l->nout - 1], *w = &l->in[roles[0].in[ZC_GQ_B]],
                    *v = &l->in[roles[1].in[ZC_GQ_B]];
    char t[128], u[128];
    bool fits = x->rank == 4 && w->rank == 4 && v->rank == 4 && y->rank == 4 &&
                x->dims[0] == y->dims[0] && x->dims[3] == w->dims[3] && w->dims[0] == v->dims[3] &&
                v->dims[0] == y->dims[3];
    if (fits && w->dims[0] <= HIDDEN_MOST) return ZC_OK;
    return zc_fail(l->diag, fits ? ZC_ERR_LIMIT : ZC_ERR_MODEL, l->subject,
                   fits ? "too many channels between two convolutions (got %s and %s)"
                        : "weights of two convolutions do not fit each other (got %s and %s)",
                   zc_tensor_type_text(w, t, sizeof t), zc_tensor_type_text(v, u, sizeof u));
}

zc_status zc_launch_conv_chain_quant(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *w = &l->in[ZC_IN_QLinearConvChain_w], *y = &l->out[0];
    struct zc_conv_chain_quant_params p = {.y = y->data};
    zc_quant_roles roles[2];
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    roles_of(l->op, roles);
    ZC_TRY(check_chain(l, roles));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    p.n = y->dims[3];
    p.pixels = zc_dims_span(y->dims, 0, 3);
    for (int i = 0; i < 2; i++) ZC_TRY(put_half(l, &roles[i], &p.half[i]));
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + 1, y->dims + 1, w->dims + 1, &window);
    ZC_TRY(zc_launch_window(l, &window, &p.window));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    zc_dim3 grid = {zc_launch_blocks(p.pixels, 1, 8 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, (uint32_t)w->dims[0], &p, sizeof p);
}

/* ---- with a residual between them ---- */

zc_status zc_gen_conv_next_quant(zc_gen *g)
{
    const zc_dtype residual = zc_gen_in_type(g, ZC_IN_QLinearConvNext_residual);
    zc_quant_roles roles[2];
    roles_of(g->step->op, roles);
    const zc_dtype h = zc_gen_in_type(g, roles[0].y_zero);
    zc_gen_type(g, "X", zc_gen_in_type(g, roles[0].in[ZC_GQ_A]));
    zc_gen_type(g, "W", zc_gen_in_type(g, roles[0].in[ZC_GQ_B]));
    zc_gen_type(g, "H", h);
    zc_gen_type(g, "G", zc_gen_out_type(g, 0));
    zc_gen_type(g, "V", zc_gen_in_type(g, roles[1].in[ZC_GQ_B]));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 1));
    ZC_TRY(put_scales(g, roles));
    if (g->declined[0] || residual == ZC_NONE) return ZC_OK;
    zc_gen_type(g, "RESIDUAL", residual);
    return put_sum(g, ZC_ATTRS(g, QLinearConvNext)->sum, (zc_dtype[]){h, residual});
}

/* Beyond what chains need: three images of the same pixels, and the residual as the first result.
 */
static zc_status check_next(zc_launch *l, const zc_quant_roles roles[2])
{
    const zc_tensor *x = &l->in[0], *g = &l->out[0], *y = &l->out[1];
    const bool summed = zc_launch_has(l, ZC_IN_QLinearConvNext_residual);
    const zc_tensor *other = summed ? &l->in[ZC_IN_QLinearConvNext_residual] : g;
    char t[128], u[128];
    ZC_TRY(check_chain(l, roles));
    if (g->rank == 4 && memcmp(g->dims, x->dims, 3 * sizeof *x->dims) == 0 &&
        memcmp(g->dims, y->dims, 3 * sizeof *y->dims) == 0 &&
        g->dims[3] == l->in[roles[0].in[ZC_GQ_B]].dims[0] &&
        zc_tensor_numel(other) == zc_tensor_numel(g))
        return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and results do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(g, u, sizeof u));
}

zc_status zc_launch_conv_next_quant(zc_launch *l)
{
    const zc_tensor *w = &l->in[ZC_IN_QLinearConvNext_w], *y = &l->out[1];
    struct zc_conv_next_quant_params p = {
        .residual = zc_launch_in(l, ZC_IN_QLinearConvNext_residual),
        .g = l->out[0].data,
        .y = y->data,
    };
    zc_quant_roles roles[2];
    roles_of(l->op, roles);
    ZC_TRY(check_next(l, roles));
    p.n = y->dims[3];
    p.pixels = zc_dims_span(y->dims, 0, 3);
    if (p.pixels == 0) return ZC_OK;
    for (int i = 0; i < 2; i++) ZC_TRY(put_half(l, &roles[i], &p.half[i]));
    zc_dim3 grid = {zc_launch_blocks(p.pixels, 1, 8 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, (uint32_t)w->dims[0], &p, sizeof p);
}
