/* Parameters of einsum.cu: loops over the result's labels (outer) and over the summed ones (inner),
 * collapsed. */
#ifndef ZC_ABI_EINSUM_H
#define ZC_ABI_EINSUM_H

enum { ZC_EINSUM_INPUTS = 8, ZC_EINSUM_LOOPS = 16, ZC_EINSUM_THREADS = 256 };

struct zc_einsum_params {
    const void *in[ZC_EINSUM_INPUTS];
    void *out;
    long long total;            /* elements of the result */
    long long rows;             /* combinations of the inner loops without the last */
    int outer_rank, inner_rank; /* inner_rank is at least 1 */
    long long outer[ZC_EINSUM_LOOPS], inner[ZC_EINSUM_LOOPS]; /* sizes */
    /* In elements; 0 where an operand does not have the label or broadcasts. */
    long long outer_stride[ZC_EINSUM_INPUTS][ZC_EINSUM_LOOPS],
        inner_stride[ZC_EINSUM_INPUTS][ZC_EINSUM_LOOPS];
};

#endif
