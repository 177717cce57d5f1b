/* Named barriers of a block, the cluster's barrier, and barriers in shared memory (mbarrier). */
#include <stdlib.h>
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
    unsigned warp = 1u << (unsigned)(w - b->warps);
    if (n->warps & warp)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, w->line,
                "a warp comes twice to named barrier %d before the others have come", barrier);
    n->threads = (unsigned)threads;
    n->line = w->line;
    n->arrived += 32;
    n->warps |= warp;
    if (n->arrived < n->threads) return;
    n->arrived = n->warps = 0;
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
    hc_named *n = &t->block->named[barrier];
    unsigned phase = n->phase;
    hc_tell(&n->known);
    hc_meet(kind, line, in, sizeof in, count_warp);
    if (kind != ZC_HOST_NAMED_SYNC) return;
    if (n->phase == phase) hc_wait_for(HC_AT_NAMED, (unsigned)barrier, line);
    hc_learn(&n->known);
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
    hc_tell(&t->block->known);
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
    hc_learn(&t->block->known);
}

void hc_cluster_thread_ends(hc_thread *t)
{
    hc_cluster *c = t->block->cluster;
    c->threads--;
    if (t->at_cluster) c->arrived--;
    if (c->arrived) complete_cluster(c);
}

/* ---- What is known of phases ----
 *
 * A wait tells a phase by its parity alone: who waits for one has to know, by a wait of its own or
 * from others that it met since, that the phase before has ended. */

static void join(hc_known *to, const hc_known *from)
{
    const unsigned count = hc_thread_now()->block->barrier_count;
    for (unsigned i = 0; i < count; i++)
        if (to->phases[i] < from->phases[i]) to->phases[i] = from->phases[i];
}

void hc_tell(hc_known *others)
{
    join(others, &hc_thread_now()->known);
}

void hc_learn(const hc_known *others)
{
    join(&hc_thread_now()->known, others);
}

static void forget_all(hc_block *b)
{
    const hc_known none = {0};
    b->known = none;
    for (unsigned i = 0; i < hc_thread_count(); i++)
        b->threads[i].known = b->warps[i / 32].known = none;
    for (unsigned i = 0; i < HC_NAMED_BARRIERS; i++) b->named[i].known = none;
}

/* ---- Barriers in shared memory ---- */

#define COUNT_MAX ((1u << 20) - 1)

/* What a thread has done with a barrier; phases are counted from 1, 0: nothing. */
typedef struct hc_turn {
    unsigned waited;  /* phases that had ended when it last waited */
    unsigned arrived; /* the phase of its last arrival */
} hc_turn;

/* What lies in memory. */
static uint64_t mark_of(unsigned index, unsigned place)
{
    return 0x6d62617200000000u + ((uint64_t)place << 8) + index;
}

static hc_mbarrier *find(hc_block *b, unsigned place)
{
    for (unsigned i = 0; i < b->barrier_count; i++)
        if (b->barriers[i].place == place) return &b->barriers[i];
    return NULL;
}

/* A barrier that has been initialised. */
static hc_mbarrier *barrier_at(const hc_thread *of, hc_block *b, unsigned address, int line)
{
    uint64_t mark;
    memcpy(&mark, hc_memory_at(of, b, address, sizeof mark, sizeof mark, line), sizeof mark);
    unsigned index = mark & 0xff;
    if (index >= b->barrier_count || mark != mark_of(index, address & HC_PLACE))
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line, "the barrier at 0x%x has %s", address,
                   find(b, address & HC_PLACE) ? "been overwritten" : "not been initialised");
    return &b->barriers[index];
}

/* One of the running block. */
static hc_mbarrier *own_barrier(unsigned address, int line)
{
    hc_block *b = hc_thread_now()->block;
    if (hc_block_at(hc_thread_now(), address, line) != b)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line,
                "0x%x is a barrier of another block of the cluster", address);
    return barrier_at(hc_thread_now(), b, address, line);
}

static hc_turn *turn_of(const hc_mbarrier *m)
{
    const hc_thread *t = hc_thread_now();
    return &m->turns[t->block->rank * hc_thread_count() + t->index];
}

/* Whether the phase ends. */
static void complete(const hc_thread *of, hc_block *b, hc_mbarrier *m, int line)
{
    if (m->pending || m->bytes) return;
    if (m->seen < m->phase)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "phase %u of the barrier at 0x%x ends, and nobody has waited for the one before",
                   m->phase, m->place);
    m->pending = m->count;
    m->phase++;
    hc_wake_all(b, HC_AT_PHASE, m->place);
}

/* Whoever waited for a phase before the first of a barrier for copies took it for another's. */
static void check_vacuous(const hc_thread *of, const hc_mbarrier *m, int line)
{
    if (m->copies && m->vacuous)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "the wait of line %d for the barrier at 0x%x, which counts bytes, returned "
                   "before any phase of it had ended",
                   m->vacuous, m->place);
}

static void add_bytes(const hc_thread *of, hc_mbarrier *m, int64_t bytes, int line)
{
    int64_t sum = m->bytes + bytes;
    if (sum > (int64_t)COUNT_MAX || sum < -(int64_t)COUNT_MAX)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "a barrier that waits for %lld bytes (need at most %u)", (long long)sum,
                   COUNT_MAX);
    m->bytes = sum;
    if (bytes) m->copies = true;
    check_vacuous(of, m, line);
}

