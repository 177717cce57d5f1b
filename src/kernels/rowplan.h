/* How threads share rows of neighbouring elements (templates/zc/rows.cuh). */
#ifndef ZC_KERNELS_ROWPLAN_H
#define ZC_KERNELS_ROWPLAN_H

#include "kernels/gen.h"
#include "kernels/launch.h"

/* Chooses, behind the prologue and the epilogue, for rows over these dimensions in elements of
 * `bytes`: writes Z_N, Z_MOST and Z_EXACT, sets threads and shared memory, config[0], which is the
 * vector, and *team. */
void zc_gen_rows(zc_gen *g, const zc_dim *dims, int n, unsigned bytes, int64_t *team);

/* Issues entry 0, or where the vector is not certain that of `vec` elements or the next one. */
zc_status zc_launch_rows(zc_launch *l, int64_t rows, int64_t length, int64_t team, unsigned bytes,
                         const void *params, size_t params_bytes);

#endif
