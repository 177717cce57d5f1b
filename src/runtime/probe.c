#include "runtime/probe.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"
#include "cpu/gemm.h"

/* Rounds of a millisecond or so: other programs leave some of them alone. */
enum {
    BUFFER = 256 << 20, /* bytes, beyond what caches hold of it */
    PARTS = 8,          /* of the buffer: a round reads one */
    SIDE = 384,         /* of a product's matrices, one a thread and round */
    ROUNDS = 48
};

const char *zc_peak_name(zc_peak peak)
{
    static const char *const names[] = {
#define X(id, name) name,
        ZC_PEAKS(X)
#undef X
    };
    return names[peak];
}

typedef struct probe {
    zc_pool *pool;
    int threads, round;
    uint64_t *memory;
    float *matrices; /* three a thread */
    _Atomic uint64_t sum;
    _Atomic bool failed;
} probe;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void read_part(void *arg, int i)
{
    probe *p = arg;
    size_t all = BUFFER / PARTS / sizeof *p->memory, part = all / (size_t)p->threads;
    const uint64_t *v = p->memory + all * (size_t)(p->round % PARTS) + part * (size_t)i;
    uint64_t sum = 0;
    for (size_t j = 0; j < part; j++) sum += v[j];
    atomic_fetch_add_explicit(&p->sum, sum, memory_order_relaxed);
}

static void multiply(void *arg, int i)
{
    probe *p = arg;
    float *a = p->matrices + (size_t)i * 3 * SIDE * SIDE, *b = a + SIDE * SIDE,
          *c = b + SIDE * SIDE;
    if (zc_sgemm(false, false, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE) != ZC_OK)
        atomic_store(&p->failed, true);
}

/* The shortest of some rounds after one that warms up. */
static double shortest(probe *p, void (*fn)(void *arg, int i))
{
    double best = 0;
    for (p->round = 0; p->round <= ROUNDS; p->round++) {
        double start = now();
        zc_pool_run(p->pool, p->threads, fn, p);
        double took = now() - start;
        if (p->round == 1 || (p->round > 1 && took < best)) best = took;
    }
    return best;
}

static zc_status measure(probe *p, zc_peaks *out, zc_diag *diag)
{
    size_t matrix = (size_t)SIDE * SIDE, count = 3 * matrix * (size_t)p->threads;
    p->memory = malloc(BUFFER);
    p->matrices = zc_calloc(count, sizeof *p->matrices);
    if (!p->memory || !p->matrices) return zc_fail_nomem(diag, "probe", BUFFER);
    memset(p->memory, 1, BUFFER);
    for (size_t i = 0; i < count; i++) p->matrices[i] = (float)(i % 7) - 3;
    ZC_TRY(zc_pool_create(p->threads, &p->pool, diag));
    out->bytes = (double)BUFFER / PARTS / shortest(p, read_part);
    out->operations[ZC_PEAK_F32] = 2.0 * SIDE * SIDE * SIDE * p->threads / shortest(p, multiply);
    return atomic_load(&p->failed) ? zc_fail(diag, ZC_ERR_INTERNAL, NULL, "probe: no product")
                                   : ZC_OK;
}

zc_status zc_probe_cpu(int threads, zc_peaks *out, zc_diag *diag)
{
    probe p = {.threads = threads < 1 ? 1 : threads};
    *out = (zc_peaks){0};
    zc_status status = measure(&p, out, diag);
    zc_pool_destroy(&p.pool);
    free(p.memory);
    free(p.matrices);
    return status;
}
