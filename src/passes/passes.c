#include "passes/passes.h"

#include <string.h>
#include <time.h>

#include "census/census.h"

static const struct pass {
    const char *name;
    bool required;
    const char *summary;
    zc_pass_fn run;
} passes[] = {
#define PASS(name, required, summary) {#name, required, summary, zc_pass_##name},
#include "passes/passes.def"
#undef PASS
};

const char *zc_pass_name(size_t i, bool *required, const char **summary)
{
    if (i >= ZC_COUNTOF(passes)) return NULL;
    if (required) *required = passes[i].required;
    if (summary) *summary = passes[i].summary;
    return passes[i].name;
}

bool zc_pass_has(const zc_pass *p, int family)
{
    const zc_rule_target *t = p->options->target;
    return t && t->cuda && zc_family_serves(family, t->sm) && zc_family_serves(family, t->sm_most);
}

bool zc_pass_on_cpu(const zc_pass *p)
{
    return !p->options->target || !p->options->target->cuda;
}

bool zc_pass_bytes(const zc_pass *p)
{
    return zc_pass_on_cpu(p) || zc_pass_has(p, ZC_FAMILY_conv_quant_sm90);
}

static size_t position(const char *name)
{
    size_t i = 0;
    while (i < ZC_COUNTOF(passes) && strcmp(passes[i].name, name) != 0) i++;
    return i;
}

static zc_status check_skip(const char *name, zc_diag *diag)
{
    const size_t i = position(name);
    if (strcmp(name, "all") == 0) return ZC_OK;
    if (i == ZC_COUNTOF(passes)) return zc_fail(diag, ZC_ERR_ARG, name, "no such pass");
    if (!passes[i].required) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, name, "this pass is required and cannot be skipped");
}

bool zc_pass_is_skipped(const zc_pass_options *o, const char *name)
{
    for (size_t i = 0; i < o->skip_count; i++)
        if (strcmp(o->skip[i], name) == 0 || strcmp(o->skip[i], "all") == 0) return true;
    return false;
}

static size_t count_nodes(const zc_graph *g)
{
    size_t n = g->top.nodes.len;
    for (size_t b = 0; b < g->blocks.len; b++) n += g->blocks.data[b]->nodes.len;
    return n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static zc_status run_one(zc_graph *g, const struct pass *p, const zc_pass_options *o, zc_diag *diag)
{
    zc_pass_report report = {.name = p->name, .nodes_before = count_nodes(g)};
    zc_pass context = {.g = g, .options = o, .diag = diag};
    double start = now();
    ZC_TRY(p->run(&context));
    zc_graph_resolve(g);
    zc_graph_compact(g);
    report.changes = context.changes;
    report.nodes_after = count_nodes(g);
    report.seconds = now() - start;
    ZC_TRY(zc_graph_validate(g, p->name, diag));
    if (o->after) o->after(o->user, &report, g);
    return ZC_OK;
}

static const zc_pass_options defaults = {.precision = ZC_NONE};

zc_status zc_run_pass(zc_graph *g, const char *name, const zc_pass_options *options, zc_diag *diag)
{
    const size_t i = position(name);
    if (i == ZC_COUNTOF(passes)) return zc_fail(diag, ZC_ERR_ARG, name, "no such pass");
    return run_one(g, &passes[i], options ? options : &defaults, diag);
}

static zc_status run_span(zc_graph *g, size_t first, size_t end, const zc_pass_options *o,
                          zc_diag *diag)
{
    zc_census *census = o->rules_report ? o->rules_report->census : NULL;
    for (size_t i = 0; i < o->skip_count; i++) ZC_TRY(check_skip(o->skip[i], diag));
    for (size_t i = first; i < end; i++) {
        if (census) zc_census_take(census, g, passes[i].name);
        if (passes[i].required || !zc_pass_is_skipped(o, passes[i].name))
            ZC_TRY(run_one(g, &passes[i], o, diag));
    }
    return census && end == ZC_COUNTOF(passes) ? zc_census_finish(census, g, diag) : ZC_OK;
}

zc_status zc_run_passes(zc_graph *g, const zc_pass_options *options, zc_diag *diag)
{
    return run_span(g, 0, ZC_COUNTOF(passes), options ? options : &defaults, diag);
}

zc_status zc_run_passes_before(zc_graph *g, const char *name, const zc_pass_options *options,
                               zc_diag *diag)
{
    return run_span(g, 0, position(name), options, diag);
}

zc_status zc_run_passes_from(zc_graph *g, const char *name, const zc_pass_options *options,
                             zc_diag *diag)
{
    return run_span(g, position(name), ZC_COUNTOF(passes), options, diag);
}
