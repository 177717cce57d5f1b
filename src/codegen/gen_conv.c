#include "abi/conv.h"

#include <math.h>
#include <string.h>

#include "codegen/gen.h"
#include "codegen/gen_window.h"
#include "cuda/conv.h"
#include "op/activation.h"

static zc_dtype type_of(const zc_gen *g, int i)
{
    return i < 0 ? ZC_NONE : zc_gen_in_type(g, i);
}

/* ---- activation ---- */

/* zc_act: the activation `name` with its parameters. */
static zc_status put_activation(zc_gen *g, const char *name, zc_floats params, zc_dtype t)
{
    return zc_gen_activation(g, "zc_act", name, params.n, params.v, t);
}

static zc_status put_own_activation(zc_gen *g, zc_dtype t)
{
    zc_floats none = {0};
    if (g->step->op == ZC_OP_FusedConv) {
        const zc_attrs_FusedConv *at = ZC_ATTRS(g, FusedConv);
        return put_activation(g, at->activation, at->activation_params, t);
    }
    return put_activation(g, g->step->op == ZC_OP_ConvNhwc ? ZC_ATTRS(g, ConvNhwc)->activation : "",
                          none, t);
}

/* ---- types ---- */

static int quant_of(zc_op op)
{
    return op == ZC_OP_ConvInteger ? 1 : op == ZC_OP_QLinearConv ? 2 : 0;
}

/* Are all sums of integers certain to fit in 32 bits? */
static bool short_sums(const zc_gen *g, const zc_conv_roles *r)
{
    const zc_pvalue *w = zc_gen_in(g, r->w);
    int64_t k = 1;
    for (int d = 1; d < w->rank; d++) {
        int64_t n = zc_gen_const_dim(w, d);
        if (n < 0 || n > ZC_CONV_SHORT_K) return false;
        k *= n;
        if (k > ZC_CONV_SHORT_K) return false;
    }
    return true;
}

static void put_types(zc_gen *g, const zc_conv_roles *r)
{
    int quant = quant_of(g->step->op);
    zc_dtype x = zc_gen_in_type(g, 0), y = zc_gen_out_type(g, 0);
    bool bias = type_of(g, r->bias) != ZC_NONE;
    zc_gen_type(g, "X", x);
    zc_gen_type(g, "W", zc_gen_in_type(g, r->w));
    zc_gen_type(g, "Y", y);
    zc_gen_define(g, "QUANT", "%d", quant);
    zc_gen_define(g, "HAS_BIAS", "%d", bias);
    if (bias) zc_gen_type(g, "BIAS", type_of(g, r->bias));
    zc_gen_define(g, "HAS_RESIDUAL", "%d", type_of(g, r->residual) != ZC_NONE);
    zc_gen_define(g, "HAS_X_ZERO", "%d", type_of(g, r->x_zero) != ZC_NONE);
    zc_gen_define(g, "HAS_W_ZERO", "%d", type_of(g, r->w_zero) != ZC_NONE);
    bool wide = quant == 2 && !short_sums(g, r);
    zc_gen_define(g, "OPERAND", "%s", quant ? "i32" : zc_gen_compute_type(x));
    zc_gen_define(g, "ACC", "%s", wide ? "i64" : quant ? "i32" : zc_gen_compute_type(x));
    zc_gen_define(g, "BIG", "%d", x != ZC_F64 && g->step->op != ZC_OP_DeformConv);
    bool mma = g->step->op != ZC_OP_ConvNhwc && g->step->op != ZC_OP_DeformConv;
    zc_gen_define(g, "MMA", "%d", mma && (x == ZC_F16 || x == ZC_BF16));
    if (quant != 2) return;
    zc_gen_type(g, "XS", type_of(g, r->x_scale));
    zc_gen_type(g, "WS", type_of(g, r->w_scale));
    zc_gen_type(g, "YS", type_of(g, r->y_scale));
    zc_gen_define(g, "LOW", "%d", y == ZC_I8 ? -128 : 0);
    zc_gen_define(g, "HIGH", "%d", y == ZC_I8 ? 127 : 255);
}

/* ---- shapes ---- */

/* What a transposed convolution cuts at the beginning of each axis, -1 where that depends on sizes
 * not known yet. */
static void transposed_begin(const zc_gen *g, const zc_gen_window_dims *d,
                             int64_t begin[ZC_WINDOW_DIMS])
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(g, ConvTranspose);
    zc_auto_pad mode;
    zc_auto_pad_parse(at->auto_pad, &mode);
    bool explicit_pads = (mode == ZC_PAD_EXPLICIT || mode == ZC_PAD_VALID) && !at->output_shape.n;
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    for (int i = 0; i < d->axes; i++) {
        bool sizes = zc_dim_is_const(d->in[i]) && zc_dim_is_const(d->out[i]) &&
                     zc_dim_is_const(d->kernel[i]);
        int64_t in[ZC_WINDOW_DIMS] = {1, 1, 1}, out[ZC_WINDOW_DIMS] = {1, 1, 1},
                kernel[ZC_WINDOW_DIMS] = {1, 1, 1};
        begin[i] = -1;
        if (!explicit_pads && !sizes) continue;
        if (sizes) {
            in[i] = d->out[i].k; /* seen as the pooling that it reverses */
            out[i] = d->in[i].k;
            kernel[i] = d->kernel[i].k;
        }
        zc_window w;
        zc_window_resolve(&a, d->axes, in, out, kernel, &w);
        zc_transposed_begin(at, &w);
        begin[i] = w.begin[i] <= ZC_CUDA_WINDOW_MOST ? w.begin[i] : -1;
    }
}

