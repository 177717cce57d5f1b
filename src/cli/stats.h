/* How likely two samples of times are alike. */
#ifndef ZC_CLI_STATS_H
#define ZC_CLI_STATS_H

#include <stddef.h>

/* How much longer is no matter: `factor` times the time, or `more` than it. */
typedef struct cli_limit {
    double factor, more;
} cli_limit;
#define CLI_ANY ((cli_limit){.factor = 1})
/* The chance (Mann and Whitney) that b would be so much longer than a if it were within the limit;
 * both in the order of the runs. Of medians of stretches of each, as neighbouring runs are alike. 1
 * without memory. */
double cli_chance(const double *a, size_t na, const double *b, size_t nb, cli_limit limit);
/* What a chance must be below to be none. */
#define CLI_CHANCE 0.01

#endif
