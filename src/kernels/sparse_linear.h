/* What the families of SparseLinear share. */
#ifndef ZC_KERNELS_SPARSE_LINEAR_H
#define ZC_KERNELS_SPARSE_LINEAR_H

#include "abi/sparse_linear.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "kernels/matmul.h"
#include "op/sparse.h"

enum {
    ZC_SPARSE_TILE_BYTES = /* of f16 or bf16, with places */
    ZC_SPARSE_PIECES * ZC_SPARSE_SIDE * ZC_SPARSE_PIECE * 2 + ZC_SPARSE_WORDS * 4
};

typedef struct zc_sparse_sizes {
    zc_sparse w;
    int64_t m; /* rows that are counted: the most of a range */
} zc_sparse_sizes;

/* The header's types, bias and fused work; may decline. */
zc_status zc_gen_sparse(zc_gen *g, zc_sparse_sizes *s);
/* The same of products of f16 and bf16, and for Hopper's whether the matrix is a constant. */
zc_status zc_gen_sparse_half(zc_gen *g, zc_sparse_sizes *s);
zc_status zc_gen_sparse_sm90(zc_gen *g, zc_sparse_sizes *s);
zc_status zc_launch_sparse(zc_launch *l, struct zc_sparse_linear_params *p);

#endif
