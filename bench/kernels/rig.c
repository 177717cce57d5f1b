/* The GPU: memory, captured graphs, times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/stats.h"
#include "bench.h"

enum { SAMPLES = 64, CAPTURE_RELAXED = 2 };
#define ROUND_US 5000.0 /* that a side's part of a round takes at least */
#define TRIAL_US 2000.0

static zc_status check(kb_rig *rig, int code, const char *what, zc_diag *diag)
{
    return zc_device_check(&rig->device, code, what, diag);
}

static zc_status wait(kb_rig *rig, const char *what, zc_diag *diag)
{
    return zc_device_wait(&rig->device, rig->stream, KB_WAIT_MS, what, diag);
}

/* ---- opening ---- */

static zc_status open_pools(kb_rig *rig, zc_diag *diag)
{
    ZC_TRY(kb_pools_make(&rig->pools, diag));
    for (int k = 0; k < KB_POOLS; k++) {
        size_t bytes = kb_pool_bytes((kb_pool_kind)k);
        ZC_TRY(zc_device_alloc(&rig->device, bytes, "random numbers", &rig->pool[k], diag));
        ZC_TRY(check(rig,
                     rig->device.cu.copy_in(rig->pool[k], rig->pools.raw[k], bytes, rig->stream),
                     "random numbers", diag));
    }
    return wait(rig, "random numbers", diag);
}

static zc_status open_device(kb_rig *rig, zc_diag *diag)
{
    const zc_cu *cu = &rig->device.cu;
    ZC_TRY(check(rig, cu->stream_create(&rig->stream, ZC_CU_STREAM_NON_BLOCKING), "stream", diag));
    ZC_TRY(check(rig, cu->event_create(&rig->start, 0), "event", diag));
    ZC_TRY(check(rig, cu->event_create(&rig->end, 0), "event", diag));
    ZC_TRY(zc_device_alloc(&rig->device, KB_WORKSPACE, "workspace", &rig->workspace, diag));
    return open_pools(rig, diag);
}

static void open_libraries(kb_rig *rig, const kb_options *o)
{
    if (o->alone) {
        zc_snprintf(rig->no_cublaslt, sizeof rig->no_cublaslt, "--alone");
        zc_snprintf(rig->no_cudnn, sizeof rig->no_cudnn, "--alone");
        return;
    }
    rig->cublaslt = kb_cublaslt_open(o->libraries, rig->no_cublaslt, sizeof rig->no_cublaslt);
    rig->cudnn = kb_cudnn_open(o->libraries, rig->stream, rig->no_cudnn, sizeof rig->no_cudnn);
}

zc_status kb_rig_open(kb_rig *rig, const kb_options *o, zc_diag *diag)
{
    *rig = (kb_rig){0};
    ZC_TRY(zc_device_open(o->device, &rig->device, diag));
    rig->is_real = strncmp(rig->device.name, "hostcuda", 8) != 0;
    zc_status status = zc_device_enter(&rig->device, diag);
    if (status != ZC_OK) {
        zc_device_close(&rig->device);
        return status;
    }
    rig->is_open = true;
    status = open_device(rig, diag);
    if (status == ZC_OK) open_libraries(rig, o);
    return status;
}

void kb_rig_close(kb_rig *rig)
{
    if (!rig->is_open) return;
    const zc_cu *cu = &rig->device.cu;
    kb_cublaslt_close(&rig->cublaslt);
    kb_cudnn_close(&rig->cudnn);
    for (int k = 0; k < KB_POOLS; k++) zc_device_free(&rig->device, &rig->pool[k]);
    zc_device_free(&rig->device, &rig->workspace);
    if (rig->start) (void)cu->event_destroy(rig->start);
    if (rig->end) (void)cu->event_destroy(rig->end);
    if (rig->stream) (void)cu->stream_destroy(rig->stream);
    zc_device_leave(&rig->device);
    zc_device_close(&rig->device);
    kb_pools_free(&rig->pools);
    rig->is_open = false;
}

/* ---- memory ---- */

size_t kb_stride(const kb_tensor *t)
{
    return zc_align_up(t->bytes, 256);
}

zc_status kb_fill(kb_rig *rig, zc_cu_ptr to, const kb_tensor *t, kb_role role, int copy,
                  zc_diag *diag)
{
    zc_cu_ptr pool = rig->pool[kb_pool_of(t)];
    size_t size = zc_dtype_bits(t->dtype) / 8;
    for (int64_t done = 0, at = kb_place(role, copy), n; done < t->count; done += n, at = 0) {
        n = t->count - done < KB_POOL - at ? t->count - done : KB_POOL - at;
        ZC_TRY(check(rig,
                     rig->device.cu.copy_within(to + (size_t)done * size, pool + (size_t)at * size,
                                                (size_t)n * size, rig->stream),
                     "random numbers", diag));
    }
    return ZC_OK;
}

