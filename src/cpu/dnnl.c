#include "cpu/dnnl.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/gate.h"
#include "cpu/catch.h"

typedef struct call {
    dnnl_status_t (*fn)(void *arg);
    void *arg;
    dnnl_status_t status;
} call;

static void make_call(void *arg)
{
    call *c = arg;
    c->status = c->fn(c->arg);
}

static zc_status outcome(zc_caught caught, dnnl_status_t status)
{
    if (caught == ZC_CAUGHT_NOMEM || status == dnnl_out_of_memory) return ZC_ERR_NOMEM;
    if (caught == ZC_CAUGHT_OTHER) return ZC_ERR_INTERNAL;
    return status == dnnl_success ? ZC_OK : ZC_ERR_UNSUPPORTED;
}

/* oneDNN takes its threads from OpenMP, as many as the calling thread's setting says. A thread's
 * first setting takes memory, and libgomp ends the process where there is none: so what this gives
 * back is there for it. */
static zc_status set_threads(int n)
{
    enum { ENOUGH = 4096 };
    static _Thread_local bool has_setting;
    if (!has_setting) {
        void *volatile room = malloc(ENOUGH);
        if (!room) return ZC_ERR_NOMEM;
        free(room);
    }
    omp_set_num_threads(n);
    has_setting = true;
    return ZC_OK;
}

zc_status zc_dnnl_prepare_worker(void)
{
    return set_threads(1);
}

/* On one thread: the session's own threads each compute a part. The caller's setting is put back.
 */
static zc_status call_alone(dnnl_status_t (*fn)(void *arg), void *arg)
{
    call c = {.fn = fn, .arg = arg};
    int before = omp_get_max_threads();
    if (before != 1) ZC_TRY(set_threads(1));
    zc_caught caught = zc_catch(make_call, &c);
    if (before != 1) omp_set_num_threads(before);
    return outcome(caught, c.status);
}

/* ---- before the first call ---- */

/* oneDNN generates code, and keeps some in tables that its own exit handlers free. When memory runs
 * out under that, it jumps to code that it could not make, or fails for ever. So this much must be
 * there beforehand: on x86-64 the first product takes 18 MiB. */
static const struct {
    size_t room;
    bool always;
} needs[ZC_DNNL_USES] = {
    [ZC_DNNL_PRODUCT] = {(size_t)64 << 20, false},
    [ZC_DNNL_CREATE] = {(size_t)32 << 20, true},
    [ZC_DNNL_REORDER] = {(size_t)32 << 20, true},
};

static atomic_bool used[ZC_DNNL_USES];

static bool has_room(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    munmap(p, bytes);
    return true;
}

/* A product for each table: large and small ones, of which operands are transposed, of vectors. */
static dnnl_status_t try_products(void *arg)
{
    enum { MOST = 64 };
    static const struct {
        char a, b;
        dnnl_dim_t m, n, k;
    } sizes[] = {{'N', 'N', 16, 16, 16}, {'N', 'T', 4, 64, 64},  {'N', 'N', 1, 64, 64},
                 {'N', 'T', 1, 64, 64},  {'N', 'N', 64, 64, 64}, {'T', 'N', 64, 64, 64}};
    static const float ones[MOST * MOST];
    float c[MOST * MOST];
    (void)arg;
    for (size_t i = 0; i < ZC_COUNTOF(sizes); i++) {
        dnnl_status_t status =
            dnnl_sgemm(sizes[i].a, sizes[i].b, sizes[i].m, sizes[i].n, sizes[i].k, 1, ones,
                       sizes[i].a == 'N' ? sizes[i].k : sizes[i].m, ones,
                       sizes[i].b == 'N' ? sizes[i].n : sizes[i].k, 0, c, sizes[i].n);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

/* After the first success everything that oneDNN frees at exit is there. */
static zc_status call_inside(zc_dnnl_use use, dnnl_status_t (*fn)(void *arg), void *arg)
{
    const bool first = !atomic_load_explicit(&used[use], memory_order_acquire);
    if ((first || needs[use].always) && needs[use].room && !has_room(needs[use].room))
        return ZC_ERR_NOMEM;
    ZC_TRY(call_alone(fn, arg));
    return zc_gate_close_at_exit(&used[use]);
}

zc_status zc_dnnl_call(zc_dnnl_use use, dnnl_status_t (*fn)(void *arg), void *arg)
{
    ZC_TRY(zc_gate_enter(ZC_GATE_ONEDNN));
    zc_status status = call_inside(use, fn, arg);
    zc_gate_leave(ZC_GATE_ONEDNN);
    return status;
}

zc_status zc_dnnl_prepare_products(void)
{
    if (atomic_load_explicit(&used[ZC_DNNL_PRODUCT], memory_order_acquire)) return ZC_OK;
    return zc_dnnl_call(ZC_DNNL_PRODUCT, try_products, NULL);
}

zc_status zc_dnnl_report(const zc_kctx *k, zc_status status, const char *what)
{
    switch (status) {
    case ZC_OK:
        return ZC_OK;
    case ZC_ERR_NOMEM:
        return zc_fail(k->diag, status, k->subject, "no memory for oneDNN's %s", what);
    case ZC_ERR_CANCELLED:
        return zc_fail(k->diag, status, k->subject, "the process is exiting");
    default:
        return zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject, "oneDNN refused a %s", what);
    }
}
