/* Runs a grid: blocks one after the other, a block's threads as fibers that run until they wait. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_run.h"

#define MAX_THREADS 1024

/* The launch and the block that run now; one at a time, under the driver's lock. */
static struct {
    const hc_launch *launch;
    const zc_host_module *module;
    zc_host_state *state;
    unsigned char *smem;
    unsigned count; /* threads of a block */
    unsigned current;
    unsigned started, ended;
    unsigned at_barrier;
    int barrier_line;
    hc_result error;
    hc_thread threads[MAX_THREADS];
    zc_host_dim ids[MAX_THREADS];
    unsigned short order[MAX_THREADS]; /* in which threads start and leave a barrier */
    unsigned short ready[MAX_THREADS]; /* a ring of threads that can go on */
    unsigned ready_first, ready_count;
    hc_warp warps[MAX_THREADS / 32];
    uint64_t random;
} run;

hc_thread *hc_thread_now(void)
{
    return &run.threads[run.current];
}

hc_warp *hc_warp_now(void)
{
    return &run.warps[run.current / 32];
}

const zc_host_state *hc_state_now(void)
{
    return run.state;
}

bool hc_is_shared(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p, dynamic = (uintptr_t)run.smem;
    uintptr_t begin = (uintptr_t)run.module->shared_begin, end = (uintptr_t)run.module->shared_end;
    if (at >= dynamic && n <= run.launch->smem && at - dynamic <= run.launch->smem - n) return true;
    return at >= begin && n <= end - begin && at - begin <= end - begin - n;
}

void hc_fail(hc_result code, int line, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    zc_host_dim b = run.state->bid, t = run.state->tid;
    hc_message("kernel %s, block (%u, %u, %u), thread (%u, %u, %u), line %d: %s",
               run.launch->function->kernel->name, b.x, b.y, b.z, t.x, t.y, t.z, line, text);
    run.error = code;
    hc_fiber_switch(hc_thread_now()->fiber, hc_fiber_host());
    abort(); /* nobody switches back */
}

/* ---- Order ---- */

static unsigned draw(unsigned below)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return (unsigned)((run.random >> 32) * below >> 32);
}

static void shuffle_order(void)
{
    if (!hc_gpu.shuffle) return;
    for (unsigned i = run.count; i > 1; i--) {
        unsigned j = draw(i);
        unsigned short swap = run.order[i - 1];
        run.order[i - 1] = run.order[j];
        run.order[j] = swap;
    }
}

static void make_ready(unsigned thread)
{
    unsigned at = (run.ready_first + run.ready_count++) % MAX_THREADS;
    run.ready[at] = (unsigned short)thread;
    run.threads[thread].wait = HC_RUNS;
}

/* ---- Switching ---- */

static void select_thread(unsigned thread)
{
    run.current = thread;
    run.state->tid = run.ids[thread];
    run.state->lane = thread % 32;
}

static void start_thread(unsigned thread)
{
    hc_thread *t = &run.threads[thread];
    t->wait = HC_RUNS;
    t->pending_count = t->groups = 0;
    select_thread(thread);
}

/* One that waits, for the message about a block that cannot go on. */
static void report_stuck(void)
{
    unsigned stuck = 0, ended = run.ended;
    while (stuck < run.count && run.threads[stuck].wait != HC_AT_BARRIER &&
           run.threads[stuck].wait != HC_AT_WARP)
        stuck++;
    const hc_thread *t = &run.threads[stuck % run.count];
    zc_host_dim b = run.state->bid, id = run.ids[stuck % run.count];
    hc_message("kernel %s, block (%u, %u, %u), thread (%u, %u, %u), line %d: %s is not reached by "
               "all threads (%u of %u at a barrier, %u ended)",
               run.launch->function->kernel->name, b.x, b.y, b.z, id.x, id.y, id.z, t->line,
               t->wait == HC_AT_BARRIER ? "the barrier" : "the warp's collective", run.at_barrier,
               run.count, ended);
    run.error = HC_CUDA_ERROR_LAUNCH_FAILED;
}

