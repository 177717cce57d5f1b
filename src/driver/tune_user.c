#include "driver/tune_user.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"
#include "cuda/device.h"
#include "driver/trial.h"
#include "op/sizes.h"
#include "passes/query.h"
#include "prover/prover.h"
#include "tune/same.h"

/* Of symbolic dimensions without a profile. */
#define USUAL_SIZE 64
/* Results may differ by so many units of their type's precision, at the greatest one. */
#define ROUNDING 128

enum { OPERANDS_MAX = 32, RESULTS_MAX = 8, TUNED_MAX = 8 };

void zc_tuning_fini(zc_tuning *t)
{
    for (size_t i = 0; i < t->refused.len; i++) free(t->refused.data[i].origin);
    ZC_VEC_FINI(&t->refused);
    zc_buf_fini(&t->told);
}

zc_status zc_tune_ready(zc_diag *diag)
{
    int arch;
    return zc_device_arch(0, &arch, diag);
}

/* ---- what is refused ---- */

/* Names are the model's and the file system's. */
static void tell_text(zc_tuning *t, const char *text)
{
    zc_buf_escape(&t->told, text, strlen(text));
}

static void tell(zc_tuning *t, const char *name, const char *origin, const char *tuning,
                 zc_ints tuned)
{
    zc_buf_printf(&t->told, "%s (", name);
    tell_text(t, origin);
    zc_buf_puts(&t->told, "): ");
    zc_tuning_print(tuning, tuned, &t->told);
}

static zc_status refuse(zc_tuning *t, const zc_rule_kernel *k, size_t combination, const char *why,
                        zc_diag *diag)
{
    int64_t values[TUNED_MAX];
    zc_refused one = {.origin = strdup(k->origin), .combination = combination};
    int n = 0;
    for (const char *s = k->tuning; *s; s++) n += *s == '=';
    if (!one.origin || !ZC_VEC_PUSH(&t->refused, one)) {
        free(one.origin);
        return zc_fail_nomem(diag, "tuning", 0);
    }
    (void)zc_tuning_values(k->tuning, combination, values, TUNED_MAX);
    tell(t, k->name, k->origin, k->tuning, (zc_ints){n, values});
    zc_buf_puts(&t->told, " is refused: ");
    tell_text(t, why);
    zc_buf_puts(&t->told, "\n");
    return ZC_OK;
}

static bool is_refused(const zc_tuning *t, const char *origin, size_t combination)
{
    for (size_t i = 0; i < t->refused.len; i++)
        if (t->refused.data[i].combination == combination &&
            strcmp(t->refused.data[i].origin, origin) == 0)
            return true;
    return false;
}

/* Is it the combination's own failure, and not the machine's? */
static bool is_of_combination(zc_status s)
{
    return s != ZC_OK && s != ZC_ERR_NOMEM && s != ZC_ERR_INTERNAL && s != ZC_ERR_CANCELLED;
}

/* ---- by the rules' samples ---- */

static zc_status check_combination(const zc_rules *r, size_t rule, const zc_rule_kernel *k,
                                   size_t combination, uint64_t seed, zc_trial_gpu *gpu,
                                   zc_tuning *t, zc_diag *diag)
{
    const zc_rule_device device = {.run = zc_trial_run_once, .user = gpu};
    zc_rule_check check;
    zc_diag *own = zc_diag_create();
    zc_status status = zc_rules_check_kernels(r, rule, seed, &device, &check, own);
    if (is_of_combination(status))
        status = refuse(t, k, combination, zc_diag_text(own, 0), diag);
    else if (status != ZC_OK)
        status = zc_fail(diag, status, k->name, "%s", zc_diag_text(own, 0));
    else if (check.failed)
        status = refuse(t, k, combination, check.why, diag);
    zc_diag_destroy(&own);
    return status;
}

static zc_status check_kernel(zc_rules *r, size_t kernel, uint64_t seed, zc_trial_gpu *gpu,
                              zc_tuning *t, zc_diag *diag)
{
    zc_rule_kernel k = zc_rules_kernel_at(r, kernel);
    size_t n = zc_tuning_count(k.tuning);
    zc_status status = ZC_OK;
    if (n == 0 || n > ZC_TUNE_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, k.origin,
                       "kernel %s has too many combinations to measure (got %zu, need at most %d)",
                       k.name, n, ZC_TUNE_MAX);
    for (size_t c = 1; status == ZC_OK && c < n; c++) {
        zc_rules_kernel_choose(r, kernel, c);
        for (size_t i = 0; status == ZC_OK && i < zc_rules_count(r); i++)
            if (!zc_rules_at(r, i).is_disabled && zc_rules_emits(r, i, kernel) &&
                !is_refused(t, k.origin, c))
                status = check_combination(r, i, &k, c, seed, gpu, t, diag);
    }
    zc_rules_kernel_choose(r, kernel, 0);
    return status;
}

