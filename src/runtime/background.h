/* Runs on the CPU that the caller does not wait for: a thread of the session's own. */
#ifndef ZC_RUNTIME_BACKGROUND_H
#define ZC_RUNTIME_BACKGROUND_H

#include "runtime/session.h"

/* Hands a session in use (zc_session_enter_run) to its thread, which the first call starts; the
 * thread runs once and leaves it. When this fails, the session is still the caller's. */
zc_status zc_background_start(zc_session *s, zc_diag *diag);
/* Waits for the run, if `wait`, and gives what came of the last one, once; *done is false while it
 * is in flight. */
zc_status zc_background_settle(struct zc_background *b, bool wait, bool *done, zc_diag *diag);
/* No run is in flight. b may be NULL. */
void zc_background_end(struct zc_background *b);

#endif
