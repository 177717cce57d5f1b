/* What products and convolutions of bytes have in common. */
#ifndef ZC_CPU_INTEGER_H
#define ZC_CPU_INTEGER_H

#include "cpu/bytes.h"

/* So many products of two bytes, less their zero points, fit 31 bits. */
#define ZC_BYTE_DEPTH_MAX (INT32_MAX / (255 * 255))

static inline bool zc_is_byte(const zc_tensor *t)
{
    return t->dtype == ZC_U8 || t->dtype == ZC_I8;
}

/* The zero point; 0: none is given. */
int zc_zero_of(const zc_kctx *k, int i);
/* Are all its elements the same? */
bool zc_is_single(const zc_kctx *k, int i);
/* s->scale[i] = t[i] * by / over (op/requant.h), of one number or one a column. */
zc_status zc_scaling_of(zc_kctx *k, const zc_tensor *t, double by, double over, int64_t columns,
                        zc_byte_scaling *s);

#endif