zc_status zc_tune_check(zc_rules *r, uint64_t seed, zc_tuning *t, zc_diag *diag)
{
    zc_trial_gpu gpu = {.ordinal = 0};
    zc_status status = ZC_OK;
    for (size_t k = 0; status == ZC_OK && k < zc_rules_kernel_count(r); k++)
        status = check_kernel(r, k, seed, &gpu, t, diag);
    zc_trial_gpu_close(&gpu);
    return status;
}

/* ---- a kernel of the model by itself ---- */

typedef struct bench {
    const zc_node *node;
    zc_attrs_UserKernel attrs;
    int64_t tuned[TUNED_MAX];
    zc_type types[OPERANDS_MAX];
    zc_tensor in[OPERANDS_MAX], need[RESULTS_MAX];
} bench;

static void bench_fini(bench *b)
{
    for (int i = 0; i < b->node->nin; i++) free(b->in[i].data);
    for (int i = 0; i < b->node->nout; i++) free(b->need[i].data);
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The operand's own bytes when it is constant, else numbers from -1 to 1, or small whole ones. */
static zc_status fill(const zc_value *v, const zc_type *type, uint64_t *random, zc_tensor *out,
                      zc_diag *diag)
{
    size_t bytes;
    *out = (zc_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) out->dims[i] = type->dims[i].k;
    if (!zc_tensor_bytes(out, &bytes)) return zc_fail_nomem(diag, "tuning", 0);
    out->data = zc_calloc(bytes, 1);
    if (!out->data) return zc_fail_nomem(diag, "tuning", bytes);
    if (v->data && v->data->data) {
        if (bytes) memcpy(out->data, v->data->data, bytes);
        return ZC_OK;
    }
    int64_t n = zc_tensor_numel(out);
    bool is_float = zc_dtype_is_float(type->dtype);
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = draw(random);
        zc_store_f64(type->dtype, out->data, i,
                     is_float ? (double)(z % 2001) / 1000 - 1 : (double)(z % 2));
    }
    return ZC_OK;
}

/* The node alone, with its operands as inputs. */
static zc_status make_graph(const bench *b, zc_graph **out, zc_diag *diag)
{
    const zc_node *node = b->node;
    zc_graph *g;
    ZC_TRY(zc_graph_create(node->name, out, diag));
    g = *out;
    zc_nid n = zc_graph_node(g, &g->top, ZC_OP_UserKernel, node->name, node->nin, NULL, node->nout);
    void *attrs = n ? zc_graph_attrs_dup(g, ZC_OP_UserKernel, &b->attrs) : NULL;
    bool ok = attrs != NULL;
    g->input_names = zc_arena_alloc(&g->arena, (size_t)node->nin + 1, sizeof *g->input_names);
    g->output_names = zc_arena_alloc(&g->arena, (size_t)node->nout + 1, sizeof *g->output_names);
    ok = ok && g->input_names && g->output_names;
    if (ok) zc_node_at(g, n)->attrs = attrs;
    for (int i = 0; ok && i < node->nin; i++) {
        zc_vid v = zc_graph_value(g, NULL, ZC_VALUE_PARAM, &b->types[i]);
        ok = v && ZC_VEC_PUSH(&g->top.params, v);
        if (!ok) break;
        zc_node_at(g, n)->in[i] = v;
        g->input_names[i] = zc_val(g, v)->name;
    }
    for (int i = 0; ok && i < node->nout; i++) {
        zc_vid v = zc_graph_out(g, n, i, NULL);
        ok = v && ZC_VEC_PUSH(&g->top.outputs, v);
        if (ok) g->output_names[i] = zc_val(g, v)->name;
    }
    return ok ? zc_graph_infer(g, n, diag) : zc_fail_nomem(diag, "tuning", 0);
}

/* What the meaning gives. */
static zc_status compute(bench *b, const zc_graph *g, zc_diag *diag)
{
    for (int i = 0; i < b->node->nout; i++)
        b->need[i].dtype = zc_val(g, g->top.outputs.data[i])->type.dtype;
    return zc_cpu_eval(ZC_OP_UserKernel, &b->attrs, b->node->nin, b->in, b->node->nout, b->need,
                       true, b->node->name, diag);
}

