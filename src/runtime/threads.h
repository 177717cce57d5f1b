/* Which threads a session's work is divided among. */
#ifndef ZC_RUNTIME_THREADS_H
#define ZC_RUNTIME_THREADS_H

#include "runtime/session.h"

/* Is it a number of threads that a caller may ask for? */
zc_status zc_threads_check(int threads, zc_diag *diag);
/* Gives the session its pool: of given->shared, or of the threads that the plan's sessions share.
 */
zc_status zc_session_join_threads(zc_session *s, const zc_session_params *given, zc_diag *diag);
void zc_session_leave_threads(zc_session *s);

#endif
