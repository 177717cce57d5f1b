#include "cli/stats.h"

#include <math.h>

#include "base/stats.h"

enum { STRETCHES = 30 };

/* Medians of up to STRETCHES parts of n times, one after the other; how many, 0 without memory. */
static size_t stretch(const double *v, size_t n, double *out)
{
    size_t parts = n < STRETCHES ? n : STRETCHES;
    for (size_t i = 0; i < parts; i++) {
        size_t from = n * i / parts, count = n * (i + 1) / parts - from;
        zc_interval part;
        if (!zc_median_of(v + from, count, &part)) return 0;
        out[i] = part.mid;
    }
    return parts;
}

double cli_chance(const double *a, size_t na, const double *b, size_t nb, cli_limit limit)
{
    double x[STRETCHES], y[STRETCHES], wins = 0, ties = 0;
    size_t m = stretch(a, na, x), n = stretch(b, nb, y);
    if (m == 0 || n == 0) return 1;
    for (size_t j = 0; j < m; j++) {
        const double most = fmax(x[j] * limit.factor, x[j] + limit.more);
        for (size_t i = 0; i < n; i++) {
            wins += y[i] > most;
            ties += y[i] == most;
        }
    }
    double u = wins + ties / 2, pairs = (double)(m * n);
    double spread = sqrt(pairs * (double)(m + n + 1) / 12);
    return 0.5 * erfc((u - pairs / 2 - 0.5) / spread / sqrt(2));
}
