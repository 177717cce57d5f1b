#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/thread.h"
#include "cli/cli.h"

#define PATIENCE   1.0 /* seconds before anything is shown */
#define REFRESH_NS 200000000L

/* The lock is held. Spaces erase: not every terminal knows escapes. */
static void draw(cli_progress *p, const char *line)
{
    int n = (int)strlen(line);
    fprintf(stderr, "\r%s%*s\r", line, p->shown > n ? p->shown - n : 0, "");
    fflush(stderr);
    p->shown = n;
}

static void *drawing(void *user)
{
    cli_progress *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->done) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += REFRESH_NS;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        pthread_cond_timedwait(&p->wake, &p->lock, &until);
        double seconds = cli_now() - p->start;
        if (p->done || seconds < PATIENCE || !p->text[0]) continue;
        char line[160];
        zc_snprintf(line, sizeof line, "%s... %.0f s", p->text, seconds);
        draw(p, line);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void cli_progress_begin(cli_progress *p)
{
    pthread_condattr_t monotonic;
    *p = (cli_progress){.start = cli_now()};
    if (!isatty(STDERR_FILENO)) return;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->active = zc_thread_start(&p->thread, drawing, p);
}

void cli_progress_set(cli_progress *p, const char *fmt, ...)
{
    if (!p->active) return;
    va_list args;
    va_start(args, fmt);
    pthread_mutex_lock(&p->lock);
    zc_vsnprintf(p->text, sizeof p->text, fmt, args);
    pthread_mutex_unlock(&p->lock);
    va_end(args);
}

void cli_progress_hide(cli_progress *p)
{
    if (!p->active) return;
    pthread_mutex_lock(&p->lock);
    if (p->shown) draw(p, "");
    pthread_mutex_unlock(&p->lock);
}

void cli_progress_end(cli_progress *p)
{
    if (!p->active) return;
    pthread_mutex_lock(&p->lock);
    if (p->shown) draw(p, "");
    p->done = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->active = false;
}