static void thread_main(void);

/* Whether a thread that has not begun goes next. */
static bool prefer_new(void)
{
    if (run.started == run.count) return false;
    return !run.ready_count || (hc_gpu.shuffle && draw(2));
}

static hc_fiber *pop_ready(void)
{
    unsigned thread = run.ready[run.ready_first];
    run.ready_first = (run.ready_first + 1) % MAX_THREADS;
    run.ready_count--;
    select_thread(thread);
    return run.threads[thread].fiber;
}

/* The running fiber waits: another one goes on. */
static void wait_here(void)
{
    unsigned self = run.current;
    hc_fiber *from = run.threads[self].fiber, *to = NULL;
    if (prefer_new()) {
        to = hc_fiber_take(thread_main);
        if (!to) hc_fail(HC_CUDA_ERROR_OUT_OF_MEMORY, 0, "no memory for a thread's stack");
        start_thread(run.order[run.started++]);
        run.threads[run.current].fiber = to;
    } else if (run.ready_count) {
        to = pop_ready();
    } else {
        report_stuck();
        to = hc_fiber_host();
    }
    if (to != from) hc_fiber_switch(from, to);
    select_thread(self);
}

/* A fiber runs threads to their end as long as there are new ones. */
static void thread_main(void)
{
    hc_fiber *self = run.threads[run.current].fiber;
    for (;;) {
        run.launch->function->kernel->run(run.launch->params);
        run.threads[run.current].wait = HC_ENDED;
        run.ended++;
        if (!prefer_new()) break;
        start_thread(run.order[run.started++]);
        run.threads[run.current].fiber = self;
    }
    hc_fiber *to = hc_fiber_host();
    if (run.ready_count)
        to = pop_ready();
    else if (run.ended < run.count)
        report_stuck();
    hc_fiber_give(self);
    hc_fiber_switch(self, to);
    abort();
}

/* ---- Barrier and collectives ---- */

static void barrier(int line)
{
    if (run.at_barrier && line != run.barrier_line)
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "divergent barrier: other threads wait in the one of line %d", run.barrier_line);
    run.barrier_line = line;
    hc_thread *t = hc_thread_now();
    t->wait = HC_AT_BARRIER;
    t->line = line;
    if (++run.at_barrier < run.count) {
        wait_here();
        return;
    }
    run.at_barrier = 0;
    shuffle_order();
    unsigned self = run.current;
    for (unsigned i = 0; i < run.count; i++)
        if (run.order[i] != self) make_ready(run.order[i]);
    t->wait = HC_RUNS;
}

static void release_warp(hc_warp *w)
{
    unsigned first = (unsigned)(w - run.warps) * 32;
    w->arrived = 0;
    w->turn ^= 1;
    for (unsigned l = 0; l < 32; l++)
        if (w->present >> l & 1 && first + l != run.current) make_ready(first + l);
    hc_thread_now()->wait = HC_RUNS;
}

unsigned hc_meet(zc_host_kind kind, int line, const void *in, unsigned size,
                 void (*finish)(hc_warp *w, unsigned turn))
{
    hc_warp *w = hc_warp_now();
    unsigned turn = w->turn, lane = run.current % 32;
    if (w->arrived && (w->kind != kind || w->line != line))
        hc_fail(HC_CUDA_ERROR_LAUNCH_FAILED, line,
                "divergent warp: other lanes wait in the collective of line %d", w->line);
    w->kind = kind;
    w->line = line;
    memcpy(w->lanes[turn].slot[lane], in, size);
    hc_thread *t = hc_thread_now();
    t->wait = HC_AT_WARP;
    t->line = line;
    w->arrived |= 1u << lane;
    if (w->arrived != w->present) {
        wait_here();
        return turn;
    }
    if (finish) finish(w, turn);
    release_warp(w);
    return turn;
}

static const zc_host_lanes *exchange(zc_host_kind kind, int line, const void *in, unsigned size)
{
    return &hc_warp_now()->lanes[hc_meet(kind, line, in, size, NULL)];
}

