#ifndef ZC_KERNELS_PLACE_H
#define ZC_KERNELS_PLACE_H

#include "planfile/program.h"

/* By step: does it only compute numbers that the host needs (shapes, axes, counts)? NULL: no
 * memory. */
bool *zc_place_shapes(const zc_program *p, zc_arena *arena);

#endif
