#include "cli/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STRETCHES = 30 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *cli_sorted(const double *v, size_t n)
{
    double *out = zc_calloc(n ? n : 1, sizeof *out);
    if (!out) return NULL;
    memcpy(out, v, n * sizeof *out);
    qsort(out, n, sizeof *out, ascending);
    return out;
}

double cli_quantile(const double *v, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    double next = i + 1 < n ? v[i + 1] : v[i];
    return v[i] + (at - (double)i) * (next - v[i]);
}

cli_interval cli_median(const double *v, size_t n)
{
    double half = 0.98 * sqrt((double)n), mid = (double)n / 2;
    size_t low = mid - half > 0 ? (size_t)(mid - half) : 0, high = (size_t)(mid + half);
    return (cli_interval){v[low], cli_quantile(v, n, 0.5), v[high < n ? high : n - 1]};
}

bool cli_median_of(const double *v, size_t n, cli_interval *out)
{
    double *in_order = cli_sorted(v, n);
    if (in_order) *out = cli_median(in_order, n);
    free(in_order);
    return in_order != NULL;
}

/* Medians of up to STRETCHES parts of n times, one after the other; how many, 0 without memory. */
static size_t stretch(const double *v, size_t n, double *out)
{
    size_t parts = n < STRETCHES ? n : STRETCHES;
    for (size_t i = 0; i < parts; i++) {
        size_t from = n * i / parts, count = n * (i + 1) / parts - from;
        cli_interval part;
        if (!cli_median_of(v + from, count, &part)) return 0;
        out[i] = part.mid;
    }
    return parts;
}

double cli_chance(const double *a, size_t na, const double *b, size_t nb, double factor)
{
    double x[STRETCHES], y[STRETCHES], wins = 0, ties = 0;
    size_t m = stretch(a, na, x), n = stretch(b, nb, y);
    if (m == 0 || n == 0) return 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            wins += y[i] > x[j] * factor;
            ties += y[i] == x[j] * factor;
        }
    double u = wins + ties / 2, pairs = (double)(m * n);
    double spread = sqrt(pairs * (double)(m + n + 1) / 12);
    return 0.5 * erfc((u - pairs / 2 - 0.5) / spread / sqrt(2));
}
