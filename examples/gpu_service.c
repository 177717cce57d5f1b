/* A service that answers requests with one plan on a GPU, from several threads.
 *
 * usage: gpu_service PLAN cpu|cuda[:N] host|device THREADS REQUESTS
 *
 * The main thread puts REQUESTS requests into a queue; THREADS workers answer them; a signal (INT,
 * TERM) stops the service after the requests that are queued. The plan must have f32 inputs, as
 * models/digits has. Requests repeat with a period, and equal requests must have equal answers,
 * whichever thread gave them: the exit code says whether they had.
 *
 * Rules for threads, which this program follows:
 *
 * - A plan may be used by all threads at once. It is loaded once, and its constants are on the GPU
 * once.
 * - A session is used by one thread at a time. Each worker has its own; a call on a session that
 * another thread is inside returns ZC_ERR_BUSY.
 * - Each session has a stream of its own. With `host` the session makes one; with `device` the
 * worker makes one and hands it over, because its own copies must be in order with the session's
 * kernels. Two sessions must not be given one stream: while one records a CUDA graph on it, the
 * work of the other would be recorded too.
 * - A zc_diag belongs to one thread.
 * - The session leaves the thread's current CUDA context as it found it. The driver's own functions
 * need one, so a worker that calls them makes the GPU's primary context current for its thread.
 *
 * What errors mean to a service:
 *
 * - ZC_ERR_INPUT, ZC_ERR_NOMEM, ZC_ERR_CANCELLED and others: this request is refused, the session
 * serves the next.
 * - ZC_ERR_DEVICE_LOST: nothing works on this GPU in this process any more. Stop, exit with an
 * error, and let the supervisor start a new process. Destroying sessions and plan is still allowed,
 * and does not hang.
 *
 * Order of shutdown: no more requests, workers finish and destroy their sessions, then the plan.
 * (The plan could be destroyed earlier: sessions keep it alive.) */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zc/rt.h"

enum { THREADS_MAX = 64, QUEUE_MAX = 32, PERIOD = 8, TENSORS_MAX = 8, LOST = 3 };

/* ---- the few functions of the CUDA driver that `device` needs; a program with <cuda.h> would just
 * call them ---- */

typedef unsigned long long device_ptr;

typedef struct cuda_driver {
    void *library, *context;
    int device;
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*context_retain)(void **context, int device);
    int (*context_release)(int device);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*mem_alloc)(device_ptr *p, size_t bytes);
    int (*mem_free)(device_ptr p);
    int (*copy_in)(device_ptr to, const void *from, size_t bytes, void *stream);
    int (*copy_out)(void *to, device_ptr from, size_t bytes, void *stream);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
} cuda_driver;

