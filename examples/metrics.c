/* How a service lets Prometheus watch it: what the plan's sessions have done, as text over HTTP.
 *
 * usage: metrics PLAN THREADS RUNS [PORT]
 *
 * Every thread runs the plan RUNS times on zeros (0: until SIGTERM or SIGINT comes, which always
 * ends the service). http://127.0.0.1:PORT/metrics has the counters; PORT 0, the default, is any
 * that is free. The first line of output is the address. Symbolic dimensions of inputs count as 1.
 */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "zc/rt.h"

#define THREADS_MAX 64

typedef struct service {
    zc_plan *plan;
    const char *name;
    long runs;
    atomic_bool ending;
} service;

/* ---- the text ---- */

/* A label's value. */
static void put_label(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"') fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void begin(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A sample but for its number; label: another one, or NULL. */
static void sample(FILE *out, const service *s, const char *name, const char *label,
                   const char *value)
{
    fprintf(out, "%s{plan=\"", name);
    put_label(out, s->name);
    if (label) fprintf(out, "\",%s=\"%s", label, value);
    fputs("\"} ", out);
}

static void put_number(FILE *out, const service *s, const char *name, const char *type,
                       const char *help, uint64_t n)
{
    begin(out, name, type, help);
    sample(out, s, name, NULL, NULL);
    fprintf(out, "%llu\n", (unsigned long long)n);
}

static void put_times(FILE *out, const service *s, const zc_counters *c)
{
    uint64_t so_far = 0;
    begin(out, "zc_run_seconds", "histogram", "Time of runs that ended well.");
    for (size_t i = 0; i < ZC_LATENCY_BUCKETS; i++) {
        char bound[32] = "+Inf";
        const double seconds = zc_latency_bound(i);
        if (!isinf(seconds)) snprintf(bound, sizeof bound, "%g", seconds);
        so_far += c->latency[i];
        sample(out, s, "zc_run_seconds_bucket", "le", bound);
        fprintf(out, "%llu\n", (unsigned long long)so_far);
    }
    sample(out, s, "zc_run_seconds_sum", NULL, NULL);
    fprintf(out, "%.9g\n", c->seconds);
    sample(out, s, "zc_run_seconds_count", NULL, NULL);
    fprintf(out, "%llu\n", (unsigned long long)so_far);
}

static void put_errors(FILE *out, const service *s, const zc_counters *c)
{
    begin(out, "zc_run_errors_total", "counter", "Runs that failed, by status.");
    for (int i = ZC_ERR_ARG; i <= ZC_ERR_TIMEOUT; i++) {
        sample(out, s, "zc_run_errors_total", "status", zc_status_name((zc_status)i));
        fprintf(out, "%llu\n", (unsigned long long)c->errors[i]);
    }
}

static void put_all(FILE *out, const service *s)
{
    zc_counters c;
    if (zc_plan_counters(s->plan, &c) != ZC_OK) return;
    put_times(out, s, &c);
    put_errors(out, s, &c);
    put_number(out, s, "zc_shapes_planned_total", "counter",
               "Sets of input shapes that were planned.", c.shapes);
    put_number(out, s, "zc_graph_captures_total", "counter",
               "Parts of runs that were recorded as CUDA graphs.", c.captures);
    put_number(out, s, "zc_sessions", "gauge", "Sessions of the plan.", c.sessions);
    put_number(out, s, "zc_session_memory_bytes", "gauge", "Host memory that sessions hold.",
               c.memory);
}

/* ---- HTTP ---- */

static enum MHD_Result answer(void *user, struct MHD_Connection *to, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    const bool found = strcmp(url, "/metrics") == 0 && strcmp(method, "GET") == 0;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    (void)version, (void)upload, (void)upload_size, (void)state;
    if (!out) return MHD_NO;
    if (found) put_all(out, (const service *)user);
    if (fclose(out) != 0) return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  "text/plain; version=0.0.4");
    enum MHD_Result queued =
        MHD_queue_response(to, found ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, response);
    MHD_destroy_response(response);
    return queued;
}

static struct MHD_Daemon *listen_at(service *s, uint16_t port)
{
    struct sockaddr_in at;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, port, NULL, NULL, answer, s,
                         MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) return NULL;
    printf("http://127.0.0.1:%u/metrics\n", info->port);
    fflush(stdout);
    return daemon;
}

/* ---- the work ---- */

static zc_status set_inputs(const service *s, zc_session *session)
{
    zc_plan_info about;
    zc_status status = zc_plan_info_get(s->plan, &about);
    for (size_t i = 0; status == ZC_OK && i < about.inputs; i++) {
        zc_io_info info;
        zc_view view;
        if ((status = zc_plan_input(s->plan, i, &info, NULL)) != ZC_OK) break;
        memset(&view, 0, sizeof view);
        view.elem = info.elem;
        view.rank = info.rank;
        for (int d = 0; d < info.rank; d++) view.dims[d] = info.dims[d] < 0 ? 1 : info.dims[d];
        view.bytes = zc_view_size(&view);
        void *zeros = calloc(1, view.bytes + 1);
        if (!zeros) return ZC_ERR_NOMEM;
        view.data = zeros;
        status = zc_session_set_input(session, i, &view, false, NULL);
        free(zeros);
    }
    return status;
}

static void *work(void *arg)
{
    service *s = (service *)arg;
    zc_session *session = NULL;
    zc_status status = zc_session_create(s->plan, ZC_SESSION_PARAMS(.threads = 1), &session, NULL);
    if (status == ZC_OK) status = set_inputs(s, session);
    for (long i = 0; status == ZC_OK && (s->runs == 0 || i < s->runs); i++) {
        if (atomic_load(&s->ending)) break;
        (void)zc_session_run(session, NULL);
    }
    (void)zc_session_destroy(&session);
    return NULL;
}

static void serve(service *s, int threads, const sigset_t *signals)
{
    pthread_t workers[THREADS_MAX];
    int signal, started = 0;
    while (started < threads && pthread_create(&workers[started], NULL, work, s) == 0) started++;
    (void)sigwait(signals, &signal);
    atomic_store(&s->ending, true);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
}

int main(int argc, char **argv)
{
    const int threads = argc > 3 ? atoi(argv[2]) : 0, port = argc > 4 ? atoi(argv[4]) : 0;
    service s = {.name = argc > 1 ? argv[1] : "", .runs = argc > 3 ? atol(argv[3]) : -1};
    sigset_t signals;
    if (threads < 1 || threads > THREADS_MAX || s.runs < 0 || port < 0 || port > 65535) {
        fprintf(stderr, "usage: metrics PLAN THREADS RUNS [PORT]\n");
        return EXIT_FAILURE;
    }
    /* Before any thread is there: all of them inherit that signals wait for sigwait. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    zc_diag *diag = zc_diag_create();
    if (zc_plan_load_file(argv[1], &s.plan, diag) != ZC_OK)
        fprintf(stderr, "metrics: %s\n", zc_diag_text(diag, 0));
    struct MHD_Daemon *daemon = s.plan ? listen_at(&s, (uint16_t)port) : NULL;
    if (s.plan && !daemon) fprintf(stderr, "metrics: cannot listen at port %d\n", port);
    if (daemon) {
        serve(&s, threads, &signals);
        MHD_stop_daemon(daemon);
    }
    zc_plan_destroy(&s.plan);
    zc_diag_destroy(&diag);
    return daemon ? EXIT_SUCCESS : EXIT_FAILURE;
}
