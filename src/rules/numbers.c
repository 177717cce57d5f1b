/* A rule's two sides against each other by numbers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cpu/kernel.h"
#include "rules/check.h"
#include "rules/sample.h"

#define TRIES_MAX  200000 /* graphs made in search of some that match */
#define PLACES_MAX 12     /* of these */
/* Errors up to so many units of the type's precision count as rounding. */
#define ROUNDING 128

/* ---- evaluating a sample ---- */

typedef struct run {
    zc_graph *g;
    zc_tensor *value; /* by value id */
    bool *owned;
} run;

static void run_fini(run *r)
{
    for (size_t i = 0; r->value && r->owned && i < r->g->values.len; i++)
        if (r->owned[i]) free(r->value[i].data);
    free(r->value);
    free(r->owned);
    zc_graph_destroy(&r->g);
}

static bool fill_input(run *r, const zc_rl_rule *rule, const zc_rl_choice *c, zc_vid v)
{
    const zc_value *value = zc_val(r->g, v);
    int var = zc_rl_var_find(rule, value->name);
    zc_tensor *t = &r->value[v];
    size_t bytes;
    t->dtype = value->type.dtype;
    t->rank = value->type.rank;
    for (int i = 0; i < t->rank; i++) t->dims[i] = value->type.dims[i].k;
    if (var < 0 || !zc_tensor_bytes(t, &bytes)) return false;
    t->data = zc_calloc(bytes, 1);
    r->owned[v] = true;
    /* The wide sample gets what the narrow type holds. */
    zc_dtype own = rule->vars[var].dtype ? rule->vars[var].dtype : c->dtype;
    if (!zc_dtype_is_float(t->dtype)) own = t->dtype;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; t->data && i < n; i++) {
        uint64_t slot[2] = {0};
        zc_store_f64(own, slot, 0, zc_rl_sample_value(c, own, var, i));
        zc_store_f64(t->dtype, t->data, i, zc_load_f64(own, slot, 0));
    }
    return t->data != NULL;
}

static zc_status run_node(run *r, zc_nid n)
{
    const zc_node *node = zc_node_at(r->g, n);
    zc_tensor in[ZC_RL_LIST_MAX] = {{0}}, out[8] = {{0}};
    if (node->nin > ZC_RL_LIST_MAX || node->nout > 8) return ZC_ERR_LIMIT;
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]) in[i] = r->value[node->in[i]];
    for (int i = 0; i < node->nout; i++)
        if (node->out[i]) out[i].dtype = zc_val(r->g, node->out[i])->type.dtype;
    zc_status status =
        zc_cpu_eval(node->op, node->attrs, node->nin, in, node->nout, out, true, node->name, NULL);
    for (int i = 0; status == ZC_OK && i < node->nout; i++) {
        if (!node->out[i]) continue;
        r->value[node->out[i]] = out[i];
        r->owned[node->out[i]] = true;
    }
    return status;
}

/* Computes every value. false: an operand that a kernel refuses, or no memory. */
static bool run_all(run *r, const zc_rl_rule *rule, const zc_rl_choice *c)
{
    r->value = zc_calloc(r->g->values.len, sizeof *r->value);
    r->owned = zc_calloc(r->g->values.len, sizeof *r->owned);
    bool ok = r->value && r->owned;
    for (size_t i = 0; ok && i < r->g->values.len; i++)
        if (zc_val(r->g, (zc_vid)i)->data) r->value[i] = *zc_val(r->g, (zc_vid)i)->data;
    for (size_t i = 0; ok && i < r->g->top.params.len; i++)
        ok = fill_input(r, rule, c, r->g->top.params.data[i]);
    for (size_t i = 0; ok && i < r->g->top.nodes.len; i++)
        ok = run_node(r, r->g->top.nodes.data[i]) == ZC_OK;
    return ok;
}

/* ---- comparing ---- */

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
static bool is_narrow(const zc_rl_rule *rule)
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
        return is_narrow(rule) ? 0x1p-23 : 0x1p-52;
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
 * out overflows. */
enum slack { NO_SLACK, SLACK_OF_MASKS, SLACK_OF_OVERFLOW };

