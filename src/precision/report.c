#include <math.h>
#include <stdlib.h>

#include "precision/search.h"

/* ---- the report ---- */

/* Of the squares of all groups' errors that are not f32: independent roundings add up so. */
static double share(const zc_precision_found *f, size_t part)
{
    double all = 0;
    const zc_precision_choice_of *own = &f->parts.data[part];
    for (size_t i = 0; i < f->parts.len; i++) {
        const zc_precision_choice_of *c = &f->parts.data[i];
        if (c->type == c->from && c->alone > 0) all += c->alone * c->alone / c->grouped;
    }
    return all > 0 ? own->alone * own->alone / all : 0;
}

/* It was f32 from the start, although no rule keeps it there. */
static void put_why_exact(const zc_precision_params *p, const zc_precision_part *part, zc_buf *out)
{
    static const char *const spans[ZC_SPANS] = {"operand", "result"};
    if (part->no_span)
        zc_buf_printf(out, "on the samples its %s %s, which int8 has no scale for",
                      spans[part->no_span_of], part->no_span);
    else
        zc_buf_puts(out, p->allowed[ZC_PRECISION_int8] || p->chips.narchs
                             ? "no allowed type is faster here"
                         : p->any_speed ? "no allowed type changes it"
                                        : "no type is known to be faster on the CPU");
}

/* Types of codes that were allowed and are not faster. */
static void put_slower(const zc_precision_params *p, const zc_precision_part *part,
                       const zc_precision_choice_of *c, zc_buf *out)
{
    const char *between = ", no slower than ";
    if (c->from != ZC_PRECISION_f16 && c->from != ZC_PRECISION_bf16) return;
    for (int t = 0; t < (int)c->from; t++) {
        if (!zc_precision_is_asked_for((zc_precision_type)t) ||
            !zc_precision_applies(p, part, (zc_precision_type)t))
            continue;
        zc_buf_printf(out, "%s%s", between, zc_precision_type_name((zc_precision_type)t));
        between = " and ";
    }
}

static void put_why(const zc_precision_params *p, const zc_precision_part *part,
                    const zc_precision_choice_of *c, double share, zc_buf *out)
{
    if (part->keeps && c->from == ZC_PRECISION_f32)
        zc_buf_printf(out, "from the start: %s", part->keeps);
    else if (c->from == ZC_PRECISION_f32)
        put_why_exact(p, part, out);
    else if (c->alone < 0)
        zc_buf_printf(out, "raised from %s: f32 itself comes near the bound",
                      zc_precision_type_name(c->from));
    else if (c->remained)
        zc_buf_printf(out, "raised from %s, which gains too little among those that were raised",
                      zc_precision_type_name(c->from));
    else if (c->type != c->from)
        zc_buf_printf(out, "raised from %s, which alone makes an error of %.2g",
                      zc_precision_type_name(c->from), c->alone);
    else
        zc_buf_printf(out, "%.0f%% of the error, %.2g alone", 100 * share, c->alone);
    if (c->grouped > 1) zc_buf_printf(out, ", with its group of %u", c->grouped);
}

/* Of pruned weights: which, and what it gains beside f16, by the model of the parts' cost. */
static void put_pruned(const zc_precision_params *p, const zc_precision_part *part, zc_buf *out)
{
    const double f16 = zc_precision_us(&p->chips, part, ZC_PRECISION_f16);
    const double us = zc_precision_us(&p->chips, part, ZC_PRECISION_sparse);
    zc_buf_printf(out,
                  "two of each four weights of '%s' pruned, held to be %.2f times as fast as f16, ",
                  part->prunes, f16 / us);
}

/* Of weights as codes, or pruned. */
static void put_form(const zc_precision_params *p, const zc_precision_part *part,
                     zc_precision_type type, zc_buf *out)
{
    if (type == ZC_PRECISION_sparse) put_pruned(p, part, out);
    if (!zc_precision_code_bits(type)) return;
    const zc_code_form *f = &part->forms[type];
    zc_buf_printf(out, "weights in groups of %lld, %s, ", (long long)f->group,
                  f->is_float    ? "e2m1 by powers of two"
                  : f->has_zeros ? "with zero points"
                                 : "symmetric");
}

static void put_part(const zc_precision_params *p, const zc_mixed *m, const zc_precision_found *f,
                     size_t i, zc_buf *out)
{
    const zc_precision_part *part = &m->parts.data[i];
    const zc_precision_choice_of *c = &f->parts.data[i];
    zc_buf_printf(out, "%s %s: ", zc_precision_type_name(c->type), part->names);
    put_form(p, part, c->type, out);
    put_why(p, part, c, share(f, i), out);
    put_slower(p, part, c, out);
    zc_buf_puts(out, "\n");
}

void zc_precision_report(const zc_precision_params *p, const zc_mixed *m,
                         const zc_precision_found *f, zc_buf *out)
{
    zc_buf_printf(out,
                  "error %.3g of at most %.3g, relative to the largest magnitude of each output, "
                  "the worst in '%s'; %zu measurements, on samples at most 1/%d of the bound\n",
                  f->error.error, p->max_error, p->outputs[f->error.output], f->measures,
                  ZC_PRECISION_MARGIN);
    if (p->calibration)
        zc_buf_printf(out, "ranges of int8 and fp8 by calibration: %s, %llu runs\n",
                      zc_calibration_method_name(p->calibration->method),
                      (unsigned long long)p->calibration->runs);
    for (size_t i = 0; i < f->parts.len; i++) put_part(p, m, f, i, out);
}

/* ---- the front ---- */

static bool beats(const zc_precision_point *a, const zc_precision_point *b)
{
    bool no_worse = a->us <= b->us && a->weights <= b->weights && a->error <= b->error;
    return no_worse && (a->us < b->us || a->weights < b->weights || a->error < b->error);
}

static bool is_same(const zc_precision_point *a, const zc_precision_point *b)
{
    return a->us == b->us && a->weights == b->weights && a->error == b->error;
}

/* Nobody beats it, and none before it is the same. */
static bool is_on_front(const zc_precision_found *f, size_t i)
{
    const zc_precision_point *all = f->points.data;
    for (size_t k = 0; k < f->points.len; k++)
        if (beats(&all[k], &all[i]) || (k < i && is_same(&all[k], &all[i]))) return false;
    return isfinite(all[i].error);
}

static int by_time(const void *a, const void *b)
{
    const zc_precision_point *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? -1 : 1;
    if (x->weights != y->weights) return x->weights < y->weights ? -1 : 1;
    return x->error < y->error ? -1 : x->error > y->error;
}

bool zc_precision_front(const zc_precision_found *f, zc_buf *out)
{
    size_t n = 0;
    zc_precision_point *front = zc_calloc(f->points.len + 1, sizeof *front);
    if (!front) return false;
    for (size_t i = 0; i < f->points.len; i++)
        if (is_on_front(f, i)) front[n++] = f->points.data[i];
    qsort(front, n, sizeof *front, by_time);
    zc_buf_puts(out, "microseconds\tweight_bytes\terror\tnarrow_parts\n");
    for (size_t i = 0; i < n; i++)
        zc_buf_printf(out, "%.2f\t%.0f\t%.3g\t%zu\n", front[i].us, front[i].weights, front[i].error,
                      front[i].narrow);
    free(front);
    return !out->failed;
}
