/* Runs a grid: threads are fibers that run until they wait.
 *
 * When all wait, what is under way goes on: copies, then products, each as late as can be. Then the
 * next cluster of blocks begins, so that blocks run one after the other until they need each other.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel_run.h"

#define PATIENCE       1024  /* looks at memory in vain before others go on */
#define PATIENCE_LATER 64    /* when it has looked before */
#define MAX_ROUNDS     10000 /* of nothing but that */

typedef struct hc_queue {
    hc_thread *first, *last;
} hc_queue;

/* The launch that runs now; one at a time, under the driver's lock. */
static struct {
    const hc_launch *launch;
    zc_host_state *state;
    unsigned count; /* threads of a block */
    hc_thread *current;
    hc_block *entered;    /* the block of `current`, while its shared memory is there */
    hc_cluster *starting; /* some of its threads have not begun */
    hc_queue ready, looking;
    unsigned rounds; /* in which threads only looked */
    hc_result error;
    zc_host_dim ids[HC_MAX_THREADS];
    uint64_t random;
    /* Clusters: i * step + first modulo their number, the launch order or one of many others. */
    zc_host_dim cluster;
    uint64_t clusters, begun, at, step;
    unsigned resident, max_resident; /* blocks */
} run;

/* Blocks made so far, and those not in use. */
static struct {
    hc_block **all;
    unsigned count;
    hc_block *free;
} pool;

hc_thread *hc_thread_now(void)
{
    return run.current;
}

hc_warp *hc_warp_now(void)
{
    return &run.current->block->warps[run.current->index / 32];
}

const zc_host_state *hc_state_now(void)
{
    return run.state;
}

const hc_launch *hc_launch_now(void)
{
    return run.launch;
}

unsigned hc_thread_count(void)
{
    return run.count;
}

/* ---- Errors ---- */

__attribute__((format(printf, 3, 0))) static void report(const hc_thread *t, int line,
                                                         const char *format, va_list args)
{
    char text[256];
    zc_host_dim b = t->block->bid, id = run.ids[t->index];
    vsnprintf(text, sizeof text, format, args);
    hc_message("kernel %s, block (%u, %u, %u), thread (%u, %u, %u), line %d: %s",
               run.launch->function->kernel->name, b.x, b.y, b.z, id.x, id.y, id.z, line, text);
}

__attribute__((noreturn)) static void leave(hc_result code)
{
    run.error = code;
    hc_fiber_switch(run.current->fiber, hc_fiber_host());
    abort(); /* nobody switches back */
}

void hc_fail_of(const hc_thread *t, hc_result code, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(t, line, format, args);
    va_end(args);
    leave(code);
}

void hc_fail(hc_result code, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(run.current, line, format, args);
    va_end(args);
    leave(code);
}

static const char *wait_text(hc_wait wait)
{
    static const char *const texts[] = {
#define X(name, text) text,
        HC_WAITS(X)
#undef X
    };
    return texts[wait];
}

/* One line for the threads of a block that wait in the same place. */
static void report_waiting(const hc_block *b, unsigned first)
{
    const hc_thread *t = &b->threads[first];
    unsigned same = 0;
    for (unsigned i = 0; i < run.count; i++) {
        bool is_same = b->threads[i].wait == t->wait && b->threads[i].line == t->line;
        if (is_same && i < first) return;
        same += is_same;
    }
    zc_host_dim id = run.ids[first];
    hc_message("  block (%u, %u, %u), thread (%u, %u, %u) and %u more wait for %s in line %d",
               b->bid.x, b->bid.y, b->bid.z, id.x, id.y, id.z, same - 1, wait_text(t->wait),
               t->line);
}

static bool is_waiting(const hc_thread *t)
{
    return t->wait != HC_RUNS && t->wait != HC_ENDED;
}

