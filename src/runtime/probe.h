/* What this machine's processor or GPU can do, measured. */
#ifndef ZC_RUNTIME_PROBE_H
#define ZC_RUNTIME_PROBE_H

#include "zc/rt.h"

typedef struct zc_peaks {
    double
        bytes; /* a second: read from memory by all threads; on a GPU read and written by copies */
    double
        operations; /* a second: additions and multiplications of f32 products; 0: not measured */
} zc_peaks;

/* The best of a few rounds on so many threads; takes some tenths of a second and 256 MiB. */
zc_status zc_probe_cpu(int threads, zc_peaks *out, zc_diag *diag);
/* GPU number `ordinal`, as CUDA counts: the best of a few copies within its memory, of which it
 * takes 512 MiB. Arithmetic is not measured. */
zc_status zc_probe_gpu(int ordinal, zc_peaks *out, zc_diag *diag);

#endif