static enum slack slack_of(const zc_rl_rule *rule)
{
    for (int i = 0; i < rule->emit.n; i++) {
        const zc_rl_pat *p = zc_rl_stmt_at(&rule->emit, i)->pat;
        if (p->kind != ZC_RP_NODE) continue;
        if (p->op == ZC_OP_Attention || p->op == ZC_OP_PackedAttention) return SLACK_OF_MASKS;
        if (p->op == ZC_OP_Softmax || p->op == ZC_OP_LogSoftmax || p->op == ZC_OP_Softplus)
            return SLACK_OF_OVERFLOW;
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

/* Does what the emit side may do better explain the difference? */
static bool is_excused(const measure *by, double truth, double match, double emit)
{
    bool both_fail = isnan(truth) && isnan(match), zero = truth == 0 && match == 0;
    switch (by->slack) {
    case SLACK_OF_MASKS:
        return both_fail || (by->is_odd && (isnan(emit) || zero));
    case SLACK_OF_OVERFLOW:
        return !isfinite(truth) || !isfinite(match) || (by->overflows && truth == 0) ||
               (by->is_odd && isnan(emit));
    case NO_SLACK:
        break;
    }
    return false;
}

/* truth: the match side in f64; match, emit: both sides in their own type. */
static verdict judge(zc_dtype dtype, const measure *by, double truth, double match, double emit)
{
    double scale = by->scale;
    if (!zc_dtype_is_float(dtype)) return (verdict){fabs(match - emit), match != emit};
    uint64_t slot[2] = {0};
    zc_store_f64(dtype, slot, 0, truth);
    double rounded = zc_load_f64(dtype, slot, 0);
    if (same_place(emit, match) || same_place(emit, rounded)) return (verdict){0, false};
    if (is_excused(by, truth, match, emit)) return (verdict){0, false};
    if (!isfinite(emit) || !isfinite(truth)) {
        /* NaN or infinite on one side alone: right only where the match side fails by overflow. */
        bool excused = !isfinite(emit) && !isfinite(match) && isfinite(truth);
        return (verdict){INFINITY, !excused};
    }
    double error = fabs(emit - truth);
    double own = isfinite(match) ? fabs(match - truth) : 0;
    double limit = ROUNDING * by->step * scale + 4 * own + by->blur + 2 * grain(dtype);
    return (verdict){scale > 0 ? error / scale : error, error > limit};
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

/* How far a result of the match side in f64 may be off: a sum is no more exact than its terms,
 * which may cancel. */
static double blur_of(const run *r, zc_vid v, enum slack slack)
{
    bool is_made = zc_val(r->g, v)->kind == ZC_VALUE_NODE;
    const zc_node *n = is_made ? zc_node_at(r->g, zc_val(r->g, v)->producer) : NULL;
    double terms = 0;
    if (slack == SLACK_OF_OVERFLOW) terms = 1; /* 1 + exp(x) */
    for (int i = 0; n && (n->op == ZC_OP_Add || n->op == ZC_OP_Sub) && i < 2; i++)
        terms = fmax(terms, greatest(&r->value[n->in[i]]));
    return 0x1p-40 * terms; /* functions in f64 are no more exact */
}

typedef struct trio {
    run match, emit, wide;
    bool has_wide;
} trio;

/* "x: f32[2,3], w: f32[3,4] of large values, seed 17" */
static void describe(const zc_rl_rule *rule, const zc_rl_choice *c, const run *r, char *out,
                     size_t size)
{
    zc_buf text = {0};
    for (int i = 0; i < rule->nvars; i++) {
        zc_vid v = rule->vars[i].stmt < 0 && rule->vars[i].in_match
                       ? zc_graph_find(r->g, rule->vars[i].name)
                       : 0;
        char type[200];
        if (!v) continue;
        zc_buf_printf(&text, "%s%s: %s", text.len ? ", " : "", rule->vars[i].name,
                      zc_tensor_type_text(&r->value[v], type, sizeof type));
        if (zc_tensor_numel(&r->value[v]) == 1 && r->value[v].data)
            zc_buf_printf(&text, " = %.9g", zc_load_f64(r->value[v].dtype, r->value[v].data, 0));
    }
    snprintf(out, size, "%s; %s values, seed %" PRIu64, text.data ? text.data : "no operands",
             zc_rl_values_names[c->values], c->value_seed);
    zc_buf_fini(&text);
}

/* What is compared, in the words of messages. */
typedef struct pair {
    const char *a, *b;
} pair;

static void note(const zc_rl_rule *rule, const zc_rl_choice *c, const trio *t, const verdict *v,
                 const double n[3], int64_t at, pair names, zc_rule_check *out)
{
    if (out->failed || (!v->bad && !(v->error > out->worst))) return;
    if (v->error > out->worst || v->bad) out->worst = v->error;
    describe(rule, c, &t->match, out->input, sizeof out->input);
    out->failed = v->bad;
    if (v->bad)
        zc_snprintf(out->why, sizeof out->why,
                    "element %" PRId64 ": %s gives %.9g, %s gives %.9g (in f64: %.9g)", at, names.a,
                    n[1], names.b, n[2], n[0]);
}

static bool same_shape(const zc_tensor *a, const zc_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Values to compare: b is to be what a is; w is a in f64, or a. */
typedef struct compared {
    const zc_tensor *w, *a, *b;
    double blur; /* of w */
} compared;

static void compare(const zc_rl_rule *rule, const zc_rl_choice *c, const trio *t,
                    const compared *values, pair names, zc_rule_check *out)
{
    const zc_tensor *w = values->w, *a = values->a, *b = values->b;
    if (!same_shape(a, b)) {
        out->failed = true;
        snprintf(out->why, sizeof out->why, "%s and %s have different shapes", names.a, names.b);
        describe(rule, c, &t->match, out->input, sizeof out->input);
        return;
    }
    measure by = {.step = precision(rule, a->dtype),
                  .scale = greatest(w),
                  .blur = values->blur,
                  .slack = slack_of(rule),
                  .is_odd = c->values == ZC_VALUES_ODD,
                  .overflows = !all_finite(w)};
    int64_t n = zc_tensor_numel(a);
    for (int64_t k = 0; k < n; k++) {
        double v[3] = {zc_load_f64(w->dtype, w->data, k), zc_load_f64(a->dtype, a->data, k),
                       zc_load_f64(b->dtype, b->data, k)};
        verdict one = judge(a->dtype, &by, v[0], v[1], v[2]);
        note(rule, c, t, &one, v, k, names, out);
        out->values++;
    }
}

static const zc_tensor *output_of(const run *r, size_t i)
{
    return &r->value[r->g->top.outputs.data[i]];
}

static void compare_sides(const zc_rl_rule *rule, const zc_rl_choice *c, const trio *t,
                          zc_rule_check *out)
{
    const run *wide = t->has_wide ? &t->wide : &t->match;
    for (size_t i = 0; !out->failed && i < t->match.g->top.outputs.len; i++) {
        compared values = {output_of(wide, i), output_of(&t->match, i), output_of(&t->emit, i),
                           blur_of(wide, wide->g->top.outputs.data[i], slack_of(rule))};
        compare(rule, c, t, &values, (pair){"match", "emit"}, out);
    }
}

/* The emit side as the device computes it against the emit side here. */
static zc_status compare_device(const zc_rl_rule *rule, const zc_rl_choice *c, const trio *t,
                                const zc_rule_device *device, zc_rule_check *out, zc_diag *diag)
{
    const zc_graph *g = t->emit.g;
    size_t nin = g->top.params.len, nout = g->top.outputs.len;
    zc_tensor *in = zc_calloc(nin + 1, sizeof *in), *got = zc_calloc(nout + 1, sizeof *got);
    zc_status status = in && got ? ZC_OK : zc_fail_nomem(diag, "check", 0);
    for (size_t i = 0; status == ZC_OK && i < nin; i++)
        in[i] = t->emit.value[g->top.params.data[i]];
    if (status == ZC_OK) status = device->run(device->user, g, in, got, diag);
    for (size_t i = 0; status == ZC_OK && !out->failed && i < nout; i++) {
        compared values = {output_of(t->has_wide ? &t->wide : &t->emit, i), output_of(&t->emit, i),
                           &got[i], 0};
        compare(rule, c, t, &values, (pair){"its meaning", "the kernel"}, out);
    }
    for (size_t i = 0; got && i < nout; i++) free(got[i].data);
    free(in);
    free(got);
    return status;
}

/* ---- one sample ---- */

/* false: the choice gives no graph, or one that the rule does not match. */
static bool check_choice(const zc_rules *r, size_t index, const zc_rl_choice *c,
                         const zc_rule_device *device, zc_rule_check *out, zc_status *status,
                         zc_diag *diag)
{
    const zc_rl_rule *rule = r->rules.data[index];
    const zc_rule_target gpu = {.cuda = true, .sm = 90};
    trio t = {.has_wide = false};
    size_t changes = 0;
    bool ok = zc_rl_sample(rule, c, false, &t.emit.g);
    if (ok) {
        *status =
            zc_rl_apply(r, index, t.emit.g, c->shape_seed & 1 ? &gpu : NULL, NULL, &changes, diag);
        ok = *status == ZC_OK && changes > 0;
    }
    if (ok) zc_graph_compact(t.emit.g);
    ok = ok && zc_rl_sample(rule, c, false, &t.match.g) && run_all(&t.match, rule, c);
    if (ok && !run_all(&t.emit, rule, c)) {
        out->failed = true;
        describe(rule, c, &t.match, out->input, sizeof out->input);
        snprintf(out->why, sizeof out->why, "the emit side cannot be computed");
    }
    if (ok) t.has_wide = zc_rl_sample(rule, c, true, &t.wide.g) && run_all(&t.wide, rule, c);
    if (ok && !out->failed) compare_sides(rule, c, &t, out);
    if (ok && !out->failed && device) *status = compare_device(rule, c, &t, device, out, diag);
    run_fini(&t.match);
    run_fini(&t.emit);
    run_fini(&t.wide);
    return ok;
}

/* Every kind of values on one graph. */
static bool check_values(const zc_rules *r, size_t index, zc_rl_choice *c,
                         const zc_rule_device *device, zc_rule_check *out, zc_status *status,
                         zc_diag *diag)
{
    bool any = false;
    uint64_t seed = c->value_seed;
    for (int v = 0; v < ZC_VALUES_COUNT && !out->failed && *status == ZC_OK; v++) {
        c->values = (zc_rl_values)v;
        if (check_choice(r, index, c, device, out, status, diag)) any = true;
        if (!any) break; /* no graph for plain values: none for others */
    }
    c->value_seed = seed;
    return any;
}

/* ---- searching ---- */

static void draw(const zc_rl_rule *rule, uint64_t *random, bool keep_forms, zc_rl_choice *c)
{
    static const zc_dtype dtypes[] = {ZC_F32, ZC_F32, ZC_F32, ZC_F32, ZC_F16, ZC_F64};
    c->shape_seed = zc_rl_random(random);
    c->value_seed = zc_rl_random(random) >> 16;
    c->dtype = dtypes[zc_rl_random(random) % ZC_COUNTOF(dtypes)];
    if (!keep_forms) zc_rl_choose_forms(rule, random, c);
}

static bool has_kernel(const zc_rl_pat *p)
{
    for (int i = 0; p->kind == ZC_RP_NODE && i < p->args.n; i++)
        if (has_kernel(zc_rl_pat_at(&p->args, i))) return true;
    return p->kernel != NULL;
}

bool zc_rules_has_kernels(const zc_rules *r, size_t i)
{
    const zc_rl_list *emit = &r->rules.data[i]->emit;
    for (int k = 0; k < emit->n; k++)
        if (has_kernel(zc_rl_stmt_at(emit, k)->pat)) return true;
    return false;
}

zc_status zc_rules_check_numbers(const zc_rules *r, size_t i, uint64_t seed, zc_rule_check *out,
                                 zc_diag *diag)
{
    return zc_rules_check_kernels(r, i, seed, NULL, out, diag);
}

zc_status zc_rules_check_kernels(const zc_rules *r, size_t i, uint64_t seed,
                                 const zc_rule_device *device, zc_rule_check *out, zc_diag *diag)
{
    *out = (zc_rule_check){.places = 0};
    if (i >= r->rules.len || r->errors)
        return zc_fail(diag, ZC_ERR_ARG, "rules", "the set has errors");
    const zc_rl_rule *rule = r->rules.data[i];
    zc_rl_choice *c = zc_calloc(1, sizeof *c);
    zc_status status = c ? ZC_OK : zc_fail_nomem(diag, "check", sizeof *c);
    uint64_t random = seed;
    bool keep = false;
    for (int tries = 0; status == ZC_OK && tries < TRIES_MAX && !out->failed; tries++) {
        if (out->places == PLACES_MAX) break;
        draw(rule, &random, keep, c);
        bool any = check_values(r, i, c, device, out, &status, diag);
        out->places += any;
        /* Forms that matched are likely to match again, but other forms count too. */
        keep = any || (keep && zc_rl_random(&random) % 64);
        if (out->places && tries > TRIES_MAX / 4) break;
    }
    free(c);
    if (status == ZC_OK && out->places == 0 && !out->failed) {
        out->failed = true;
        snprintf(out->why, sizeof out->why, "no operands were found for which the rule applies");
    }
    return status;
}
