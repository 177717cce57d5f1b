/* What Resize's shape function and its kernel both need. */
#ifndef ZC_OP_RESIZE_H
#define ZC_OP_RESIZE_H

#include "op/infer.h"

typedef struct zc_resize_axis {
    bool resized;  /* named by `axes`, or all */
    double scale;  /* output per input coordinate */
    int64_t out;   /* size of the output */
    double roi[2]; /* tf_crop_and_resize: start and end; else 0 and 1 */
} zc_resize_axis;

typedef enum zc_resize_mode { ZC_RESIZE_NEAREST, ZC_RESIZE_LINEAR, ZC_RESIZE_CUBIC } zc_resize_mode;
typedef enum zc_resize_coords {
    ZC_COORD_HALF_PIXEL,
    ZC_COORD_HALF_PIXEL_SYMMETRIC,
    ZC_COORD_PYTORCH_HALF_PIXEL,
    ZC_COORD_ALIGN_CORNERS,
    ZC_COORD_ASYMMETRIC,
    ZC_COORD_TF_CROP_AND_RESIZE
} zc_resize_coords;
typedef enum zc_resize_round {
    ZC_NEAREST_PREFER_FLOOR,
    ZC_NEAREST_PREFER_CEIL,
    ZC_NEAREST_FLOOR,
    ZC_NEAREST_CEIL
} zc_resize_round;

typedef struct zc_resize_words {
    zc_resize_mode mode;
    zc_resize_coords coords;
    zc_resize_round round;
} zc_resize_words;

/* The enumerations behind the string attributes. */
zc_status zc_resize_read_words(const zc_attrs_Resize *a, zc_resize_words *out, const char *subject,
                               zc_diag *diag);

/* Sizes and scales by axis for an input of concrete dims. roi, scales and sizes may be NULL
 * (absent). */
zc_status zc_resize_axes(const zc_attrs_Resize *a, int rank, const int64_t *dims,
                         const zc_tensor *roi, const zc_tensor *scales, const zc_tensor *sizes,
                         zc_resize_axis out[ZC_MAX_RANK], const char *subject, zc_diag *diag);

#endif
