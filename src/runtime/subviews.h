/* Values that lie within others, on a GPU: parts of the channels of a larger tensor. */
#ifndef ZC_RUNTIME_SUBVIEWS_H
#define ZC_RUNTIME_SUBVIEWS_H

#include "runtime/session.h"

/* The kernel that serves the step on the session's architecture; NULL: none does. */
const zc_pkernel *zc_session_kernel(const zc_session *s, const zc_pstep *step);

/* Sets roots and subviews of session.now, where every value has memory of its own so far. What a
 * Concat puts together along the last axis is written where the whole has it, what a Split or Slice
 * takes is read there, where kernels take a pitch; then these steps have nothing to copy. */
zc_status zc_subviews_find(zc_session *s, zc_diag *diag);

/* Is what the step puts together or takes apart where it belongs, so that there is nothing to copy?
 */
bool zc_subviews_in_place(const zc_session *s, const zc_pstep *step);

#endif
