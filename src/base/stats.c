#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *zc_sorted(const double *v, size_t n)
{
    double *out = zc_calloc(n ? n : 1, sizeof *out);
    if (!out) return NULL;
    memcpy(out, v, n * sizeof *out);
    qsort(out, n, sizeof *out, ascending);
    return out;
}

double zc_quantile(const double *v, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    double next = i + 1 < n ? v[i + 1] : v[i];
    return v[i] + (at - (double)i) * (next - v[i]);
}

zc_interval zc_median(const double *v, size_t n)
{
    double half = 0.98 * sqrt((double)n), mid = (double)n / 2;
    size_t low = mid - half > 0 ? (size_t)(mid - half) : 0, high = (size_t)(mid + half);
    return (zc_interval){v[low], zc_quantile(v, n, 0.5), v[high < n ? high : n - 1]};
}

bool zc_median_of(const double *v, size_t n, zc_interval *out)
{
    double *in_order = zc_sorted(v, n);
    if (in_order) *out = zc_median(in_order, n);
    free(in_order);
    return in_order != NULL;
}

zc_interval zc_mean(const double *v, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += v[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    const double half = n > 1 ? 1.96 * sqrt(squares / (double)(n - 1) / (double)n) : 0;
    return (zc_interval){mean - half, mean, mean + half};
}
