#include <math.h>
#include <string.h>

#include "abi/conv.h"
#include "base/number.h"
#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/gen.h"
#include "kernels/window.h"
#include "op/activation.h"
#include "op/nhwc.h"
#include "op/scaled.h"

/* ---- what both halves need ---- */

/* Sums of so many products of 8-bit numbers less their zero points fit in 32 bits. */
enum { SHORT_SUM = 32768, BLOCK = 256 };

/* The side of a block's tile, 0: a thread for each element; by tensor cores? */
enum { TILE, MMA, CONFIG_COUNT };
const char *const zc_config_conv[] = {"tile", "mma", NULL};

typedef struct conv_size {
    int64_t groups, ic, oc; /* channels of one group */
    int64_t taps, pixels;   /* of all images */
} conv_size;

/* Which inputs of the operation are what; -1: it has none. */
typedef struct conv_roles {
    int w, bias, residual;
    int offset, mask;
    int x_zero, w_zero, x_scale, w_scale, y_scale, y_zero;
} conv_roles;

static conv_size size_of(zc_op op, const zc_tensor *w, int64_t groups)
{
    bool transposed = op == ZC_OP_ConvTranspose;
    return (conv_size){.groups = groups,
                       .ic = transposed ? w->dims[0] / groups : w->dims[1],
                       .oc = transposed ? w->dims[1] : w->dims[0] / groups,
                       .taps = zc_dims_span(w->dims, 2, w->rank)};
}

/* Its windows, and groups; phases are such whose input is the same. */
static zc_window_attrs window_of(zc_op op, const void *attrs, int64_t *groups)
{
    zc_window_attrs a;
    zc_window_attrs_of(op, attrs, &a, groups);
    *groups *= zc_window_phases(&a);
    return a;
}

static conv_roles roles_of(zc_op op)
{
    conv_roles r = {1, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (op == ZC_OP_ConvNhwc) r.residual = 3;
    if (op == ZC_OP_ConvInteger) r = (conv_roles){1, -1, -1, -1, -1, 2, 3, -1, -1, -1, -1};
    if (op == ZC_OP_QLinearConv) r = (conv_roles){3, 8, -1, -1, -1, 2, 5, 1, 4, 6, 7};
    if (op == ZC_OP_ScaledConv) r = (conv_roles){1, 3, -1, -1, -1, -1, -1, -1, 2, -1, -1};
    if (op == ZC_OP_DeformConv) r = (conv_roles){1, 3, -1, 2, 4, -1, -1, -1, -1, -1, -1};
    return r;
}

/* ---- the specialisation ---- */

/* Axis i of weights [oc, ic, taps ...]. */
static zc_dim weight_dim(const zc_gen *g, const zc_pvalue *w, int i)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    if (i == 1 && zc_conv_banded(g->step->op, g->attrs))
        return zc_dim_const(x->dims[x->rank - 1].k / zc_conv_groups(g->step->op, g->attrs));
    return w->dims[zc_conv_taps_first(g->step->op, g->attrs) ? zc_nhwc_axis(w->rank, i) : i];
}

static zc_dtype type_of(const zc_gen *g, int i)
{
    return i < 0 ? ZC_NONE : zc_gen_in_type(g, i);
}

/* ---- activation ---- */

/* zc_act: the step's own activation. */
static zc_status put_activation(zc_gen *g, zc_dtype t)
{
    const char *name = g->step->op == ZC_OP_ConvNhwc ? ZC_ATTRS(g, ConvNhwc)->activation : "";
    return zc_gen_activation(g, "zc_act", name, 0, NULL, t);
}

/* ---- types ---- */

static int quant_of(zc_op op)
{
    return op == ZC_OP_ConvInteger ? 1 : op == ZC_OP_QLinearConv ? 2 : 0;
}

/* Are all sums of integers certain to fit in 32 bits? */
static bool short_sums(const zc_gen *g, const conv_roles *r)
{
    const zc_pvalue *w = zc_gen_in(g, r->w);
    int64_t k = 1;
    for (int d = 1; d < w->rank; d++) {
        int64_t n = zc_gen_const_dim(w, d);
        if (n < 0 || n > SHORT_SUM) return false;
        k *= n;
        if (k > SHORT_SUM) return false;
    }
    return true;
}