static void report_stuck(void)
{
    hc_message("kernel %s: dead-lock, no thread can go on", run.launch->function->kernel->name);
    for (unsigned p = 0; p < pool.count; p++) {
        const hc_block *b = pool.all[p];
        if (!b->cluster || b->ended == run.count) continue;
        if (b->ended)
            hc_message("  block (%u, %u, %u): %u threads of %u have ended", b->bid.x, b->bid.y,
                       b->bid.z, b->ended, run.count);
        for (unsigned i = 0; i < run.count; i++)
            if (is_waiting(&b->threads[i])) report_waiting(b, i);
    }
    run.error = HC_CUDA_ERROR_LAUNCH_FAILED;
}

/* ---- Order ---- */

unsigned hc_draw(unsigned below)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return (unsigned)((run.random >> 32) * below >> 32);
}

static void shuffle_order(hc_block *b)
{
    if (!hc_gpu.shuffle) return;
    for (unsigned i = run.count; i > 1; i--) {
        unsigned j = hc_draw(i);
        unsigned short swap = b->order[i - 1];
        b->order[i - 1] = b->order[j];
        b->order[j] = swap;
    }
}

static void append(hc_queue *q, hc_thread *t)
{
    t->next = NULL;
    if (q->first)
        q->last->next = t;
    else
        q->first = t;
    q->last = t;
}

/* ---- Blocks ---- */

static hc_block *new_block(void)
{
    hc_block **all = realloc(pool.all, (pool.count + 1) * sizeof *all);
    if (!all) return NULL;
    pool.all = all;
    hc_block *b = calloc(1, sizeof *b);
    if (b) pool.all[pool.count++] = b;
    return b;
}

static hc_block *take_block(void)
{
    hc_block *b = pool.free;
    if (b)
        pool.free = b->next;
    else
        b = new_block();
    return b;
}

static void give_block(hc_block *b)
{
    b->cluster = NULL;
    b->next = pool.free;
    pool.free = b;
}

static void prepare_warps(hc_block *b)
{
    for (unsigned i = 0; i * 32 < run.count; i++) {
        hc_warp *w = &b->warps[i];
        unsigned lanes = run.count - i * 32;
        w->present = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        w->arrived = w->turn = 0;
        for (int turn = 0; turn < 2; turn++) {
            w->lanes[turn].present = w->present;
            if (lanes < 32) memset(w->lanes[turn].slot, 0xFF, sizeof w->lanes[turn].slot);
        }
    }
}

static bool prepare_block(hc_block *b, hc_cluster *c, unsigned rank)
{
    b->cluster = c;
    b->rank = rank;
    b->started = b->ended = b->at_barrier = b->barrier_count = 0;
    b->barriers_hidden = b->grid_waited = false;
    for (unsigned i = 0; i < run.count; i++) {
        b->order[i] = (unsigned short)i;
        b->threads[i].block = b;
        b->threads[i].index = i;
        b->threads[i].wait = HC_RUNS; /* what ended in an error may have left it waiting */
    }
    memset(b->named, 0, sizeof b->named);
    prepare_warps(b);
    hc_groups_prepare(b);
    shuffle_order(b);
    return hc_memory_prepare(b);
}

/* The cluster `index` of the grid, its blocks side by side. */
static zc_host_dim block_id(uint64_t index, unsigned rank)
{
    zc_host_dim c = run.cluster, g = run.launch->grid;
    uint64_t nx = g.x / c.x, ny = g.y / c.y;
    return (zc_host_dim){(unsigned)(index % nx) * c.x + rank % c.x,
                         (unsigned)(index / nx % ny) * c.y + rank / c.x % c.y,
                         (unsigned)(index / nx / ny) * c.z + rank / c.x / c.y};
}

/* The next cluster of the grid; false when there is none, or no room or memory for it. */
static bool begin_cluster(void)
{
    unsigned size = run.cluster.x * run.cluster.y * run.cluster.z;
    if (run.begun == run.clusters || run.resident + size > run.max_resident) return false;
    hc_cluster *c = NULL;
    for (unsigned rank = 0; rank < size; rank++) {
        hc_block *b = take_block();
        if (b && !c) {
            c = &b->own_cluster;
            *c = (hc_cluster){.size = size, .threads = size * run.count};
        }
        if (!b || !prepare_block(b, c, rank)) {
            run.error = HC_CUDA_ERROR_OUT_OF_MEMORY;
            return false;
        }
        b->bid = block_id(run.at, rank);
        c->blocks[rank] = b;
    }
    run.at = (run.at + run.step) % run.clusters;
    run.begun++;
    run.resident += size;
    run.starting = c;
    return true;
}

