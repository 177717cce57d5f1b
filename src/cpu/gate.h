/* The way into oneDNN, whose caches and generated code belong to the whole process, not to a
 * session. It keeps no state of zc's but who is inside:
 *   - exit(): oneDNN's own exit handlers free the code that threads may be running. Before they
 *     do, the gate closes: nobody enters any more, and those inside are waited for.
 *   - fork(): oneDNN's locks would be left locked in the child by threads that it does not have.
 *     fork() waits until nobody is inside.
 * A thread that is inside may enter again. */
#ifndef ZC_CPU_GATE_H
#define ZC_CPU_GATE_H

#include "zc/status.h"

/* ZC_ERR_CANCELLED: the process is exiting; ZC_ERR_NOMEM: none for the handler of fork(). Without
 * success there is nothing to leave. */
zc_status zc_gate_enter(void);
void zc_gate_leave(void);
/* Makes exit() close the gate before it runs the handlers that are there by now. */
zc_status zc_gate_close_at_exit(void);

#endif
