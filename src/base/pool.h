/* Threads that compute: a crew of workers, and pools, which are what one user has of a crew. */
#ifndef ZC_BASE_POOL_H
#define ZC_BASE_POOL_H

#include <stdbool.h>

#include "base/diag.h"

/* ---- crews: workers that any number of pools share ---- */

typedef struct zc_crew zc_crew;

typedef struct zc_crew_options {
    int threads;     /* with a caller, >= 1: a crew of 1 starts no thread */
    int most;        /* that zc_crew_grow may make of them; 0: threads */
    int spin_us;     /* how long a thread that waits spins before it sleeps; 0: does not */
    const int *cpus; /* worker i runs on cpus[i % ncpus] alone; NULL: wherever the system puts it */
    size_t ncpus;
    /* What each worker does before all else; who starts it waits for that, and fails as it does.
     * NULL: nothing. */
    zc_status (*prepare)(void);
} zc_crew_options;

/* Steps of a model follow one another within microseconds, and waking a sleeper costs tens of them.
 */
enum { ZC_SPIN_US = 100 };

zc_status zc_crew_create(const zc_crew_options *options, zc_crew **out, zc_diag *diag);
/* One more owner; the last one's release ends the workers, but not those of a process that this one
 * was forked from. */
void zc_crew_retain(zc_crew *crew);
void zc_crew_release(zc_crew **crew);
/* Was it made by this process, not by one that this one was forked from? */
bool zc_crew_is_own(const zc_crew *crew);
/* Starts what is missing to so many threads with a caller, at most those that the crew may have.
 * One thread at a time. */
zc_status zc_crew_grow(zc_crew *crew, int threads, zc_diag *diag);
int zc_crew_threads(const zc_crew *crew); /* with a caller */
/* How many CPUs the process may use. */
int zc_usable_cpus(void);

/* ---- pools ---- */

typedef struct zc_pool zc_pool;

/* A pool with a crew of its own. threads >= 1 counts the caller: a pool of 1 starts no thread. */
zc_status zc_pool_create(int threads, zc_pool **out, zc_diag *diag);
/* A pool that divides its work among so many threads, as many as there are of the crew. */
zc_status zc_pool_join(zc_crew *crew, int threads, zc_pool **out, zc_diag *diag);
void zc_pool_destroy(zc_pool **pool);
int zc_pool_threads(const zc_pool *pool); /* NULL: 1 */

/* Calls fn(arg, i) for i in [0, n), on the caller and the workers; returns when all are done. Not
 * to be called from inside fn. Which thread takes which i is not defined; what fn(arg, i) computes
 * must not depend on it. NULL pool: in order on the caller, and so when there are already as many
 * callers of the crew's pools as CPUs. One thread at a time calls with one pool. */
void zc_pool_run(zc_pool *pool, int n, void (*fn)(void *arg, int i), void *arg);

#endif
