/* From a histogram to the range that a symmetric 8-bit type should have. */
#include <math.h>
#include <string.h>

#include "precision/calibration.h"

/* Levels of a sign; linear bins for the entropy's distributions; thresholds that mse tries. */
enum { LEVELS = 128, LINEAR = 2048, TRIALS = 256 };
#define PERCENTILE 0.9999

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Magnitudes of a bin: [low, high). */
static void edges(uint32_t bin, double *low, double *high)
{
    uint32_t magnitude = bin & (ZC_CALIBRATION_BINS / 2 - 1);
    *low = (double)from_bits(magnitude << 19);
    *high = (double)from_bits((magnitude << 19) | 0x7ffff);
}

static double total(const zc_histogram *h)
{
    double n = 0;
    for (size_t i = 0; i < h->len; i++) n += (double)h->data[i].count;
    return n;
}

/* ---- percentile ---- */

static float percentile(const zc_histogram *h, float greatest)
{
    double by_magnitude[ZC_CALIBRATION_BINS / 2] = {0}, seen = 0, all = total(h), low, high;
    for (size_t i = 0; i < h->len; i++)
        by_magnitude[h->data[i].bin & (ZC_CALIBRATION_BINS / 2 - 1)] += (double)h->data[i].count;
    for (uint32_t m = 0; m < ZC_CALIBRATION_BINS / 2; m++) {
        seen += by_magnitude[m];
        edges(m, &low, &high);
        if (seen >= PERCENTILE * all) return fminf((float)high, greatest);
    }
    return greatest;
}

/* ---- mean square error ---- */

static double square_error(const zc_histogram *h, double threshold)
{
    double sum = 0, step = threshold / (LEVELS - 1), rounding = step * step / 12;
    for (size_t i = 0; i < h->len; i++) {
        double low, high, x, off;
        edges(h->data[i].bin, &low, &high);
        x = (low + high) / 2;
        off = x > threshold ? x - threshold : x;
        sum += (double)h->data[i].count * (x > threshold || x < step / 2 ? off * off : rounding);
    }
    return sum;
}

static float least_square(const zc_histogram *h, float greatest)
{
    double best = INFINITY;
    float out = greatest;
    for (int i = TRIALS; i >= 1; i--) {
        double threshold = (double)greatest * i / TRIALS, error = square_error(h, threshold);
        if (error >= best) continue;
        best = error;
        out = (float)threshold;
    }
    return out;
}

/* ---- entropy ---- */

/* The magnitudes in LINEAR bins up to `greatest`; a bin's elements are spread over its width.
 * Zeros, of which a Relu makes many, are exact whatever the threshold. */
static void make_linear(const zc_histogram *h, float greatest, double linear[LINEAR])
{
    memset(linear, 0, LINEAR * sizeof *linear);
    for (size_t i = 0; i < h->len; i++) {
        double low, high, unit = (double)greatest / LINEAR, count = (double)h->data[i].count;
        edges(h->data[i].bin, &low, &high);
        if (low == 0) continue;
        int first = (int)fmin(low / unit, LINEAR - 1), last = (int)fmin(high / unit, LINEAR - 1);
        for (int b = first; b <= last; b++) linear[b] += count / (last - first + 1);
    }
}

/* How much is lost of the first n bins, with all beyond them in the last, when LEVELS levels tell
 * them apart. Kullback and Leibler's divergence. */
static double divergence(const double linear[LINEAR], int n, double all, double beyond)
{
    double sum = 0, inside = all - beyond;
    for (int l = 0; l < LEVELS; l++) {
        int first = (int)((int64_t)l * n / LEVELS), end = (int)((int64_t)(l + 1) * n / LEVELS);
        double level = 0;
        int filled = 0;
        for (int b = first; b < end; b++) {
            level += linear[b];
            filled += linear[b] > 0;
        }
        for (int b = first; b < end; b++) {
            double p = (linear[b] + (b == n - 1 ? beyond : 0)) / all;
            double q = filled && inside > 0 ? level / filled / inside : 0;
            if (p > 0) sum += q > 0 && linear[b] > 0 ? p * log(p / q) : p * 16;
        }
    }
    return sum;
}

static float least_divergence(const zc_histogram *h, float greatest)
{
    double linear[LINEAR], all = 0, beyond = 0, best = INFINITY;
    int out = LINEAR;
    make_linear(h, greatest, linear);
    for (int b = 0; b < LINEAR; b++) all += linear[b];
    for (int n = LINEAR; n >= LEVELS; n -= LINEAR / LEVELS) {
        double lost = divergence(linear, n, all, beyond);
        if (lost < best) {
            best = lost;
            out = n;
        }
        for (int b = n - LINEAR / LEVELS; b < n; b++) beyond += linear[b];
    }
    return (float)((double)greatest * out / LINEAR);
}

float zc_histogram_threshold(const zc_histogram *h, float greatest, zc_calibration_method m)
{
    if (!h->len || !(greatest > 0)) return 0;
    switch (m) {
    case ZC_CALIBRATION_percentile:
        return percentile(h, greatest);
    case ZC_CALIBRATION_entropy:
        return least_divergence(h, greatest);
    case ZC_CALIBRATION_mse:
        return least_square(h, greatest);
    case ZC_CALIBRATION_minmax:
    case ZC_CALIBRATION_METHOD_COUNT:
        break;
    }
    return greatest;
}
