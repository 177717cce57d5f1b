#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/thread.h"
#include "cli/bench.h"
#include "cli/progress.h"
#include "runtime/resident.h"

#define TIMES_MAX ((size_t)1 << 22)

enum {
    WINDOW = 5,     /* warm-up runs whose median is compared with that of those before */
    WARM_LEAST = 3, /* runs, with no number given */
    WARM_SHARE = 3  /* of the time for measuring, at most, go to warming up */
};

int bench_threads(const bench_options *o)
{
    return o->threads ? (int)o->threads : zc_usable_cpus();
}

/* ---- times ---- */

static zc_status times_init(bench_times *t, size_t most, zc_diag *diag)
{
    *t = (bench_times){.v = zc_calloc(most, sizeof *t->v), .stride = 1};
    return t->v ? ZC_OK : zc_fail_nomem(diag, "timings", most);
}

static void times_add(bench_times *t, size_t most, double seconds)
{
    if (t->runs++ % t->stride) return;
    t->v[t->n++] = seconds;
    if (t->n < most) return;
    for (size_t i = 0; i < t->n / 2; i++) t->v[i] = t->v[2 * i];
    t->n /= 2;
    t->stride *= 2;
}

static zc_status run_once(zc_session *s, const bench_options *o, double *seconds, zc_diag *diag)
{
    const clockid_t clock = o->processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double start = cli_clock(clock);
    zc_status status = zc_session_run(s, diag);
    *seconds = cli_clock(clock) - start;
    return status;
}

/* ---- warming up ---- */

static zc_status warm_times(zc_session *s, bench_target *t, int64_t runs, double end, zc_diag *diag)
{
    for (int64_t i = 0; i < runs || cli_now() < end; i++, t->warm_runs++)
        ZC_TRY(zc_session_run(s, diag));
    return ZC_OK;
}

/* Until the median of some runs is within a fiftieth of that of those before. */
static zc_status warm_until_stable(zc_session *s, bench_target *t, const bench_options *o,
                                   double end, zc_diag *diag)
{
    double before = 0;
    while (!t->stable && cli_now() < end) {
        double v[WINDOW];
        zc_interval now;
        for (int i = 0; i < WINDOW; i++, t->warm_runs++) ZC_TRY(run_once(s, o, &v[i], diag));
        if (!zc_median_of(v, WINDOW, &now)) return zc_fail_nomem(diag, "timings", sizeof v);
        t->stable = now.mid > before * 0.98 && now.mid < before * 1.02;
        before = now.mid;
    }
    return ZC_OK;
}

static zc_status warm_up(zc_session *s, bench_target *t, const bench_options *o, zc_diag *diag)
{
    double start = cli_now();
    bool given = o->warmup >= 0;
    ZC_TRY(warm_times(s, t, given ? o->warmup : WARM_LEAST, start + o->warm_ms / 1e3, diag));
    return given ? ZC_OK : warm_until_stable(s, t, o, start + o->seconds / WARM_SHARE, diag);
}

/* ---- sessions ---- */

static zc_status open_session(const bench_target *t, const bench_options *o, zc_session **out,
                              zc_diag *diag)
{
    ZC_TRY(zc_session_create(t->plan,
                             ZC_SESSION_PARAMS(.threads = (int)o->threads, .device = o->device.kind,
                                               .ordinal = o->device.ordinal),
                             out, diag));
    ZC_TRY(cli_give_inputs(*out, &t->values, diag));
    return o->no_transfers ? zc_session_reside(*out, diag) : ZC_OK;
}

static zc_status open_target(bench_target *t, const bench_options *o, bool quiet, zc_diag *diag)
{
    cli_inputs in = o->in;
    in.quiet = quiet;
    ZC_TRY(cli_load_plan(t->path, &t->plan, diag));
    ZC_TRY(zc_plan_info_get(t->plan, &t->info));
    ZC_TRY(cli_read_inputs(t->plan, &in, &t->values, diag));
    return open_session(t, o, &t->session, diag);
}

