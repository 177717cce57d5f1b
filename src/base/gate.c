#include "base/gate.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* How many threads are inside, and who waits for them. */
#define CLOSED  (1u << 31)
#define FORKING (1u << 30)
#define INSIDE  (FORKING - 1)

enum { DOZE_NS = 20000, CUDA_DOZES = 1500000 };

static atomic_uint states[ZC_GATES];
static _Thread_local unsigned depths[ZC_GATES];
static pthread_mutex_t one_fork = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool handles_fork;

static void doze(void)
{
    nanosleep(&(struct timespec){.tv_nsec = DOZE_NS}, NULL);
}

/* Keeps newcomers out and waits for all others inside: a signal's handler may have come upon this
 * thread there. most: how long, in naps; 0: for ever. */
static void empty(zc_gate g, unsigned why, long most)
{
    const unsigned own = depths[g] > 0;
    atomic_fetch_or(&states[g], why);
    for (long n = 0; (atomic_load(&states[g]) & INSIDE) > own && (!most || n < most); n++) doze();
}

static void before_fork(void)
{
    pthread_mutex_lock(&one_fork);
    empty(ZC_GATE_ONEDNN, FORKING, 0);
}

static void after_fork(void)
{
    atomic_fetch_and(&states[ZC_GATE_ONEDNN], ~FORKING);
    pthread_mutex_unlock(&one_fork);
}

static void in_child(void)
{
    for (int g = 0; g < ZC_GATES; g++)
        atomic_store(&states[g], (atomic_load(&states[g]) & CLOSED) | (depths[g] > 0));
    pthread_mutex_init(&one_fork, NULL);
}

static void handle_fork(void)
{
    handles_fork = pthread_atfork(before_fork, after_fork, in_child) == 0;
}

static void close_gates(void)
{
    empty(ZC_GATE_ONEDNN, CLOSED, 0);
    empty(ZC_GATE_CUDA, CLOSED, CUDA_DOZES);
}

zc_status zc_gate_close_at_exit(atomic_bool *is_done)
{
    if (atomic_load_explicit(is_done, memory_order_acquire)) return ZC_OK;
    if (atexit(close_gates) != 0) return ZC_ERR_NOMEM;
    atomic_store_explicit(is_done, true, memory_order_release);
    return ZC_OK;
}

zc_status zc_gate_enter(zc_gate g)
{
    pthread_once(&once, handle_fork);
    if (!handles_fork) return ZC_ERR_NOMEM;
    unsigned before = 0;
    while (depths[g] == 0 && (before = atomic_fetch_add(&states[g], 1)) & (CLOSED | FORKING)) {
        atomic_fetch_sub(&states[g], 1);
        if (before & CLOSED) return ZC_ERR_CANCELLED;
        doze();
    }
    depths[g]++;
    return ZC_OK;
}

void zc_gate_leave(zc_gate g)
{
    if (depths[g] && --depths[g] == 0) atomic_fetch_sub(&states[g], 1);
}

unsigned zc_gate_step_out(zc_gate g)
{
    const unsigned times = depths[g];
    if (times) atomic_fetch_sub(&states[g], 1);
    depths[g] = 0;
    return times;
}

zc_status zc_gate_step_in(zc_gate g, unsigned times)
{
    if (!times) return ZC_OK;
    zc_status status = zc_gate_enter(g);
    if (status == ZC_OK) depths[g] = times;
    return status;
}
