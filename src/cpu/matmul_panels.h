/* Products by constant matrices that are packed once a plan. */
#ifndef ZC_CPU_MATMUL_PANELS_H
#define ZC_CPU_MATMUL_PANELS_H

#include "cpu/matmul.h"

/* Is input 1 of a step with operands of these types, when it is a constant, read from k->packs? */
bool zc_matmul_packs(zc_op op, zc_dtype a, zc_dtype b, int b_rank);

/* y = a b + c for k's step, of which in[1] is b; *done: it has run, otherwise it is another
 * kernel's. */
zc_status zc_matmul_panels(zc_kctx *k, const zc_mm *mm, bool *done);

#endif
