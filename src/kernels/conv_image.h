/* What convolutions of images share, of floats (conv_image.c) and of bytes (conv_image_quant.c). */
#ifndef ZC_KERNELS_CONV_IMAGE_H
#define ZC_KERNELS_CONV_IMAGE_H

#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/window.h"

struct zc_window_params;

/* A convolution of images and the pooling behind it, windows of one pixel where there is none. */
typedef struct zc_image_form {
    zc_window_attrs a;
    zc_attrs_MaxPool pool;
    bool pools;
    int first;                /* axis of x at which its sides begin */
    zc_tensor w;              /* its shape */
    int64_t images, sides[2]; /* of the result */
} zc_image_form;

/* Attributes and weights (input w) of the step; a reason where no kernel of images takes them,
 * else NULL. */
const char *zc_gen_image_form(zc_gen *g, int w, zc_image_form *out);
/* The sizes that tiles are chosen by, of the result. */
void zc_gen_image_sizes(zc_gen *g, zc_image_form *f);
/* The pooling's window along an axis. */
int64_t zc_image_pool_kernel(const zc_image_form *f, int axis);
int64_t zc_image_pool_stride(const zc_image_form *f, int axis);
/* Both windows, x's and the result's channels. */
void zc_gen_image_spec(zc_gen *g, const zc_image_form *f);

/* Do x's channels fit the weights'? */
zc_status zc_launch_image_check(const zc_launch *l, const zc_tensor *w);
/* The convolution's window, and the pooling's padding in front. */
zc_status zc_launch_image_windows(zc_launch *l, const zc_tensor *w, struct zc_window_params *window,
                                  int before[2]);
/* Tiles of so many rows and columns of the result, down and across each image and in all. */
zc_status zc_launch_image_tiles(const zc_launch *l, int64_t rows, int64_t cols, int *down,
                                int *across, int *tiles);

#endif
