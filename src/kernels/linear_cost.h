/* What products of m rows of 16 bits by a constant matrix are held to take on an architecture's
 * usual chip, for passes, which choose between forms of the matrix. */
#ifndef ZC_KERNELS_LINEAR_COST_H
#define ZC_KERNELS_LINEAR_COST_H

#include <stdint.h>

typedef struct zc_linear_work {
    int64_t m, n, k;
} zc_linear_work;

/* Architectures whose products have models of cost, ascending. */
enum { ZC_LINEAR_ARCHS = 5 };
extern const int zc_linear_archs[ZC_LINEAR_ARCHS];

/* Microseconds beyond what a launch takes anyhow, of the family that would serve it on one of
 * these: by a dense matrix; by one of which two of each four are stored (op/sparse.h), whose sides
 * are whole tiles. INFINITY: none does. */
double zc_linear_dense_us(const zc_linear_work *w, int arch);
double zc_linear_sparse_us(const zc_linear_work *w, int arch);

/* The same of single families. */
double zc_gemv_sm90_us(const zc_linear_work *w);
double zc_gemm_few_sm90_us(const zc_linear_work *w);
double zc_gemv_sparse_sm90_us(const zc_linear_work *w);
double zc_gemm_sparse_sm90_us(const zc_linear_work *w);
double zc_gemm_sparse_mma_us(const zc_linear_work *w, int arch);

/* Sparse products of rows that are not certain have kernels for ranges of them, which end here; the
 * last one stands for rows without an end. */
enum { ZC_SPARSE_RANGES = 8 };
extern const int64_t zc_sparse_ranges[ZC_SPARSE_RANGES];

/* What products of warps (mma) have of a chip: by its makers' data sheets, without sparsity, but
 * for the road from the L2 cache. */
typedef struct zc_mma_chip {
    int arch;
    double products; /* of 16 bits, of a multiprocessor in a cycle */
    double clock;    /* MHz */
    double memory;   /* bytes a microsecond */
    double l2;       /* bytes of a multiprocessor in a cycle */
    int shared;      /* bytes of shared memory */
} zc_mma_chip;
/* One that is not known counts as an A100. */
const zc_mma_chip *zc_mma_chip_of(int arch);

/* A step of a block's tile: cycles of its products, bytes that come to shared memory from the L2
 * cache, and those that products read of it. */
typedef struct zc_mma_step {
    double products, copied, read;
} zc_mma_step;
/* Cycles: the longest of the three, and a tenth of what moves beside products, which is not hidden
 * (a guess). */
double zc_mma_step_cycles(const zc_mma_chip *c, const zc_mma_step *s);

/* Bytes of the rows that are read and made. */
double zc_linear_rows_bytes(const zc_linear_work *w);

#endif
