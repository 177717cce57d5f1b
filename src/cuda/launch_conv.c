#include "abi/conv.h"

#include <string.h>

#include "cuda/conv.h"
#include "cuda/window.h"

enum { BLOCK = 256 };

zc_conv_size zc_conv_size_of(zc_op op, const zc_tensor *w, int64_t groups)
{
    bool transposed = op == ZC_OP_ConvTranspose;
    return (zc_conv_size){.groups = groups,
                          .ic = transposed ? w->dims[0] / groups : w->dims[1],
                          .oc = transposed ? w->dims[1] : w->dims[0] / groups,
                          .taps = zc_dims_span(w->dims, 2, w->rank)};
}

zc_conv_entry zc_conv_choose(const zc_conv_size *s, zc_op op, zc_dtype x)
{
    int64_t k = s->ic * s->taps;
    if (s->oc < 16 || k < 8) return ZC_CONV_DIRECT;
    bool half = (x == ZC_F16 || x == ZC_BF16) && op != ZC_OP_ConvNhwc && op != ZC_OP_DeformConv;
    int64_t big = (s->pixels + 127) / 128 * ((s->oc + 127) / 128) * s->groups;
    bool fills = big >= 128 && s->oc >= 96 && x != ZC_F64 && op != ZC_OP_DeformConv;
    /* Quantised results may need sums of 64 bits, for which the big tiles have no room. */
    if (op == ZC_OP_QLinearConv && k > ZC_CONV_SHORT_K) fills = false;
    if (half) return fills ? ZC_CONV_MMA_BIG : ZC_CONV_MMA_SMALL;
    return fills ? ZC_CONV_BIG : ZC_CONV_SMALL;
}

zc_conv_roles zc_conv_roles_of(zc_op op)
{
    zc_conv_roles r = {1, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (op == ZC_OP_FusedConv || op == ZC_OP_ConvNhwc) r.residual = 3;
    if (op == ZC_OP_ConvInteger) r = (zc_conv_roles){1, -1, -1, -1, -1, 2, 3, -1, -1, -1, -1};
    if (op == ZC_OP_QLinearConv) r = (zc_conv_roles){3, 8, -1, -1, -1, 2, 5, 1, 4, 6, 7};
    if (op == ZC_OP_DeformConv) r = (zc_conv_roles){1, 3, -1, 2, 4, -1, -1, -1, -1, -1, -1};
    return r;
}

static const void *role(const zc_launch *l, int i)
{
    return i < 0 ? NULL : zc_launch_in(l, i);
}

/* A parameter has one element (step 0) or one a channel. */
static zc_status step_of(zc_launch *l, int i, int64_t channels, int *step)
{
    *step = 0;
    if (i < 0 || !zc_launch_has(l, i)) return ZC_OK;
    int64_t n = zc_tensor_numel(&l->in[i]);
    *step = n != 1;
    if (n == 1 || n == channels) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input %d has a wrong length (got %lld, need %lld)", i, (long long)n,
                   (long long)channels);
}

static zc_status check(zc_launch *l, const zc_tensor *x, const zc_tensor *w, const zc_conv_size *s,
                       int axis)
{
    const zc_tensor *y = &l->out[0];
    bool fits = x->rank == w->rank && x->rank == y->rank && x->dims[0] == y->dims[0] &&
                y->dims[axis] == s->groups * s->oc && x->dims[axis] == s->groups * s->ic;
    bool divides = w->dims[0] % s->groups == 0;
    if (fits && divides) return ZC_OK;
    char t[128], u[128];
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

/* Offsets and mask of a deformable convolution. */
static zc_status check_offsets(zc_launch *l, const zc_conv_size *s, int axes)
{
    if (l->op != ZC_OP_DeformConv) return ZC_OK;
    int64_t taps = s->pixels * s->taps * ZC_ATTRS(l, DeformConv)->offset_group;
    if (zc_tensor_numel(&l->in[2]) == taps * axes &&
        (!zc_launch_has(l, 4) || zc_tensor_numel(&l->in[4]) == taps))
        return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject, "offset or mask does not fit the output");
}

static zc_status fill(zc_launch *l, const zc_conv_roles *r, struct zc_conv_params *p)
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
    ZC_TRY(step_of(l, r->w_zero, channels, &p->w_zero_step));
    return step_of(l, r->w_scale, channels, &p->w_scale_step);
}

static zc_status issue(zc_launch *l, const zc_conv_size *s, struct zc_conv_params *p)
{
    zc_conv_entry entry = zc_conv_choose(s, l->op, l->in[0].dtype);
    size_t row = (size_t)(s->ic * s->taps) * zc_dtype_bits(l->in[0].dtype) / 8;
    p->w_aligned = row % 16 == 0 && (uintptr_t)p->w % 16 == 0;
    int64_t side = entry == ZC_CONV_BIG || entry == ZC_CONV_MMA_BIG ? 128 : 64;
    int64_t blocks = (s->pixels + side - 1) / side * ((s->oc + side - 1) / side) * s->groups;
    if (entry == ZC_CONV_DIRECT) blocks = (s->pixels * s->oc * s->groups + BLOCK - 1) / BLOCK;
    zc_dim3 grid = {zc_launch_blocks(blocks, 1, 0), 1, 1};
    return zc_launch_kernel(l, (int)entry, grid, BLOCK, 0, p, sizeof *p);
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
    zc_conv_roles r = zc_conv_roles_of(op);
    const zc_tensor *x = &l->in[0], *w = &l->in[r.w], *y = &l->out[0];
    struct zc_conv_params p;
    zc_window_attrs a;
    bool last = op == ZC_OP_ConvNhwc;
    int first = last ? 1 : 2;
    int64_t groups;
    memset(&p, 0, sizeof p);
    zc_window_attrs_of(op, l->attrs, &a, &groups);
    zc_conv_size s = zc_conv_size_of(op, w, groups);
    ZC_TRY(check(l, x, w, &s, last ? x->rank - 1 : 1));
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
