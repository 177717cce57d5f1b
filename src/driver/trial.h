/* Graphs run on this machine's GPU while compiling: kernels of users, checked and measured. */
#ifndef ZC_DRIVER_TRIAL_H
#define ZC_DRIVER_TRIAL_H

#include "cuda/device.h"
#include "ir/graph.h"

/* GPU number `ordinal`, which the first run opens: a context takes longer to make than most runs
 * take. */
typedef struct zc_trial_gpu {
    int ordinal;
    bool is_open;
    zc_device device;
} zc_trial_gpu;
void zc_trial_gpu_close(zc_trial_gpu *gpu);

/* Runs g, which has no weights but its own constants. in, out: by input and output; what is in
 * out[i].data is the caller's to free. us (may be NULL): the time that g's nodes take on the GPU,
 * the sum of their medians in repeated runs, in microseconds. */
zc_status zc_trial_run(zc_trial_gpu *gpu, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                       double *us, zc_diag *diag);
/* The same for zc_rule_device, with `user` a zc_trial_gpu. */
zc_status zc_trial_run_once(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                            zc_diag *diag);

#endif
