#include "runtime/background.h"

#include <stdlib.h>

#include "base/thread.h"

struct zc_background {
    zc_session *session;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool running, ending;
    zc_status status; /* of the last run, until it is given */
    zc_diag *diag;
};

static void run_once(struct zc_background *b)
{
    zc_session *s = b->session;
    zc_diag_lend_file(b->diag, s->plan->file);
    b->status = zc_session_end_run(s, zc_session_run_now(s, true, b->diag), b->diag);
}

static void *run_in_turn(void *arg)
{
    struct zc_background *b = arg;
    pthread_mutex_lock(&b->lock);
    while (!b->ending) {
        if (!b->running) {
            pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        run_once(b);
        pthread_mutex_lock(&b->lock);
        b->running = false;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static zc_status create(zc_session *s, struct zc_background **out, zc_diag *diag)
{
    struct zc_background *b = zc_calloc(1, sizeof *b);
    zc_diag *own = b ? zc_diag_create() : NULL;
    if (!own) {
        free(b);
        return zc_fail_nomem(diag, "a thread for runs", sizeof *b);
    }
    *b = (struct zc_background){.session = s, .diag = own};
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    *out = b;
    if (zc_thread_start(&b->thread, run_in_turn, b)) return ZC_OK;
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    zc_diag_destroy(&own);
    free(b);
    return zc_fail(diag, ZC_ERR_NOMEM, NULL, "the system starts no thread for runs");
}

zc_status zc_background_start(zc_session *s, zc_diag *diag)
{
    struct zc_background *b = atomic_load(&s->background);
    if (!b) {
        ZC_TRY(create(s, &b, diag));
        atomic_store(&s->background, b);
    }
    pthread_mutex_lock(&b->lock);
    while (b->running) pthread_cond_wait(&b->changed, &b->lock); /* it has left the session */
    zc_diag_clear(b->diag);
    b->running = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return ZC_OK;
}

zc_status zc_background_settle(struct zc_background *b, bool wait, bool *done, zc_diag *diag)
{
    pthread_mutex_lock(&b->lock);
    while (wait && b->running) pthread_cond_wait(&b->changed, &b->lock);
    *done = !b->running;
    zc_status status = ZC_OK;
    if (*done) {
        status = b->status;
        b->status = ZC_OK;
        zc_diag_move(diag, b->diag);
        zc_diag_clear(b->diag);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

void zc_background_end(struct zc_background *b)
{
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    b->ending = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    zc_diag_destroy(&b->diag);
    free(b);
}
