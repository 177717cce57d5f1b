/* Host cost of a replayed run with device-bound buffers, and wall time a run when runs follow each
 * other.
 *
 *   gpu_session PLAN [RUNS [same]]
 *
 * Static shapes only; symbolic dimensions count as 1. Inputs are random, in device memory; outputs
 * are bound to device memory. Prints one line of JSON. With "same" it also fetches the results of
 * every run and counts the runs whose bytes differ from the first one's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/device.h"
#include "op/dtype.h"
#include "zc/rt.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t bytes_of(const zc_io_info *io, int64_t dims[ZC_RANK_MAX])
{
    int64_t n = 1;
    size_t bytes = 0;
    for (int d = 0; d < io->rank; d++) n *= dims[d] = io->dims[d] < 0 ? 1 : io->dims[d];
    return zc_dtype_bytes((zc_dtype)io->elem, n, &bytes) ? bytes : 0;
}

/* Small integers and numbers in [-1, 1). */
static void fill_random(const zc_io_info *io, void *data, size_t bytes, uint64_t *state)
{
    int64_t n = (int64_t)(bytes * 8 / zc_dtype_bits((zc_dtype)io->elem));
    for (int64_t i = 0; i < n; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        if (zc_dtype_is_float((zc_dtype)io->elem))
            zc_store_f64((zc_dtype)io->elem, data, i, (double)(*state >> 33) / 1073741824.0 - 1);
        else
            zc_store_i64((zc_dtype)io->elem, data, i, (int64_t)(*state >> 63));
    }
}

static zc_status bind_input(zc_plan *plan, zc_session *s, zc_device *d, size_t i, zc_diag *diag)
{
    zc_io_info io;
    uint64_t state = 7 + i;
    zc_cu_ptr at;
    ZC_TRY(zc_plan_input(plan, i, &io, diag));
    zc_view v = {.elem = io.elem, .rank = io.rank, .on_device = true};
    v.bytes = bytes_of(&io, v.dims);
    void *host = calloc(v.bytes + 1, 1);
    if (!host) return ZC_ERR_NOMEM;
    fill_random(&io, host, v.bytes, &state);
    zc_status status = zc_device_alloc(d, v.bytes, "input", &at, diag);
    if (status == ZC_OK)
        status = zc_device_check(d, d->cu.copy_in(at, host, v.bytes, NULL), "input", diag);
    if (status == ZC_OK) status = zc_device_check(d, d->cu.stream_wait(NULL), "input", diag);
    v.data = (void *)(uintptr_t)at;
    if (status == ZC_OK) status = zc_session_set_input(s, i, &v, true, diag);
    free(host);
    return status;
}

