/* What runs of a plan need, for dimensions that options name. */
#include <inttypes.h>

#include "cli/inspect.h"
#include "cli/sizes.h"
#include "runtime/plan.h"

/* ---- shapes ---- */

/* The caller closes *out, also after a failure. */
static zc_status open_shapes(const zc_plan *plan, const cli_dims *dims, bool *known, cli_sizes *out,
                             zc_diag *diag)
{
    *known = true;
    ZC_TRY(cli_sizes_open(plan, dims, out, diag));
    for (size_t i = 0; i < out->n; i++) {
        zc_io_info *io = &out->inputs[i];
        *known &= io->rank >= 0;
        cli_sizes_shape(out, i, io->dims);
        for (int d = 0; d < io->rank; d++) *known &= io->dims[d] >= 0;
    }
    return ZC_OK;
}

zc_status cli_plan_memory(const zc_plan *plan, const cli_dims *dims, bool *known,
                          zc_memory_info *out, zc_diag *diag)
{
    cli_sizes sizes;
    *out = (zc_memory_info){0};
    zc_status status = open_shapes(plan, dims, known, &sizes, diag);
    if (status == ZC_OK && *known) status = zc_plan_memory(plan, sizes.inputs, sizes.n, out, diag);
    cli_sizes_close(&sizes);
    return status;
}

zc_status cli_plan_memory_map(const zc_plan *plan, const cli_dims *dims, zc_memory_map *out,
                              zc_diag *diag)
{
    cli_sizes sizes;
    bool known;
    *out = (zc_memory_map){0};
    zc_status status = open_shapes(plan, dims, &known, &sizes, diag);
    if (status == ZC_OK && !known)
        status = zc_fail(diag, ZC_ERR_ARG, NULL,
                         "working memory depends on dimensions (give them by --dim NAME=VALUE)");
    if (status == ZC_OK)
        status = zc_memory_map_make(plan, zc_program_arch(&plan->program), sizes.inputs, sizes.n,
                                    out, diag);
    cli_sizes_close(&sizes);
    return status;
}

/* ---- text ---- */

static double share(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : 0;
}

/* What the arena is larger than the most that is needed at once, as a share of itself. */
static double gaps(const zc_memory_map *m)
{
    return share(m->info.arena_bytes - m->info.live_bytes, m->info.arena_bytes);
}

static void put_totals(const zc_memory_map *m, const zc_program *p)
{
    printf("%12" PRIu64 " bytes of weights in host memory\n", m->info.weight_bytes);
    if (m->arch)
        printf("%12" PRIu64 " bytes of weights on the GPU\n%12" PRIu64
               " bytes of code for sm_%d\n%12" PRIu64 " bytes of workspace on sm_%d\n",
               m->info.device_weight_bytes, m->code_bytes, m->arch, m->workspace, m->arch);
    printf("%12" PRIu64 " bytes of working memory, %.1f %% of it gaps\n%12" PRIu64
           " bytes of it needed at once\n%12" PRIu64 " bytes of results\n",
           m->info.arena_bytes, 100 * gaps(m), m->info.live_bytes, m->info.result_bytes);
    if (cli_unplanned_values(p))
        printf("%12s bytes of %" PRIu32 " results whose sizes depend on values\n", "?",
               cli_unplanned_values(p));
    if (m->unknown)
        printf("%12s bytes of workspace of %zu steps, which a run alone can tell\n", "?",
               m->unknown);
    if (m->arch) printf("%12s bytes of the CUDA context, which the driver alone can tell\n", "?");
}

static void put_steps(const zc_memory_map *m)
{
    enum { WIDTH = 40 };
    static const char bar[] = "########################################";
    printf("%12s  %5s  needed during the step\n", "bytes", "step");
    for (size_t i = 0; i < m->nsteps; i++) {
        const zc_memory_step *s = &m->steps[i];
        int len = (int)(share(s->live, m->info.live_bytes) * WIDTH + 0.5);
        printf("%12" PRIu64 "  %5zu  %-*.*s  %s  ", s->live, i, WIDTH, len, bar, s->op);
        cli_put(stdout, s->name);
        fputs(s->in_place ? "  in place" : "", stdout);
        puts(i == m->peak ? "  <- the most" : "");
    }
}

static void put_subviews(const zc_memory_map *m)
{
    char type[256];
    if (m->nsubviews) printf("%12s  %6s  lies within\n", "from byte", "pitch");
    for (size_t i = 0; i < m->nsubviews; i++) {
        const zc_memory_subview *v = &m->subviews[i];
        printf("%12" PRIu64 "  %6" PRId64 "  ", v->offset, v->pitch);
        cli_put(stdout, v->root);
        fputs(": ", stdout);
        cli_put(stdout, v->name);
        printf("  %s\n", zc_tensor_type_text(&v->type, type, sizeof type));
    }
}