static zc_status open_results(kb_run *r, kb_side *side, zc_diag *diag)
{
    return zc_device_alloc(&r->rig->device, kb_stride(&r->p->t[KB_OUT]) * (size_t)r->copies,
                           "results", &side->out, diag);
}

zc_status kb_run_open(kb_run *r, zc_diag *diag)
{
    for (int role = 0; role < KB_OUT; role++) {
        const kb_tensor *t = &r->p->t[role];
        if (!t->dtype) continue;
        ZC_TRY(zc_device_alloc(&r->rig->device, kb_stride(t) * (size_t)r->copies, "operands",
                               &r->base[role], diag));
        for (int c = 0; c < r->copies; c++)
            ZC_TRY(kb_fill(r->rig, kb_at(r, (kb_role)role, c), t, (kb_role)role, c, diag));
    }
    ZC_TRY(open_results(r, &r->ours, diag));
    ZC_TRY(open_results(r, &r->yardstick, diag));
    return wait(r->rig, "operands", diag);
}

static void close_side(kb_run *r, kb_side *side)
{
    (void)zc_session_destroy(&side->session);
    if (side->graph) (void)r->rig->device.cu.graph_exec_destroy(side->graph);
    side->graph = NULL;
    if (side->release) side->release(side->held);
    zc_device_free(&r->rig->device, &side->out);
}

void kb_run_close(kb_run *r)
{
    close_side(r, &r->ours);
    close_side(r, &r->yardstick);
    zc_device_free(&r->rig->device, &r->image);
    for (int role = 0; role < KB_OUT; role++) zc_device_free(&r->rig->device, &r->base[role]);
}

/* ---- times ---- */

static zc_status launch(kb_run *r, const kb_side *side, zc_diag *diag)
{
    if (side->session) return zc_session_enqueue(side->session, diag);
    return check(r->rig, r->rig->device.cu.graph_launch(side->graph, r->rig->stream), "graph",
                 diag);
}

/* One launch of all copies, of `replays` that follow each other, in microseconds. */
static zc_status time_of(kb_run *r, kb_side *side, int replays, double *us, zc_diag *diag)
{
    const zc_cu *cu = &r->rig->device.cu;
    float ms = 0;
    ZC_TRY(check(r->rig, cu->event_record(r->rig->start, r->rig->stream), "event", diag));
    for (int i = 0; i < replays; i++) ZC_TRY(launch(r, side, diag));
    ZC_TRY(check(r->rig, cu->event_record(r->rig->end, r->rig->stream), "event", diag));
    ZC_TRY(wait(r->rig, "run", diag));
    if (side->session) ZC_TRY(zc_session_wait(side->session, diag));
    ZC_TRY(check(r->rig, cu->event_ms(&ms, r->rig->start, r->rig->end), "event", diag));
    *us = (double)ms * 1e3 / replays;
    return ZC_OK;
}

/* How many replays take `us`. */
static zc_status replays_for(kb_run *r, kb_side *side, double us, int *out, zc_diag *diag)
{
    double once = 0;
    ZC_TRY(time_of(r, side, 1, &once, diag));
    double n = r->rig->is_real && once > 0 ? ceil(us / once) : 1;
    *out = n < 1 ? 1 : n > 200 ? 200 : (int)n;
    return ZC_OK;
}

static zc_status measure_side(kb_run *r, kb_side *side, int replays, zc_diag *diag)
{
    double us = 0;
    ZC_TRY(time_of(r, side, replays, &us, diag));
    side->us[side->rounds++] = us / r->copies * (side->scale > 0 ? side->scale : 1);
    return ZC_OK;
}

static zc_status take_median(kb_side *side, zc_diag *diag)
{
    zc_interval all;
    if (!zc_median_of(side->us, (size_t)side->rounds, &all))
        return zc_fail_nomem(diag, "times", sizeof side->us);
    side->median = all.mid;
    return ZC_OK;
}

zc_status kb_measure(kb_run *r, int rounds, double seconds, zc_diag *diag)
{
    kb_side *sides[] = {&r->ours, &r->yardstick};
    int nsides = r->yardstick.graph ? 2 : 1, replays[2];
    int64_t begin = zc_clock_ns();
    for (int s = 0; s < nsides; s++) ZC_TRY(replays_for(r, sides[s], ROUND_US, &replays[s], diag));
    for (int i = 0; i < rounds; i++) {
        if (i >= 3 && (double)(zc_clock_ns() - begin) * 1e-9 > seconds) break;
        /* Whoever is first in a round is second in the next. */
        for (int s = 0; s < nsides; s++) {
            int side = (s + i) % nsides;
            ZC_TRY(measure_side(r, sides[side], replays[side], diag));
        }
    }
    for (int s = 0; s < nsides; s++) ZC_TRY(take_median(sides[s], diag));
    return ZC_OK;
}

/* ---- the library's calls as a graph ---- */

