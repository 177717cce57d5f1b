/* How threads share rows of neighbouring elements (templates/zc/rows.cuh). */
#ifndef ZC_KERNELS_ROWPLAN_H
#define ZC_KERNELS_ROWPLAN_H

#include "kernels/gen.h"
#include "kernels/launch.h"

/* Chooses, behind the prologue and the epilogue, for rows over these dimensions in elements of
 * `bytes`: writes Z_N, Z_MOST and Z_EXACT, sets threads and shared memory, config[0], which is the
 * vector, and *team. Returns the length, or 0 where it is not certain. */
int64_t zc_gen_rows(zc_gen *g, const zc_dim *dims, int n, unsigned bytes, int64_t *team);

/* Behind it, of elements of two bytes: how many blocks stay on a multiprocessor (Z_SHARES), whose
 * threads have so many bytes in registers for each element of a row; 0: each row has its own team,
 * which is the second configuration. */
int64_t zc_gen_rows_shares(zc_gen *g, int64_t length, int64_t team, int64_t held);

/* Issues entry 0, or where the vector is not certain that of `vec` elements or the next one. */
zc_status zc_launch_rows(zc_launch *l, int64_t rows, int64_t length, int64_t team, int64_t shares,
                         unsigned bytes, const void *params, size_t params_bytes);

#endif