static void put_types(zc_gen *g, const conv_roles *r)
{
    int quant = quant_of(g->step->op);
    zc_dtype x = zc_gen_in_type(g, 0), y = zc_gen_out_type(g, 0);
    bool bias = type_of(g, r->bias) != ZC_NONE;
    zc_gen_type(g, "X", x);
    zc_gen_type(g, "W", zc_gen_in_type(g, r->w));
    zc_gen_type(g, "Y", y);
    zc_gen_type(g, "PLAIN", zc_gen_plain_result(g));
    zc_gen_define(g, "QUANT", "%d", quant);
    zc_gen_define(g, "HAS_BIAS", "%d", bias);
    if (bias) zc_gen_type(g, "BIAS", type_of(g, r->bias));
    zc_gen_define(g, "HAS_RESIDUAL", "%d", type_of(g, r->residual) != ZC_NONE);
    zc_gen_define(g, "HAS_X_ZERO", "%d", type_of(g, r->x_zero) != ZC_NONE);
    zc_gen_define(g, "HAS_W_ZERO", "%d", type_of(g, r->w_zero) != ZC_NONE);
    const bool wide = quant == 2 && !short_sums(g, r), integers = quant || zc_dtype_is_int(x);
    zc_gen_define(g, "HAS_SCALE", "%d", zc_scaled_to(g->step->op, g->attrs) != ZC_NONE);
    zc_gen_define(g, "OPERAND", "%s", integers ? "i32" : zc_gen_compute_type(x));
    zc_gen_define(g, "ACC", "%s", wide ? "i64" : integers ? "i32" : zc_gen_compute_type(x));
    if (quant != 2) return;
    zc_gen_type(g, "XS", type_of(g, r->x_scale));
    zc_gen_type(g, "WS", type_of(g, r->w_scale));
    zc_gen_type(g, "YS", type_of(g, r->y_scale));
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

static bool put_shapes(zc_gen *g, const conv_roles *r)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, r->w), *y = zc_gen_out(g, 0);
    int64_t groups;
    const zc_window_attrs a = window_of(g->step->op, g->attrs, &groups);
    if (!zc_gen_window_fits(g, &a, x->rank - 2)) return false;
    bool last = zc_conv_channels_last(g->step->op, g->attrs);
    int first = last ? 1 : 2;
    zc_gen_window_dims d = {.axes = x->rank - 2};
    for (int i = 0; i < d.axes; i++) {
        d.in[i] = x->dims[first + i];
        d.out[i] = y->dims[first + i];
        d.kernel[i] = weight_dim(g, w, 2 + i);
    }
    int64_t begin[ZC_WINDOW_DIMS];
    bool transposed = g->step->op == ZC_OP_ConvTranspose;
    if (transposed) {
        transposed_begin(g, &d, begin);
        d.begin = begin;
    }
    zc_gen_window(g, &a, &d);
    zc_gen_phases(g, &a, d.axes);
    zc_gen_define(g, "LAST", "%d", last);
    zc_gen_define(g, "groups", "%lldLL", (long long)groups);
    zc_gen_dim(g, "batch", x->dims[0]);
    zc_gen_define(g, "TRANSPOSED", "%d", transposed);
    zc_gen_define(g, "TAPS_FIRST", "%d", zc_conv_taps_first(g->step->op, g->attrs));
    zc_gen_dim(g, transposed ? "oc" : "ic", weight_dim(g, w, 1));
    put_part(g, transposed ? "ic" : "oc", w->dims[0], groups);
    put_deform(g, &d);
    if (zc_conv_banded(g->step->op, g->attrs)) {
        zc_gen_define(g, "BAND", "%d", (int)zc_conv_banded(g->step->op, g->attrs));
        zc_gen_define(g, "BAND_DEPTH", "%d", (int)w->dims[w->rank - 1].k);
        zc_gen_define(g, "BAND_PIECE", "%d", g->step->op == ZC_OP_ConvNhwc ? 8 : 16);
    }
    return true;
}