static zc_status end_capture(kb_run *r, zc_status status, zc_cu_graph_exec *out, zc_diag *diag)
{
    const zc_cu *cu = &r->rig->device.cu;
    zc_cu_graph graph = NULL;
    int code = cu->capture_end(r->rig->stream, &graph);
    if (status == ZC_OK) status = check(r->rig, code, "capture", diag);
    if (status == ZC_OK)
        status = check(r->rig, cu->graph_instantiate(out, graph, 0), "graph", diag);
    if (graph) (void)cu->graph_destroy(graph);
    return status;
}

static zc_status capture(kb_run *r, kb_issue issue, void *user, zc_cu_graph_exec *out,
                         zc_diag *diag)
{
    zc_status status = ZC_OK;
    /* Uncaptured once: libraries load their code at the first call. */
    ZC_TRY(issue(user, 0, diag));
    ZC_TRY(wait(r->rig, "first call", diag));
    ZC_TRY(check(r->rig, r->rig->device.cu.capture_begin(r->rig->stream, CAPTURE_RELAXED),
                 "capture", diag));
    for (int c = 0; status == ZC_OK && c < r->copies; c++) status = issue(user, c, diag);
    return end_capture(r, status, out, diag);
}

zc_status kb_try(kb_run *r, kb_issue issue, void *user, double *best_us, bool *better,
                 zc_diag *diag)
{
    kb_side trial = {0};
    double us = 0;
    int replays = 1;
    *better = false;
    zc_status status = capture(r, issue, user, &trial.graph, diag);
    if (status == ZC_OK) status = replays_for(r, &trial, TRIAL_US, &replays, diag);
    if (status == ZC_OK) status = time_of(r, &trial, replays, &us, diag);
    *better = status == ZC_OK && (*best_us <= 0 || us < *best_us);
    zc_cu_graph_exec loser = *better ? r->yardstick.graph : trial.graph;
    if (*better) {
        r->yardstick.graph = trial.graph;
        *best_us = us;
    }
    if (loser) (void)r->rig->device.cu.graph_exec_destroy(loser);
    return status;
}

/* ---- errors ---- */

/* Once more, into memory that holds NaN: what is not written is seen. */
static zc_status run_fresh(kb_run *r, kb_side *side, zc_diag *diag)
{
    double us = 0;
    size_t bytes = kb_stride(&r->p->t[KB_OUT]) * (size_t)r->copies;
    ZC_TRY(check(r->rig, r->rig->device.cu.fill(side->out, 0xFF, bytes, r->rig->stream), "results",
                 diag));
    return time_of(r, side, 1, &us, diag);
}

static zc_status sample(kb_run *r, const kb_side *side, int copy, int64_t index, double *out,
                        zc_diag *diag)
{
    const kb_tensor *t = &r->p->t[KB_OUT];
    size_t size = zc_dtype_bits(t->dtype) / 8;
    zc_cu_ptr at = kb_out_at(r, side, copy) + (zc_cu_ptr)index * size;
    uint64_t element = 0;
    ZC_TRY(check(r->rig, r->rig->device.cu.copy_out(&element, at, size, r->rig->stream), "result",
                 diag));
    ZC_TRY(wait(r->rig, "result", diag));
    *out = zc_load_f64(t->dtype, &element, 0);
    return ZC_OK;
}

zc_status kb_check(kb_run *r, kb_side *side, zc_diag *diag)
{
    uint64_t random = 12345;
    double greatest = 0, error = 0;
    ZC_TRY(run_fresh(r, side, diag));
    for (int i = 0; i < SAMPLES; i++) {
        double got = 0;
        int copy = i % r->copies;
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t index = (int64_t)((random >> 20) % (uint64_t)r->p->t[KB_OUT].count);
        double want = kb_reference(r->c, r->p, &r->rig->pools, &side->form, copy, index);
        ZC_TRY(sample(r, side, copy, index, &got, diag));
        greatest = fmax(greatest, fabs(want));
        error = fmax(error, isfinite(got) ? fabs(got - want) : INFINITY);
    }
    side->error = greatest > 0 ? error / greatest : error;
    return ZC_OK;
}

/* ---- a copy as a yardstick ---- */

static zc_status copy_one(void *user, int copy, zc_diag *diag)
{
    kb_run *r = user;
    const kb_tensor *x = &r->p->t[KB_X];
    return check(r->rig,
                 r->rig->device.cu.copy_within(kb_out_at(r, &r->yardstick, copy),
                                               kb_at(r, KB_X, copy), x->bytes, r->rig->stream),
                 "copy", diag);
}

zc_status kb_copy(kb_run *r, zc_diag *diag)
{
    double us = 0;
    bool better;
    ZC_TRY(kb_try(r, copy_one, r, &us, &better, diag));
    r->yardstick.scale = (double)r->p->bytes / (2.0 * (double)r->p->t[KB_X].bytes);
    zc_snprintf(r->yardstick.how, sizeof r->yardstick.how, "copy, %.0f GB/s",
                2.0 * (double)r->p->t[KB_X].bytes * r->copies / us / 1e3);
    return ZC_OK;
}
