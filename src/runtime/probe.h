/* What this machine's processor can do, measured. */
#ifndef ZC_RUNTIME_PROBE_H
#define ZC_RUNTIME_PROBE_H

#include "zc/rt.h"

typedef struct zc_peaks {
    double bytes;      /* a second, read from memory by all threads */
    double operations; /* a second: additions and multiplications of f32 products */
} zc_peaks;

/* The best of a few rounds on so many threads; takes some tenths of a second and 256 MiB. */
zc_status zc_probe_cpu(int threads, zc_peaks *out, zc_diag *diag);

#endif
