/* What this machine's processor or GPU can do, measured. */
#ifndef ZC_RUNTIME_PROBE_H
#define ZC_RUNTIME_PROBE_H

#include "zc/rt.h"

/* Arithmetic whose rate is measured: of f32 on the ordinary cores, of the others on a GPU's tensor
 * cores. */
#define ZC_PEAKS(X)                                                                                \
    X(F32, "f32")                                                                                  \
    X(F16, "f16")                                                                                  \
    X(BF16, "bf16")                                                                                \
    X(TF32, "tf32")                                                                                \
    X(E4M3, "e4m3")                                                                                \
    X(S8, "s8")
typedef enum zc_peak {
#define X(id, name) ZC_PEAK_##id,
    ZC_PEAKS(X)
#undef X
        ZC_PEAK_COUNT
} zc_peak;
const char *zc_peak_name(zc_peak peak);

typedef struct zc_peaks {
    double
        bytes; /* a second: read from memory by all threads; on a GPU read and written by copies */
    double operations[ZC_PEAK_COUNT]; /* a second: additions and multiplications of products; 0: not
                                         measured */
    double launch; /* seconds that a GPU's kernel takes which does nothing; 0: not measured */
} zc_peaks;

/* The best of a few rounds on so many threads, memory and f32; takes some tenths of a second and
 * 256 MiB. */
zc_status zc_probe_cpu(int threads, zc_peaks *out, zc_diag *diag);

#endif