static zc_status bind_output(zc_plan *plan, zc_session *s, zc_device *d, size_t i, zc_diag *diag)
{
    zc_io_info io;
    int64_t dims[ZC_RANK_MAX];
    zc_cu_ptr at;
    ZC_TRY(zc_plan_output(plan, i, &io, diag));
    size_t bytes = bytes_of(&io, dims);
    ZC_TRY(zc_device_alloc(d, bytes, "output", &at, diag));
    return zc_session_bind_output_device(s, i, (void *)(uintptr_t)at, bytes, diag);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static zc_status measure(zc_session *s, int runs, zc_diag *diag)
{
    double *host = calloc((size_t)runs, sizeof *host);
    zc_device_info info;
    if (!host) return ZC_ERR_NOMEM;
    zc_status status = ZC_OK;
    for (int i = 0; status == ZC_OK && i < 10; i++) status = zc_session_run(s, diag);
    for (int i = 0; status == ZC_OK && i < runs; i++) {
        double start = now();
        status = zc_session_enqueue(s, diag);
        host[i] = now() - start;
        if (status == ZC_OK) status = zc_session_wait(s, diag);
    }
    double start = now();
    for (int i = 0; status == ZC_OK && i < runs; i++) status = zc_session_enqueue(s, diag);
    if (status == ZC_OK) status = zc_session_wait(s, diag);
    double wall = (now() - start) / runs;
    qsort(host, (size_t)runs, sizeof *host, by_value);
    if (status == ZC_OK) status = zc_session_device(s, &info);
    if (status == ZC_OK)
        printf("{\"host_us_median\": %.2f, \"host_us_p95\": %.2f, \"wall_us\": %.2f, \"launches\": "
               "%zu, \"graphs\": %zu, "
               "\"session_bytes\": %llu}\n",
               host[runs / 2] * 1e6, host[runs * 95 / 100] * 1e6, wall * 1e6, info.launches,
               info.graphs, (unsigned long long)info.memory);
    free(host);
    return status;
}

static zc_status fetch(zc_session *s, zc_device *d, size_t i, zc_view *v, void **out, zc_diag *diag)
{
    ZC_TRY(zc_session_output(s, i, v, diag));
    *out = calloc(v->bytes + 1, 1);
    if (!*out) return ZC_ERR_NOMEM;
    ZC_TRY(zc_device_check(d, d->cu.copy_out(*out, (zc_cu_ptr)(uintptr_t)v->data, v->bytes, NULL),
                           "output", diag));
    return zc_device_check(d, d->cu.stream_wait(NULL), "output", diag);
}

static zc_status check_same(zc_session *s, zc_device *d, size_t outputs, int runs, zc_diag *diag)
{
    void **first = calloc(outputs + 1, sizeof *first);
    int different = 0;
    zc_status status = first ? ZC_OK : ZC_ERR_NOMEM;
    for (int r = 0; status == ZC_OK && r < runs; r++) {
        int differs = 0;
        status = zc_session_run(s, diag);
        for (size_t i = 0; status == ZC_OK && i < outputs; i++) {
            zc_view v;
            void *now_bytes = NULL;
            status = fetch(s, d, i, &v, &now_bytes, diag);
            if (status == ZC_OK && r) differs |= memcmp(first[i], now_bytes, v.bytes) != 0;
            if (r)
                free(now_bytes);
            else
                first[i] = now_bytes;
        }
        different += differs;
    }
    if (status == ZC_OK) printf("{\"runs\": %d, \"runs_that_differ\": %d}\n", runs, different);
    for (size_t i = 0; first && i < outputs; i++) free(first[i]);
    free(first);
    return status;
}

static zc_status run(const char *path, int runs, bool same, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_device d;
    zc_plan_info info;
    ZC_TRY(zc_device_open(0, &d, diag));
    ZC_TRY(zc_device_enter(&d, diag));
    zc_status status = zc_plan_load_file(path, &plan, diag);
    double start = now();
    if (status == ZC_OK)
        status = zc_session_create(plan, ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA), &s, diag);
    if (status == ZC_OK) status = zc_plan_info_get(plan, &info);
    for (size_t i = 0; status == ZC_OK && i < info.inputs; i++)
        status = bind_input(plan, s, &d, i, diag);
    for (size_t i = 0; status == ZC_OK && i < info.outputs; i++)
        status = bind_output(plan, s, &d, i, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status == ZC_OK) fprintf(stderr, "session to first result: %.3f s\n", now() - start);
    if (status == ZC_OK) status = measure(s, runs, diag);
    if (status == ZC_OK && same) status = check_same(s, &d, info.outputs, runs, diag);
    (void)zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    zc_device_leave(&d);
    zc_device_close(&d);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gpu_session PLAN [RUNS [same]]\n");
        return 1;
    }
    zc_diag *diag = zc_diag_create();
    zc_status status = run(argv[1], argc > 2 ? atoi(argv[2]) : 1000, argc > 3, diag);
    for (size_t i = 0; i < zc_diag_count(diag); i++) fprintf(stderr, "%s\n", zc_diag_text(diag, i));
    zc_diag_destroy(&diag);
    return status == ZC_OK ? 0 : 1;
}