/* ---- by turns, in this thread ---- */

static bool is_done(const bench_target *targets, size_t n, int64_t least, double end)
{
    for (size_t i = 0; i < n; i++)
        if (targets[i].times.runs < (size_t)least) return false;
    return cli_now() >= end;
}

/* Every second round goes backwards, so that none always comes behind the same. */
static zc_status measure_in_turn(bench_target *targets, size_t n, const bench_options *o,
                                 cli_meter *meter, zc_diag *diag)
{
    const size_t most = TIMES_MAX / n;
    for (size_t i = 0; i < n; i++) ZC_TRY(times_init(&targets[i].times, most, diag));
    cli_meter_begin(meter);
    double end = cli_now() + o->seconds, seconds, sum[BENCH_PLANS_MAX] = {0};
    for (size_t round = 0; !is_done(targets, n, o->iterations, end); round++)
        for (size_t i = 0; i < n; i++) {
            size_t at = round % 2 ? n - 1 - i : i;
            ZC_TRY(run_once(targets[at].session, o, &seconds, diag));
            times_add(&targets[at].times, most, seconds);
            sum[at] += seconds;
            cli_meter_tick(meter);
        }
    for (size_t i = 0; i < n; i++)
        targets[i].runs_a_second = (double)targets[i].times.runs / sum[i];
    return ZC_OK;
}

/* ---- several sessions of one plan at the same time ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open, called_off;
    double end;
} gate;

typedef struct worker {
    zc_session *session;
    const bench_options *options;
    gate *gate;
    cli_meter *meter; /* the first's to look at; NULL: another's */
    bench_times times;
    size_t most, least;
    pthread_t thread;
    bool started;
    zc_diag *diag;
    zc_status status;
    double finished;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    gate *g = w->gate;
    pthread_mutex_lock(&g->lock);
    while (!g->open) pthread_cond_wait(&g->opened, &g->lock);
    bool go = !g->called_off;
    pthread_mutex_unlock(&g->lock);
    while (go && w->status == ZC_OK && (w->times.runs < w->least || cli_now() < g->end)) {
        double seconds;
        w->status = run_once(w->session, w->options, &seconds, w->diag);
        if (w->status == ZC_OK) times_add(&w->times, w->most, seconds);
        if (w->meter) cli_meter_tick(w->meter);
    }
    w->finished = cli_now();
    return NULL;
}

static zc_status prepare(worker *w, bench_target *t, const bench_options *o, zc_diag *diag)
{
    if (!w->session) {
        ZC_TRY(open_session(t, o, &w->session, diag));
        ZC_TRY(warm_times(w->session, t, WARM_LEAST, 0, diag));
    }
    w->options = o;
    w->most = TIMES_MAX / (size_t)o->concurrency;
    w->least = (size_t)((o->iterations + o->concurrency - 1) / o->concurrency);
    w->diag = zc_diag_create();
    return times_init(&w->times, w->most, diag);
}

/* The workers' times by turns, as they ran beside each other. */
static zc_status collect(bench_target *t, const worker *workers, size_t n, double start,
                         zc_diag *diag)
{
    double last = start;
    size_t longest = 0;
    ZC_TRY(times_init(&t->times, TIMES_MAX, diag));
    for (size_t i = 0; i < n; i++) {
        const worker *w = &workers[i];
        if (w->status != ZC_OK)
            return zc_fail(diag, w->status, NULL, "%s",
                           zc_diag_count(w->diag) ? zc_diag_text(w->diag, 0) : "a run failed");
        if (w->finished > last) last = w->finished;
        if (w->times.n > longest) longest = w->times.n;
        t->times.runs += w->times.runs;
    }
    for (size_t r = 0; r < longest; r++)
        for (size_t i = 0; i < n && t->times.n < TIMES_MAX; i++)
            if (r < workers[i].times.n) t->times.v[t->times.n++] = workers[i].times.v[r];
    t->runs_a_second = (double)t->times.runs / (last - start);
    return ZC_OK;
}

