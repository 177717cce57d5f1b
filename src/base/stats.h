/* What samples say, without any idea of how they are distributed. */
#ifndef ZC_BASE_STATS_H
#define ZC_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct zc_interval {
    double low, mid, high; /* the median, and where it lies in 95 of 100 cases (order statistics) */
} zc_interval;

/* A sorted copy, which the caller frees; NULL: no memory. */
double *zc_sorted(const double *v, size_t n);
/* Of n > 0 sorted numbers. */
double zc_quantile(const double *v, size_t n, double q);
zc_interval zc_median(const double *v, size_t n);
/* Of n > 0 numbers in any order; false: no memory. */
bool zc_median_of(const double *v, size_t n, zc_interval *out);
/* The mean of n > 0 numbers, and where it lies so if they are many, or normal. */
zc_interval zc_mean(const double *v, size_t n);

#endif
