/* zc profile: where a plan's time goes, step by step. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/pool.h"
#include "cli/environment.h"
#include "cli/peaks.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "runtime/plan.h"

typedef struct options {
    cli_inputs in;
    cli_device device;
    int64_t threads, modules; /* modules: parts of their paths; 0: no sums by module */
    double seconds;
    const char *trace;
    bool json, no_peaks, in_graph;
} options;

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(options, in),
    CLI_DEVICE_OPTION(options, device),
    CLI_THREADS_OPTION(options, threads, "threads to use (default: one a CPU)"),
    {.name = "seconds",
     .arg = "S",
     .help = "measure for S seconds or 200 runs, and 5 runs at least (default 2)",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(options, seconds)},
    {.name = "modules",
     .arg = "N",
     .help = "sums by module, too: by the first N parts of the nodes' names, as in "
             "/encoder/layer.0/attention",
     .least = 1,
     .most = 64,
     .set = cli_set_int,
     .at = offsetof(options, modules)},
    {.name = "in-graph",
     .help = "on a GPU: time the steps within the CUDA graphs that they run in, by what their "
             "kernels note, which are compiled anew for that",
     .set = cli_set_flag,
     .at = offsetof(options, in_graph)},
    {.name = "no-peaks",
     .help = "do not measure what the processor or GPU can do",
     .set = cli_set_flag,
     .at = offsetof(options, no_peaks)},
    {.name = "trace",
     .arg = "FILE",
     .help = "write the steps as Chrome's trace events, for Perfetto and chrome://tracing",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(options, trace)},
    {.name = "json",
     .help = "print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(options, json)},
};

typedef struct report {
    const char *path;
    zc_plan *plan;
    zc_device_info device;
    cli_values values;
    cli_profile profile;
    cli_peaks peaks;
    int threads;
} report;

/* ---- text ---- */

static void put_share(double share, const char *bound)
{
    if (share < 0)
        printf("%7s %-10s", "", "");
    else
        printf("%6.1f%% %-10s", 100 * share, bound);
}

static void print_step(const report *r, size_t i)
{
    const cli_profile_step *s = &r->profile.steps[i];
    cli_reach at = cli_profile_reach(s, &r->peaks.v);
    printf("%10.2f %8.2f %5.1f%% ", s->time.mid, (s->time.high - s->time.low) / 2,
           r->profile.sum > 0 ? 100 * s->time.mid / r->profile.sum : 0);
    if (r->profile.in_graph) printf("%7.2f %7.2f ", s->info.gap_us, s->info.overlap_us);
    printf("%9.3f %8.2f ", at.bytes * 1e-6, at.rate * 1e-9);
    if (at.operations < 0)
        printf("%9s ", "-");
    else
        printf("%9.2f ", at.speed * 1e-9);
    if (at.intensity < 0)
        printf("%7s ", "-");
    else
        printf("%7.1f ", at.intensity);
    put_share(at.share, at.bound);
    printf(" %-10s %5zu  %-20s ", *s->info.products ? s->info.products : "-", i, s->info.op);
    if (s->info.kernel) {
        cli_put(stdout, s->info.kernel);
        fputs("  ", stdout);
    }
    cli_put(stdout, s->info.name);
    puts("");
}

static zc_status print_groups(const report *r, const char *of, int64_t by, zc_diag *diag)
{
    size_t n;
    cli_group *groups = cli_profile_groups(&r->profile, by, &n);
    if (!groups) return zc_fail_nomem(diag, "steps", r->profile.n);
    printf("%10s %6s %9s %9s  steps of %s\n", "us", "share", "MB", "GFLOP", of);
    for (size_t i = 0; i < n; i++) {
        const cli_group *g = &groups[i];
        char *name = cli_group_name(g);
        printf("%10.2f %5.1f%% %9.3f %9.3f  %zu ", g->us,
               r->profile.sum > 0 ? 100 * g->us / r->profile.sum : 0, g->bytes * 1e-6,
               g->operations * 1e-9, g->steps);
        cli_put(stdout, name ? name : "");
        puts("");
        free(name);
    }
    free(groups);
    return ZC_OK;
}

static void print_peaks(const report *r)
{
    const zc_peaks *v = &r->peaks.v;
    if (v->bytes <= 0) return;
    const double f32 = v->operations[ZC_PEAK_F32];
    if (r->device.kind == ZC_DEVICE_CUDA) {
        printf("; copies within its memory move %.1f GB/s", v->bytes * 1e-9);
        if (f32 > 0) printf("; cores: f32 %.1f TFLOP/s", f32 * 1e-12);
        cli_peaks_print_cores(stdout, v);
    } else {
        printf("; %d threads read %.1f GB/s and do %.1f GFLOP/s of f32 products", r->threads,
               v->bytes * 1e-9, f32 * 1e-9);
    }
    if (r->peaks.kept) fputs(" (measured before)", stdout);
}

