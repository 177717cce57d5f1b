/* Is the emit side as right as the match side? */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "prover/run.h"

/* Errors up to so many units of the type's precision count as rounding. */
#define ROUNDING 128

/* ---- what rounding explains ---- */

static bool has_real_attr(const zc_rl_pat *p)
{
    if (p->pointwise && p->pointwise->defaults.n) return true;
    for (int i = 0; !p->pointwise && i < p->attrs.n; i++)
        if (zc_op_get(p->op)->fields[zc_rl_attr_at(&p->attrs, i)->field].kind == ZC_ATTR_FLOAT)
            return true;
    for (int i = 0; p->kind == ZC_RP_NODE && i < p->args.n; i++)
        if (has_real_attr(zc_rl_pat_at(&p->args, i))) return true;
    return false;
}

/* Numbers in patterns stand for the nearby ones that models have, mostly rounded to f32; attributes
 * are f32. */
bool zc_rl_is_narrow(const zc_rl_rule *rule)
{
    for (int i = 0; i < rule->nnodes; i++)
        for (int k = 0; k < rule->nodes[i]->args.n; k++)
            if (zc_rl_pat_at(&rule->nodes[i]->args, k)->kind == ZC_RP_NUM) return true;
    for (int i = 0; i < rule->emit.n; i++)
        if (has_real_attr(zc_rl_stmt_at(&rule->emit, i)->pat)) return true;
    return false;
}

static double precision(const zc_rl_rule *rule, zc_dtype d)
{
    switch (d) {
    case ZC_F64:
        return zc_rl_is_narrow(rule) ? 0x1p-23 : 0x1p-52;
    case ZC_F16:
        return 0x1p-10;
    case ZC_BF16:
        return 0x1p-7;
    default:
        return 0x1p-23;
    }
}

/* Neighbours near zero are so far apart. */
static double grain(zc_dtype d)
{
    switch (d) {
    case ZC_F64:
        return 0x1p-1074;
    case ZC_F16:
        return 0x1p-24;
    case ZC_BF16:
        return 0x1p-133;
    default:
        return 0x1p-149;
    }
}

static bool same_place(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

typedef struct verdict {
    double error; /* relative to the greatest finite result */
    bool bad;
} verdict;

/* Where the emit side may be right and the match side not. Attention gives zeros for a query
 * without any key, where a softmax written out has no number; of operands without a number it makes
 * none, where a model may have replaced it. Softmax and the like have numbers where an Exp written
 * out overflows. Convolutions with other weights (sums of
 * several ones, say) may make NaN of infinity and infinity of NaN. */
enum slack { NO_SLACK, SLACK_OF_MASKS, SLACK_OF_OVERFLOW, SLACK_OF_WEIGHTS };

static enum slack slack_of(const zc_rl_rule *rule)
{
    for (int i = 0; i < rule->emit.n; i++) {
        const zc_rl_pat *p = zc_rl_stmt_at(&rule->emit, i)->pat;
        if (p->kind != ZC_RP_NODE) continue;
        if (p->op == ZC_OP_Attention) return SLACK_OF_MASKS;
        if (p->op == ZC_OP_Softmax || p->op == ZC_OP_LogSoftmax || p->op == ZC_OP_Softplus)
            return SLACK_OF_OVERFLOW;
        if (p->op == ZC_OP_Conv) return SLACK_OF_WEIGHTS;
    }
    return NO_SLACK;
}

/* What results are measured by. */
typedef struct measure {
    double step;  /* of their type's precision */
    double scale; /* the greatest one */
    double blur;  /* how far from the truth the match side in f64 may be */
    enum slack slack;
    bool is_odd;    /* some operands are no numbers */
    bool overflows; /* some results of the match side in f64 are none */
} measure;

/* One result: of the match side in f64 (truth), with the numbers of the pattern as the rule says
 * them (exact), and of both sides in their own type. */
typedef struct results {
    double truth, exact, match, emit;
} results;

/* Does what the emit side may do better explain the difference? */
static bool is_excused(const measure *by, const results *v)
{
    bool both_fail = isnan(v->truth) && isnan(v->match), zero = v->truth == 0 && v->match == 0;
    switch (by->slack) {
    case SLACK_OF_MASKS:
        return both_fail || (by->is_odd && (isnan(v->emit) || zero));
    case SLACK_OF_OVERFLOW:
        return !isfinite(v->truth) || !isfinite(v->match) || (by->overflows && v->truth == 0) ||
               (by->is_odd && isnan(v->emit));
    case SLACK_OF_WEIGHTS:
        return !isfinite(v->truth) && !isfinite(v->match) && !isfinite(v->emit);
    case NO_SLACK:
        break;
    }
    return false;
}

static double rounded(zc_dtype dtype, double v)
{
    uint64_t slot[2] = {0};
    zc_store_f64(dtype, slot, 0, v);
    return zc_load_f64(dtype, slot, 0);
}

static verdict judge(zc_dtype dtype, const measure *by, const results *v)
{
    if (same_place(v->emit, v->match) || same_place(v->emit, rounded(dtype, v->truth)) ||
        same_place(v->emit, rounded(dtype, v->exact)))
        return (verdict){0, false};
    if (!zc_dtype_is_float(dtype)) return (verdict){fabs(v->match - v->emit), true};
    if (is_excused(by, v)) return (verdict){0, false};
    if (!isfinite(v->emit) || !isfinite(v->truth)) {
        /* NaN or infinite on one side alone: right only where the match side fails by overflow. */
        bool excused = !isfinite(v->emit) && !isfinite(v->match) && isfinite(v->truth);
        return (verdict){INFINITY, !excused};
    }
    double error = fabs(v->emit - v->truth);
    double own = isfinite(v->match) ? fabs(v->match - v->truth) : 0;
    double constants = isfinite(v->exact) ? fabs(v->exact - v->truth) : 0;
    double limit =
        ROUNDING * by->step * by->scale + 4 * (own + constants) + by->blur + 2 * grain(dtype);
    return (verdict){by->scale > 0 ? error / by->scale : error, error > limit};
}

static double greatest(const zc_tensor *t)
{
    double m = 0;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(zc_load_f64(t->dtype, t->data, i));
        if (isfinite(v) && v > m) m = v;
    }
    return m;
}