/* One combination: its time, or INFINITY when it computes something else. */
static zc_status measure(bench *b, size_t combination, zc_trial_gpu *gpu, double *us, zc_diag *diag)
{
    zc_graph *g = NULL;
    zc_tensor got[RESULTS_MAX] = {{0}};
    (void)zc_tuning_values(b->attrs.tuning, combination, b->tuned, TUNED_MAX);
    zc_status status = make_graph(b, &g, diag);
    if (status == ZC_OK && combination == 0) status = compute(b, g, diag);
    if (status == ZC_OK) status = zc_trial_run(gpu, g, b->in, got, us, diag);
    for (int i = 0; status == ZC_OK && i < b->node->nout; i++)
        if (!zc_same_tensor(&got[i], &b->need[i], got[i].dtype, ROUNDING, 1)) *us = INFINITY;
    for (int i = 0; i < b->node->nout; i++) free(got[i].data);
    zc_graph_destroy(&g);
    return status;
}

/* ---- shapes ---- */

static int64_t size_of(const zc_compile_params *p, const char *symbol)
{
    int64_t most = 0;
    for (size_t i = 0; i < p->profile_count; i++)
        for (size_t k = 0; strcmp(p->profiles[i].name, symbol) == 0 && k < p->profiles[i].count;
             k++)
            if (p->profiles[i].values[k] > most) most = p->profiles[i].values[k];
    return most ? most : USUAL_SIZE;
}

/* Sizes of all dimensions of g; NULL: no memory, or (*bad) they do not go together. */
static int64_t *sizes_of(const zc_graph *g, const zc_compile_params *p, bool *bad)
{
    size_t at;
    int64_t *sizes = zc_calloc(g->dims.count + 1, sizeof *sizes);
    *bad = false;
    for (size_t i = 0; sizes && i < g->dims.count; i++)
        if (g->dims.nodes[i].kind == ZC_DIM_SYM) sizes[i] = size_of(p, g->dims.nodes[i].name);
    if (!sizes || zc_dims_eval(g->dims.nodes, g->dims.count, sizes, &at)) return sizes;
    *bad = true;
    free(sizes);
    return NULL;
}

/* false: an operand's shape is not known. */
static bool set_types(bench *b, const zc_graph *g, const int64_t *sizes)
{
    for (int i = 0; i < b->node->nin; i++) {
        zc_type *t = &b->types[i];
        *t = zc_val(g, b->node->in[i])->type;
        if (!b->node->in[i] || t->rank < 0) return false;
        for (int d = 0; d < t->rank; d++) {
            t->dims[d] = zc_dim_const(zc_dim_value(t->dims[d], sizes));
            if (t->dims[d].k < 0) return false;
        }
    }
    return true;
}

/* ---- choosing ---- */

/* An earlier kernel of the same source and shapes: its choice holds here too. */
typedef struct choice {
    const char *origin;
    zc_type types[OPERANDS_MAX];
    int nin;
    size_t combination;
} choice;

typedef struct chooser {
    zc_graph *g;
    zc_tuning *t;
    int64_t *sizes;
    zc_trial_gpu gpu;
    ZC_VEC(choice) made;
    zc_diag *diag;
} chooser;

static const choice *find_choice(const chooser *c, const bench *b)
{
    for (size_t i = 0; i < c->made.len; i++) {
        const choice *one = &c->made.data[i];
        bool is_same = strcmp(one->origin, b->attrs.origin) == 0 && one->nin == b->node->nin;
        for (int k = 0; is_same && k < one->nin; k++)
            is_same = zc_same_type(&one->types[k], &b->types[k]);
        if (is_same) return one;
    }
    return NULL;
}

static zc_status try_combination(chooser *c, bench *b, size_t combination, double *us)
{
    zc_diag *own = zc_diag_create();
    const zc_rule_kernel k = {b->attrs.name, b->attrs.origin, b->attrs.tuning};
    zc_status status = measure(b, combination, &c->gpu, us, own);
    if (is_of_combination(status) && combination > 0) {
        *us = INFINITY;
        status = refuse(c->t, &k, combination, zc_diag_text(own, 0), c->diag);
    } else if (status != ZC_OK) {
        status = zc_fail(c->diag, status, k.origin, "%s", zc_diag_text(own, 0));
    } else if (isinf(*us)) {
        status = refuse(c->t, &k, combination, "its results are not those of the meaning", c->diag);
    }
    zc_diag_destroy(&own);
    return status;
}