static bool holds_peak(const zc_memory_map *m, const zc_memory_value *v)
{
    return v->first <= m->peak && m->peak <= v->last && v->bytes > 0;
}

static void put_holders(const zc_memory_map *m)
{
    char type[256];
    printf("%12s  %6s  held during step %zu\n", "bytes", "share", m->peak);
    for (size_t i = 0; i < m->nvalues; i++) {
        const zc_memory_value *v = &m->values[i];
        if (!holds_peak(m, v)) continue;
        printf("%12" PRIu64 "  %5.1f%%  ", v->bytes, 100 * share(v->bytes, m->info.live_bytes));
        cli_put(stdout, v->name);
        printf("  %s, steps %zu to %zu\n", zc_tensor_type_text(&v->type, type, sizeof type),
               v->first, v->last);
    }
}

/* ---- JSON ---- */

static void json_totals(const zc_memory_map *m, const zc_program *p)
{
    printf("{\"weight_bytes\": %" PRIu64 ", \"device_weight_bytes\": %" PRIu64
           ", \"working_bytes\": %" PRIu64 ", \"live_bytes\": %" PRIu64
           ", \"result_bytes\": %" PRIu64 ", \"gaps\": %.6f, \"unplanned_values\": %" PRIu32,
           m->info.weight_bytes, m->info.device_weight_bytes, m->info.arena_bytes,
           m->info.live_bytes, m->info.result_bytes, gaps(m), cli_unplanned_values(p));
    if (m->arch)
        printf(", \"arch\": \"sm_%d\", \"code_bytes\": %" PRIu64 ", \"workspace_bytes\": %" PRIu64,
               m->arch, m->code_bytes, m->workspace);
    else
        fputs(", \"arch\": null, \"code_bytes\": null, \"workspace_bytes\": null", stdout);
    printf(", \"unknown_workspaces\": %zu, \"context_bytes\": null", m->unknown);
}

static void json_step(const zc_memory_step *s, size_t i)
{
    printf("%s{\"step\": %zu, \"op\": \"%s\", \"name\": ", i ? ", " : "", i, s->op);
    cli_json(stdout, s->name);
    printf(", \"live_bytes\": %" PRIu64 ", \"workspace_bytes\": ", s->live);
    if (s->workspace < 0)
        fputs("null", stdout);
    else
        printf("%" PRId64, s->workspace);
    printf(", \"in_place\": %s}", s->in_place ? "true" : "false");
}

static void json_value(const zc_memory_map *m, size_t i)
{
    const zc_memory_value *v = &m->values[i];
    char type[256];
    printf("%s{\"name\": ", i ? ", " : "");
    cli_json(stdout, v->name);
    printf(", \"type\": \"%s\", \"bytes\": %" PRIu64 ", \"offset\": %" PRIu64
           ", \"first\": %zu, \"last\": %zu, \"at_peak\": %s}",
           zc_tensor_type_text(&v->type, type, sizeof type), v->bytes, v->offset, v->first, v->last,
           holds_peak(m, v) ? "true" : "false");
}

static void json_subview(const zc_memory_subview *v, size_t i)
{
    char type[256];
    printf("%s{\"name\": ", i ? ", " : "");
    cli_json(stdout, v->name);
    fputs(", \"root\": ", stdout);
    cli_json(stdout, v->root);
    printf(", \"type\": \"%s\", \"offset\": %" PRIu64 ", \"pitch\": %" PRId64 "}",
           zc_tensor_type_text(&v->type, type, sizeof type), v->offset, v->pitch);
}

static void put_json(const zc_memory_map *m, const zc_program *p)
{
    json_totals(m, p);
    printf(", \"peak_step\": %zu, \"steps\": [", m->peak);
    for (size_t i = 0; i < m->nsteps; i++) json_step(&m->steps[i], i);
    fputs("], \"values\": [", stdout);
    for (size_t i = 0; i < m->nvalues; i++) json_value(m, i);
    fputs("], \"subviews\": [", stdout);
    for (size_t i = 0; i < m->nsubviews; i++) json_subview(&m->subviews[i], i);
    puts("]}");
}

/* ---- all ---- */

zc_status cli_inspect_memory(const zc_plan *plan, const inspect *o, zc_diag *diag)
{
    zc_memory_map map;
    zc_status status = cli_plan_memory_map(plan, &o->dims, &map, diag);
    if (status == ZC_OK && o->json) {
        put_json(&map, &plan->program);
    } else if (status == ZC_OK) {
        put_totals(&map, &plan->program);
        put_steps(&map);
        put_holders(&map);
        put_subviews(&map);
    }
    zc_memory_map_free(&map);
    return status;
}
