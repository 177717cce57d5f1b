/* LinearMoments: what its families share beside the product. */
#ifndef ZC_KERNELS_LINEAR_MOMENTS_H
#define ZC_KERNELS_LINEAR_MOMENTS_H

#include "abi/linear_moments.h"
#include "kernels/matmul.h"

/* The header that zc/row_moments.cuh describes, beside zc_gen_matmul_spec's; nothing for other
 * steps. */
void zc_gen_row_moments(zc_gen *g, const zc_matmul_sizes *s);
/* Is something added to the sums? */
bool zc_gen_moments_skip(const zc_gen *g);
/* Is there more to do with moments than to normalise A's rows? */
bool zc_gen_moments_beside_a(const zc_gen *g);
/* Its parameters; zeros for other steps. */
void zc_launch_row_moments(const zc_launch *l, struct zc_row_moments_params *p);

#endif
