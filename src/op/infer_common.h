/* Checks and conversions that several families' shape functions need. */
#ifndef ZC_OP_INFER_COMMON_H
#define ZC_OP_INFER_COMMON_H

#include "op/infer.h"

/* Input i, called `what` in the message, has an integer type. An absent input passes. */
zc_status zc_infer_need_int(zc_infer *f, int i, const char *what);
/* Input i has rank 0 or 1. An absent input passes. */
zc_status zc_infer_need_vector(zc_infer *f, int i, const char *what);
/* Input i has one element, in rank 0 or 1. An absent input passes. */
zc_status zc_infer_need_scalar(zc_infer *f, int i, const char *what);
/* Inputs i and j have one element type. An absent input passes. */
zc_status zc_infer_need_alike(zc_infer *f, int i, int j);
/* Input i has a float type; i8 or u8. */
zc_status zc_infer_need_float(zc_infer *f, int i);
zc_status zc_infer_need_8bit(zc_infer *f, int i);
/* Every output has that element type. */
zc_status zc_infer_set_dtype(zc_infer *f, zc_dtype dtype);
/* Output i, where there is one, has that element type. */
void zc_infer_out_dtype(zc_infer *f, int i, zc_dtype dtype);
/* Input i has a rank in [lo, hi]. */
zc_status zc_infer_need_rank(zc_infer *f, int i, int lo, int hi);
/* Of a convolution of input xi, channels last, whose weights may be a band (op/conv_band.h): w
 * becomes that of a convolution with groups. */
zc_status zc_infer_band(zc_infer *f, int xi, zc_type *w);
/* Makes the result of a convolution, channels last, what its pool_shape leaves of it. */
zc_status zc_infer_conv_pool(zc_infer *f);
/* Input i, called `what`, has that shape as far as is known; the error gives both shapes. An absent
 * input passes. */
zc_status zc_infer_need_shape(zc_infer *f, int i, int rank, const zc_dim *dims, const char *what);

/* The only element of integer input i when its value is known, as a constant or a symbol. */
bool zc_infer_scalar(const zc_infer *f, int i, zc_dim *out);
/* a + b and a * b; an error when both are constants and the result is too large. */
zc_status zc_infer_add(zc_infer *f, zc_dim a, zc_dim b, zc_dim *out);
zc_status zc_infer_mul(zc_infer *f, zc_dim a, zc_dim b, zc_dim *out);
/* Output 0 has input 0's elements in their order: takes over the vals when its rank is at most 1.
 */
void zc_infer_pass_vals(zc_infer *f);

/* The element types of an expression's results. */
zc_status zc_dt_pointwise(zc_infer *f);

/* "[2,batch*3]" for messages, in f's arena; "?" when the rank is unknown or memory is exhausted. */
const char *zc_infer_dims_text(zc_infer *f, int rank, const zc_dim *dims);

#endif
