/* Device memory that a step takes for itself while it runs, found without a device. */
#ifndef ZC_KERNELS_WORKSPACE_H
#define ZC_KERNELS_WORKSPACE_H

#include "kernels/launch.h"
#include "planfile/program.h"

/* Of a step with these types and this kernel on the usual chip of `arch`: in[step->nin] and
 * out[step->nout] are concrete, of dtype ZC_NONE where absent; data is only looked at of inputs
 * that the host needs, NULL where it is not known. false: a run alone can tell. */
bool zc_step_workspace(const zc_pstep *step, const zc_pkernel *kernel, int arch,
                       const zc_tensor *in, const zc_tensor *out, uint64_t *bytes);

#endif
