/* Which kernel of conv.cu serves a convolution. */
#ifndef ZC_CUDA_CONV_H
#define ZC_CUDA_CONV_H

#include "op/dtype.h"
#include "op/op.h"

/* Sums of so many products of 8-bit numbers less their zero points fit in 32 bits. */
#define ZC_CONV_SHORT_K 32768

typedef enum zc_conv_entry {
    ZC_CONV_BIG,     /* 128 x 128 tiles */
    ZC_CONV_SMALL,   /* 64 x 64 tiles */
    ZC_CONV_DIRECT,  /* a thread for each element */
    ZC_CONV_MMA_BIG, /* the same by tensor cores */
    ZC_CONV_MMA_SMALL
} zc_conv_entry;

typedef struct zc_conv_size {
    int64_t groups, ic, oc; /* channels of one group */
    int64_t taps, pixels;   /* of all images */
} zc_conv_size;
/* Channels from the shape of the weights; pixels is left 0. */
zc_conv_size zc_conv_size_of(zc_op op, const zc_tensor *w, int64_t groups);

/* x: element type of the input. */
zc_conv_entry zc_conv_choose(const zc_conv_size *s, zc_op op, zc_dtype x);

/* Which inputs of the operation are what; -1: it has none. */
typedef struct zc_conv_roles {
    int w, bias, residual;
    int offset, mask;
    int x_zero, w_zero, x_scale, w_scale, y_scale, y_zero;
} zc_conv_roles;
zc_conv_roles zc_conv_roles_of(zc_op op);

#endif