static bool find(void *library, const char *name, void *to)
{
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

static bool driver_open(cuda_driver *d, int ordinal)
{
    d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return d->library && find(d->library, "cuInit", &d->init) &&
           find(d->library, "cuDeviceGet", &d->device_get) &&
           find(d->library, "cuDevicePrimaryCtxRetain", &d->context_retain) &&
           find(d->library, "cuDevicePrimaryCtxRelease_v2", &d->context_release) &&
           find(d->library, "cuCtxPushCurrent_v2", &d->context_push) &&
           find(d->library, "cuCtxPopCurrent_v2", &d->context_pop) &&
           find(d->library, "cuMemAlloc_v2", &d->mem_alloc) &&
           find(d->library, "cuMemFree_v2", &d->mem_free) &&
           find(d->library, "cuMemcpyHtoDAsync_v2", &d->copy_in) &&
           find(d->library, "cuMemcpyDtoHAsync_v2", &d->copy_out) &&
           find(d->library, "cuStreamCreate", &d->stream_create) &&
           find(d->library, "cuStreamSynchronize", &d->stream_wait) &&
           find(d->library, "cuStreamDestroy_v2", &d->stream_destroy) && d->init(0) == 0 &&
           d->device_get(&d->device, ordinal) == 0 &&
           d->context_retain(&d->context, d->device) == 0;
}

static void driver_close(cuda_driver *d)
{
    if (d->context) (void)d->context_release(d->device);
    if (d->library) dlclose(d->library);
}

/* ---- the service ---- */

typedef struct service {
    zc_plan *plan;
    zc_plan_info info;
    zc_device_kind kind;
    int ordinal;
    bool on_device; /* buffers in device memory */
    cuda_driver driver;

    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    unsigned queue[QUEUE_MAX];
    size_t queued, head;
    bool closed; /* no more requests come */
    bool lost;   /* the GPU is gone */
    unsigned long answered, refused;
    uint64_t answers[PERIOD]; /* 0: not known yet */
    bool differ;
} service;

/* False when the service is closing: the request was not taken. */
static bool submit(service *s, unsigned request)
{
    pthread_mutex_lock(&s->lock);
    while (s->queued == QUEUE_MAX && !s->closed) pthread_cond_wait(&s->not_full, &s->lock);
    bool open = !s->closed;
    if (open) s->queue[(s->head + s->queued++) % QUEUE_MAX] = request;
    pthread_cond_signal(&s->not_empty);
    pthread_mutex_unlock(&s->lock);
    return open;
}

/* False when there are no more requests and will be none. */
static bool take(service *s, unsigned *request)
{
    pthread_mutex_lock(&s->lock);
    while (!s->queued && !s->closed) pthread_cond_wait(&s->not_empty, &s->lock);
    bool any = s->queued && !s->lost;
    if (any) {
        *request = s->queue[s->head];
        s->head = (s->head + 1) % QUEUE_MAX;
        s->queued--;
        pthread_cond_signal(&s->not_full);
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

static void close_queue(service *s, bool lost)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    s->lost |= lost;
    pthread_cond_broadcast(&s->not_empty);
    pthread_cond_broadcast(&s->not_full);
    pthread_mutex_unlock(&s->lock);
}

static void answer(service *s, unsigned request, uint64_t sum)
{
    pthread_mutex_lock(&s->lock);
    uint64_t *known = &s->answers[request % PERIOD];
    if (!*known) *known = sum;
    s->differ |= *known != sum;
    s->answered++;
    pthread_mutex_unlock(&s->lock);
}

static void refuse(service *s, unsigned request, const zc_diag *diag)
{
    pthread_mutex_lock(&s->lock);
    s->refused++;
    pthread_mutex_unlock(&s->lock);
    fprintf(stderr, "gpu_service: request %u: %s\n", request, zc_diag_text(diag, 0));
}

/* ---- a worker ---- */

typedef struct buffer {
    void *host;
    device_ptr device;
    size_t bytes;
} buffer;

typedef struct worker {
    pthread_t thread;
    service *shared;
    zc_session *session;
    zc_diag *diag;
    void *stream; /* of `device` */
    buffer in[TENSORS_MAX], out[TENSORS_MAX];
} worker;

static zc_status no_memory(void)
{
    return ZC_ERR_NOMEM;
}

/* Makes the buffer at least so large. Device memory may still be in use by the stream: it is waited
 * for. */
static zc_status fit(worker *w, buffer *b, size_t bytes)
{
    cuda_driver *d = &w->shared->driver;
    if (b->host && bytes <= b->bytes) return ZC_OK;
    free(b->host);
    b->host = malloc(bytes);
    b->bytes = b->host ? bytes : 0;
    if (!b->host) return no_memory();
    if (!w->shared->on_device) return ZC_OK;
    (void)d->stream_wait(w->stream);
    if (b->device) (void)d->mem_free(b->device);
    b->device = 0;
    if (d->mem_alloc(&b->device, bytes) == 0) return ZC_OK;
    b->device = 0;
    b->bytes = 0;
    return no_memory();
}

/* Where the plan leaves a dimension open, requests have from 1 to 4. */
static zc_status set_input(worker *w, size_t i, unsigned request)
{
    zc_io_info info;
    zc_view view;
    size_t count = 1;
    memset(&view, 0, sizeof view);
    zc_status status = zc_plan_input(w->shared->plan, i, &info, w->diag);
    if (status != ZC_OK) return status;
    view.elem = info.elem;
    view.rank = info.rank;
    for (int d = 0; d < info.rank; d++) {
        view.dims[d] = info.dims[d] < 0 ? 1 + request % 4 : info.dims[d];
        count *= (size_t)view.dims[d];
    }
    view.bytes = count * sizeof(float);
    status = fit(w, &w->in[i], view.bytes + 1);
    if (status != ZC_OK) return status;
    float *values = (float *)w->in[i].host;
    for (size_t e = 0; e < count; e++)
        values[e] = (float)((e * 37 + request % PERIOD * 11) % 101) / 101;
    view.data = values;
    if (w->shared->on_device) {
        /* Device memory is always borrowed: it must stay as it is until the run is over. */
        if (w->shared->driver.copy_in(w->in[i].device, values, view.bytes, w->stream) != 0)
            return ZC_ERR_DEVICE;
        view.data = (void *)(uintptr_t)w->in[i].device;
        view.on_device = true;
    }
    return zc_session_set_input(w->session, i, &view, view.on_device, w->diag);
}

/* Results go to this worker's device memory. Its size is known once a run with these shapes has
 * failed to fit or has succeeded, so it is simply made large: 64 KiB for each of up to four rows.
 */
static zc_status bind_output(worker *w, size_t i)
{
    enum { ROOM = 4 << 16 };
    zc_status status = fit(w, &w->out[i], ROOM);
    if (status != ZC_OK) return status;
    return zc_session_bind_output_device(w->session, i, (void *)(uintptr_t)w->out[i].device, ROOM,
                                         w->diag);
}

/* The bytes of all results, folded (FNV-1a). */
static zc_status fold(worker *w, uint64_t *sum)
{
    *sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < w->shared->info.outputs; i++) {
        zc_view view;
        zc_status status = zc_session_output(w->session, i, &view, w->diag);
        if (status != ZC_OK) return status;
        const uint8_t *bytes = (const uint8_t *)view.data;
        if (view.on_device) {
            cuda_driver *d = &w->shared->driver;
            if (d->copy_out(w->out[i].host, w->out[i].device, view.bytes, w->stream) != 0 ||
                d->stream_wait(w->stream) != 0)
                return ZC_ERR_DEVICE;
            bytes = (const uint8_t *)w->out[i].host;
        }
        for (size_t b = 0; b < view.bytes; b++) *sum = (*sum ^ bytes[b]) * 0x100000001b3u;
    }
    return ZC_OK;
}

static zc_status serve(worker *w, unsigned request, uint64_t *sum)
{
    zc_status status = ZC_OK;
    for (size_t i = 0; status == ZC_OK && i < w->shared->info.inputs; i++)
        status = set_input(w, i, request);
    for (size_t i = 0; status == ZC_OK && w->shared->on_device && i < w->shared->info.outputs; i++)
        status = bind_output(w, i);
    /* enqueue returns when the work is on the stream; wait also reports what the kernels found
     * wrong with the input. zc_session_run is the two together. */
    if (status == ZC_OK) status = zc_session_enqueue(w->session, w->diag);
    if (status == ZC_OK) status = zc_session_wait(w->session, w->diag);
    return status == ZC_OK ? fold(w, sum) : status;
}

static zc_status open_worker(worker *w)
{
    service *s = w->shared;
    w->diag = zc_diag_create();
    if (!w->diag) return no_memory();
    if (s->on_device && (s->driver.context_push(s->driver.context) != 0 ||
                         s->driver.stream_create(&w->stream, 1) != 0))
        return ZC_ERR_DEVICE;
    return zc_session_create(s->plan,
                             ZC_SESSION_PARAMS(.threads = 1, .device = s->kind,
                                               .ordinal = s->ordinal, .stream = w->stream),
                             &w->session, w->diag);
}

/* The session first: it uses the stream and the buffers. */
static void close_worker(worker *w)
{
    service *s = w->shared;
    void *context;
    (void)zc_session_destroy(&w->session);
    for (int i = 0; i < TENSORS_MAX; i++) {
        if (w->in[i].device) (void)s->driver.mem_free(w->in[i].device);
        if (w->out[i].device) (void)s->driver.mem_free(w->out[i].device);
        free(w->in[i].host);
        free(w->out[i].host);
    }
    if (w->stream) (void)s->driver.stream_destroy(w->stream);
    if (s->on_device) (void)s->driver.context_pop(&context);
    zc_diag_destroy(&w->diag);
}

static void *work(void *arg)
{
    worker *w = (worker *)arg;
    unsigned request;
    uint64_t sum;
    zc_status status = open_worker(w);
    if (status != ZC_OK) {
        fprintf(stderr, "gpu_service: no session: %s: %s\n", zc_status_name(status),
                zc_diag_text(w->diag, 0));
        close_queue(w->shared, true);
    }
    while (status != ZC_ERR_DEVICE_LOST && w->session && take(w->shared, &request)) {
        zc_diag_clear(w->diag);
        status = serve(w, request, &sum);
        if (status == ZC_OK)
            answer(w->shared, request, sum);
        else
            refuse(w->shared, request, w->diag);
        if (status == ZC_ERR_DEVICE_LOST) close_queue(w->shared, true);
    }
    close_worker(w);
    return NULL;
}

/* ---- start and stop ---- */

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static bool parse_device(const char *text, service *s)
{
    if (strcmp(text, "cpu") == 0) return true;
    if (strncmp(text, "cuda", 4) != 0 || (text[4] && text[4] != ':')) return false;
    s->kind = ZC_DEVICE_CUDA;
    s->ordinal = text[4] ? atoi(text + 5) : 0;
    return true;
}

static int run(service *s, int threads, unsigned long requests)
{
    worker workers[THREADS_MAX];
    int started = 0;
    for (; started < threads; started++) {
        memset(&workers[started], 0, sizeof workers[started]);
        workers[started].shared = s;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    }
    if (started < threads) fprintf(stderr, "gpu_service: only %d threads\n", started);
    for (unsigned long i = 0; started && i < requests && !stop; i++)
        if (!submit(s, (unsigned)i)) break;
    close_queue(s, false);
    for (int i = 0; i < started; i++) pthread_join(workers[i].thread, NULL);
    printf("answered %lu, refused %lu%s%s\n", s->answered, s->refused,
           s->differ ? ", answers differ" : "",
           s->lost ? ", the device is lost or was never there" : "");
    if (s->lost) return LOST;
    return s->differ || s->refused || (s->answered != requests && !stop) ? EXIT_FAILURE
                                                                         : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    service s;
    memset(&s, 0, sizeof s);
    s.kind = ZC_DEVICE_CPU;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.not_empty, NULL);
    pthread_cond_init(&s.not_full, NULL);
    int threads = argc == 6 ? atoi(argv[4]) : 0, code = EXIT_FAILURE;
    bool good = argc == 6 && parse_device(argv[2], &s) && threads > 0 && threads <= THREADS_MAX;
    s.on_device = good && strcmp(argv[3], "device") == 0;
    if (!good || (!s.on_device && strcmp(argv[3], "host") != 0) ||
        (s.on_device && s.kind != ZC_DEVICE_CUDA)) {
        fprintf(stderr, "usage: gpu_service PLAN cpu|cuda[:N] host|device THREADS REQUESTS\n");
        return EXIT_FAILURE;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    zc_diag *diag = zc_diag_create();
    if (zc_plan_load_file(argv[1], &s.plan, diag) != ZC_OK)
        fprintf(stderr, "gpu_service: %s\n", zc_diag_text(diag, 0));
    else if (zc_plan_info_get(s.plan, &s.info) != ZC_OK || s.info.inputs > TENSORS_MAX ||
             s.info.outputs > TENSORS_MAX)
        fprintf(stderr, "gpu_service: too many inputs or outputs\n");
    else if (s.on_device && !driver_open(&s.driver, s.ordinal))
        fprintf(stderr, "gpu_service: no CUDA driver or GPU\n");
    else
        code = run(&s, threads, strtoul(argv[5], NULL, 10));
    zc_plan_destroy(&s.plan);
    driver_close(&s.driver);
    zc_diag_destroy(&diag);
    return code;
}
