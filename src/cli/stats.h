/* What samples of times say, without any idea of how they are distributed. */
#ifndef ZC_CLI_STATS_H
#define ZC_CLI_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_interval {
    double low, mid, high; /* the median, and where it lies in 95 of 100 cases (order statistics) */
} cli_interval;

/* A sorted copy, which the caller frees; NULL: no memory. */
double *cli_sorted(const double *v, size_t n);
/* Of n > 0 sorted numbers. */
double cli_quantile(const double *v, size_t n, double q);
cli_interval cli_median(const double *v, size_t n);
/* Of n > 0 numbers in any order; false: no memory. */
bool cli_median_of(const double *v, size_t n, cli_interval *out);

/* The chance (Mann and Whitney) that b would be so much longer if it took `factor` times a's time
 * at most; both in the order of the runs. Of medians of stretches of each, as neighbouring runs are
 * alike. 1 without memory. */
double cli_chance(const double *a, size_t na, const double *b, size_t nb, double factor);
/* What a chance must be below to be none. */
#define CLI_CHANCE 0.01

#endif