static zc_status print_text(const report *r, const options *o, zc_diag *diag)
{
    const cli_profile *p = &r->profile;
    size_t *order = cli_profile_order(p);
    if (!order) return zc_fail_nomem(diag, "steps", p->n);
    printf("%10s %8s %6s ", "us", "+-", "share");
    if (p->in_graph) printf("%7s %7s ", "gap", "overlap");
    printf("%9s %8s %9s %7s %-18s %-10s %5s  %s\n", "MB", "GB/s", "GFLOP/s", "FLOP/B", "  peak, of",
           "products", "step", "operation");
    for (size_t i = 0; i < p->n; i++) print_step(r, order[i]);
    free(order);
    ZC_TRY(print_groups(r, "an operation", CLI_BY_OPERATION, diag));
    if (r->device.kind == ZC_DEVICE_CUDA) ZC_TRY(print_groups(r, "a kernel", CLI_BY_KERNEL, diag));
    if (o->modules) ZC_TRY(print_groups(r, "a module", o->modules, diag));
    printf("%.2f us in all steps, %.1f %% of a run, %s of %zu runs, on %s", p->sum, 100 * p->share,
           p->in_graph ? "means" : "medians", p->runs, r->device.name);
    if (p->device_us > 0) printf(", there %.2f us a run", p->device_us);
    print_peaks(r);
    puts("");
    cli_print_clocks(&p->reading);
    return ZC_OK;
}

/* ---- JSON ---- */

/* What stands of step i in JSON and in traces. */
static void put_work(FILE *out, const report *r, size_t i)
{
    const cli_profile_step *s = &r->profile.steps[i];
    const zc_program *p = &r->plan->program;
    const zc_pstep *step = &p->steps[p->blocks[0].steps[i]];
    cli_reach at = cli_profile_reach(s, &r->peaks.v);
    cli_json_texts(out, "from", step->prov, step->nprov);
    fprintf(out, ", \"bytes_in\": %.0f, \"bytes_out\": %.0f, ", s->info.bytes_in,
            s->info.bytes_out);
    if (at.operations < 0)
        fputs("\"operations\": null, ", out);
    else
        fprintf(out, "\"operations\": %.0f, ", at.operations);
    if (at.intensity < 0)
        fputs("\"operations_per_byte\": null, ", out);
    else
        fprintf(out, "\"operations_per_byte\": %.4g, ", at.intensity);
    fputs("\"products\": ", out);
    cli_json(out, s->info.products);
    fputs(", \"choice\": ", out);
    cli_json(out, s->info.choice);
    if (at.share < 0)
        fputs(", \"peak_share\": null, \"bound\": null", out);
    else
        fprintf(out, ", \"peak_share\": %.4f, \"bound\": \"%s\"", at.share, at.bound);
}

static void put_peaks(const cli_peaks *p)
{
    if (p->v.bytes <= 0) {
        fputs("null", stdout);
        return;
    }
    putchar('{');
    cli_peaks_json(stdout, &p->v);
    printf(", \"kept\": %s}", p->kept ? "true" : "false");
}

static zc_status put_groups(const cli_profile *p, const char *member, int64_t by, zc_diag *diag)
{
    size_t n;
    cli_group *groups = cli_profile_groups(p, by, &n);
    if (!groups) return zc_fail_nomem(diag, "steps", p->n);
    printf(", \"%s\": [", member);
    for (size_t i = 0; i < n; i++) {
        char *name = cli_group_name(&groups[i]);
        fputs(i ? ", {\"name\": " : "{\"name\": ", stdout);
        cli_json(stdout, name ? name : "");
        printf(", \"steps\": %zu, \"us\": %.3f, \"bytes\": %.0f, \"operations\": %.0f}",
               groups[i].steps, groups[i].us, groups[i].bytes, groups[i].operations);
        free(name);
    }
    putchar(']');
    free(groups);
    return ZC_OK;
}

static zc_status print_json(const report *r, const options *o, zc_diag *diag)
{
    const cli_profile *p = &r->profile;
    fputs("{\"environment\": ", stdout);
    cli_environment_json(stdout, &(cli_environment){.path = r->path,
                                                    .plan = r->plan,
                                                    .session = p->session,
                                                    .values = &r->values,
                                                    .reading = &p->reading,
                                                    .threads = r->threads,
                                                    .sessions = 1});
    printf(", \"runs\": %zu, \"sum_us\": %.3f, \"run_us\": %.3f, \"share\": %.4f, \"peaks\": ",
           p->runs, p->sum, p->run_us, p->share);
    put_peaks(&r->peaks);
    if (p->device_us > 0) printf(", \"device_us\": %.3f", p->device_us);
    printf(", \"in_graph\": %s", p->in_graph ? "true" : "false");
    fputs(", \"steps\": [", stdout);
    for (size_t i = 0; i < p->n; i++) {
        fputs(i ? ", {" : "{", stdout);
        cli_profile_json(p, i);
        fputs(", ", stdout);
        put_work(stdout, r, i);
        putchar('}');
    }
    putchar(']');
    ZC_TRY(put_groups(p, "operations", CLI_BY_OPERATION, diag));
    if (r->device.kind == ZC_DEVICE_CUDA) ZC_TRY(put_groups(p, "kernels", CLI_BY_KERNEL, diag));
    if (o->modules) ZC_TRY(put_groups(p, "modules", o->modules, diag));
    puts("}");
    return ZC_OK;
}

