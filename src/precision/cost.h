/* What a part costs in each type: a roofline of the usual chip of each architecture. It
 * orders types and plans; it predicts no times. */
#ifndef ZC_PRECISION_COST_H
#define ZC_PRECISION_COST_H

#include "passes/mixed.h"

/* Architectures (90 for sm_90) that all count; none: the CPU. */
typedef struct zc_precision_chips {
    const int *archs;
    int narchs;
} zc_precision_chips;

/* Microseconds on the slowest. */
double zc_precision_us(const zc_precision_chips *c, const zc_precision_part *part,
                       zc_precision_type type);
/* Microseconds of a step that makes bytes of a value in 16 bits, or the other way round; bytes: in
 * f32. */
double zc_precision_crossing_us(const zc_precision_chips *c, double bytes);
/* Is the part faster in this type than in f32, as far as is known, and than in f16, if that is what
 * its values have without codes, or might have instead of int8 (half)? */
bool zc_precision_faster(const zc_precision_chips *c, const zc_precision_part *part,
                         zc_precision_type type, bool half);
/* Bytes of its weights. */
double zc_precision_weights(const zc_precision_chips *c, const zc_precision_part *part,
                            zc_precision_type type);

#endif
