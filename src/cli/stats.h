/* How likely two samples of times are alike. */
#ifndef ZC_CLI_STATS_H
#define ZC_CLI_STATS_H

#include <stddef.h>

/* The chance (Mann and Whitney) that b would be so much longer if it took `factor` times a's time
 * at most; both in the order of the runs. Of medians of stretches of each, as neighbouring runs are
 * alike. 1 without memory. */
double cli_chance(const double *a, size_t na, const double *b, size_t nb, double factor);
/* What a chance must be below to be none. */
#define CLI_CHANCE 0.01

#endif
