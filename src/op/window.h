/* Sliding windows: the geometry that convolutions and poolings share. */
#ifndef ZC_OP_WINDOW_H
#define ZC_OP_WINDOW_H

#include <string.h>

#include "op/infer.h"

/* Most spatial axes: those after batch and channels. */
#define ZC_WINDOW_AXES (ZC_MAX_RANK - 2)
/* Largest stride, dilation, padding and kernel size, so that plain int64 arithmetic on positions
 * cannot overflow. */
#define ZC_WINDOW_LIMIT INT32_MAX

/* The attributes as the model gave them; an empty list means ones (pads: zeros). Of a convolution
 * with phases the channels of the result are equal parts, one for each phase of each axis, the last
 * axis's next to each other; on an axis the windows of phases from `late` on begin an element
 * later. */
typedef struct zc_window_attrs {
    zc_ints kernel, strides, pads, dilations;
    zc_ints phases, late; /* empty: none */
    const char *auto_pad; /* NULL: NOTSET */
    bool ceil_mode;
} zc_window_attrs;

/* Collects them from an attribute struct that has kernel_shape, strides, pads and dilations. */
#define ZC_WINDOW_ATTRS(a)                                                                         \
    ((zc_window_attrs){.kernel = (a)->kernel_shape,                                                \
                       .strides = (a)->strides,                                                    \
                       .pads = (a)->pads,                                                          \
                       .dilations = (a)->dilations})

typedef enum zc_auto_pad {
    ZC_PAD_EXPLICIT,
    ZC_PAD_SAME_UPPER,
    ZC_PAD_SAME_LOWER,
    ZC_PAD_VALID
} zc_auto_pad;

/* False for an unknown name. */
bool zc_auto_pad_parse(const char *name, zc_auto_pad *out);

static inline int64_t zc_window_stride(const zc_window_attrs *a, int i)
{
    return a->strides.n ? a->strides.v[i] : 1;
}
static inline int64_t zc_window_dilation(const zc_window_attrs *a, int i)
{
    return a->dilations.n ? a->dilations.v[i] : 1;
}
/* Padding before (side 0) or after (side 1) axis i of `axes`, as given. */
static inline int64_t zc_window_pad(const zc_window_attrs *a, int axes, int i, int side)
{
    return a->pads.n ? a->pads.v[side * axes + i] : 0;
}

/* Phases of all axes; 1: there are none. */
static inline int64_t zc_window_phases(const zc_window_attrs *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->phases.n; i++) n *= a->phases.v[i];
    return n;
}
/* Elements by which the windows of phase number `phase` begin later than the first one's, by axis.
 */
static inline void zc_window_later(const zc_window_attrs *a, int64_t phase, int64_t *later)
{
    for (int i = a->phases.n - 1; i >= 0; i--) {
        later[i] = phase % a->phases.v[i] >= a->late.v[i];
        phase /= a->phases.v[i];
    }
}
/* The most of them on axis i. */
static inline int64_t zc_window_latest(const zc_window_attrs *a, int i)
{
    return a->phases.n && a->late.v[i] < a->phases.v[i];
}
/* Are there no phases, or such as a result of so many channels may have? */
bool zc_window_phases_fit(const zc_window_attrs *a, int axes, int64_t channels);

/* The list is empty or has `need` numbers from `least` to ZC_WINDOW_LIMIT. */
zc_status zc_window_check_list(zc_infer *f, const char *name, zc_ints list, int need,
                               int64_t least);
/* Checks list lengths and ranges, and auto_pad's name. */
zc_status zc_window_check(zc_infer *f, const zc_window_attrs *a, int axes);
/* Output sizes of a convolution or pooling over x's axes from 2 on, with windows of kernel[axes].
 * The attributes have been checked. */
zc_status zc_window_out(zc_infer *f, const zc_window_attrs *a, const zc_type *x,
                        const zc_dim *kernel, zc_dim *out);
/* The same of axis i, everything concrete. */
int64_t zc_window_out_size(const zc_window_attrs *a, int axes, int i, int64_t in, int64_t kernel);

/* Everything concrete. Tap t of window o covers position o*stride - begin + t*dilation. */
typedef struct zc_window {
    int axes;
    int64_t in[ZC_WINDOW_AXES], out[ZC_WINDOW_AXES], kernel[ZC_WINDOW_AXES];
    int64_t stride[ZC_WINDOW_AXES], dilation[ZC_WINDOW_AXES];
    int64_t begin[ZC_WINDOW_AXES], end[ZC_WINDOW_AXES]; /* padding, auto_pad resolved */
} zc_window;

/* in, out, kernel: `axes` sizes each, out as zc_window_out gives it. */
void zc_window_resolve(const zc_window_attrs *a, int axes, const int64_t *in, const int64_t *out,
                       const int64_t *kernel, zc_window *w);

/* What ConvTranspose cuts at the beginning of each axis; w is resolved with the image that is
 * written as `in` and the windows as `out`. */
void zc_transposed_begin(const zc_attrs_ConvTranspose *at, zc_window *w);

#endif
