#include "cpu/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* How many threads are inside, and who waits for them. */
#define CLOSED  (1u << 31)
#define FORKING (1u << 30)
#define INSIDE  (FORKING - 1)

static atomic_uint state;
static _Thread_local unsigned depth;
static pthread_mutex_t one_fork = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool handles_fork;

static void doze(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Keeps newcomers out and waits for all others inside: a signal's handler may have come upon this
 * thread there. */
static void empty(unsigned why)
{
    const unsigned own = depth > 0;
    atomic_fetch_or(&state, why);
    while ((atomic_load(&state) & INSIDE) > own) doze();
}

static void before_fork(void)
{
    pthread_mutex_lock(&one_fork);
    empty(FORKING);
}

static void after_fork(void)
{
    atomic_fetch_and(&state, ~FORKING);
    pthread_mutex_unlock(&one_fork);
}

static void in_child(void)
{
    atomic_store(&state, (atomic_load(&state) & CLOSED) | (depth > 0));
    pthread_mutex_init(&one_fork, NULL);
}

static void handle_fork(void)
{
    handles_fork = pthread_atfork(before_fork, after_fork, in_child) == 0;
}

static void close_gate(void)
{
    empty(CLOSED);
}

zc_status zc_gate_close_at_exit(void)
{
    return atexit(close_gate) == 0 ? ZC_OK : ZC_ERR_NOMEM;
}

zc_status zc_gate_enter(void)
{
    pthread_once(&once, handle_fork);
    if (!handles_fork) return ZC_ERR_NOMEM;
    unsigned before = 0;
    while (depth == 0 && (before = atomic_fetch_add(&state, 1)) & (CLOSED | FORKING)) {
        atomic_fetch_sub(&state, 1);
        if (before & CLOSED) return ZC_ERR_CANCELLED;
        doze();
    }
    depth++;
    return ZC_OK;
}

void zc_gate_leave(void)
{
    if (--depth == 0) atomic_fetch_sub(&state, 1);
}
