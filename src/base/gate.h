/* The ways into libraries whose state belongs to the whole process, not to a session. A gate keeps
 * no state of zc's but who is inside:
 *   - exit(): the libraries' own exit handlers take apart what threads may be using. Before they
 *     do, the gates close: nobody enters any more, and those inside are waited for.
 *   - fork(): oneDNN's locks would be left locked in the child by threads that it does not have.
 *     fork() waits until nobody is inside its gate. Nobody uses CUDA in a child.
 * A thread that is inside may enter again. */
#ifndef ZC_BASE_GATE_H
#define ZC_BASE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "zc/status.h"

typedef enum zc_gate {
    ZC_GATE_ONEDNN,
    ZC_GATE_CUDA, /* the driver and NVRTC; exit() waits for half a minute at most */
    ZC_GATES
} zc_gate;

/* ZC_ERR_CANCELLED: the process is exiting; ZC_ERR_NOMEM: none for the handler of fork(). Without
 * success there is nothing to leave. */
zc_status zc_gate_enter(zc_gate g);
void zc_gate_leave(zc_gate g);

/* To wait outside for what may never come. Returns how often the thread had entered; coming back
 * fails when the process is exiting, and then the thread stays outside: leaving does nothing. */
unsigned zc_gate_step_out(zc_gate g);
zc_status zc_gate_step_in(zc_gate g, unsigned times);

/* Makes exit() close the gates before it runs the handlers that are there by now; nothing when
 * *is_done, which success sets. */
zc_status zc_gate_close_at_exit(atomic_bool *is_done);

#endif
