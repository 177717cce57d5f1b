/* Operations on e4m3 or bytes whose sums have a scale and a bias a column: ScaledLinear and
 * ScaledConv. */
#ifndef ZC_OP_SCALED_H
#define ZC_OP_SCALED_H

#include <stdint.h>

#include "op/op.h"

/* Products of bytes whose sums fit 32 bits. */
enum { ZC_SCALED_BYTES_MOST = INT32_MAX / (255 * 128) };

/* The type of their results before an epilogue; ZC_NONE: it is another operation. */
static inline zc_dtype zc_scaled_to(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ScaledLinear) return ((const zc_attrs_ScaledLinear *)attrs)->to;
    if (op == ZC_OP_ScaledConv) return ((const zc_attrs_ScaledConv *)attrs)->to;
    return ZC_NONE;
}

#endif
