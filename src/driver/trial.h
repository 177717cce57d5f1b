/* Graphs run on this machine's GPU while compiling: kernels of users, checked and measured. */
#ifndef ZC_DRIVER_TRIAL_H
#define ZC_DRIVER_TRIAL_H

#include "ir/graph.h"

/* Runs g, which has no weights but its own constants, on GPU number `ordinal`. in, out: by input
 * and output; what is in out[i].data is the caller's to free. us (may be NULL): the time that g's
 * nodes take on the GPU, the sum of their medians in repeated runs, in microseconds. */
zc_status zc_trial_run(int ordinal, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                       double *us, zc_diag *diag);
/* The same for zc_rule_device, with `user` an int: the GPU's number. */
zc_status zc_trial_run_once(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                            zc_diag *diag);

#endif