static zc_status measure_together(bench_target *t, const bench_options *o, cli_meter *meter,
                                  zc_diag *diag)
{
    size_t n = (size_t)o->concurrency;
    worker *workers = zc_calloc(n, sizeof *workers);
    if (!workers) return zc_fail_nomem(diag, "sessions", n);
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    zc_status status = ZC_OK;
    workers[0].session = t->session;
    workers[0].meter = meter;
    for (size_t i = 0; i < n && status == ZC_OK; i++) {
        worker *w = &workers[i];
        w->gate = &g;
        status = prepare(w, t, o, diag);
        if (status == ZC_OK && !(w->started = zc_thread_start(&w->thread, work, w)))
            status = zc_fail(diag, ZC_ERR_LIMIT, NULL, "no more threads (got %zu, need %zu)", i, n);
    }
    pthread_mutex_lock(&g.lock);
    cli_meter_begin(meter);
    double start = cli_now();
    g.end = start + o->seconds;
    g.open = true;
    g.called_off = status != ZC_OK;
    pthread_cond_broadcast(&g.opened);
    pthread_mutex_unlock(&g.lock);
    for (size_t i = 0; i < n; i++)
        if (workers[i].started) pthread_join(workers[i].thread, NULL);
    if (status == ZC_OK) status = collect(t, workers, n, start, diag);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) (void)zc_session_destroy(&workers[i].session);
        zc_diag_destroy(&workers[i].diag);
        free(workers[i].times.v);
    }
    free(workers);
    return status;
}

/* ---- all ---- */

static zc_status warm_up_and_measure(bench_target *targets, size_t n, const bench_options *o,
                                     cli_meter *meter, zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) ZC_TRY(warm_up(targets[i].session, &targets[i], o, diag));
    return o->concurrency > 1 ? measure_together(targets, o, meter, diag)
                              : measure_in_turn(targets, n, o, meter, diag);
}

/* Energy of runs by turns is nobody's alone. */
static zc_status measure(bench_target *targets, size_t n, const bench_options *o, zc_diag *diag)
{
    zc_device_info device;
    cli_meter meter;
    cli_reading reading;
    for (size_t i = 0; i < n; i++) {
        ZC_TRY(open_target(&targets[i], o, i > 0, diag));
        if (o->baseline) ZC_TRY(bench_check(&targets[i], o, diag));
    }
    ZC_TRY(zc_session_device(targets[0].session, &device));
    cli_meter_open(&device, CLI_POWERCAP, &meter);
    zc_status status = warm_up_and_measure(targets, n, o, &meter, diag);
    cli_meter_end(&meter, &reading);
    cli_meter_close(&meter);
    if (n > 1) reading.gpu_joules = reading.cpu_joules = NAN;
    for (size_t i = 0; i < n; i++) targets[i].reading = reading;
    return status;
}

zc_status bench_measure(bench_target *targets, size_t n, const bench_options *o, zc_diag *diag)
{
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "measuring");
    zc_status status = measure(targets, n, o, diag);
    for (size_t i = 0; status == ZC_OK && i < n && (o->steps || o->save || o->baseline); i++)
        status = cli_profile_run(targets[i].plan, &targets[i].values,
                                 &(cli_profile_params){.threads = o->threads,
                                                       .device = o->device,
                                                       .seconds = o->seconds / 3},
                                 &targets[i].steps, diag);
    cli_progress_end(&progress);
    return status;
}

void bench_free(bench_target *targets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bench_target *t = &targets[i];
        cli_profile_free(&t->steps);
        free(t->times.v);
        (void)zc_session_destroy(&t->session);
        cli_free_values(&t->values);
        zc_plan_destroy(&t->plan);
    }
}
