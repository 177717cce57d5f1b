/* The mel scale: where the bands of MelWeightMatrix lie. */
#ifndef ZC_OP_MEL_H
#define ZC_OP_MEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Band i rises from edge i to edge i + 1 and falls to edge i + 2; bins + 2 edges, evenly spaced in
 * mel. */
typedef struct zc_mel {
    double low, step;  /* mel */
    double bins, rate; /* the spectrum's bins of one sample rate, and that rate in hertz */
} zc_mel;

/* false: the edge frequencies have no place on the scale. */
static inline bool zc_mel_init(zc_mel *m, int64_t bins, int64_t dft_length, int64_t rate,
                               double low_hertz, double high_hertz)
{
    double high = 2595 * log10(1 + high_hertz / 700);
    m->low = 2595 * log10(1 + low_hertz / 700);
    m->step = (high - m->low) / (double)(bins + 2);
    m->bins = (double)dft_length + 1;
    m->rate = (double)rate;
    return isfinite(m->low) && isfinite(high);
}

/* The spectrum's bin of edge e; false: beyond 1e9. */
static inline bool zc_mel_edge(const zc_mel *m, int64_t e, int64_t *bin)
{
    double hertz = 700 * (pow(10, ((double)e * m->step + m->low) / 2595) - 1);
    double at = floor(m->bins * hertz / m->rate);
    *bin = fabs(at) < 1e9 ? (int64_t)at : 0;
    return fabs(at) < 1e9;
}

#endif
