/* Reference kernel of DeformConv. */
#include <math.h>

#include "cpu/conv.h"

typedef struct job {
    const zc_conv *c;
    const zc_tensor *x, *w, *offset, *bias, *mask;
    zc_tensor *y;
    int64_t offset_groups;
} job;

/* Linear interpolation of plane x[plane...] at pos[axes]; 0 outside. */
static double sample(const job *j, int64_t plane, const double *pos)
{
    const zc_window *w = &j->c->w;
    double sum = 0;
    for (int corner = 0; corner < 1 << w->axes; corner++) {
        double weight = 1;
        int64_t at = 0;
        for (int i = 0; i < w->axes && weight != 0; i++) {
            double low = floor(pos[i]), part = pos[i] - low;
            bool high = (corner >> i) & 1;
            double p = high ? low + 1 : low;
            weight *= high ? part : 1 - part;
            if (!(p >= 0 && p < (double)w->in[i]))
                weight = 0;
            else
                at = at * w->in[i] + (int64_t)p;
        }
        if (weight != 0) sum += weight * zc_get(j->x, plane + at);
    }
    return sum;
}

/* Where tap t of the window at out[] samples: the regular place plus the offsets. */
static void tap_position(const job *j, int64_t offset0, int64_t t, const int64_t *out,
                         int64_t out_at, double *pos)
{
    const zc_window *w = &j->c->w;
    int64_t tap[ZC_WINDOW_AXES];
    zc_coords(t, w->axes, w->kernel, tap);
    for (int i = 0; i < w->axes; i++) {
        int64_t at = offset0 + (t * w->axes + i) * j->c->out_plane + out_at;
        pos[i] = (double)(out[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i]) +
                 zc_get(j->offset, at);
    }
}

static double output(const job *j, int64_t n, int64_t m, const int64_t *out, int64_t out_at)
{
    const zc_conv *c = j->c;
    int64_t g = m / c->oc, channels = c->groups * c->ic, per = channels / j->offset_groups;
    double sum = 0;
    for (int64_t ic = 0; ic < c->ic; ic++) {
        int64_t channel = g * c->ic + ic;
        int64_t taps0 = (n * j->offset_groups + channel / per) * c->taps;
        for (int64_t t = 0; t < c->taps; t++) {
            double pos[ZC_WINDOW_AXES];
            tap_position(j, taps0 * c->w.axes * c->out_plane, t, out, out_at, pos);
            double v = sample(j, (n * channels + channel) * c->in_plane, pos) *
                       zc_get(j->w, (m * c->ic + ic) * c->taps + t);
            sum += j->mask ? v * zc_get(j->mask, (taps0 + t) * c->out_plane + out_at) : v;
        }
    }
    return sum + (j->bias ? zc_get(j->bias, m) : 0);
}

static void outputs(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t out[ZC_WINDOW_AXES], channel = i / j->c->out_plane;
        int64_t width = j->c->groups * j->c->oc, at = i % j->c->out_plane;
        zc_coords(at, j->c->w.axes, j->c->w.out, out);
        zc_put(j->y, i, output(j, channel / width, channel % width, out, at));
    }
}

zc_status zc_k_DeformConv(zc_kctx *k)
{
    zc_conv c;
    ZC_TRY(zc_conv_of(k, ZC_IN_DeformConv_x, ZC_IN_DeformConv_w, &c));
    job j = {.c = &c,
             .x = &k->in[ZC_IN_DeformConv_x],
             .w = &k->in[ZC_IN_DeformConv_w],
             .offset = &k->in[ZC_IN_DeformConv_offset],
             .y = &k->out[0]};
    j.offset_groups = ZC_ATTRS(k, DeformConv)->offset_group;
    if (zc_input(k, ZC_IN_DeformConv_bias)) j.bias = &k->in[ZC_IN_DeformConv_bias];
    if (zc_input(k, ZC_IN_DeformConv_mask)) j.mask = &k->in[ZC_IN_DeformConv_mask];
    int64_t taps = c.batch * j.offset_groups * c.taps * c.out_plane;
    if (c.w.axes > 8) return zc_kernel_unsupported(k, "DeformConv over %d spatial axes", c.w.axes);
    if (c.batch && (zc_tensor_numel(j.offset) != taps * c.w.axes ||
                    (j.mask && zc_tensor_numel(j.mask) != taps)))
        return zc_kernel_fail(k, "offset or mask does not fit the output");
    zc_parallel(k, c.batch ? zc_tensor_numel(&k->out[0]) : 0, 8, outputs, &j);
    return ZC_OK;
}
