#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/debug.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cuda/device.h"
#include "passes/passes.h"

/* Steps that are named of what a pass changed. */
#define STEPS_SHOWN 8

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(debug, in),
    CLI_DEVICE_OPTION(debug, device),
    {.name = "bound",
     .arg = "X",
     .help = "the error that is allowed, relative to an output's greatest element (default 1e-3; "
             "2e-2 with --precision f16 or tf32, 1e-1 with bf16)",
     .most = 1000000000,
     .set = cli_set_real,
     .at = offsetof(debug, bound)},
    DEBUG_OPTIONS,
};

/* ---- one trial ---- */

typedef struct trial {
    debug_results results;
    debug_difference difference;
    zc_status status; /* a variant that cannot be compiled or run differs from the reference */
    zc_diag *diag;
    zc_explain explain;
} trial;

static void end_trial(trial *t)
{
    cli_debug_free(&t->results);
    zc_explain_fini(&t->explain);
    zc_diag_destroy(&t->diag);
}

static void begin_trial(const debug *d, const debug_variant *v, trial *t)
{
    *t = (trial){.diag = zc_diag_create()};
    t->status = cli_debug_run(d, v, &t->results, &t->explain, t->diag);
    if (t->status == ZC_OK)
        t->difference = cli_debug_compare(&t->results, &d->reference);
    else
        t->difference.error = INFINITY;
}

static bool is_wrong(const debug *d, const debug_variant *v)
{
    trial t;
    begin_trial(d, v, &t);
    bool wrong = t.difference.error > d->bound;
    end_trial(&t);
    return wrong;
}

/* ---- bisecting ---- */

typedef void set_variant(debug_variant *v, size_t n);

static void set_passes(debug_variant *v, size_t n)
{
    v->passes = n;
}

static void set_limit(debug_variant *v, size_t n)
{
    v->limit = n;
}

/* Where it turns wrong in (good, bad]: with `good` it is not, with `bad` it is. */
static size_t bisect(const debug *d, debug_variant v, set_variant *set, size_t good, size_t bad)
{
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        set(&v, middle);
        *(is_wrong(d, &v) ? &bad : &good) = middle;
    }
    return bad;
}

/* The n-th optional pass of the table, from 1; 0: how many there are. */
static const char *optional_pass(size_t n, size_t *count, const char **summary)
{
    bool required;
    const char *name;
    *count = 0;
    for (size_t i = 0; (name = zc_pass_name(i, &required, summary)); i++)
        if (!required && ++*count == n) return name;
    return NULL;
}

/* ---- findings ---- */

static void print_difference(const debug *d, const trial *t)
{
    const debug_difference *w = &t->difference;
    if (t->status != ZC_OK) {
        fputs("  it cannot be run: ", stdout);
        cli_put(stdout, zc_diag_text(t->diag, 0));
        putchar('\n');
        return;
    }
    fputs("  output ", stdout);
    cli_put(stdout, d->reference.names.data[w->output]);
    if (w->of.is_other_type)
        puts(": another type");
    else
        printf(", element %lld: got %.9g, need %.9g; worst error %.3g (bound %.3g)\n",
               (long long)w->of.at, w->of.got, w->of.need, w->error, d->bound);
}

static bool has_step(const debug_results *r, const char *step)
{
    for (size_t i = 0; i < r->steps.len; i++)
        if (strcmp(r->steps.data[i], step) == 0) return true;
    return false;
}

/* Steps that there are only with the pass. */
static void print_steps(const debug *d, const debug_variant *without, const trial *t)
{
    trial before;
    size_t shown = 0;
    begin_trial(d, without, &before);
    for (size_t i = 0; i < t->results.steps.len && shown < STEPS_SHOWN; i++) {
        if (has_step(&before.results, t->results.steps.data[i])) continue;
        fputs(shown++ ? ", " : "  steps that it made: ", stdout);
        cli_put(stdout, t->results.steps.data[i]);
    }
    if (shown) puts(shown == STEPS_SHOWN ? ", ..." : "");
    end_trial(&before);
}

static void print_rewrite(const zc_explain *e, size_t total)
{
    zc_rule_info rule = zc_rules_at(e->rules, e->report.last);
    printf("rule %s (", rule.name);
    cli_put(stdout, rule.file);
    printf(":%d) is the first to change the answer, by rewrite %zu of %zu, of these nodes:\n  ",
           rule.line, e->limit, total);
    cli_put(stdout, e->report.last_nodes);
    putchar('\n');
}