/* ---- the choice ---- */

static const char *no_tensor_cores(zc_op op, zc_dtype x)
{
    if (x != ZC_F16 && x != ZC_BF16) return "no exact tensor core product of its type";
    return op == ZC_OP_DeformConv ? "no tensor cores for interpolated patches" : NULL;
}

/* Are there enough pixels for blocks of 128 x 128 on a whole chip? */
static bool fills(zc_gen *g, int64_t groups, int64_t oc)
{
    enum { BLOCKS = 128 };
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_dim factors[ZC_MAX_RANK];
    int n = 0, channels = zc_conv_channels_last(g->step->op, g->attrs) ? y->rank - 1 : 1;
    for (int d = 0; d < y->rank; d++)
        if (d != channels) factors[n++] = y->dims[d];
    int64_t low, high, rows = (oc + 127) / 128 * groups;
    int64_t few = ((BLOCKS + rows - 1) / rows - 1) * 128; /* pixels that do not suffice */
    zc_gen_size(g, factors, n, &few, 1, &low, &high);
    return low > few;
}

/* Are they too few channels, or products, for tiles? */
static bool is_direct(int64_t oc, int64_t k)
{
    return oc < 16 || k < 8;
}

/* Channels of weights that only a run knows may be many: tiles serve all numbers. */
static void choose(zc_gen *g, const conv_roles *r)
{
    zc_op op = g->step->op;
    zc_dtype x = zc_gen_in_type(g, 0);
    const zc_pvalue *w = zc_gen_in(g, r->w);
    const char *not_mma = no_tensor_cores(op, x);
    bool large = false, direct = false;
    if (zc_gen_static(w)) {
        zc_tensor shape;
        int64_t groups;
        window_of(op, g->attrs, &groups);
        zc_gen_tensor(w, &shape);
        if (zc_conv_taps_first(op, g->attrs)) shape = zc_nchw_shape(&shape);
        shape.dims[1] = weight_dim(g, w, 1).k;
        conv_size s = size_of(op, &shape, groups);
        int64_t k = s.ic * s.taps;
        direct = is_direct(s.oc, k);
        large = !direct && s.oc >= 96 && x != ZC_F64 && op != ZC_OP_DeformConv;
        /* Quantised results may need sums of 64 bits, for which the big tiles have no room. */
        if (op == ZC_OP_QLinearConv && k > SHORT_SUM) large = false;
        /* The families before this one have made ranges of their own. */
        bool ranges = zc_conv_channels_last(op, g->attrs) && (quant_of(op) || !not_mma);
        large = large && (g->candidate || (!ranges && fills(g, groups, s.oc)));
    }
    g->config[TILE] = direct ? 0 : large ? 128 : 64;
    g->config[MMA] = !direct && !not_mma;
    g->threads = BLOCK;
    if (g->config[MMA]) zc_gen_tensor_cores(g, "mma", x);
    zc_snprintf(g->why, sizeof g->why, "%s",
                direct    ? "no tensor cores: few channels or taps"
                : not_mma ? not_mma
                          : "mma.m16n8k16");
}

zc_status zc_gen_conv(zc_gen *g)
{
    zc_op op = g->step->op;
    conv_roles r = roles_of(op);
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, r.w), *y = zc_gen_out(g, 0);
    if (x->rank < 0 || w->rank < 0 || y->rank < 0)
        return zc_gen_decline(g, "rank known only when run");
    if (!quant_of(op) && op != ZC_OP_ScaledConv && !zc_gen_sums_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (zc_conv_pools(op, g->attrs)) return zc_gen_decline(g, "its pooling");
    if (op == ZC_OP_ConvNhwc) {
        const char *act = ZC_ATTRS(g, ConvNhwc)->activation;
        if (*act && strcmp(act, "Relu") != 0) return zc_gen_decline(g, "activation %.40s", act);
    }
    if (!put_shapes(g, &r)) return ZC_OK;
    put_types(g, &r);
    choose(g, &r);
    const zc_dtype scaled = zc_scaled_to(op, g->attrs);
    if (!quant_of(op)) ZC_TRY(put_activation(g, scaled != ZC_NONE ? scaled : x->dtype));
    return zc_gen_epilogue(g);
}

