/* How a service uses one plan from several threads: load once, one session a thread.
 *
 * usage: service PLAN THREADS RUNS
 *
 * Every thread runs the plan RUNS times on the same input and folds the results into a checksum.
 * The runtime promises the same bits every time, so all checksums are equal; the exit code says
 * whether they are. The plan must have f32 inputs (as models/digits has). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zc/rt.h"

#define THREADS_MAX 64

typedef struct worker {
    pthread_t thread;
    zc_plan *plan; /* shared: a plan is immutable */
    int runs;
    zc_status status;
    uint64_t checksum;
} worker;

static zc_status set_inputs(zc_plan *plan, zc_session *session)
{
    zc_plan_info about;
    zc_status status = zc_plan_info_get(plan, &about);
    for (size_t i = 0; status == ZC_OK && i < about.inputs; i++) {
        zc_io_info info;
        zc_view view;
        status = zc_plan_input(plan, i, &info, NULL);
        if (status != ZC_OK) break;
        size_t count = 1;
        memset(&view, 0, sizeof view);
        view.elem = info.elem;
        view.rank = info.rank;
        for (int d = 0; d < info.rank; d++) {
            view.dims[d] = info.dims[d] < 0 ? 4 : info.dims[d];
            count *= (size_t)view.dims[d];
        }
        float *values = (float *)malloc((count + 1) * sizeof *values);
        if (!values) return ZC_ERR_NOMEM;
        for (size_t e = 0; e < count; e++) values[e] = (float)(e * 37 % 101) / 101;
        view.data = values;
        view.bytes = count * sizeof *values;
        status = zc_session_set_input(session, i, &view, false, NULL);
        free(values);
    }
    return status;
}

/* FNV-1a over the bytes of all results. */
static uint64_t fold(uint64_t sum, zc_plan *plan, zc_session *session)
{
    zc_plan_info about;
    if (zc_plan_info_get(plan, &about) != ZC_OK) return 0;
    for (size_t i = 0; i < about.outputs; i++) {
        zc_view view;
        if (zc_session_output(session, i, &view, NULL) != ZC_OK) return 0;
        for (size_t b = 0; b < view.bytes; b++)
            sum = (sum ^ ((const uint8_t *)view.data)[b]) * 0x100000001b3u;
    }
    return sum;
}

static void *serve(void *arg)
{
    worker *w = (worker *)arg;
    zc_session *session = NULL; /* one a thread: a session is not shared */
    w->status = zc_session_create(w->plan, ZC_SESSION_PARAMS(.threads = 1), &session, NULL);
    if (w->status == ZC_OK) w->status = set_inputs(w->plan, session);
    w->checksum = 0xcbf29ce484222325u;
    for (int i = 0; i < w->runs && w->status == ZC_OK; i++) {
        w->status = zc_session_run(session, NULL);
        if (w->status == ZC_OK) w->checksum = fold(w->checksum, w->plan, session);
    }
    (void)zc_session_destroy(&session);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc == 4 ? atoi(argv[2]) : 0, runs = argc == 4 ? atoi(argv[3]) : 0,
        code = EXIT_SUCCESS;
    if (threads < 1 || threads > THREADS_MAX || runs < 1) {
        fprintf(stderr, "usage: service PLAN THREADS RUNS\n");
        return EXIT_FAILURE;
    }
    zc_diag *diag = zc_diag_create();
    zc_plan *plan = NULL;
    worker workers[THREADS_MAX];
    if (zc_plan_load_file(argv[1], &plan, diag) != ZC_OK) {
        fprintf(stderr, "service: %s\n", zc_diag_text(diag, 0));
        zc_diag_destroy(&diag);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < threads; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].plan = plan;
        workers[i].runs = runs;
        if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        printf("thread %d: %s, checksum %016llx\n", i, zc_status_name(workers[i].status),
               (unsigned long long)workers[i].checksum);
        if (workers[i].status != ZC_OK || workers[i].checksum != workers[0].checksum)
            code = EXIT_FAILURE;
    }
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    return code;
}
