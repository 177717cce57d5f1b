/* The scale by which sums of bytes become bytes again, on every device. */
#ifndef ZC_OP_REQUANT_H
#define ZC_OP_REQUANT_H

#include <math.h>
#include <stdbool.h>

/* Of scales between them a GPU makes products of whole numbers. */
#define ZC_REQUANT_LEAST 0x1p-24
#define ZC_REQUANT_END   0x1p-2

/* Some sum of 32 bits times a multiple of 2^-32 may lie in the middle between two bytes: it goes to
 * the even one, and such scales stay as they are. */
static inline bool zc_requant_ties(double scale)
{
    return scale * 0x1p32 == floor(scale * 0x1p32);
}

/* The scale that is used for `scale`: an odd multiple of 2^-40, with which no sum of 32 bits lies
 * in such a middle, so that rounding a product of whole numbers takes no more than its upper half.
 * Sums up to 2^24 are off by 2^-16 of a byte at most, which is what products in f32 would be. */
static inline double zc_requant_scale(double scale)
{
    if (!(scale >= ZC_REQUANT_LEAST && scale < ZC_REQUANT_END) || zc_requant_ties(scale))
        return scale;
    return (2 * floor(scale * 0x1p39) + 1) * 0x1p-40;
}

/* Do sums of up to this magnitude become bytes by whole numbers on a GPU? Far below 2^23: no sum of
 * 256ths then exceeds 32 bits. */
static inline bool zc_requant_is_whole(double scale, double sum)
{
    return scale >= ZC_REQUANT_LEAST && scale < ZC_REQUANT_END && !zc_requant_ties(scale) &&
           scale * sum < 0x1p21;
}

#endif
