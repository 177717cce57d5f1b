/* Named barriers of a block, the cluster's barrier, and barriers in shared memory (mbarrier). */
#include <string.h>

#include "kernel_run.h"

/* ---- Named barriers ---- */

/* A warp has arrived, all of it. */
static void count_warp(hc_warp *w, unsigned turn)
{
    hc_block *b = hc_thread_now()->block;
    int barrier, threads;
    memcpy(&barrier, w->lanes[turn].slot[0], sizeof barrier);
    memcpy(&threads, w->lanes[turn].slot[0] + sizeof barrier, sizeof threads);
    hc_named *n = &b->named[barrier];
    if (n->arrived && n->threads != (unsigned)threads)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, w->line,
                "named barrier %d for %d threads, in line %d for %u", barrier, threads, n->line,
                n->threads);
    n->threads = (unsigned)threads;
    n->line = w->line;
    n->arrived += 32;
    if (n->arrived < n->threads) return;
    n->arrived = 0;
    n->phase++;
    hc_wake_all(b, HC_AT_NAMED, (unsigned)barrier);
}

void hc_named_barrier(zc_host_kind kind, int line, int barrier, int threads)
{
    hc_thread *t = hc_thread_now();
    int in[2] = {barrier, threads};
    if (barrier < 1 || barrier >= HC_NAMED_BARRIERS)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "named barrier %d (need 1 to 15)", barrier);
    if (threads < 32 || threads % 32 || (unsigned)threads > hc_thread_count())
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "a named barrier for %d threads of %u (need whole warps)", threads,
                hc_thread_count());
    if (hc_warp_now()->present != 0xffffffffu)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a named barrier in a warp of fewer than 32");
    const hc_named *n = &t->block->named[barrier];
    unsigned phase = n->phase;
    hc_meet(kind, line, in, sizeof in, count_warp);
    if (kind == ZC_HOST_NAMED_SYNC && n->phase == phase)
        hc_wait_for(HC_AT_NAMED, (unsigned)barrier, line);
}

/* ---- The cluster's barrier ---- */

static void complete_cluster(hc_cluster *c)
{
    if (c->arrived < c->threads) return;
    c->arrived = 0;
    c->phase++;
    for (unsigned rank = 0; rank < c->size; rank++) {
        hc_block *b = c->blocks[rank];
        for (unsigned i = 0; i < hc_thread_count(); i++) b->threads[i].at_cluster = false;
        hc_wake_all(b, HC_AT_CLUSTER, 0);
    }
}

void hc_cluster_arrive(int line)
{
    hc_thread *t = hc_thread_now();
    if (t->cluster_open)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "zc_cluster_arrive twice, without zc_cluster_wait between");
    t->cluster_open = t->at_cluster = true;
    t->block->cluster->arrived++;
    complete_cluster(t->block->cluster);
    hc_maybe_yield();
}

void hc_cluster_wait(int line)
{
    hc_thread *t = hc_thread_now();
    if (!t->cluster_open)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "zc_cluster_wait without zc_cluster_arrive");
    t->cluster_open = false;
    if (t->at_cluster) hc_wait_for(HC_AT_CLUSTER, 0, line);
}

void hc_cluster_thread_ends(hc_thread *t)
{
    hc_cluster *c = t->block->cluster;
    c->threads--;
    if (t->at_cluster) c->arrived--;
    if (c->arrived) complete_cluster(c);
}

/* ---- Barriers in shared memory ---- */

#define COUNT_BITS 20
#define COUNT_MAX  ((1u << COUNT_BITS) - 1)

/* In 8 bytes; the last bit is 0, unlike in memory that nobody has written. */
typedef struct mbarrier {
    uint64_t pending : COUNT_BITS, count : COUNT_BITS;
    int64_t bytes : 22;
    uint64_t phase : 1, hidden : 1;
} mbarrier;
_Static_assert(sizeof(mbarrier) == 8, "a barrier is 8 bytes");

