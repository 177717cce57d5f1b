#ifndef ZC_KERNELS_HOST_STEPS_H
#define ZC_KERNELS_HOST_STEPS_H

#include "planfile/program.h"

/* By step: does it only compute numbers that the host needs (shapes, axes, counts)? NULL: no
 * memory. */
bool *zc_host_steps(const zc_program *p, zc_arena *arena);

#endif