static bool all_finite(const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(zc_load_f64(t->dtype, t->data, i))) return false;
    return true;
}

static bool has_nan(const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (isnan(zc_load_f64(t->dtype, t->data, i))) return true;
    return false;
}

/* Is some operand infinite or no number, or what is computed from them no number? Of huge operands
 * what is infinite counts too: it has overflowed. */
static bool is_odd(const zc_rl_run *r, bool are_huge)
{
    for (size_t i = 0; i < r->s.g->values.len; i++) {
        const zc_tensor *t = &r->value[i];
        bool is_operand = zc_val(r->s.g, (zc_vid)i)->kind != ZC_VALUE_NODE;
        if (!t->data || !zc_dtype_is_float(t->dtype)) continue;
        if (has_nan(t) || ((is_operand || are_huge) && !all_finite(t))) return true;
    }
    return false;
}

/* How far a result of the match side in f64 may be off: a sum is no more exact than its terms,
 * which may cancel. */
static double blur_of(const zc_rl_run *r, zc_vid v, enum slack slack)
{
    bool is_made = zc_val(r->s.g, v)->kind == ZC_VALUE_NODE;
    const zc_node *n = is_made ? zc_node_at(r->s.g, zc_val(r->s.g, v)->producer) : NULL;
    double terms = 0;
    if (slack == SLACK_OF_OVERFLOW) terms = 1; /* 1 + exp(x) */
    for (int i = 0; n && (n->op == ZC_OP_Add || n->op == ZC_OP_Sub) && i < 2; i++)
        terms = fmax(terms, greatest(&r->value[n->in[i]]));
    return 0x1p-40 * terms; /* functions in f64 are no more exact */
}

/* ---- words ---- */

void zc_rl_describe(const zc_rl_sides *s, char *out, size_t size)
{
    const zc_rl_run *r = &s->match;
    zc_buf text = {0};
    for (int i = 0; i < s->rule->nvars; i++) {
        const zc_rl_var *var = &s->rule->vars[i];
        zc_vid v = var->stmt < 0 && var->in_match ? zc_graph_find(r->s.g, var->name) : 0;
        if (!v) continue;
        zc_buf_printf(&text, "%s%s: ", text.len ? ", " : "", var->name);
        zc_type_print(&r->s.g->dims, &zc_val(r->s.g, v)->type, &text);
        if (zc_tensor_numel(&r->value[v]) == 1 && r->value[v].data)
            zc_buf_printf(&text, " = %.9g", zc_load_f64(r->value[v].dtype, r->value[v].data, 0));
    }
    for (int i = 0; i < r->s.symbol_count; i++)
        zc_buf_printf(&text, "%s %s = %" PRId64, i ? "," : "; with", r->s.symbols[i].name,
                      zc_rl_symbol_size(r, i));
    snprintf(out, size, "%s; %s values, seed %" PRIu64, text.data ? text.data : "no operands",
             zc_rl_values_name(s->c->values), s->c->value_seed);
    zc_buf_fini(&text);
}

/* ---- tensors ---- */

/* What is compared, in the words of messages. */
typedef struct pair {
    const char *a, *b;
} pair;

/* b is to be what a is; w is a in f64, or a; x is w with exact numbers, or w. */
typedef struct compared {
    const zc_tensor *w, *x, *a, *b;
    double blur; /* of w */
    pair names;
} compared;