/* A barrier that has been initialised. */
static mbarrier *barrier_at(const hc_thread *of, hc_block *b, unsigned address, int line)
{
    mbarrier *m = hc_memory_at(of, b, address, sizeof *m, sizeof *m, line);
    if (m->hidden || m->count == 0)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "the barrier at 0x%x has not been initialised", address);
    return m;
}

/* One of the running block. */
static mbarrier *own_barrier(unsigned address, int line)
{
    hc_block *b = hc_thread_now()->block;
    if (hc_block_at(hc_thread_now(), address, line) != b)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line,
                "0x%x is a barrier of another block of the cluster", address);
    return barrier_at(hc_thread_now(), b, address, line);
}

static unsigned tag_of(hc_block *b, unsigned address)
{
    return b->rank << ZC_HOST_RANK_SHIFT | (address & ((1u << ZC_HOST_RANK_SHIFT) - 1));
}

/* Whether the phase ends. */
static void complete(hc_block *b, mbarrier *m, unsigned address)
{
    if (m->pending || m->bytes) return;
    m->pending = m->count;
    m->phase ^= 1;
    hc_wake_all(b, HC_AT_PHASE, tag_of(b, address));
}

static void add_bytes(const hc_thread *of, mbarrier *m, int64_t bytes, int line)
{
    int64_t sum = m->bytes + bytes;
    if (sum > (int64_t)COUNT_MAX || sum < -(int64_t)COUNT_MAX)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "a barrier that waits for %lld bytes (need at most %u)", (long long)sum,
                   COUNT_MAX);
    m->bytes = sum;
}

void hc_barrier_init(int line, unsigned barrier, unsigned count)
{
    hc_thread *t = hc_thread_now();
    if (hc_block_at(t, barrier, line) != t->block)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line,
                "0x%x is a barrier of another block of the cluster", barrier);
    if (count == 0 || count > COUNT_MAX)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a barrier for %u arrivals (need 1 to %u)",
                count, COUNT_MAX);
    mbarrier *m = hc_memory_at(t, t->block, barrier, sizeof *m, sizeof *m, line);
    *m = (mbarrier){.pending = count, .count = count};
    t->block->barriers_hidden = true;
}

void hc_barrier_fence(void)
{
    hc_thread_now()->block->barriers_hidden = false;
}

void hc_barrier_check(const hc_thread *of, hc_block *b, unsigned barrier, int line)
{
    barrier_at(of, b, barrier, line);
    if (b->barriers_hidden)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "barriers were initialised without a zc_barrier_fence");
}

void hc_barrier_arrive(int line, unsigned barrier, unsigned bytes, int remote)
{
    hc_thread *t = hc_thread_now();
    hc_block *b = t->block;
    if (remote) b = hc_block_at(t, barrier, line);
    if (b != t->block) hc_barrier_check(t, b, barrier, line);
    mbarrier *m = remote ? barrier_at(t, b, barrier, line) : own_barrier(barrier, line);
    if (m->pending == 0)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "more arrivals than the %u that the barrier at 0x%x is for", (unsigned)m->count,
                barrier);
    add_bytes(t, m, bytes, line);
    m->pending--;
    complete(b, m, barrier);
    hc_maybe_yield();
}

void hc_barrier_complete(const hc_thread *of, hc_block *b, unsigned barrier, unsigned bytes,
                         int line)
{
    mbarrier *m = barrier_at(of, b, barrier, line);
    add_bytes(of, m, -(int64_t)bytes, line);
    complete(b, m, barrier);
}

/* A phase's parity is all that a waiter knows of it: two phases later it waits again. */
void hc_barrier_wait(int line, unsigned barrier, unsigned parity)
{
    hc_block *b = hc_thread_now()->block;
    if (parity > 1) hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "parity %u (need 0 or 1)", parity);
    while (own_barrier(barrier, line)->phase == parity)
        hc_wait_for(HC_AT_PHASE, tag_of(b, barrier), line);
}
