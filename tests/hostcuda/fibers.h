/* Fibers: stacks to switch between in one host thread. */
#ifndef ZC_HOSTCUDA_FIBERS_H
#define ZC_HOSTCUDA_FIBERS_H

#include <stdbool.h>

typedef struct hc_fiber hc_fiber;

/* A fiber that runs `entry` (which never returns) when switched to; NULL without memory. Stacks are
 * pooled; one that was left in the middle may be used again at once. */
hc_fiber *hc_fiber_take(void (*entry)(void));
/* The fiber is not switched to again; it may be the running one, which then switches away. */
void hc_fiber_give(hc_fiber *f);
/* The host thread's own stack. */
hc_fiber *hc_fiber_host(void);
void hc_fiber_switch(hc_fiber *from, hc_fiber *to);
/* After an error: every taken fiber is given back as it stands. Not called from a fiber. */
void hc_fibers_abandon(void);

#endif
