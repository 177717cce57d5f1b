/* Parameters of multinomial.cu. */
#ifndef ZC_ABI_MULTINOMIAL_H
#define ZC_ABI_MULTINOMIAL_H

struct zc_fault_word;
struct zc_multinomial_params {
    const void *in; /* [rows, classes]: logarithms of weights */
    void *out;      /* [rows, samples] */
    double
        *sums; /* [rows, classes]: running sums of the weights, as multiples of the row's largest */
    double *totals; /* [rows, 2]: the largest logarithm and the sum of the weights */
    long long rows, classes, samples;
    unsigned long long key;
    struct zc_fault_word *fault;
    unsigned step;
};

#endif