static void end_block(hc_block *b)
{
    hc_cluster *c = b->cluster;
    hc_copies_block_ends(b);
    if (++c->ended < c->size) return;
    hc_memory_enter(NULL);
    run.entered = NULL;
    for (unsigned i = c->size; i > 0; i--) give_block(c->blocks[i - 1]);
    run.resident -= c->size;
}

/* ---- Threads ---- */

static void select_thread(hc_thread *t)
{
    if (t->block != run.entered) {
        hc_memory_enter(t->block);
        run.entered = t->block;
        run.state->bid = t->block->bid;
        run.state->smem = t->block->smem;
        run.state->cluster_rank = t->block->rank;
    }
    run.current = t;
    run.state->tid = run.ids[t->index];
    run.state->lane = t->index % 32;
    run.state->patience = PATIENCE;
}

static hc_thread *new_thread(void)
{
    hc_cluster *c = run.starting;
    hc_block *b = c->blocks[c->started];
    hc_thread *t = &b->threads[b->order[b->started++]];
    if (b->started == run.count && ++c->started == c->size) run.starting = NULL;
    t->fiber = NULL;
    t->wait = HC_RUNS;
    t->pending_count = t->groups = t->store_group = t->product_group = t->products = 0;
    t->cluster_open = t->at_cluster = t->product_fence = false;
    return t;
}

/* Whether a thread that has not begun goes next. */
static bool prefer_new(void)
{
    if (!run.starting) return false;
    return !run.ready.first || (hc_gpu.shuffle && hc_draw(2));
}

/* Threads that look at memory may look again: true when there are some. */
static bool look_again(void)
{
    if (!run.looking.first || ++run.rounds > MAX_ROUNDS) return false;
    run.ready = run.looking;
    run.looking = (hc_queue){0};
    return true;
}

/* Nobody can go on: what is under way does. False if there is nothing. */
static bool advance(void)
{
    if (hc_copies_advance() || hc_products_advance() || begin_cluster()) {
        run.rounds = 0;
        return true;
    }
    return look_again();
}

/* Who goes next; NULL at the end, and when nobody can. One without a fiber has not begun. */
static hc_thread *next_thread(void)
{
    while (run.error == HC_CUDA_SUCCESS) {
        if (prefer_new()) return new_thread();
        if (run.ready.first) {
            hc_thread *t = run.ready.first;
            run.ready.first = t->next;
            return t;
        }
        if (!advance()) break;
    }
    if (run.error == HC_CUDA_SUCCESS && run.resident) report_stuck();
    return NULL;
}

static void thread_main(void);

static hc_fiber *fiber_of(hc_thread *t)
{
    if (!t->fiber) t->fiber = hc_fiber_take(thread_main);
    if (!t->fiber) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, 0, "no memory for a thread's stack");
    return t->fiber;
}

/* With a seed, what is under way sometimes goes on although threads can. */
static void advance_early(void)
{
    if (!hc_gpu.shuffle || hc_draw(8)) return;
    if (!hc_draw(2) || !hc_products_advance()) hc_copies_advance();
}

/* The running thread waits: another one goes on. */
static void wait_here(void)
{
    advance_early();
    hc_thread *self = run.current, *next = next_thread();
    if (next == self) return;
    hc_fiber *to = next ? fiber_of(next) : hc_fiber_host();
    if (next) select_thread(next);
    hc_fiber_switch(self->fiber, to);
}

void hc_wait_for(hc_wait wait, unsigned tag, int line)
{
    run.current->wait = wait;
    run.current->tag = tag;
    run.current->line = line;
    wait_here();
}

void hc_wake(hc_thread *t)
{
    t->wait = HC_RUNS;
    if (hc_gpu.shuffle && run.ready.first && hc_draw(2)) {
        t->next = run.ready.first;
        run.ready.first = t;
    } else {
        append(&run.ready, t);
    }
}

