/* Runs that nobody waits for: one thread keeps several sessions at work, and takes each result when
 * it is there, as an event loop does.
 *
 * usage: background PLAN SESSIONS RUNS
 *
 * What goes wrong is written down by a log function. The plan must have f32 inputs (as
 * models/digits has). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zc/rt.h"

#define SESSIONS_MAX 16

typedef struct worker {
    zc_session *session;
    bool busy;
    int runs;
} worker;

static void log_line(void *user, zc_status status, const char *text)
{
    fprintf((FILE *)user, "background: %s: %s\n", zc_status_name(status), text);
}

static zc_status set_inputs(const zc_plan *plan, zc_session *session, zc_diag *diag)
{
    zc_plan_info about;
    zc_status status = zc_plan_info_get(plan, &about);
    for (size_t i = 0; status == ZC_OK && i < about.inputs; i++) {
        zc_io_info info;
        zc_view view;
        status = zc_plan_input(plan, i, &info, diag);
        if (status != ZC_OK) break;
        memset(&view, 0, sizeof view);
        view.elem = info.elem;
        view.rank = info.rank;
        for (int d = 0; d < info.rank; d++) view.dims[d] = info.dims[d] < 0 ? 4 : info.dims[d];
        view.bytes = zc_view_size(&view);
        view.data = calloc(view.bytes + 1, 1);
        if (!view.data) return ZC_ERR_NOMEM;
        status = zc_session_set_input(session, i, &view, false, diag);
        free((void *)view.data);
    }
    return status;
}

/* One look at a session: begins a run, or takes what has come of one. */
static zc_status look(worker *w, zc_diag *diag)
{
    bool done = true;
    if (!w->busy) {
        w->busy = true;
        return zc_session_enqueue(w->session, diag);
    }
    zc_status status = zc_session_poll(w->session, &done, diag);
    if (status == ZC_OK && done) {
        zc_view result;
        status = zc_session_output(w->session, 0, &result, diag);
        w->runs++;
        w->busy = false;
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: background PLAN SESSIONS RUNS\n");
        return EXIT_FAILURE;
    }
    worker workers[SESSIONS_MAX];
    int n = atoi(argv[2]), runs = atoi(argv[3]), left;
    zc_plan *plan = NULL;
    zc_diag *diag = zc_diag_create();
    if (n < 1 || n > SESSIONS_MAX) n = 1;
    memset(workers, 0, sizeof workers);
    zc_diag_log(diag, log_line, stderr);
    zc_status status = zc_plan_load_file(argv[1], &plan, diag);
    for (int i = 0; status == ZC_OK && i < n; i++) {
        status =
            zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &workers[i].session, diag);
        if (status == ZC_OK) status = set_inputs(plan, workers[i].session, diag);
    }
    do {
        struct timespec moment = {0, 50000}; /* where an event loop would do something else */
        left = 0;
        for (int i = 0; status == ZC_OK && i < n; i++) {
            if (workers[i].runs == runs) continue;
            status = look(&workers[i], diag);
            left++;
        }
        nanosleep(&moment, NULL);
    } while (status == ZC_OK && left);
    for (int i = 0; i < n; i++) {
        printf("session %d: %d runs\n", i, workers[i].runs);
        if (workers[i].session) (void)zc_session_wait(workers[i].session, diag);
        (void)zc_session_destroy(&workers[i].session);
    }
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    return status == ZC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