static zc_status find_fastest(chooser *c, bench *b, size_t *best)
{
    double first = INFINITY, least = INFINITY;
    size_t n = zc_tuning_count(b->attrs.tuning), tried = 0;
    *best = 0;
    for (size_t i = 0; i < n; i++) {
        double us = INFINITY;
        if (i && is_refused(c->t, b->attrs.origin, i)) continue;
        ZC_TRY(try_combination(c, b, i, &us));
        tried++;
        if (i == 0) first = us;
        if (us >= least) continue;
        least = us;
        *best = i;
    }
    if (isinf(least))
        return zc_fail(c->diag, ZC_ERR_ACCURACY, b->attrs.origin,
                       "kernel %s computes something else than its meaning with every combination",
                       b->attrs.name);
    (void)zc_tuning_values(b->attrs.tuning, *best, b->tuned, TUNED_MAX);
    tell(c->t, b->attrs.name, b->attrs.origin, b->attrs.tuning, b->attrs.tuned);
    zc_buf_puts(&c->t->told, " at ");
    tell_text(c->t, b->node->name);
    zc_buf_printf(&c->t->told, ": %.2f us (the first: %.2f us), of %zu that were measured\n", least,
                  first, tried);
    return ZC_OK;
}

static zc_status measure_node(chooser *c, bench *b, size_t *best)
{
    uint64_t random = 1;
    choice made = {.origin = b->attrs.origin, .nin = b->node->nin};
    zc_status status = ZC_OK;
    for (int i = 0; status == ZC_OK && i < b->node->nin; i++)
        status = fill(zc_val(c->g, b->node->in[i]), &b->types[i], &random, &b->in[i], c->diag);
    if (status == ZC_OK) status = find_fastest(c, b, best);
    bench_fini(b);
    made.combination = *best;
    memcpy(made.types, b->types, sizeof made.types);
    if (status == ZC_OK && !ZC_VEC_PUSH(&c->made, made)) status = zc_fail_nomem(c->diag, "", 0);
    return status;
}

static zc_status tune_node(chooser *c, zc_nid n)
{
    zc_node *node = zc_node_at(c->g, n);
    bench *b = zc_calloc(1, sizeof *b);
    size_t best;
    if (!b) return zc_fail_nomem(c->diag, "tuning", sizeof *b);
    b->node = node;
    b->attrs = *(const zc_attrs_UserKernel *)node->attrs;
    b->attrs.tuned.v = b->tuned;
    zc_status status = ZC_OK;
    if (zc_tuning_count(b->attrs.tuning) < 2) {
        free(b);
        return ZC_OK;
    }
    if (!set_types(b, c->g, c->sizes))
        status = zc_fail(c->diag, ZC_ERR_UNSUPPORTED, node->name,
                         "kernel %s cannot be measured: its operands' shapes are not known",
                         b->attrs.name);
    const choice *made = status == ZC_OK ? find_choice(c, b) : NULL;
    if (made) best = made->combination;
    if (status == ZC_OK && !made) status = measure_node(c, b, &best);
    if (status == ZC_OK) {
        (void)zc_tuning_values(b->attrs.tuning, best, b->tuned, TUNED_MAX);
        void *attrs = zc_graph_attrs_dup(c->g, ZC_OP_UserKernel, &b->attrs);
        if (attrs)
            node->attrs = attrs;
        else
            status = zc_fail_nomem(c->diag, "tuning", 0);
    }
    free(b);
    return status;
}

zc_status zc_tune_graph(zc_graph *g, const zc_compile_params *p, zc_tuning *t, zc_diag *diag)
{
    bool bad;
    chooser c = {.g = g, .t = t, .sizes = sizes_of(g, p, &bad), .diag = diag};
    zc_status status = ZC_OK;
    if (!c.sizes)
        return bad ? zc_fail(diag, ZC_ERR_UNSUPPORTED, "tuning",
                             "no shapes to measure with: fix the dimensions, or name sizes "
                             "with a profile")
                   : zc_fail_nomem(diag, "tuning", 0);
    for (zc_nid n = 1; status == ZC_OK && n < g->nodes.len; n++)
        if (zc_node_at(g, n)->op == ZC_OP_UserKernel) status = tune_node(&c, n);
    if (status == ZC_OK && t->told.failed) status = zc_fail_nomem(diag, "tuning", 0);
    zc_trial_gpu_close(&c.gpu);
    ZC_VEC_FINI(&c.made);
    free(c.sizes);
    return status;
}
