/* A pool of threads for one session. */
#ifndef ZC_BASE_POOL_H
#define ZC_BASE_POOL_H

#include "base/diag.h"

typedef struct zc_pool zc_pool;

/* threads >= 1 counts the caller: a pool of 1 starts no thread. */
zc_status zc_pool_create(int threads, zc_pool **out, zc_diag *diag);
void zc_pool_destroy(zc_pool **pool);
int zc_pool_threads(const zc_pool *pool); /* NULL: 1 */

/* Calls fn(arg, i) for i in [0, n), on the caller and the workers; returns when all are done. Not
 * to be called from inside fn. Which thread takes which i is not defined; what fn(arg, i) computes
 * must not depend on it. NULL pool: in order on the caller. */
void zc_pool_run(zc_pool *pool, int n, void (*fn)(void *arg, int i), void *arg);

#endif
