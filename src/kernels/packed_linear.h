/* What the families of PackedLinear share. */
#ifndef ZC_KERNELS_PACKED_LINEAR_H
#define ZC_KERNELS_PACKED_LINEAR_H

#include "abi/packed_linear.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "kernels/matmul.h"
#include "op/packed.h"

typedef struct zc_packed_sizes {
    zc_packed w;
    zc_dtype codes;
    int64_t blocks;              /* scales of a column */
    int64_t m_low, m_high;       /* a range of zc_gen_size */
    int scale_bytes, zero_bytes; /* of a scale, of a zero point: 0 without */
    bool norm;                   /* are rows normalised? */
    bool gated;                  /* are there two matrices, one of which gates the other? */
} zc_packed_sizes;

/* The header that zc/packed_linear.cuh describes; may decline. */
zc_status zc_gen_packed(zc_gen *g, zc_packed_sizes *s);
/* Its sizes alone, of which the header has nothing yet; may decline. */
zc_status zc_gen_packed_sizes(zc_gen *g, zc_packed_sizes *s);
/* The header that zc/packed_codes.cuh describes. */
void zc_gen_packed_codes(zc_gen *g, const zc_packed_sizes *s);
zc_status zc_launch_packed(zc_launch *l, struct zc_packed_linear_params *p);

#endif
