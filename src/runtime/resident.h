/* Runs without transfers, for measurements. */
#ifndef ZC_RUNTIME_RESIDENT_H
#define ZC_RUNTIME_RESIDENT_H

#include "zc/rt.h"

/* Runs once. From then on the inputs that the run brought to the GPU stay there until they are set
 * again, and so do results that the GPU makes and that are not bound. A session on the CPU is
 * refused: it transfers nothing. */
zc_status zc_session_reside(zc_session *session, zc_diag *diag);

#endif
