#include "runtime/counters.h"

#include <math.h>

#include "base/mem.h"
#include "base/sized.h"
#include "runtime/plan.h"

static const uint64_t bounds_us[] = {
    1,       2,       5,       10,       20,       50,       100,      200,    500,
    1000,    2000,    5000,    10000,    20000,    50000,    100000,   200000, 500000,
    1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000};
_Static_assert(ZC_COUNTOF(bounds_us) + 1 == ZC_LATENCY_BUCKETS, "the last bucket has no bound");

double zc_latency_bound(size_t i)
{
    return i < ZC_COUNTOF(bounds_us) ? (double)bounds_us[i] * 1e-6 : INFINITY;
}

static size_t bucket_of(uint64_t ns)
{
    size_t i = 0;
    while (i < ZC_COUNTOF(bounds_us) && ns > bounds_us[i] * 1000) i++;
    return i;
}

void zc_count_runs(zc_counts *c, zc_status status, uint64_t runs, uint64_t ns)
{
    if (status != ZC_OK) {
        zc_count(&c->errors[(unsigned)status % ZC_COUNTED_STATUSES], runs);
        return;
    }
    zc_count(&c->latency[bucket_of(ns)], runs);
    zc_count(&c->ns, runs * ns);
}

static uint64_t get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

zc_status zc_plan_counters_fill(const zc_plan *plan, zc_counters *out)
{
    if (!plan || !out) return ZC_ERR_ARG;
    const zc_counts *c = &plan->counts;
    zc_counters own = {.seconds = (double)get(&c->ns) * 1e-9,
                       .shapes = get(&c->shapes),
                       .captures = get(&c->captures),
                       .sessions = get(&c->sessions),
                       .memory = get(&c->memory)};
    for (size_t i = 0; i < ZC_COUNTED_STATUSES; i++) own.errors[i] = get(&c->errors[i]);
    for (size_t i = 0; i < ZC_LATENCY_BUCKETS; i++)
        own.runs += own.latency[i] = get(&c->latency[i]);
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_counters, memory), out, NULL);
}
