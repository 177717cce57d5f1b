/* Sliding windows as kernels see them: always three spatial axes, the leading ones of size 1 where
 * the operation has fewer. */
#ifndef ZC_ABI_WINDOW_H
#define ZC_ABI_WINDOW_H

enum { ZC_WINDOW_DIMS = 3 };

/* Tap t of window o covers position o * stride - begin + t * dilation. All fit in 30 bits. */
struct zc_window_params {
    int in[ZC_WINDOW_DIMS], out[ZC_WINDOW_DIMS], kernel[ZC_WINDOW_DIMS];
    int stride[ZC_WINDOW_DIMS], dilation[ZC_WINDOW_DIMS];
    int begin[ZC_WINDOW_DIMS], end[ZC_WINDOW_DIMS]; /* padding */
};

#endif