static bool same_dims(const zc_tensor *a, const zc_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static void note(const zc_rl_sides *s, const compared *c, const verdict *v, const results *n,
                 int64_t at, zc_rule_check *out)
{
    if (out->failed || (!v->bad && !(v->error > out->worst))) return;
    out->worst = v->error;
    zc_rl_describe(s, out->input, sizeof out->input);
    out->failed = v->bad;
    if (v->bad)
        zc_snprintf(out->why, sizeof out->why,
                    "element %" PRId64 ": %s gives %.9g, %s gives %.9g (in f64: %.9g)", at,
                    c->names.a, n->match, c->names.b, n->emit, n->truth);
}

static void fail(const zc_rl_sides *s, zc_rule_check *out, const char *fmt, ...) ZC_PRINTF(3, 4);
static void fail(const zc_rl_sides *s, zc_rule_check *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(out->why, sizeof out->why, fmt, args);
    va_end(args);
    out->failed = true;
    zc_rl_describe(s, out->input, sizeof out->input);
}

static void compare_floats(const zc_rl_sides *s, const compared *c, zc_rule_check *out)
{
    enum slack slack = slack_of(s->rule);
    measure by = {.step = precision(s->rule, c->a->dtype),
                  .scale = greatest(c->w),
                  .blur = c->blur,
                  .slack = slack,
                  .is_odd = slack && is_odd(&s->match, s->c->values == ZC_VALUES_HUGE),
                  .overflows = slack && !all_finite(c->w)};
    int64_t n = zc_tensor_numel(c->a);
    for (int64_t k = 0; k < n; k++) {
        results v = {
            zc_load_f64(c->w->dtype, c->w->data, k), zc_load_f64(c->x->dtype, c->x->data, k),
            zc_load_f64(c->a->dtype, c->a->data, k), zc_load_f64(c->b->dtype, c->b->data, k)};
        verdict one = judge(c->a->dtype, &by, &v);
        note(s, c, &one, &v, k, out);
    }
}

/* Integers and truth values are equal: all bits count, and a number between two integers is none.
 */
static void compare_integers(const zc_rl_sides *s, const compared *c, zc_rule_check *out)
{
    int64_t n = zc_tensor_numel(c->a);
    for (int64_t k = 0; k < n && !out->failed; k++) {
        int64_t a = zc_load_i64(c->a->dtype, c->a->data, k),
                b = zc_load_i64(c->b->dtype, c->b->data, k);
        bool is_exact = c->x->dtype == c->b->dtype && zc_load_i64(c->x->dtype, c->x->data, k) == b;
        if (a == b || is_exact) continue;
        fail(s, out, "element %" PRId64 ": %s gives %" PRId64 ", %s gives %" PRId64, k, c->names.a,
             a, c->names.b, b);
        out->worst = fabs((double)a - (double)b);
    }
}

static void compare(const zc_rl_sides *s, const compared *c, zc_rule_check *out)
{
    if (c->a->dtype != c->b->dtype || !same_dims(c->a, c->b)) {
        fail(s, out, "%s and %s have different shapes", c->names.a, c->names.b);
        return;
    }
    if (zc_dtype_is_float(c->a->dtype))
        compare_floats(s, c, out);
    else
        compare_integers(s, c, out);
    out->values += (size_t)zc_tensor_numel(c->a);
}

static const zc_tensor *output_of(const zc_rl_run *r, size_t i)
{
    return &r->value[r->s.g->top.outputs.data[i]];
}

/* Output i of the more exact run, where there is one. */
static const zc_tensor *better(const zc_rl_run *r, size_t i, const zc_tensor *otherwise)
{
    const zc_tensor *t = r->s.g ? output_of(r, i) : NULL;
    return t && same_dims(t, otherwise) ? t : otherwise;
}

void zc_rl_compare_sides(const zc_rl_sides *s, zc_rule_check *out)
{
    const zc_rl_run *wide = s->wide.s.g ? &s->wide : &s->match;
    for (size_t i = 0; !out->failed && i < s->match.s.g->top.outputs.len; i++) {
        compared c = {.a = output_of(&s->match, i),
                      .b = output_of(&s->emit, i),
                      .blur = blur_of(wide, wide->s.g->top.outputs.data[i], slack_of(s->rule)),
                      .names = {"match", "emit"}};
        c.w = better(&s->wide, i, c.a);
        c.x = better(&s->exact, i, c.w);
        compare(s, &c, out);
    }
}

zc_status zc_rl_compare_device(const zc_rl_sides *s, const zc_rule_device *device,
                               zc_rule_check *out, zc_diag *diag)
{
    const zc_graph *g = s->emit.s.g;
    size_t nin = g->top.params.len, nout = g->top.outputs.len;
    zc_tensor *in = zc_calloc(nin + 1, sizeof *in), *got = zc_calloc(nout + 1, sizeof *got);
    zc_status status = in && got ? ZC_OK : zc_fail_nomem(diag, "check", 0);
    for (size_t i = 0; status == ZC_OK && i < nin; i++)
        in[i] = s->emit.value[g->top.params.data[i]];
    if (status == ZC_OK) status = device->run(device->user, g, in, got, diag);
    for (size_t i = 0; status == ZC_OK && !out->failed && i < nout; i++) {
        compared c = {
            .a = output_of(&s->emit, i), .b = &got[i], .names = {"its meaning", "the kernel"}};
        c.w = c.x = better(&s->wide, i, c.a);
        compare(s, &c, out);
    }
    for (size_t i = 0; got && i < nout; i++) free(got[i].data);
    free(in);
    free(got);
    return status;
}