void hc_wake_all(hc_block *b, hc_wait wait, unsigned tag)
{
    for (unsigned i = 0; i < run.count; i++) {
        hc_thread *t = &b->threads[b->order[i]];
        if (t->wait == wait && t->tag == tag) hc_wake(t);
    }
}

void hc_maybe_yield(void)
{
    if (!hc_gpu.shuffle || hc_draw(4)) return;
    append(&run.ready, run.current);
    wait_here();
}

static void look_later(void)
{
    run.current->wait = HC_FOR_CHANGE;
    run.current->line = 0;
    append(&run.looking, run.current);
    wait_here();
    run.current->wait = HC_RUNS;
    run.state->patience = PATIENCE_LATER;
}

static unsigned long long clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static void grid_wait(void)
{
    run.current->block->grid_waited = true;
}

static void constant_load(void)
{
    run.current->loads_constant = true;
}

void hc_check_grid_wait(int line)
{
    bool constant = run.current->loads_constant;
    run.current->loads_constant = false;
    if (run.launch->overlaps && !run.current->block->grid_waited && !constant)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line, "a copy of device memory before zc_grid_wait");
}

static void end_thread(hc_thread *t)
{
    run.rounds = 0;
    hc_groups_thread_ends(t);
    t->wait = HC_ENDED;
    hc_cluster_thread_ends(t);
    if (++t->block->ended == run.count) end_block(t->block);
}

/* A fiber runs threads to their end as long as there are new ones. */
static void thread_main(void)
{
    hc_fiber *self = run.current->fiber;
    hc_thread *next;
    for (;;) {
        run.launch->function->kernel->run(run.launch->params);
        end_thread(run.current);
        next = next_thread();
        if (!next || next->fiber) break;
        next->fiber = self;
        select_thread(next);
    }
    hc_fiber_give(self);
    if (next) select_thread(next);
    hc_fiber_switch(self, next ? next->fiber : hc_fiber_host());
    abort();
}

/* ---- Barrier and collectives ---- */

void hc_sync(int line)
{
    hc_block *b = run.current->block;
    if (b->at_barrier && line != b->barrier_line)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "divergent barrier: other threads wait in the one of line %d", b->barrier_line);
    b->barrier_line = line;
    hc_tell(&b->known);
    if (++b->at_barrier < run.count) {
        hc_wait_for(HC_AT_BARRIER, 0, line);
    } else {
        b->at_barrier = 0;
        shuffle_order(b);
        hc_wake_all(b, HC_AT_BARRIER, 0);
    }
    hc_learn(&b->known);
}

static void release_warp(hc_warp *w)
{
    hc_thread *first = run.current - run.current->index % 32;
    w->arrived = 0;
    w->turn ^= 1;
    for (unsigned l = 0; l < 32; l++)
        if (w->present >> l & 1 && first + l != run.current) hc_wake(first + l);
}

unsigned hc_meet(zc_host_kind kind, int line, const void *in, unsigned size,
                 void (*finish)(hc_warp *w, unsigned turn))
{
    hc_warp *w = hc_warp_now();
    unsigned turn = w->turn, lane = run.current->index % 32;
    if (w->arrived && (w->kind != kind || w->line != line))
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "divergent warp: other lanes wait in the collective of line %d", w->line);
    w->kind = kind;
    w->line = line;
    memcpy(w->lanes[turn].slot[lane], in, size);
    w->arrived |= 1u << lane;
    hc_tell(&w->known);
    if (w->arrived != w->present) {
        hc_wait_for(HC_AT_WARP, 0, line);
    } else {
        if (finish) finish(w, turn);
        release_warp(w);
    }
    hc_learn(&w->known);
    return turn;
}

static const zc_host_lanes *exchange(zc_host_kind kind, int line, const void *in, unsigned size)
{
    return &hc_warp_now()->lanes[hc_meet(kind, line, in, size, NULL)];
}

