/* What this machine's GPU can do, measured. */
#ifndef ZC_TUNE_GPU_PEAKS_H
#define ZC_TUNE_GPU_PEAKS_H

#include "planfile/program.h"
#include "runtime/probe.h"

/* GPU number `ordinal`, as CUDA counts. Memory: the best of a few copies within it, of which it
 * takes 512 MiB. Arithmetic: kernels (templates/peak.cu) of random operands in shared memory and
 * registers, so long that clocks have settled to what the GPU's power allows, a second in all.
 * Types that its tensor cores or zc have no product of stay 0, and all do without NVRTC. */
zc_status zc_probe_gpu(int ordinal, zc_peaks *out, zc_diag *diag);

/* A kernel that is measured, a block a multiprocessor; refers to itself. */
typedef struct zc_peak_kernel {
    zc_peak peak;
    double operations; /* of a block in a round */
    zc_pkernel kernel;
    char spec[512];
} zc_peak_kernel;
/* Number i of those for an architecture; false: there are no more. */
bool zc_peak_kernel_of(int arch, size_t i, zc_peak_kernel *out);

#endif
