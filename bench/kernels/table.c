/* What was measured, as Markdown and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/stats.h"
#include "bench.h"

const char *kb_yardstick_name(const kb_case *c)
{
    switch (c->kind) {
    case KB_PRODUCT:
        return "cuBLASLt";
    case KB_CONV:
    case KB_ATTENTION:
        return "cuDNN";
    case KB_LAYER_NORM:
    case KB_SOFTMAX:
        return "copy";
    }
    return "";
}

/* Rounding a result once costs 2^-11 of it, of bf16 2^-8; sums and what is rounded in between
 * cost some more. Integers are not rounded. */
bool kb_is_wrong(const kb_case *c, double error)
{
    if (c->type == ZC_I8 && !c->scaled) return error != 0;
    return !(error <= (c->type == ZC_BF16 ? 0.03 : 0.01));
}

double kb_ratio(const kb_result *r)
{
    const int rounds = r->yardstick.median > 0 && r->ours.median > 0 ? r->ours.rounds : 0;
    double ratios[KB_ROUNDS];
    zc_interval all;
    for (int i = 0; i < rounds; i++) ratios[i] = r->yardstick.us[i] / r->ours.us[i];
    bool counts =
        rounds && !kb_is_wrong(r->c, r->ours.error) && !kb_is_wrong(r->c, r->yardstick.error);
    return counts && zc_median_of(ratios, (size_t)rounds, &all) ? all.mid : 0;
}

/* TFLOP/s, or GB/s where nothing is multiplied. */
static double rate(const kb_result *r, double us)
{
    return us <= 0 ? 0 : r->p->flops > 0 ? r->p->flops / us / 1e6 : (double)r->p->bytes / us / 1e3;
}

/* ---- Markdown ---- */

static void put_library(const char *name, size_t version, const char *why, zc_buf *out)
{
    if (version)
        zc_buf_printf(out, ", %s %zu", name, version);
    else
        zc_buf_printf(out, ", no %s: %s", name, why);
}

static void put_machine(const kb_rig *rig, zc_buf *out)
{
    zc_buf_printf(out, "%s, CUDA %d.%d", rig->device.name, rig->device.driver / 1000,
                  rig->device.driver % 1000 / 10);
    put_library("cuBLASLt", rig->cublaslt ? kb_cublaslt_version(rig->cublaslt) : 0,
                rig->no_cublaslt, out);
    put_library("cuDNN", rig->cudnn ? kb_cudnn_version(rig->cudnn) : 0, rig->no_cudnn, out);
}

void kb_table_head(const kb_rig *rig)
{
    zc_buf machine = {0};
    put_machine(rig, &machine);
    printf("%s\n\n", machine.data ? machine.data : "");
    printf("| case | zc us | yardstick us | ratio | goal | TFLOP/s or GB/s | error, yardstick's | "
           "kernel | yardstick |\n|---|---|---|---|---|---|---|---|---|\n");
    fflush(stdout);
    zc_buf_fini(&machine);
}

static void put_number(zc_buf *out, const char *format, double v)
{
    char text[40];
    zc_snprintf(text, sizeof text, format, v);
    zc_buf_puts(out, v > 0 ? text : "-");
}

static double goal_of(const kb_case *c)
{
    const kb_group *g = kb_group_of(c);
    return c->goal > 0 ? c->goal : g->least;
}

static void put_row(const kb_result *r, zc_buf *out)
{
    zc_buf_printf(out, "| %s/%s | ", r->c->group, r->c->name);
    if (!r->is_measured) {
        zc_buf_printf(out, "FAILED: %s |", r->failed);
        return;
    }
    put_number(out, "%.2f | ", r->ours.median);
    put_number(out, "%.2f", r->yardstick.median);
    zc_buf_puts(out, " | ");
    put_number(out, "%.3f", kb_ratio(r));
    zc_buf_puts(out, " | ");
    put_number(out, "%.2f", goal_of(r->c));
    zc_buf_puts(out, " | ");
    put_number(out, r->p->flops > 0 ? "%.1f TFLOP/s" : "%.0f GB/s", rate(r, r->ours.median));
    zc_buf_puts(out, kb_is_wrong(r->c, r->ours.error) ? " | WRONG: " : " | ");
    put_number(out, "%.1e", r->ours.error);
    zc_buf_puts(out, kb_is_wrong(r->c, r->yardstick.error) ? ", WRONG: " : ", ");
    put_number(out, "%.1e", r->yardstick.error);
    zc_buf_printf(out, " | %s %s | ", r->plan->kernel, r->plan->config);
    zc_buf_printf(out, "%s%s%s |", r->no_yardstick[0] ? "none: " : kb_yardstick_name(r->c),
                  r->no_yardstick[0] ? "" : " ",
                  r->no_yardstick[0] ? r->no_yardstick : r->yardstick.how);
}

void kb_table_row(const kb_result *r)
{
    zc_buf row = {0};
    put_row(r, &row);
    for (char *p = row.data; p && *p; p++)
        if (*p == '\n') *p = ' ';
    printf("%s\n", row.data ? row.data : "| no memory |");
    fflush(stdout);
    zc_buf_fini(&row);
}