const zc_host_api hc_kernel_api = {
    .sync = barrier,
    .exchange = exchange,
    .mma = hc_mma,
    .ldmatrix = hc_ldmatrix,
    .cp_async = hc_cp_async,
    .cp_async_commit = hc_cp_async_commit,
    .cp_async_wait = hc_cp_async_wait,
};

void hc_threads_clear(void)
{
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        free(run.threads[i].pending);
        run.threads[i] = (hc_thread){0};
    }
}

/* ---- Blocks ---- */

static void run_block(zc_host_dim bid)
{
    run.state->bid = bid;
    if (run.launch->smem) memset(run.smem, 0xFF, run.launch->smem);
    size_t fixed = (size_t)(run.module->shared_end - run.module->shared_begin);
    if (fixed) memset(run.module->shared_begin, 0xFF, fixed);
    run.started = run.ended = run.at_barrier = 0;
    run.ready_first = run.ready_count = 0;
    shuffle_order();
    hc_fiber *fiber = hc_fiber_take(thread_main);
    if (!fiber) {
        run.error = HC_CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    start_thread(run.order[run.started++]);
    run.threads[run.current].fiber = fiber;
    hc_fiber_switch(hc_fiber_host(), fiber);
    if (run.error != HC_CUDA_SUCCESS) hc_fibers_abandon();
}

static void prepare_threads(const hc_launch *l)
{
    unsigned n = l->block.x * l->block.y * l->block.z;
    for (unsigned i = 0; i < n; i++) {
        run.ids[i].x = i % l->block.x;
        run.ids[i].y = i / l->block.x % l->block.y;
        run.ids[i].z = i / l->block.x / l->block.y;
        run.order[i] = (unsigned short)i;
    }
    run.count = n;
    for (unsigned w = 0; w * 32 < n; w++) {
        unsigned lanes = n - w * 32;
        run.warps[w].present = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        run.warps[w].lanes[0].present = run.warps[w].lanes[1].present = run.warps[w].present;
        memset(run.warps[w].lanes[0].slot, 0xFF, sizeof run.warps[w].lanes[0].slot);
        memset(run.warps[w].lanes[1].slot, 0xFF, sizeof run.warps[w].lanes[1].slot);
        run.warps[w].arrived = run.warps[w].turn = 0;
    }
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

/* Blocks i * step + first modulo n: the launch order, or one of many others. */
static void run_blocks(const hc_launch *l)
{
    uint64_t n = (uint64_t)l->grid.x * l->grid.y * l->grid.z, step = 1, at = 0;
    if (hc_gpu.shuffle && n > 1) {
        unsigned below = n > 0xffffffffu ? 0xffffffffu : (unsigned)n;
        at = draw(below);
        do step = 1 + draw(below - 1);
        while (common_divisor(step, n) != 1);
    }
    for (uint64_t i = 0; i < n && run.error == HC_CUDA_SUCCESS; i++) {
        zc_host_dim bid = {(unsigned)(at % l->grid.x), (unsigned)(at / l->grid.x % l->grid.y),
                           (unsigned)(at / l->grid.x / l->grid.y)};
        run_block(bid);
        at = (at + step) % n;
    }
}

hc_result hc_run_grid(const hc_launch *l)
{
    void *smem = NULL;
    if (posix_memalign(&smem, 128, l->smem ? l->smem : 1) != 0) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    run.launch = l;
    run.module = l->function->module->info;
    run.state = run.module->state;
    run.smem = smem;
    run.error = HC_CUDA_SUCCESS;
    run.random = 0x9E3779B97F4A7C15u * (hc_gpu.shuffle + 1ull);
    prepare_threads(l);
    run.state->bdim = l->block;
    run.state->gdim = l->grid;
    run.state->smem = smem;
    run_blocks(l);
    free(smem);
    if (run.error == HC_CUDA_SUCCESS || run.error == HC_CUDA_ERROR_OUT_OF_MEMORY) return run.error;
    return hc_break(run.error);
}
