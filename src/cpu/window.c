#include "cpu/window.h"

/* First and number of taps of axis i that fall on the input when the window starts at `start`. */
static void clip(const zc_window *w, int i, int64_t start, int64_t *first, int64_t *count)
{
    int64_t gap = w->dilation[i], lo = start < 0 ? (-start + gap - 1) / gap : 0;
    int64_t hi = start < w->in[i] ? (w->in[i] - start - 1) / gap + 1 : 0; /* one past the last */
    if (hi > w->kernel[i]) hi = w->kernel[i];
    *first = lo;
    *count = hi > lo ? hi - lo : 0;
}

void zc_taps_begin(const zc_window *w, const int64_t *out, zc_taps *t)
{
    int64_t plane = 1;
    uint64_t taps = 1; /* may wrap for poolings, which do not use it */
    *t = (zc_taps){.axes = w->axes, .any = true};
    for (int i = w->axes - 1; i >= 0; i--) {
        int64_t start = out[i] * w->stride[i] - w->begin[i], first;
        clip(w, i, start, &first, &t->n[i]);
        if (t->n[i] == 0) {
            t->any = false;
            return;
        }
        t->x_step[i] = t->n[i] > 1 ? w->dilation[i] * plane : 0;
        t->tap_step[i] = (int64_t)taps;
        t->x += (start + first * w->dilation[i]) * plane;
        t->tap += (int64_t)((uint64_t)first * taps);
        plane *= w->in[i];
        taps *= (uint64_t)w->kernel[i];
    }
}

void zc_taps_next(zc_taps *t)
{
    for (int i = t->axes - 1; i >= 0; i--) {
        t->x += t->x_step[i];
        t->tap = (int64_t)((uint64_t)t->tap + (uint64_t)t->tap_step[i]);
        if (++t->idx[i] < t->n[i]) return;
        t->x -= t->n[i] * t->x_step[i];
        t->tap = (int64_t)((uint64_t)t->tap - (uint64_t)t->n[i] * (uint64_t)t->tap_step[i]);
        t->idx[i] = 0;
    }
    t->any = false;
}
