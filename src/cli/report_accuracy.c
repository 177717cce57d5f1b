/* Results against those expected, and against the model as it was written. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/debug.h"
#include "cli/model.h"
#include "cli/report_html.h"
#include "runtime/plan.h"

/* ---- comparing ---- */

typedef struct tolerance {
    double rtol, atol;
} tolerance;

/* Adds a row; what was not asked for is as usual. */
static zc_status compare(report *r, report_accuracy row, const zc_tensor *got,
                         const zc_tensor *need, tolerance usual, zc_diag *diag)
{
    const report_options *o = r->o;
    zc_buf at = {0};
    row.off = zc_differ(got, need, o->rtol < 0 ? usual.rtol : o->rtol,
                        o->atol < 0 ? usual.atol : o->atol);
    if (row.off.n > 0) cli_put_index(need, row.off.at, &at);
    zc_snprintf(row.at, sizeof row.at, "%s", at.data ? at.data : "");
    (void)zc_tensor_type_text(got, row.got, sizeof row.got);
    (void)zc_tensor_type_text(need, row.need, sizeof row.need);
    zc_buf_fini(&at);
    return ZC_VEC_PUSH(&r->accuracy, row) ? ZC_OK : zc_fail_nomem(diag, row.name, sizeof row);
}

/* reference: the same outputs of the model as it was written; NULL: they are not asked for. */
static zc_status compare_output(report *r, size_t plan, zc_session *session, size_t i,
                                const debug_results *reference, zc_diag *diag)
{
    const report_options *o = r->o;
    report_accuracy row = {.plan = plan, .against = o->expect};
    zc_io_info io;
    zc_view view;
    zc_tensor need;
    zc_status status = ZC_OK;
    ZC_TRY(zc_plan_output(r->plans[plan].plan, i, &io, diag));
    ZC_TRY(zc_session_output(session, i, &view, diag));
    const zc_tensor got = cli_tensor(&view);
    row.name = io.name;
    if (o->expect) {
        ZC_TRY(cli_read_expected(o->expect, io.name, i, &need, diag));
        status = compare(r, row, &got, &need, (tolerance){CLI_RTOL, CLI_ATOL}, diag);
        free(need.data);
    }
    if (status != ZC_OK || !reference) return status;
    const double bound = cli_debug_bound(o->precision);
    row.against = "the model by plain kernels";
    return compare(r, row, &got, &reference->outputs.data[i], (tolerance){bound, bound / 10}, diag);
}

/* The model's outputs for these inputs, as zc verify has them. */
static zc_status run_reference(const report *r, const cli_values *inputs, debug_results *out,
                               zc_diag *diag)
{
    debug d = {.threads = r->o->bench.threads, .reference = {.inputs = *inputs}};
    zc_status status = cli_model_open(r->o->model, &d.model, diag);
    if (status == ZC_OK)
        status = cli_debug_run(&d, &(debug_variant){.is_reference = true}, out, NULL, diag);
    cli_model_close(&d.model);
    return status;
}

static zc_status compare_outputs(report *r, size_t plan, zc_session *session,
                                 const cli_values *inputs, zc_diag *diag)
{
    const report_plan *p = &r->plans[plan];
    const size_t n = p->plan->program.blocks[0].nouts;
    const bool verify = r->o->verify && strcmp(p->model_sha256, r->model_sha256) == 0;
    debug_results reference = {.models_outputs = 0};
    ZC_TRY(cli_give_inputs(session, inputs, diag));
    ZC_TRY(zc_session_run(session, diag));
    zc_status status = verify ? run_reference(r, inputs, &reference, diag) : ZC_OK;
    if (status == ZC_OK && verify && reference.outputs.len != n)
        status =
            zc_fail(diag, ZC_ERR_INPUT, p->path, "has not the model's outputs (got %zu, need %zu)",
                    n, reference.outputs.len);
    for (size_t i = 0; status == ZC_OK && i < n; i++)
        status = compare_output(r, plan, session, i, verify ? &reference : NULL, diag);
    cli_debug_free(&reference);
    return status;
}

zc_status report_find_accuracy(report *r, size_t plan, zc_diag *diag)
{
    const bench_options *o = &r->o->bench;
    zc_session *session = NULL;
    cli_values inputs = {.n = 0};
    cli_inputs in = o->in;
    in.quiet = !r->plans[plan].times; /* it has been said when they were measured */
    zc_status status = cli_read_inputs(r->plans[plan].plan, &in, &inputs, diag);
    if (status == ZC_OK)
        status = zc_session_create(r->plans[plan].plan,
                                   ZC_SESSION_PARAMS(.threads = (int)o->threads,
                                                     .device = o->device.kind,
                                                     .ordinal = o->device.ordinal),
                                   &session, diag);
    if (status == ZC_OK) status = compare_outputs(r, plan, session, &inputs, diag);
    (void)zc_session_destroy(&session);
    cli_free_values(&inputs);
    return status;
}

/* ---- the table ---- */

static void put_difference(const report_accuracy *a, zc_buf *out)
{
    const zc_difference *d = &a->off;
    if (d->is_other_type) {
        report_nothing(out);
        report_nothing(out);
        zc_buf_puts(out, "<td class=\"bad\">wrong type: got ");
        report_text(out, a->got);
        zc_buf_puts(out, ", need ");
        report_text(out, a->need);
        zc_buf_puts(out, "</td>");
        return;
    }
    report_begin_number(d->absolute, out);
    zc_buf_printf(out, "%.3g</td>", d->absolute);
    double relative = d->greatest > 0 ? d->absolute / d->greatest : d->absolute;
    report_begin_number(relative, out);
    zc_buf_printf(out, "%.3g</td>", relative);
    if (!d->wrong) {
        zc_buf_printf(out, "<td class=\"good\">ok, %lld elements</td>", (long long)d->n);
        return;
    }
    zc_buf_printf(out, "<td class=\"bad\">%lld of %lld elements differ, worst at ",
                  (long long)d->wrong, (long long)d->n);
    report_text(out, a->at);
    zc_buf_printf(out, ": got %.9g, need %.9g</td>", d->got, d->need);
}

void report_accuracies(const report *r, const report_plan *p, zc_buf *out)
{
    for (size_t i = 0; i < r->accuracy.len; i++) {
        const report_accuracy *a = &r->accuracy.data[i];
        zc_buf_puts(out, "<tr>");
        report_cell(r->plans[a->plan].path, out);
        report_cell(a->against, out);
        report_cell(a->name, out);
        put_difference(a, out);
        zc_buf_puts(out, "</tr>\n");
    }
}
