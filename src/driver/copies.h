/* Weights that a plan holds in two layouts. */
#ifndef ZC_DRIVER_COPIES_H
#define ZC_DRIVER_COPIES_H

#include "planfile/program.h"

/* A warning for each constant of some size whose elements another one has in another order, zeros
 * aside: two steps want two layouts of one weight. */
zc_status zc_tell_copies(const zc_program *p, zc_diag *diag);

#endif
