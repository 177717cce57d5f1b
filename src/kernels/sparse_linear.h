/* What the families of SparseLinear share. */
#ifndef ZC_KERNELS_SPARSE_LINEAR_H
#define ZC_KERNELS_SPARSE_LINEAR_H

#include "abi/sparse_linear.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/sparse.h"

typedef struct zc_sparse_sizes {
    zc_sparse w;
    int64_t m_low, m_high; /* a range of zc_gen_size */
} zc_sparse_sizes;

/* The header's types, bias and fused work; may decline. */
zc_status zc_gen_sparse(zc_gen *g, zc_sparse_sizes *s);
zc_status zc_launch_sparse(zc_launch *l, struct zc_sparse_linear_params *p);

#endif
