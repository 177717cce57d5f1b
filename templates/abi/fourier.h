/* Parameters of fourier.cu. */
#ifndef ZC_ABI_FOURIER_H
#define ZC_ABI_FOURIER_H

#define ZC_FOURIER_STAGES 32

/* Where lines lie in a tensor: element i of line l is (l / group) * outer + (l % group) * line + i
 * * step, counted in pairs or, with parts 1, in real numbers. */
struct zc_fourier_side {
    long long group, outer, line, step;
    int parts;
    int count; /* elements of a line that are read or written; others are zero */
};

struct zc_fourier_params {
    const void *in;
    const void *window; /* NULL: none */
    void *out;
    void *roots;   /* [n] pairs: cos and sin of 2 pi i / n, sin with the transform's sign */
    void *work[2]; /* entries 2 to 4: [lines of the chunk, n] pairs each; stages go from 0 to 1 */
    struct zc_fourier_side from, to;
    long long first, lines; /* of this launch */
    int n, per_block;       /* elements of a transform; lines that a block transforms at a time */
    int mirror;             /* the input is one half of a spectrum of real numbers */
    int inverse;
    int stages, radix[ZC_FOURIER_STAGES]; /* factors of n */
    int radix_now;
    long long span_before; /* product of the factors before radix_now */
    double scale;
};

#endif
