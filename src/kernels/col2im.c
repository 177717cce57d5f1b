#include <string.h>

#include "abi/col2im.h"
#include "kernels/window.h"

/* ---- the specialisation ---- */

zc_status zc_gen_col2im(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_window_attrs a;
    int64_t group;
    if (y->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(y->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(y->dtype));
    zc_window_attrs_of(g->step->op, g->attrs, &a, &group);
    if (!zc_gen_window_fits(g, &a, y->rank - 2)) return ZC_OK;
    zc_gen_type(g, "X", y->dtype);
    zc_gen_define(g, "ACC", "%s",
                  zc_dtype_is_float(y->dtype) ? zc_gen_compute_type(y->dtype) : "f64");
    return ZC_OK;
}

/* ---- the launch ---- */

/* Window counts of each axis from the image's and the block's sizes. */
static bool count_windows(const zc_window_attrs *a, int axes, const int64_t *image,
                          const int64_t *block, int64_t *out)
{
    for (int i = 0; i < axes; i++) {
        if (block[i] < 1 || block[i] > ZC_WINDOW_LIMIT) return false;
        int64_t span = (block[i] - 1) * zc_window_dilation(a, i) + 1;
        int64_t room =
            image[i] + zc_window_pad(a, axes, i, 0) + zc_window_pad(a, axes, i, 1) - span;
        out[i] = room < 0 ? 0 : room / zc_window_stride(a, i) + 1;
    }
    return true;
}

static zc_status check(zc_launch *l, const int64_t *windows, const int64_t *block, int axes)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    int64_t all = zc_dims_span(windows, 0, axes), taps = zc_dims_span(block, 0, axes), rows;
    if (all == x->dims[2] && taps >= 1 && zc_mul_i64(y->dims[1], taps, &rows) &&
        rows == x->dims[1] && x->dims[0] == y->dims[0])
        return ZC_OK;
    char text[128];
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input does not fit image_shape and block_shape (got %s)",
                   zc_tensor_type_text(x, text, sizeof text));
}

zc_status zc_launch_col2im(zc_launch *l)
{
    const zc_tensor *y = &l->out[0];
    struct zc_col2im_params p;
    zc_window_attrs a;
    zc_window w;
    int64_t group, block[ZC_WINDOW_AXES], windows[ZC_WINDOW_AXES];
    int axes = y->rank - 2, n;
    memset(&p, 0, sizeof p);
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    ZC_TRY(zc_launch_ints(l, 2, block, ZC_WINDOW_AXES, &n));
    if (n != axes || axes < 1)
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "image_shape and block_shape differ in length");
    if (!count_windows(&a, axes, y->dims + 2, block, windows))
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject, "block_shape out of range (need [1, %d])",
                       ZC_WINDOW_LIMIT);
    p.total = zc_tensor_numel(y);
    if (p.total == 0) return ZC_OK;
    ZC_TRY(check(l, windows, block, axes));
    zc_window_resolve(&a, axes, y->dims + 2, windows, block, &w);
    ZC_TRY(zc_launch_window(l, &w, &p.window));
    p.in = l->in[0].data;
    p.out = y->data;
    zc_dim3 grid = {zc_launch_blocks(p.total, 256, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
