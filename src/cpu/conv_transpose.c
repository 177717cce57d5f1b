/* Reference kernels of ConvTranspose and Col2Im: windows that scatter rather than gather. Each
 * output element collects what falls on it, so that threads never write the same place. */
#include "cpu/conv.h"

/* Taps of all windows of axis i that cover output position `at`: tap t of window o does when
 * o * stride - begin + t * dilation == at. Returns the window, or -1 when tap t has none. */
static int64_t window_on(const zc_window *w, int i, int64_t at, int64_t t)
{
    int64_t d = at + w->begin[i] - t * w->dilation[i];
    if (d < 0 || d % w->stride[i] != 0) return -1;
    d /= w->stride[i];
    return d < w->out[i] ? d : -1;
}

/* Offset among the windows for tap idx[] at position at[], or -1. */
static int64_t windows_on(const zc_window *w, const int64_t *at, const int64_t *tap)
{
    int64_t off = 0;
    for (int i = 0; i < w->axes; i++) {
        int64_t o = window_on(w, i, at[i], tap[i]);
        if (o < 0) return -1;
        off = off * w->out[i] + o;
    }
    return off;
}

typedef struct job {
    /* Seen as the pooling that it reverses: w.in is the image that is written, w.out the windows.
     */
    zc_window w;
    int64_t image, windows, taps;
    const zc_tensor *x, *weight, *bias;
    zc_tensor *y;
    int64_t groups, ic, oc;
} job;

static bool next_tap(const zc_window *w, int64_t *tap)
{
    for (int i = w->axes - 1; i >= 0; i--) {
        if (++tap[i] < w->kernel[i]) return true;
        tap[i] = 0;
    }
    return false;
}

/* ---- ConvTranspose ---- */

static double transposed_sum(const job *j, int64_t n, int64_t m, const int64_t *at)
{
    int64_t g = m / j->oc, tap[ZC_WINDOW_AXES] = {0}, t = 0;
    int64_t x0 = (n * j->groups + g) * j->ic * j->windows;
    int64_t w0 = (g * j->ic * j->oc + m % j->oc) * j->taps;
    double sum = 0;
    for (bool more = j->taps > 0; more; more = next_tap(&j->w, tap), t++) {
        int64_t o = windows_on(&j->w, at, tap);
        if (o < 0) continue;
        for (int64_t c = 0; c < j->ic; c++)
            sum += zc_get(j->x, x0 + c * j->windows + o) *
                   zc_get(j->weight, w0 + c * j->oc * j->taps + t);
    }
    return sum;
}

static void transposed(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[ZC_WINDOW_AXES], m = i / j->image % (j->groups * j->oc);
        zc_coords(i % j->image, j->w.axes, j->w.in, at);
        double sum = transposed_sum(j, i / j->image / (j->groups * j->oc), m, at);
        zc_put(j->y, i, sum + (j->bias ? zc_get(j->bias, m) : 0));
    }
}

zc_status zc_k_ConvTranspose(zc_kctx *k)
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(k, ConvTranspose);
    const zc_tensor *x = &k->in[0], *w = &k->in[1], *y = &k->out[0];
    int axes = x->rank - 2;
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    job j = {.x = x, .weight = w, .y = &k->out[0], .groups = at->group, .oc = w->dims[1]};
    j.ic = x->dims[1] / at->group;
    j.bias = k->nin > 2 && zc_present(&k->in[2]) ? &k->in[2] : NULL;
    if (x->dims[1] != w->dims[0] || y->dims[1] != j.oc * at->group || x->dims[0] != y->dims[0])
        return zc_kernel_fail(k, "input channels and weight channels differ (got %lld and %lld)",
                              (long long)x->dims[1], (long long)w->dims[0]);
    int64_t outputs = zc_tensor_numel(y);
    if (outputs == 0) return ZC_OK;
    zc_window_resolve(&a, axes, y->dims + 2, x->dims + 2, w->dims + 2, &j.w);
    zc_transposed_begin(at, &j.w);
    j.image = zc_dims_span(y->dims, 2, y->rank);
    j.windows = zc_dims_span(x->dims, 2, x->rank);
    j.taps = zc_dims_span(w->dims, 2, w->rank);
    if (j.windows < 0) j.windows = 0; /* an axis is 0: no window covers anything */
    zc_parallel(k, outputs, 64, transposed, &j);
    return ZC_OK;
}

/* ---- Col2Im ---- */

static void columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[ZC_WINDOW_AXES], tap[ZC_WINDOW_AXES] = {0}, t = 0;
        int64_t x0 = i / j->image * j->taps * j->windows;
        double sum = 0;
        zc_coords(i % j->image, j->w.axes, j->w.in, at);
        for (bool more = j->taps > 0; more; more = next_tap(&j->w, tap), t++) {
            int64_t o = windows_on(&j->w, at, tap);
            if (o >= 0) sum += zc_get(j->x, x0 + t * j->windows + o);
        }
        zc_put(j->y, i, sum);
    }
}

/* Window counts of each axis from the image's and the block's sizes. */
static bool count_windows(const zc_window_attrs *a, int axes, const int64_t *image,
                          const int64_t *block, int64_t *out)
{
    for (int i = 0; i < axes; i++) {
        int64_t span;
        if (block[i] < 1 || block[i] > ZC_WINDOW_LIMIT) return false;
        span = (block[i] - 1) * zc_window_dilation(a, i) + 1;
        int64_t room =
            image[i] + zc_window_pad(a, axes, i, 0) + zc_window_pad(a, axes, i, 1) - span;
        out[i] = room < 0 ? 0 : room / zc_window_stride(a, i) + 1;
    }
    return true;
}

zc_status zc_k_Col2Im(zc_kctx *k)
{
    const zc_attrs_Col2Im *at = ZC_ATTRS(k, Col2Im);
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    zc_window_attrs a = {.strides = at->strides, .pads = at->pads, .dilations = at->dilations};
    int axes = y->rank - 2;
    int64_t block[ZC_WINDOW_AXES], windows[ZC_WINDOW_AXES], outputs = zc_tensor_numel(y);
    job j = {.x = x, .y = &k->out[0]};
    if (axes < 1 || zc_tensor_numel(&k->in[2]) != axes)
        return zc_kernel_fail(k, "image_shape and block_shape differ in length");
    for (int i = 0; i < axes; i++) block[i] = zc_geti(&k->in[2], i);
    if (!count_windows(&a, axes, y->dims + 2, block, windows))
        return zc_kernel_fail(k, "block_shape out of range (need [1, %d])", ZC_WINDOW_LIMIT);
    if (outputs == 0) return ZC_OK;
    zc_window_resolve(&a, axes, y->dims + 2, windows, block, &j.w);
    j.image = zc_dims_span(y->dims, 2, y->rank);
    j.windows = zc_dims_span(windows, 0, axes);
    j.taps = zc_dims_span(block, 0, axes);
    int64_t rows;
    if (j.windows != x->dims[2] || j.taps < 1 || !zc_mul_i64(y->dims[1], j.taps, &rows) ||
        rows != x->dims[1] || x->dims[0] != y->dims[0]) {
        char text[128];
        return zc_kernel_fail(k, "input does not fit image_shape and block_shape (got %s)",
                              zc_tensor_type_text(x, text, sizeof text));
    }
    zc_parallel(k, outputs, 64, columns, &j);
    return ZC_OK;
}