/* ---- what it is held to take ---- */

/* Cycles a product of the summed axis: of a block that waits for its operands, and of a
 * multiprocessor that has enough of 64 x 64 sums. By tensor cores from single convolutions, to a
 * factor of two (bench/NOTES.md); of bytes 64 integer multiplications a cycle. */
typedef struct tile_cycles {
    double waits, tile;
} tile_cycles;

static const tile_cycles by_tensor_cores = {22, 10.5}, of_bytes = {64, 64};

/* Without tiles: of a thread, and of a scheduler's warp. Transposed tiles divide for every element,
 * and have zeros among them. */
static double product_cycles(const zc_conv_work *w, int64_t k, const tile_cycles *c)
{
    const double transposed = 4, alone = 100, warp = 12, schedulers = 4;
    const int processors = zc_usual_processors(90);
    const int64_t pixels = zc_conv_work_pixels(w);
    const double tiles =
        (double)zc_ceil_div(pixels, 64) * (double)zc_ceil_div(w->out, 64) * (double)w->groups;
    const double warps = (double)pixels * (double)w->out * (double)w->groups / 32;
    return is_direct(w->out, k)
               ? fmax(alone, warp * warps / (schedulers * processors))
               : fmax(c->waits, c->tile * tiles / processors) * (w->transposed ? transposed : 1);
}

static double conv_us(const zc_conv_work *w, const tile_cycles *c)
{
    const double clock = 1650, start = 1500;
    const int64_t k = w->in * zc_dims_span(w->kernel, 0, w->axes);
    return (start + (double)k * product_cycles(w, k, c)) / clock;
}

double zc_conv_first_us(const zc_conv_work *w)
{
    return conv_us(w, &by_tensor_cores);
}

static bool is_by_channel(const zc_conv_work *w)
{
    return w->groups > 1 && w->in == 1 && w->out == 1;
}

double zc_conv_bytes_us(const zc_conv_work *w)
{
    const double us = is_by_channel(w) ? zc_conv_depth_quant_us(w) : INFINITY;
    return us < INFINITY ? us : conv_us(w, &of_bytes);
}

double zc_conv_last_us(const zc_conv_work *w)
{
    const double us = is_by_channel(w) ? zc_conv_depth_us(w) : zc_conv_sm90_us(w);
    return us < INFINITY ? us : zc_conv_first_us(w);
}

/* ---- the launch ---- */

static const void *role(const zc_launch *l, int i)
{
    return i < 0 ? NULL : zc_launch_in(l, i);
}

static zc_status check(zc_launch *l, const zc_tensor *x, const zc_tensor *w, const conv_size *s,
                       const zc_window_attrs *a, int axis)
{
    const zc_tensor *y = &l->out[0];
    bool fits = x->rank == w->rank && x->rank == y->rank && x->dims[0] == y->dims[0] &&
                y->dims[axis] == s->groups * s->oc &&
                x->dims[axis] == s->groups / zc_window_phases(a) * s->ic;
    bool divides = w->dims[0] % s->groups == 0;
    if (fits && divides) return ZC_OK;
    char t[128], u[128];
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

/* Offsets and mask of a deformable convolution. */
static zc_status check_offsets(zc_launch *l, const conv_size *s, int axes)
{
    if (l->op != ZC_OP_DeformConv) return ZC_OK;
    int64_t taps = s->pixels * s->taps * ZC_ATTRS(l, DeformConv)->offset_group;
    if (zc_tensor_numel(&l->in[2]) == taps * axes &&
        (!zc_launch_has(l, 4) || zc_tensor_numel(&l->in[4]) == taps))
        return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject, "offset or mask does not fit the output");
}