/* Of the rules as the last pass: which rewrite it is. false: it is none of them. */
static bool find_rewrite(const debug *d, debug_variant v)
{
    trial t;
    begin_trial(d, &v, &t);
    size_t total = t.explain.report.rewrites;
    end_trial(&t);
    if (!total) return false;
    v.limit = bisect(d, v, set_limit, 0, total);
    begin_trial(d, &v, &t);
    if (t.explain.rules) print_rewrite(&t.explain, total);
    print_difference(d, &t);
    end_trial(&t);
    return true;
}

static void find_in_passes(const debug *d, size_t passes)
{
    size_t count;
    const char *summary;
    debug_variant v = {.passes = bisect(d, (debug_variant){.passes = 0}, set_passes, 0, passes)};
    const char *name = optional_pass(v.passes, &count, &summary);
    if (strcmp(name, "opt_rules") == 0 && find_rewrite(d, v)) return;
    debug_variant without = {.passes = v.passes - 1};
    trial t;
    begin_trial(d, &v, &t);
    printf("pass %s (src/passes/%s.c: %s) is the first to change the answer\n", name, name,
           summary);
    print_difference(d, &t);
    print_steps(d, &without, &t);
    end_trial(&t);
}

/* With all optional passes off it is wrong already. */
static void find_elsewhere(const debug *d, const trial *none)
{
    debug_variant plain = {.is_plain = true};
    if (d->precision && !is_wrong(d, &plain))
        printf("pass lower_precision (src/passes/lower_precision.c) is the first to change the "
               "answer, to %s\n",
               d->precision);
    else
        puts("the answer differs with all optional passes off: it is the kernels");
    print_difference(d, none);
}

static int find(const debug *d)
{
    size_t passes;
    trial all, none;
    (void)optional_pass(0, &passes, &(const char *){NULL});
    begin_trial(d, &(debug_variant){.passes = passes}, &all);
    bool is_right = all.difference.error <= d->bound;
    if (is_right)
        printf("no difference: worst error %.3g (bound %.3g)\n", all.difference.error, d->bound);
    end_trial(&all);
    if (is_right) return EXIT_OK;
    int code = EXIT_ACCURACY;
    begin_trial(d, &(debug_variant){.passes = 0}, &none);
    if (none.status != ZC_OK)
        code = cli_report(none.diag, none.status);
    else if (none.difference.error > d->bound)
        find_elsewhere(d, &none);
    else
        find_in_passes(d, passes);
    end_trial(&none);
    return code;
}

/* ---- the command ---- */

/* What is compiled for has to be known. */
static void choose_device(cli_device *device)
{
    int arch;
    if (device->kind != ZC_DEVICE_AUTO) return;
    device->kind = zc_device_arch(0, &arch, NULL) == ZC_OK ? ZC_DEVICE_CUDA : ZC_DEVICE_CPU;
}

static int run(int argc, char **argv)
{
    debug d = {.in = {.seed = -1, .random = true}, .bound = -1};
    const char *model;
    int code = cli_parse_one(&cli_debug_command, argc, argv, &d, "one model", &model);
    if (code != CLI_GO) return code;
    const cli_need needs[] = {{d.force_rules, "--force-rules", d.rules.n, "--rules FILE"}};
    code = cli_check_needs("debug", needs, ZC_COUNTOF(needs));
    if (code) return code;
    if (d.bound < 0) d.bound = cli_debug_bound(d.precision);
    choose_device(&d.device);
    zc_diag *diag = zc_diag_create();
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "bisecting");
    zc_status status = cli_debug_check(&d, diag);
    if (status == ZC_OK) status = cli_model_open(model, &d.model, diag);
    if (status == ZC_OK)
        status =
            cli_debug_run(&d, &(debug_variant){.is_reference = true}, &d.reference, NULL, diag);
    code = status == ZC_OK ? find(&d) : EXIT_OK;
    cli_progress_end(&progress);
    if (status != ZC_OK) code = cli_report(diag, status);
    cli_debug_free(&d.reference);
    cli_model_close(&d.model);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_debug_command = {
    .name = "debug",
    .summary = "find the rule or pass that changes a model's answer",
    .operands = "MODEL [OPTIONS]",
    .about = "Runs a model without any optimisation, by the plain kernels, and again as 'zc "
             "compile' makes it. Where the answers differ by more than a bound, it bisects the "
             "passes, and the rewrites of the fusion rules, and prints the first that does it: "
             "its name, file and line, the nodes, the worst error and its output.\n"
             "The exit code is 3 when something was found. Inputs that no file is given for are "
             "random.",
    .examples = "zc debug model.onnx\n"
                "zc debug model.onnx --inputs test_data_set_0 --bound 1e-4\n"
                "zc debug model.onnx --rules my.zcr --force-rules --device cuda\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
