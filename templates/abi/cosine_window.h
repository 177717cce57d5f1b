/* Parameters of cosine_window.cu. */
#ifndef ZC_ABI_COSINE_WINDOW_H
#define ZC_ABI_COSINE_WINDOW_H

struct zc_cosine_window_params {
    void *out;
    long long total;
    long long n; /* elements of a period; 0: the symmetric window of one element, which is NaN */
    double a[3];
};

#endif
