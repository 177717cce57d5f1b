/* Steps that will be slow on the CPU. */
#ifndef ZC_DRIVER_SLOW_H
#define ZC_DRIVER_SLOW_H

#include "planfile/program.h"

/* A warning for each operation of which steps of some size will run the reference kernel. */
zc_status zc_tell_slow_steps(const zc_program *p, zc_diag *diag);

#endif
