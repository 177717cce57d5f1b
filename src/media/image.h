/* Images as models take them. */
#ifndef ZC_MEDIA_IMAGE_H
#define ZC_MEDIA_IMAGE_H

#include "base/diag.h"
#include "op/tensor.h"

/* Most pixels of an image that is read, and of one that is made. */
#define ZC_PIXELS_MAX ((uint64_t)1 << 26)

typedef struct zc_image {
    int width, height, channels; /* 1: grey; 3: red, green, blue */
    uint8_t *data;               /* rows of pixels */
} zc_image;

bool zc_png_is(const uint8_t *data, size_t len);
bool zc_jpeg_is(const uint8_t *data, size_t len);
/* The caller frees out->data. channels: 1 or 3. Transparent pixels lie on white. */
zc_status zc_png_read(const uint8_t *data, size_t len, int channels, zc_image *out, zc_diag *diag);
zc_status zc_jpeg_read(const uint8_t *data, size_t len, int channels, zc_image *out, zc_diag *diag);

/* How a model takes images: a pixel of 0 to 255 becomes (pixel - mean) * scale of its channel. */
typedef struct zc_image_form {
    int width, height; /* 0: the image's */
    bool is_last;      /* channels: NHWC */
    double mean[3], scale[3];
} zc_image_form;

/* A batch of one. Another size is made by a triangle filter as wide as a pixel of the smaller
 * image. */
zc_status zc_image_tensor(const zc_image *image, const zc_image_form *form, zc_dtype dtype,
                          zc_tensor *out, zc_diag *diag);

#endif