static hc_mbarrier *new_barrier(hc_block *b, int line)
{
    if (!b->barriers) b->barriers = calloc(HC_BARRIERS, sizeof *b->barriers);
    if (!b->barriers) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, line, "no memory for barriers");
    if (b->barrier_count == HC_BARRIERS)
        hc_fail(HC_CUDA_ERROR_NOT_SUPPORTED, line, "more than %d barriers", HC_BARRIERS);
    if (b->barrier_count == 0) forget_all(b);
    return &b->barriers[b->barrier_count++];
}

void hc_barrier_init(int line, unsigned barrier, unsigned count)
{
    hc_thread *t = hc_thread_now();
    hc_block *b = t->block;
    if (hc_block_at(t, barrier, line) != b)
        hc_fail(HC_CUDA_ERROR_INVALID_ADDRESS_SPACE, line,
                "0x%x is a barrier of another block of the cluster", barrier);
    if (count == 0 || count > COUNT_MAX)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a barrier for %u arrivals (need 1 to %u)",
                count, COUNT_MAX);
    uint64_t *memory = hc_memory_at(t, b, barrier, sizeof *memory, sizeof *memory, line);
    hc_mbarrier *m = find(b, barrier & HC_PLACE);
    if (!m) m = new_barrier(b, line);
    free(m->turns);
    *m = (hc_mbarrier){.place = barrier & HC_PLACE, .pending = count, .count = count};
    m->turns = calloc((size_t)b->cluster->size * hc_thread_count(), sizeof *m->turns);
    if (!m->turns) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, line, "no memory for barriers");
    *memory = mark_of((unsigned)(m - b->barriers), m->place);
    b->barriers_hidden = true;
}

void hc_barriers_free(hc_block *b)
{
    for (unsigned i = 0; b->barriers && i < HC_BARRIERS; i++) free(b->barriers[i].turns);
    free(b->barriers);
}

void hc_barrier_fence(void)
{
    hc_thread_now()->block->barriers_hidden = false;
}

unsigned hc_barrier_check(const hc_thread *of, hc_block *b, unsigned barrier, int line)
{
    const hc_mbarrier *m = barrier_at(of, b, barrier, line);
    if (b->barriers_hidden)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "barriers were initialised without a zc_barrier_fence");
    return m->phase;
}

void hc_barrier_arrive(int line, unsigned barrier, unsigned bytes, int remote)
{
    hc_thread *t = hc_thread_now();
    hc_block *b = t->block;
    hc_products_leave();
    if (remote) b = hc_block_at(t, barrier, line);
    if (b != t->block) hc_barrier_check(t, b, barrier, line);
    hc_mbarrier *m = remote ? barrier_at(t, b, barrier, line) : own_barrier(barrier, line);
    hc_turn *turn = turn_of(m);
    if (m->pending == 0)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "more arrivals than the %u that the barrier at 0x%x is for", m->count, barrier);
    if (turn->arrived == m->phase + 1)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "a thread arrives twice in phase %u of the barrier at 0x%x", m->phase, barrier);
    turn->arrived = m->phase + 1;
    if (b == t->block) hc_tell(&m->known);
    add_bytes(t, m, bytes, line);
    m->pending--;
    complete(t, b, m, line);
    hc_maybe_yield();
}

void hc_barrier_complete(const hc_thread *of, hc_block *b, unsigned barrier, unsigned bytes,
                         unsigned phase, int line)
{
    hc_mbarrier *m = barrier_at(of, b, barrier, line);
    if (m->phase != phase)
        hc_fail_of(of, HC_CUDA_ERROR_LAUNCH_FAILED, line,
                   "phase %u of the barrier at 0x%x has ended without the copy", phase, barrier);
    add_bytes(of, m, -(int64_t)bytes, line);
    complete(of, b, m, line);
}

/* Before a wait that returns when `ended` phases have. */
static void check_wait(const hc_mbarrier *m, unsigned index, unsigned ended, int line)
{
    if (ended == m->phase && turn_of(m)->waited == ended + 1)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "waits again for what it has waited for: phase %u of the barrier at 0x%x is open",
                ended, m->place);
    if (ended && hc_thread_now()->known.phases[index] + 1 < ended)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "waits for phase %u of the barrier at 0x%x, and cannot know that the phase before "
                "has ended",
                ended - 1, m->place);
}

/* A phase's parity is all that a waiter knows of it: two phases later it would wait again. */
void hc_barrier_wait(int line, unsigned barrier, unsigned parity)
{
    hc_thread *t = hc_thread_now();
    if (parity > 1) hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "parity %u (need 0 or 1)", parity);
    hc_mbarrier *m = own_barrier(barrier, line);
    unsigned index = (unsigned)(m - t->block->barriers);
    unsigned ended = m->phase + (m->phase % 2 == parity);
    check_wait(m, index, ended, line);
    while (m->phase < ended) hc_wait_for(HC_AT_PHASE, m->place, line);
    if (m->phase > ended)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "phase %u of the barrier at 0x%x, and the next, ended before a thread saw it",
                ended - 1, barrier);
    turn_of(m)->waited = ended + 1;
    if (m->seen < ended) m->seen = ended;
    if (t->known.phases[index] < ended) t->known.phases[index] = ended;
    hc_learn(&m->known);
    if (ended == 0) m->vacuous = line;
    check_vacuous(t, m, line);
}
