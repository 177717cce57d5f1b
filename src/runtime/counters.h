/* What a plan's sessions have done (zc_plan_counters): counted without locks. */
#ifndef ZC_RUNTIME_COUNTERS_H
#define ZC_RUNTIME_COUNTERS_H

#include <stdatomic.h>

#include "zc/rt.h"

typedef struct zc_counts {
    atomic_ullong errors[ZC_COUNTED_STATUSES];
    atomic_ullong latency[ZC_LATENCY_BUCKETS];
    atomic_ullong ns; /* of runs that ended well */
    atomic_ullong shapes, captures;
    atomic_ullong sessions, memory;
} zc_counts;

static inline void zc_count(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* `runs` that ended so, each of which took ns. */
void zc_count_runs(zc_counts *c, zc_status status, uint64_t runs, uint64_t ns);

#endif
