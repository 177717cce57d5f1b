// Sliding windows. Included after spec.h, which defines for each of the three axes Z_IN0, Z_OUT0, Z_KERNEL0,
// Z_STRIDE0, Z_DILATION0, Z_BEGIN0 and Z_END0: constants, or fields of p.window.
#pragma once

struct zc_window {
    int in[3], out[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
};

template <class P> ZC_DEV zc_window zc_window_of(const P &p) {
    return zc_window{{Z_IN0, Z_IN1, Z_IN2},
                     {Z_OUT0, Z_OUT1, Z_OUT2},
                     {Z_KERNEL0, Z_KERNEL1, Z_KERNEL2},
                     {Z_STRIDE0, Z_STRIDE1, Z_STRIDE2},
                     {Z_DILATION0, Z_DILATION1, Z_DILATION2},
                     {Z_BEGIN0, Z_BEGIN1, Z_BEGIN2},
                     {Z_END0, Z_END1, Z_END2}};
}

ZC_DEV i64 zc_in_plane(const zc_window &w) { return (i64)w.in[0] * w.in[1] * w.in[2]; }
ZC_DEV i64 zc_out_plane(const zc_window &w) { return (i64)w.out[0] * w.out[1] * w.out[2]; }
ZC_DEV i64 zc_taps(const zc_window &w) { return (i64)w.kernel[0] * w.kernel[1] * w.kernel[2]; }

// Coordinates of element i of a plane of these sizes.
template <class INDEX> ZC_DEV void zc_coords(INDEX i, const int size[3], int at[3]) {
    const INDEX row = i / (INDEX)size[2], slab = row / (INDEX)size[1];
    at[2] = (int)(i - row * (INDEX)size[2]);
    at[1] = (int)(row - slab * (INDEX)size[1]);
    at[0] = (int)slab;
}

// The taps [lo, hi) of one window that lie on the input, and where tap 0 lies.
struct zc_window_span {
    int start[3], lo[3], hi[3];
};
ZC_DEV zc_window_span zc_window_clip(const zc_window &w, const int at[3]) {
    zc_window_span s;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int start = at[d] * w.stride[d] - w.begin[d], gap = w.dilation[d];
        const int fit = start < w.in[d] ? (w.in[d] - start - 1) / gap + 1 : 0;
        s.start[d] = start;
        s.lo[d] = start < 0 ? (gap - 1 - start) / gap : 0;
        s.hi[d] = fit < w.kernel[d] ? fit : w.kernel[d];
    }
    return s;
}