/* ---- Chrome's trace events ---- */

/* Of the last run, which began at 0: one behind the other, or when they were there. */
typedef struct trace {
    double at;      /* where the next step begins */
    double ends[2]; /* of what is in each row: steps that overlap are beside each other */
} trace;

static void put_event(FILE *out, const report *r, size_t i, trace *t)
{
    const cli_profile_step *s = &r->profile.steps[i];
    const bool graph = r->profile.in_graph;
    const double begin = graph ? s->info.begin_us : t->at;
    const double us = graph ? s->info.end_us - begin : s->us[r->profile.runs - 1];
    const int row = t->ends[0] > begin && t->ends[1] <= begin;
    fprintf(out, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"name\": ", row + 1);
    cli_json(out, s->info.name);
    fprintf(out, ", \"cat\": \"%s\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"step\": %zu, ",
            s->info.op, begin, us, i);
    put_work(out, r, i);
    fputs("}}", out);
    t->at = begin + us;
    t->ends[row] = t->at;
}

static void put_trace(FILE *out, const report *r)
{
    trace t = {0};
    fputs(
        "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"name\": \"process_name\", \"args\": {\"name\": ",
        out);
    cli_json(out, r->path);
    fputs("}}", out);
    for (size_t i = 0; i < r->profile.n; i++) {
        const zc_step_info *s = &r->profile.steps[i].info;
        if (!r->profile.in_graph || s->end_us > s->begin_us) put_event(out, r, i, &t);
    }
    fputs("\n]}\n", out);
}

static zc_status write_trace(const report *r, const char *path, zc_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out) put_trace(out, r);
    zc_status status = out && fclose(out) == 0 ? ZC_OK : zc_fail_nomem(diag, "trace", len);
    if (status == ZC_OK) status = zc_file_write(path, text, len, diag);
    free(text);
    return status;
}

/* ---- the command ---- */

static zc_status measure(report *r, const options *o, zc_diag *diag)
{
    cli_profile_params params = {
        .device = o->device, .threads = o->threads, .in_graph = o->in_graph, .seconds = o->seconds};
    ZC_TRY(cli_load_plan(r->path, &r->plan, diag));
    ZC_TRY(cli_read_inputs(r->plan, &o->in, &r->values, diag));
    ZC_TRY(cli_profile_run(r->plan, &r->values, &params, &r->profile, diag));
    ZC_TRY(zc_session_device(r->profile.session, &r->device));
    r->threads = o->threads ? (int)o->threads : zc_usable_cpus();
    if (o->no_peaks) return ZC_OK;
    ZC_TRY(cli_peaks_get(&r->device, o->device.ordinal, r->threads, &r->peaks, diag));
    if (o->in_graph) r->peaks.v.launch = 0; /* that is of kernels by themselves */
    return ZC_OK;
}

static zc_status profile(report *r, const options *o, zc_diag *diag)
{
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "measuring");
    zc_status status = measure(r, o, diag);
    cli_progress_end(&progress);
    if (status == ZC_OK && o->trace) status = write_trace(r, o->trace, diag);
    if (status == ZC_OK && o->json)
        status = print_json(r, o, diag);
    else if (status == ZC_OK)
        status = print_text(r, o, diag);
    return status;
}

static int run(int argc, char **argv)
{
    options o = {
        .device = {.kind = ZC_DEVICE_AUTO}, .in = {.seed = -1, .random = true}, .seconds = 2};
    report r = {0};
    int code = cli_parse_one(&cli_profile_command, argc, argv, &o, "one plan", &r.path);
    if (code != CLI_GO) return code;
    code = EXIT_OK;
    zc_diag *diag = zc_diag_create();
    zc_status status = profile(&r, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    cli_profile_free(&r.profile);
    cli_free_values(&r.values);
    zc_plan_destroy(&r.plan);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_profile_command = {
    .name = "profile",
    .summary = "show where a plan's time goes",
    .operands = "PLAN [OPTIONS]",
    .about =
        "Times every step of a plan: median and half the width of its 95 % interval, bytes of "
        "operands and results, arithmetic of products, convolutions, attention, recurrent layers "
        "and pointwise work, and what that is of what the machine can do, which is measured the "
        "first time and then kept (zc cache): of memory's rate or of products, whichever is nearer "
        "(above 100 % where operands come from caches). On a GPU steps are issued one by one, and "
        "their products are compared with those of the tensor cores of their type, or of the "
        "ordinary cores; what takes about as long as a kernel that does nothing is bound by its "
        "launch. (docs/profile.md)\n\n"
        "The longest steps come first, then sums by operation, and by kernel on a GPU. Inputs that "
        "no file is given for are random. --json and --trace have the ONNX nodes that each stands "
        "for, too.",
    .examples = "zc profile resnet50.plan --threads 2\n"
                "zc profile bert.plan --dim batch=1 --dim sequence=128 --trace bert.json\n"
                "zc profile bert.plan --modules 3\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