const zc_host_api hc_kernel_api = {
    .sync = hc_sync,
    .exchange = exchange,
    .mma = hc_mma,
    .mma_sparse = hc_mma_sparse,
    .ldmatrix = hc_ldmatrix,
    .cp_async = hc_cp_async,
    .cp_async_commit = hc_cp_async_commit,
    .cp_async_wait = hc_cp_async_wait,
    .yield = look_later,
    .clock_ns = clock_ns,
    .grid_wait = grid_wait,
    .constant_load = constant_load,
    .smem_address = hc_smem_address,
    .aligned = hc_aligned,
    .stmatrix = hc_stmatrix,
    .named = hc_named_barrier,
    .registers = hc_registers,
    .cluster_arrive = hc_cluster_arrive,
    .cluster_wait = hc_cluster_wait,
    .barrier_init = hc_barrier_init,
    .barrier_fence = hc_barrier_fence,
    .barrier_arrive = hc_barrier_arrive,
    .barrier_wait = hc_barrier_wait,
    .tensor_prefetch = hc_tensor_prefetch,
    .load = hc_load,
    .store = hc_store,
    .store_commit = hc_store_commit,
    .store_wait = hc_store_wait,
    .async_fence = hc_async_fence,
    .wgmma = hc_wgmma,
    .wgmma_fence = hc_wgmma_fence,
    .wgmma_commit = hc_wgmma_commit,
    .wgmma_wait = hc_wgmma_wait,
};

void hc_threads_clear(void)
{
    for (unsigned i = 0; i < pool.count; i++) {
        for (unsigned t = 0; t < HC_MAX_THREADS; t++) free(pool.all[i]->threads[t].pending);
        hc_groups_free(pool.all[i]);
        hc_barriers_free(pool.all[i]);
        free(pool.all[i]);
    }
    free(pool.all);
    memset(&pool, 0, sizeof pool);
}

/* ---- Grids ---- */

static void prepare_ids(zc_host_dim block)
{
    run.count = block.x * block.y * block.z;
    for (unsigned i = 0; i < run.count; i++)
        run.ids[i] = (zc_host_dim){i % block.x, i / block.x % block.y, i / block.x / block.y};
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void prepare_clusters(const hc_launch *l)
{
    run.cluster = l->cluster.x ? l->cluster : (zc_host_dim){1, 1, 1};
    unsigned size = run.cluster.x * run.cluster.y * run.cluster.z;
    run.clusters = (uint64_t)l->grid.x * l->grid.y * l->grid.z / size;
    run.step = 1;
    if (hc_gpu.shuffle && run.clusters > 1) {
        unsigned below = run.clusters > 0xffffffffu ? 0xffffffffu : (unsigned)run.clusters;
        run.at = hc_draw(below);
        do run.step = 1 + hc_draw(below - 1);
        while (common_divisor(run.step, run.clusters) != 1);
    }
    run.max_resident = hc_max_resident(l);
    if (run.max_resident < size) run.max_resident = size;
}

/* The host's side: everything until nobody can go on. */
static void run_threads(void)
{
    hc_thread *first = next_thread();
    if (!first) return;
    first->fiber = hc_fiber_take(thread_main);
    if (!first->fiber) {
        run.error = HC_CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    select_thread(first);
    hc_fiber_switch(hc_fiber_host(), first->fiber);
}

static void clean_up(void)
{
    hc_copies_finish(run.error == HC_CUDA_SUCCESS);
    hc_products_clear();
    hc_memory_enter(NULL);
    if (run.error != HC_CUDA_SUCCESS) hc_fibers_abandon();
    pool.free = NULL;
    for (unsigned i = pool.count; i > 0; i--) {
        hc_memory_free(pool.all[i - 1]);
        give_block(pool.all[i - 1]);
    }
}

hc_result hc_run_grid(const hc_launch *l)
{
    memset(&run, 0, sizeof run);
    run.launch = l;
    run.state = l->function->module->info->state;
    run.random = 0x9E3779B97F4A7C15u * (hc_gpu.shuffle + 1ull);
    run.state->bdim = l->block;
    run.state->gdim = l->grid;
    hc_memory_begin(l);
    prepare_ids(l->block);
    prepare_clusters(l);
    run_threads();
    clean_up();
    if (run.error == HC_CUDA_SUCCESS || run.error == HC_CUDA_ERROR_OUT_OF_MEMORY) return run.error;
    return hc_break(run.error);
}