typedef struct mean {
    double logs, least;
    const char *worst;
    int n, cases, failed;
} mean;

static mean mean_of(const kb_group *g, const kb_result *results, size_t n)
{
    mean m = {.least = INFINITY};
    for (size_t i = 0; i < n; i++) {
        const kb_result *r = &results[i];
        double ratio = kb_ratio(r);
        if (strcmp(r->c->group, g->name) != 0) continue;
        m.cases++;
        m.failed += !r->is_measured || kb_is_wrong(r->c, r->ours.error);
        if (ratio <= 0) continue;
        m.logs += log(ratio);
        m.n++;
        if (ratio < m.least) {
            m.least = ratio;
            m.worst = r->c->name;
        }
    }
    return m;
}

void kb_table_groups(const kb_result *results, size_t n)
{
    printf("\n| group | cases | failed | compared | geometric mean | goal | least | goal |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < kb_group_count; i++) {
        const kb_group *g = &kb_groups[i];
        mean m = mean_of(g, results, n);
        zc_buf row = {0};
        if (!m.cases) continue;
        zc_buf_printf(&row, "| %s | %d | %d | %d | ", g->name, m.cases, m.failed, m.n);
        put_number(&row, "%.3f", m.n ? exp(m.logs / m.n) : 0);
        zc_buf_puts(&row, " | ");
        put_number(&row, "%.2f", g->goal);
        zc_buf_puts(&row, " | ");
        put_number(&row, "%.3f", m.n ? m.least : 0);
        zc_buf_printf(&row, " %s | ", m.worst ? m.worst : "");
        put_number(&row, "%.2f", g->least);
        printf("%s |\n", row.data ? row.data : "");
        zc_buf_fini(&row);
    }
}

/* ---- JSON ---- */

static void put_text(zc_buf *out, const char *name, const char *text)
{
    zc_buf_printf(out, ", \"%s\": \"", name);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            zc_buf_printf(out, "\\%c", c);
        else if (c < 32)
            zc_buf_printf(out, "\\u%04x", c);
        else
            zc_buf_append(out, text, 1);
    }
    zc_buf_puts(out, "\"");
}

static void put_side(zc_buf *out, const char *name, const kb_result *r, const kb_side *s)
{
    zc_buf_printf(out, ", \"%s\": ", name);
    if (s->median <= 0) {
        zc_buf_puts(out, "null");
        return;
    }
    zc_buf_printf(out, "{\"us\": %.4f, \"rate\": %.3f, ", s->median, rate(r, s->median));
    if (isfinite(s->error))
        zc_buf_printf(out, "\"error\": %.4g", s->error);
    else
        zc_buf_puts(out, "\"error\": null");
    put_text(out, "how", s->how);
    zc_buf_puts(out, ", \"rounds\": [");
    for (int i = 0; i < s->rounds; i++) zc_buf_printf(out, "%s%.4f", i ? ", " : "", s->us[i]);
    zc_buf_puts(out, "]}");
}

static void put_result(zc_buf *out, const kb_result *r)
{
    zc_buf_printf(out, "  {\"group\": \"%s\", \"case\": \"%s\", \"yardstick_name\": \"%s\"",
                  r->c->group, r->c->name, kb_yardstick_name(r->c));
    zc_buf_printf(out, ", \"flops\": %.0f, \"bytes\": %llu, \"copies\": %d, \"wrong\": %s",
                  r->p->flops, (unsigned long long)r->p->bytes, r->plan->copies,
                  r->is_measured && kb_is_wrong(r->c, r->ours.error) ? "true" : "false");
    if (kb_ratio(r) > 0) zc_buf_printf(out, ", \"ratio\": %.4f", kb_ratio(r));
    if (goal_of(r->c) > 0) zc_buf_printf(out, ", \"goal\": %.3f", goal_of(r->c));
    if (!r->is_measured) put_text(out, "failed", r->failed);
    if (r->no_yardstick[0]) put_text(out, "no_yardstick", r->no_yardstick);
    put_text(out, "kernel", r->plan->kernel);
    put_text(out, "config", r->plan->config);
    put_text(out, "why", r->plan->why);
    put_side(out, "zc", r, &r->ours);
    put_side(out, "yardstick", r, &r->yardstick);
    zc_buf_puts(out, "}");
}

zc_status kb_table_json(zc_writer *writer, const kb_rig *rig, const kb_result *results, size_t n,
                        zc_diag *diag)
{
    zc_buf text = {0}, machine = {0};
    put_machine(rig, &machine);
    zc_buf_puts(&text, "{\"format\": 1");
    put_text(&text, "machine", machine.data ? machine.data : "");
    zc_buf_puts(&text, ", \"cases\": [\n");
    for (size_t i = 0; i < n; i++) {
        put_result(&text, &results[i]);
        zc_buf_puts(&text, i + 1 < n ? ",\n" : "\n");
    }
    zc_buf_puts(&text, "]}\n");
    zc_status status = text.failed || machine.failed
                           ? zc_fail_nomem(diag, "results", text.len)
                           : zc_writer_write(writer, text.data, text.len, diag);
    zc_buf_fini(&text);
    zc_buf_fini(&machine);
    return status;
}
