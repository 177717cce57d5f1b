/* What convolutions of images share. */
#include "abi/window.h"
#include "base/number.h"
#include "kernels/conv_image.h"
#include "kernels/window.h"
#include "op/nhwc.h"

/* ---- the specialisation ---- */

/* What is said of an axis; 1 where nothing is. */
static int64_t of_axis(zc_ints list, int axis)
{
    return list.n ? list.v[axis] : 1;
}

int64_t zc_image_pool_kernel(const zc_image_form *f, int axis)
{
    return of_axis(f->pool.kernel_shape, axis);
}

int64_t zc_image_pool_stride(const zc_image_form *f, int axis)
{
    return of_axis(f->pool.strides, axis);
}

const char *zc_gen_image_form(zc_gen *g, int w, zc_image_form *out)
{
    const zc_op op = g->step->op;
    const zc_pvalue *weights = zc_gen_in(g, w);
    int64_t group;
    *out = (zc_image_form){.pool = zc_conv_pool(op, g->attrs),
                           .pools = zc_conv_pools(op, g->attrs),
                           .first = op == ZC_OP_ConvImage ? 2 : 1};
    zc_window_attrs_of(op, g->attrs, &out->a, &group);
    if (!zc_gen_static(weights)) return "weights whose shape only a run knows";
    zc_gen_tensor(weights, &out->w);
    const zc_attrs_Conv conv = zc_nchw_image(op, g->attrs);
    if (!zc_conv_image_fits(&conv, &out->w)) return "its windows or channels";
    return !out->pools || zc_conv_image_pool_fits(&out->pool) ? NULL : "its pooling";
}

void zc_gen_image_sizes(zc_gen *g, zc_image_form *f)
{
    enum { USUAL = 112, MANY = 32, PIXELS = 32768 /* of the convolution */ };
    const zc_pvalue *y = zc_gen_out(g, 0);
    int64_t low, high, steps[2];
    for (int i = 0; i < 2; i++) steps[i] = zc_image_pool_stride(f, i);
    const int64_t bound = PIXELS / (steps[0] * steps[1]);
    for (int i = 0; i < 2; i++) f->sides[i] = zc_gen_const_dim(y, 1 + i);
    zc_gen_size(g, y->dims, 3, &bound, 1, &low, &high);
    if (f->sides[0] <= 0 || f->sides[1] <= 0)
        for (int i = 0; i < 2; i++) f->sides[i] = USUAL / steps[i];
    f->images = high == INT64_MAX ? MANY : zc_ceil_div(high, f->sides[0] * f->sides[1]);
}

/* Where the convolution is pooled, its result's sizes are as certain as x's. */
static void put_window(zc_gen *g, const zc_image_form *f)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *y = zc_gen_out(g, 0);
    zc_gen_window_dims d = {.axes = 2};
    for (int i = 0; i < 2; i++) {
        const zc_dim in = x->dims[f->first + i];
        const int64_t kernel = f->w.dims[1 + i];
        d.in[i] = in;
        d.out[i] = !f->pools ? y->dims[1 + i]
                   : zc_dim_is_const(in)
                       ? zc_dim_const(zc_window_out_size(&f->a, 2, i, in.k, kernel))
                       : in;
        d.kernel[i] = zc_dim_const(kernel);
    }
    zc_gen_window(g, &f->a, &d);
}

void zc_gen_image_spec(zc_gen *g, const zc_image_form *f)
{
    static const char *const names[][2] = {{"POOL_KERNEL1", "POOL_STRIDE1"},
                                           {"POOL_KERNEL2", "POOL_STRIDE2"}};
    put_window(g, f);
    zc_gen_define(g, "POOLS", "%d", f->pools);
    for (int i = 0; i < 2; i++) {
        zc_gen_define(g, names[i][0], "%d", (int)zc_image_pool_kernel(f, i));
        zc_gen_define(g, names[i][1], "%d", (int)zc_image_pool_stride(f, i));
    }
    zc_gen_define(g, "CHANNELS", "%d", (int)f->w.dims[3]);
    zc_gen_define(g, "OUT", "%d", (int)f->w.dims[0]);
}

/* ---- the launch ---- */

static int first_side(const zc_launch *l)
{
    return l->op == ZC_OP_ConvImage ? 2 : 1;
}

zc_status zc_launch_image_check(const zc_launch *l, const zc_tensor *w)
{
    const zc_tensor *x = &l->in[0];
    const int axis = l->op == ZC_OP_ConvImage ? 1 : 3;
    if (x->rank == 4 && x->dims[axis] == w->dims[3]) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %lld channels, need %lld)",
                   (long long)x->dims[axis], (long long)w->dims[3]);
}

/* The pooling's padding. */
static void put_before(const zc_launch *l, const int64_t sides[2], int before[2])
{
    const zc_attrs_MaxPool pool = zc_conv_pool(l->op, l->attrs);
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    if (!pool.kernel_shape.n) return;
    zc_window_attrs_of(ZC_OP_MaxPool, &pool, &a, &group);
    zc_window_resolve(&a, 2, sides, l->out[0].dims + 1, pool.kernel_shape.v, &window);
    for (int i = 0; i < 2; i++) before[i] = (int)window.begin[i];
}

zc_status zc_launch_image_windows(zc_launch *l, const zc_tensor *w, struct zc_window_params *params,
                                  int before[2])
{
    const zc_tensor *x = &l->in[0];
    zc_window_attrs a;
    zc_window window;
    int64_t group, sides[2];
    zc_conv_sides(l->op, l->attrs, x, w, sides);
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + first_side(l), sides, w->dims + 1, &window);
    put_before(l, sides, before);
    return zc_launch_window(l, &window, params);
}

zc_status zc_launch_image_tiles(const zc_launch *l, int64_t rows, int64_t cols, int *down,
                                int *across, int *tiles)
{
    const int64_t *y = l->out[0].dims;
    const int64_t high = zc_ceil_div(y[1], rows), wide = zc_ceil_div(y[2], cols);
    if (high * wide > INT32_MAX / y[0])
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    *down = (int)high;
    *across = (int)wide;
    *tiles = (int)(high * wide * y[0]);
    return ZC_OK;
}
