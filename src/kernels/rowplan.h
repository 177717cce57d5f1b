/* How threads share rows of neighbouring elements (templates/zc/rows.cuh). */
#ifndef ZC_KERNELS_ROWPLAN_H
#define ZC_KERNELS_ROWPLAN_H

#include "kernels/gen.h"
#include "kernels/launch.h"

/* Threads of a team, and how many blocks stay on a multiprocessor; 0: each row has its own team. */
#define ZC_ROWS_CONFIG "team", "shares"

/* Chooses, behind the prologue and the epilogue, for rows over these dimensions in elements of
 * `bytes`: writes Z_N, Z_MOST and Z_EXACT, sets threads and shared memory, config[0], which is the
 * vector, and the two numbers from *team on. held: bytes that a thread of a team which stays has in
 * registers for each element of a row; 0: such kernels are not wanted. */
void zc_gen_rows(zc_gen *g, const zc_dim *dims, int n, unsigned bytes, int64_t held, int64_t *team);

/* Issues entry 0, or where the vector is not certain that of `vec` elements or the next one. */
zc_status zc_launch_rows(zc_launch *l, int64_t rows, int64_t length, const int64_t *team,
                         unsigned bytes, const void *params, size_t params_bytes);

#endif