static zc_status fill(zc_launch *l, const conv_roles *r, struct zc_conv_params *p)
{
    int64_t channels = p->groups * p->oc;
    p->x = l->in[0].data;
    p->w = l->in[r->w].data;
    p->y = l->out[0].data;
    p->bias = role(l, r->bias);
    p->residual = role(l, r->residual);
    p->offset = role(l, r->offset);
    p->mask = role(l, r->mask);
    p->x_zero = role(l, r->x_zero);
    p->w_zero = role(l, r->w_zero);
    p->x_scale = role(l, r->x_scale);
    p->w_scale = role(l, r->w_scale);
    p->y_scale = role(l, r->y_scale);
    p->y_zero = role(l, r->y_zero);
    ZC_TRY(zc_launch_step(l, r->w_zero, channels, &p->w_zero_step));
    return zc_launch_step(l, r->w_scale, channels, &p->w_scale_step);
}

static zc_status issue(zc_launch *l, const conv_size *s, struct zc_conv_params *p)
{
    int64_t side = l->kernel->config[TILE];
    size_t row = (size_t)(s->ic * s->taps) * zc_dtype_bits(l->in[0].dtype) / 8;
    p->w_aligned = row % 16 == 0 && (uintptr_t)p->w % 16 == 0 && !zc_conv_banded(l->op, l->attrs);
    int64_t blocks = side ? (s->pixels + side - 1) / side * ((s->oc + side - 1) / side) * s->groups
                          : (s->pixels * s->oc * s->groups + BLOCK - 1) / BLOCK;
    return zc_launch_configured(l, (zc_dim3){zc_launch_blocks(blocks, 1, 0), 1, 1}, p, sizeof *p);
}

static zc_status put_window(zc_launch *l, const zc_window_attrs *a, int first, const zc_tensor *w,
                            struct zc_conv_params *p)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    bool transposed = l->op == ZC_OP_ConvTranspose;
    const int64_t *from = x->dims + first, *to = y->dims + first;
    zc_window window;
    zc_window_resolve(a, x->rank - 2, transposed ? to : from, transposed ? from : to, w->dims + 2,
                      &window);
    if (transposed) {
        zc_transposed_begin(ZC_ATTRS(l, ConvTranspose), &window);
        for (int i = 0; i < window.axes; i++) {
            window.in[i] = from[i];
            window.out[i] = to[i];
            window.end[i] = 0;
        }
    }
    return zc_launch_window(l, &window, &p->window);
}

zc_status zc_launch_conv(zc_launch *l)
{
    zc_op op = l->op;
    conv_roles r = roles_of(op);
    const zc_tensor *x = &l->in[0], *w = &l->in[r.w], *y = &l->out[0];
    zc_tensor turned;
    if (zc_conv_taps_first(op, l->attrs)) {
        turned = zc_nchw_shape(w);
        if (zc_conv_banded(op, l->attrs))
            turned.dims[1] = x->dims[x->rank - 1] / zc_conv_groups(op, l->attrs);
        w = &turned;
    }
    struct zc_conv_params p;
    bool last = zc_conv_channels_last(op, l->attrs);
    int first = last ? 1 : 2;
    int64_t groups;
    memset(&p, 0, sizeof p);
    const zc_window_attrs a = window_of(op, l->attrs, &groups);
    conv_size s = size_of(op, w, groups);
    ZC_TRY(check(l, x, w, &s, &a, last ? x->rank - 1 : 1));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    p.batch = x->dims[0];
    p.groups = groups;
    p.ic = s.ic;
    p.oc = s.oc;
    s.pixels = p.batch * zc_dims_span(y->dims, first, first + y->rank - 2);
    ZC_TRY(fill(l, &r, &p));
    ZC_TRY(check_offsets(l, &s, x->rank - 2));
    ZC_TRY(put_window(l, &a, first, w, &p));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (s.ic * s.taps > INT32_MAX - 64 || s.pixels * s.oc * s.groups > INT64_C(1) << 39)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "convolution too large for the GPU kernel");
    return issue(l, &s, &p);
}