/* A number of channels of all groups, as that of one. */
static void put_part(zc_gen *g, const char *name, zc_dim all, int64_t groups)
{
    if (zc_dim_is_const(all))
        zc_gen_define(g, name, "%lldLL", (long long)(all.k / groups));
    else
        zc_gen_define(g, name, "(p.%s)", name);
}

static void put_deform(zc_gen *g, const zc_gen_window_dims *d)
{
    bool deform = g->step->op == ZC_OP_DeformConv;
    zc_gen_define(g, "DEFORM", "%d", deform);
    if (!deform) return;
    zc_gen_define(g, "AXES", "%d", d->axes);
    zc_gen_define(g, "OFFSET_GROUPS", "%lld", (long long)ZC_ATTRS(g, DeformConv)->offset_group);
    zc_gen_define(g, "HAS_MASK", "%d", zc_gen_in(g, 4) != NULL);
}

static bool put_shapes(zc_gen *g, const zc_conv_roles *r)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, r->w), *y = zc_gen_out(g, 0);
    zc_window_attrs a;
    int64_t groups;
    zc_window_attrs_of(g->step->op, g->attrs, &a, &groups);
    if (!zc_gen_window_fits(g, &a, x->rank - 2)) return false;
    bool last = g->step->op == ZC_OP_ConvNhwc;
    int first = last ? 1 : 2;
    zc_gen_window_dims d = {.axes = x->rank - 2};
    for (int i = 0; i < d.axes; i++) {
        d.in[i] = x->dims[first + i];
        d.out[i] = y->dims[first + i];
        d.kernel[i] = w->dims[2 + i];
    }
    int64_t begin[ZC_WINDOW_DIMS];
    bool transposed = g->step->op == ZC_OP_ConvTranspose;
    if (transposed) {
        transposed_begin(g, &d, begin);
        d.begin = begin;
    }
    zc_gen_window(g, &a, &d);
    zc_gen_define(g, "LAST", "%d", last);
    zc_gen_define(g, "groups", "%lldLL", (long long)groups);
    zc_gen_dim(g, "batch", x->dims[0]);
    zc_gen_define(g, "TRANSPOSED", "%d", transposed);
    zc_gen_dim(g, transposed ? "oc" : "ic", w->dims[1]);
    put_part(g, transposed ? "ic" : "oc", w->dims[0], groups);
    put_deform(g, &d);
    return true;
}

/* With all shapes certain the launch can only choose one entry. */
static void put_choice(zc_gen *g, const zc_conv_roles *r)
{
    zc_tensor w, y;
    zc_window_attrs a;
    int64_t groups;
    zc_window_attrs_of(g->step->op, g->attrs, &a, &groups);
    if (!zc_gen_all_static(g)) return;
    zc_gen_tensor(zc_gen_in(g, r->w), &w);
    zc_gen_tensor(zc_gen_out(g, 0), &y);
    if (zc_tensor_numel(&y) <= 0 || zc_tensor_numel(&w) <= 0) return;
    zc_conv_size s = zc_conv_size_of(g->step->op, &w, groups);
    s.pixels = zc_tensor_numel(&y) / (s.oc * groups);
    zc_gen_define(g, "ONLY", "%d", (int)zc_conv_choose(&s, g->step->op, zc_gen_in_type(g, 0)));
}

zc_status zc_gen_conv(zc_gen *g)
{
    zc_op op = g->step->op;
    zc_conv_roles r = zc_conv_roles_of(op);
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, r.w), *y = zc_gen_out(g, 0);
    if (x->rank < 0 || w->rank < 0 || y->rank < 0)
        return zc_gen_decline(g, "rank known only when run");
    if (!quant_of(op) && !zc_gen_sums_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (op == ZC_OP_ConvNhwc) {
        const char *act = ZC_ATTRS(g, ConvNhwc)->activation;
        if (*act && strcmp(act, "Relu") != 0) return zc_gen_decline(g, "activation %.40s", act);
    }
    if (!put_shapes(g, &r)) return ZC_OK;
    put_types(g, &r);
    put_choice(g, &r);
    if (quant_of(op)) return ZC_OK;
    ZC_TRY(put_own_activation(g, x->dtype));
    return zc_gen_epilogue(g);
}
