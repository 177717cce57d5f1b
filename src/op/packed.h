/* Matrices of codes as PackedLinear has them: pieces of 16 bytes along the summed axis, of 16
 * columns side by side. */
#ifndef ZC_OP_PACKED_H
#define ZC_OP_PACKED_H

#include "base/mem.h"
#include "op/tensor.h"

enum {
    ZC_PACKED_COLUMNS = 16,
    ZC_PACKED_BYTES = 16,
    ZC_PACKED_GATED = 8,  /* columns of one of two matrices, beside those of the other */
    ZC_PACKED_LEAST = 16, /* codes that share a scale, or a multiple of these */
    ZC_PACKED_STEP = 2,   /* pieces of a step of the kernels along the summed axis */
    ZC_PACKED_ROWS = 32 /* more are faster by floats; rows that are not certain are taken for few */
};

typedef struct zc_packed {
    int piece; /* codes */
    int64_t n, k;
    int64_t groups, pieces; /* of n and k */
} zc_packed;

/* Codes of a piece; 0: no codes of that type are packed. */
static inline int zc_packed_piece(zc_dtype dtype)
{
    if (dtype == ZC_I4 || dtype == ZC_U4 || dtype == ZC_F4E2M1) return 2 * ZC_PACKED_BYTES;
    return dtype == ZC_I8 || dtype == ZC_U8 ? ZC_PACKED_BYTES : 0;
}

/* Are there kernels for codes of that type, of n columns and k places of the summed axis? */
static inline bool zc_packed_fits(zc_dtype dtype, int64_t n, int64_t k)
{
    const int piece = zc_packed_piece(dtype);
    return piece && n > 0 && k > 0 && n % ZC_PACKED_COLUMNS == 0 &&
           k % (ZC_PACKED_STEP * piece) == 0;
}

/* The type of the codes' zero points; ZC_NONE: they have none. */
static inline zc_dtype zc_packed_zero(zc_dtype codes)
{
    if (codes == ZC_F4E2M1) return ZC_NONE;
    return codes == ZC_I4 || codes == ZC_I8 ? ZC_I8 : ZC_U8;
}

/* false: not of that form, or too large. */
static inline bool zc_packed_of(const zc_tensor *t, zc_packed *out)
{
    *out = (zc_packed){.piece = zc_packed_piece(t->dtype)};
    if (!out->piece || t->rank != 4) return false;
    out->groups = t->dims[0];
    out->pieces = t->dims[1];
    return out->groups > 0 && out->pieces > 0 && t->dims[2] == ZC_PACKED_COLUMNS &&
           t->dims[3] == out->piece && zc_mul_i64(out->groups, ZC_PACKED_COLUMNS, &out->n) &&
           zc_mul_i64(out->pieces, out->piece, &out->k);
}

/* Where the code of column n and place k of the summed axis is. */
static inline int64_t zc_packed_at(const zc_packed *p, int64_t n, int64_t k)
{
    return ((n / ZC_PACKED_COLUMNS * p->pieces + k / p->piece) * ZC_PACKED_COLUMNS +
            n % ZC_PACKED_COLUMNS) *
               p->piece +
           k % p->piece;
}

/* The same of one of so many scales of a column. */
static inline int64_t zc_packed_scale_at(int64_t blocks, int64_t n, int64_t block)
{
    return (n / ZC_PACKED_COLUMNS * blocks + block) * ZC_PACKED_COLUMNS + n % ZC_PACKED_COLUMNS;
}

#endif
