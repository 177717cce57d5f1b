#include "support/on_off.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile.h"
#include "passes/passes.h"

enum { UNITS = 16, THREADS = 3 };

/* SHAKEN and what follows: EXACT, of inputs and results that are wrong by some units. */
enum { OFF, ON, EXACT, SHAKEN, SHAKES = 16, SHAKEN_BY = 8 };

typedef struct results {
    zc_tensor v[ON_OFF_IO_MAX];
    size_t n;
    bool sized; /* has an input a dimension that is a symbol? */
} results;

static void results_fini(results *r)
{
    for (size_t i = 0; i < r->n; i++) free(r->v[i].data);
    r->n = 0;
}

/* ---- inputs ---- */

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Numbers that every type holds, so that the truth is of the same ones. */
static double number(zc_elem elem, uint64_t z)
{
    if (zc_dtype_is_float((zc_dtype)elem)) return (double)(z % 1025) / 256 - 2;
    return (double)(z % 2);
}

/* Every symbol is `size`, and makes *sized true; expressions of symbols are beyond this test. */
static bool set_input(const zc_plan *plan, zc_session *s, size_t i, int64_t size, uint64_t *random,
                      double shake, bool *sized, zc_diag *diag)
{
    zc_io_info info;
    if (zc_plan_input(plan, i, &info, diag) != ZC_OK || info.rank < 0) return false;
    zc_tensor t = {.dtype = (zc_dtype)info.elem, .rank = info.rank};
    for (int d = 0; d < t.rank; d++) {
        *sized |= info.dims[d] < 0;
        t.dims[d] = info.dims[d] < 0 ? size : info.dims[d];
    }
    zc_view v = {.elem = info.elem, .rank = t.rank};
    memcpy(v.dims, t.dims, sizeof v.dims);
    if (!zc_tensor_bytes(&t, &v.bytes)) return false;
    v.data = t.data = zc_calloc(v.bytes, 1);
    int64_t n = zc_tensor_numel(&t);
    for (int64_t k = 0; t.data && k < n; k++) {
        double x = number(info.elem, draw(random));
        if (t.dtype == ZC_F64) x *= 1 + (k % 2 ? 1 : -1) * shake;
        zc_store_f64(t.dtype, t.data, k, x);
    }
    bool ok = t.data && zc_session_set_input(s, i, &v, false, diag) == ZC_OK;
    free(t.data);
    return ok;
}

static double unit_of(zc_dtype d)
{
    return d == ZC_F16 ? 0x1p-10 : d == ZC_BF16 ? 0x1p-7 : d == ZC_F64 ? 0x1p-52 : 0x1p-23;
}

/* ---- running ---- */

static bool take_outputs(const zc_session *s, size_t n, results *out, zc_diag *diag)
{
    for (out->n = 0; out->n < n; out->n++) {
        zc_view v;
        zc_tensor *t = &out->v[out->n];
        if (zc_session_output(s, out->n, &v, diag) != ZC_OK) return false;
        *t = (zc_tensor){.dtype = (zc_dtype)v.elem, .rank = v.rank};
        memcpy(t->dims, v.dims, sizeof t->dims);
        t->data = zc_calloc(v.bytes, 1);
        if (t->data && v.bytes) memcpy(t->data, v.data, v.bytes);
    }
    return true;
}

static bool run_plan(const void *bytes, size_t len, const zc_session_params *how, int64_t size,
                     double shake, results *out, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_plan_info info = {.inputs = 0};
    uint64_t random = 7;
    bool ok = zc_plan_load_bytes(bytes, len, &plan, diag) == ZC_OK &&
              zc_plan_info_get(plan, &info) == ZC_OK && info.outputs <= ON_OFF_IO_MAX &&
              zc_session_create(plan, how, &s, diag) == ZC_OK;
    for (size_t i = 0; ok && i < info.inputs; i++)
        ok = set_input(plan, s, i, size, &random, shake, &out->sized, diag);
    ok = ok && zc_session_run(s, diag) == ZC_OK && take_outputs(s, info.outputs, out, diag);
    (void)zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    return ok;
}

/* All of a type as f64. */
static void widen(zc_buf *text, const char *type)
{
    for (char *at = text->data; (at = strstr(at, type));) {
        for (const char *wide = "f64"; *wide; wide++) *at++ = *wide;
    }
}

static bool read_graph(const on_off *s, int which, zc_graph **out, zc_diag *diag)
{
    const zc_compile_params none = {.size = sizeof none};
    zc_buf text = {0};
    if (!s->text) {
        const zc_model_source model = {.path = s->name};
        zc_graph *g = NULL;
        if (zc_model_import(&model, &none, NULL, false, &g, diag) != ZC_OK) return false;
        if (which == OFF || which == ON) {
            *out = g;
            return true;
        }
        zc_graph_print(g, true, &text);
        zc_graph_destroy(&g);
    } else {
        zc_buf_puts(&text, s->text);
    }
    if (which >= EXACT) widen(&text, zc_dtype_name(s->real));
    bool ok = zc_graph_parse(text.data, text.len, out, diag) == ZC_OK;
    zc_buf_fini(&text);
    return ok;
}

static zc_vid add_node(zc_graph *g, zc_op op, zc_vid a, zc_vid b, const zc_type *t)
{
    zc_nid n = zc_graph_node(g, &g->top, op, NULL, b ? 2 : 1, (zc_vid[]){a, b}, 1);
    zc_vid v = n && a ? zc_graph_out(g, n, 0, NULL) : 0;
    if (!v) return 0;
    zc_val(g, v)->type = *t;
    return v;
}

static zc_vid real(zc_graph *g, double x)
{
    const zc_tensor t = {.dtype = ZC_F64, .data = &x};
    return zc_graph_const(g, NULL, &t, false);
}

/* Factors around `at`: constants, one for each element of the last dimensions that are known and
 * few; where none is, of each element as its own digits say. */
static zc_vid factors(zc_graph *g, zc_vid v, double at, double by, uint64_t *random)
{
    const zc_type type = zc_val(g, v)->type, *t = &type;
    double bytes[256];
    zc_tensor f = {.dtype = ZC_F64, .data = bytes};
    int64_t n = 1;
    for (int d = t->rank - 1; d >= 0 && zc_dim_is_const(t->dims[d]); d--) {
        if (t->dims[d].k < 1 || n * t->dims[d].k > (int64_t)ZC_COUNTOF(bytes)) break;
        n *= t->dims[d].k;
        f.rank++;
    }
    if (n == 1 && t->rank > 0) {
        zc_vid digits = add_node(g, ZC_OP_Mul, v, real(g, 1e4 + (double)(draw(random) % 1000)), t);
        zc_vid share = add_node(g, ZC_OP_Mul, add_node(g, ZC_OP_Sin, digits, 0, t), real(g, by), t);
        return add_node(g, ZC_OP_Add, share, real(g, at), t);
    }
    for (int d = 0; d < f.rank; d++) f.dims[d] = t->dims[t->rank - f.rank + d].k;
    for (int64_t i = 0; i < n; i++) bytes[i] = at + (draw(random) % 2 ? by : -by);
    return zc_graph_const(g, NULL, &f, false);
}

/* Result i of node n is wrong by a factor, and where it is of one operand's elements by a share of
 * those too: a function's tail is as wrong as what it is a difference of. *made: the value that
 * takes the result's place. */
static bool shake_result(zc_graph *g, zc_nid n, int i, double by, uint64_t *random, zc_vid *made)
{
    const zc_node *node = zc_node_at(g, n);
    zc_vid v = node->out[i], x = node->nin == 1 ? node->in[0] : 0;
    const zc_type t = zc_val(g, v)->type;
    bool is_function = zc_op_get(node->op)->flags & ZC_OPF_POINTWISE;
    *made = add_node(g, ZC_OP_Mul, v, factors(g, v, 1, by, random), &t);
    if (*made && x && is_function && zc_val(g, x)->type.dtype == ZC_F64)
        *made = add_node(g, ZC_OP_Add, *made,
                         add_node(g, ZC_OP_Mul, x, factors(g, x, 0, by, random), &t), &t);
    return *made;
}

/* The node's operands are what took their places; its results go on as others. */
static bool shake_node(zc_graph *g, zc_nid n, double by, uint64_t *random, zc_vid *moved)
{
    const zc_node *node = zc_node_at(g, n);
    int nout = node->nout;
    for (int i = 0; i < node->nin; i++)
        if (moved[node->in[i]]) node->in[i] = moved[node->in[i]];
    bool ok = ZC_VEC_PUSH(&g->top.nodes, n);
    for (int i = 0; ok && i < nout; i++) {
        zc_vid v = zc_node_at(g, n)->out[i];
        const zc_type *t = &zc_val(g, v)->type;
        if (v && t->dtype == ZC_F64 && t->rank >= 0)
            ok = shake_result(g, n, i, by, random, &moved[v]);
    }
    return ok;
}

/* Every number that the top block computes is wrong by some units. */
static bool shake_results(zc_graph *g, double by, uint64_t random)
{
    zc_block old = g->top;
    zc_vid *moved = zc_calloc(g->values.len, sizeof *moved);
    bool ok = moved;
    g->top.nodes.data = NULL;
    g->top.nodes.len = g->top.nodes.cap = 0;
    for (size_t k = 0; ok && k < old.nodes.len; k++)
        ok = shake_node(g, old.nodes.data[k], by, &random, moved);
    for (size_t i = 0; ok && i < g->top.outputs.len; i++)
        if (moved[g->top.outputs.data[i]]) g->top.outputs.data[i] = moved[g->top.outputs.data[i]];
    free(moved);
    ZC_VEC_FINI(&old.nodes);
    return ok;
}

static bool same_shape(const zc_tensor *a, const zc_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* The same plan with several threads: all bits are those that one computed. */
static bool same_on_threads(const on_off *s, const void *bytes, size_t len, int64_t size,
                            const results *one, zc_diag *diag)
{
    zc_session_params how = {.size = sizeof how, .device = ZC_DEVICE_CPU, .threads = THREADS};
    results r = {.n = 0};
    bool ok = run_plan(bytes, len, &how, size, 0, &r, diag);
    for (size_t i = 0; ok && i < r.n; i++) {
        size_t n;
        ok = same_shape(&r.v[i], &one->v[i]) && zc_tensor_bytes(&r.v[i], &n) &&
             (n == 0 || memcmp(r.v[i].data, one->v[i].data, n) == 0);
        if (!ok)
            (void)zc_fail(diag, ZC_ERR_ACCURACY, s->name,
                          "output %zu has other bits with %d threads", i, THREADS);
    }
    results_fini(&r);
    return ok;
}

static bool compute(const on_off *s, int which, int64_t size, results *out, zc_diag *diag)
{
    static const char *const all = "all", *const native = "native";
    bool on_gpu = which == ON && s->on_gpu;
    zc_compile_params p = {.size = sizeof p, .targets = &native, .target_count = on_gpu};
    zc_rule_target target = {.cuda = on_gpu, .sm = 90};
    zc_pass_options options = {
        .skip = &all, .skip_count = which != ON, .target = &target, .rules = s->rules};
    zc_session_params how = {.size = sizeof how,
                             .device = on_gpu ? ZC_DEVICE_CUDA : ZC_DEVICE_CPU,
                             .reference = which != ON,
                             .threads = 1};
    zc_graph *g = NULL;
    void *bytes = NULL;
    size_t len = 0;
    double shake = which >= SHAKEN ? SHAKEN_BY * unit_of(s->real) : 0;
    bool ok = read_graph(s, which, &g, diag) &&
              (shake == 0 || shake_results(g, shake, (uint64_t)which)) &&
              zc_run_passes(g, &options, diag) == ZC_OK &&
              zc_compile_graph(g, &p, &bytes, &len, diag) == ZC_OK &&
              run_plan(bytes, len, &how, size, shake, out, diag) &&
              (which != ON || on_gpu || same_on_threads(s, bytes, len, size, out, diag));
    zc_graph_destroy(&g);
    zc_free(bytes);
    return ok;
}

/* ---- comparing ---- */

/* Errors against the truth, which are infinite where only one side is a number. */
static double error_at(const zc_tensor *t, const zc_tensor *truth, int64_t i)
{
    double x = zc_load_f64(t->dtype, t->data, i), y = zc_load_f64(truth->dtype, truth->data, i);
    if (x == y || (isnan(x) && isnan(y))) return 0;
    return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

/* last: complain. */
static bool compare(const on_off *s, size_t output, const results *r, bool last, double *worst)
{
    const zc_tensor *on = &r[ON].v[output], *off = &r[OFF].v[output];
    const zc_tensor *truth = r[EXACT].n ? &r[EXACT].v[output] : off;
    double greatest = 0, on_error = 0, off_error = 0, shake = 0;
    int64_t n = zc_tensor_numel(off);
    if (on->dtype != off->dtype || !same_shape(on, off) || !same_shape(off, truth)) {
        printf("FAIL %s: output %zu has another type\n", s->name, output);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(zc_load_f64(truth->dtype, truth->data, i));
        if (isfinite(v)) greatest = fmax(greatest, v);
        on_error = fmax(on_error, error_at(on, truth, i));
        off_error = fmax(off_error, error_at(off, truth, i));
        for (int k = SHAKEN; k < SHAKEN + SHAKES; k++)
            if (r[k].n) shake = fmax(shake, error_at(&r[k].v[output], truth, i));
    }
    bool is_float = zc_dtype_is_float(on->dtype);
    /* What overflowed without fusions, too, is no measure. */
    if (is_float && greatest > 0 && off_error >= greatest / 2) return true;
    double limit = 2 * off_error + (is_float ? UNITS * unit_of(on->dtype) * greatest + shake : 0);
    if (greatest > 0) *worst = fmax(*worst, on_error / greatest);
    if (on_error <= limit || !last) return on_error <= limit;
    printf("FAIL %s: output %zu is off by %.3g (need at most %.3g; without fusions %.3g)\n",
           s->name, output, on_error, limit, off_error);
    return false;
}

/* ---- one graph ---- */

static bool complain(const on_off *s, const char *what, const zc_diag *diag)
{
    printf("FAIL %s: %s: %s\n", s->name, what, zc_diag_text(diag, 0));
    return false;
}

static bool compare_all(const on_off *s, const results *r, bool last, double *worst)
{
    bool ok = true;
    for (size_t i = 0; ok && i < r[OFF].n; i++) ok = compare(s, i, r, last, worst);
    return ok;
}

/* Where an operation knows no f64, the results without fusions are the truth. */
static void compute_truth(const on_off *s, int which, int64_t size, results *r, zc_diag *diag)
{
    if (!compute(s, which, size, &r[which], diag)) results_fini(&r[which]);
}

bool on_off_check(const on_off *s, int64_t size, on_off_run *run, size_t *outputs, double *worst)
{
    results r[SHAKEN + SHAKES] = {{.n = 0}};
    zc_diag *diag = zc_diag_create();
    bool ok = true;
    run->ran = compute(s, OFF, size, &r[OFF], diag);
    run->sized = r[OFF].sized;
    zc_diag_clear(diag);
    if (run->ran && !compute(s, ON, size, &r[ON], diag)) ok = complain(s, "with fusions", diag);
    if (run->ran && ok) {
        compute_truth(s, EXACT, size, r, diag);
        ok = compare_all(s, r, false, worst);
        for (int i = 0; !ok && i < SHAKES; i++) compute_truth(s, SHAKEN + i, size, r, diag);
        ok = ok || compare_all(s, r, true, worst);
        *outputs += r[OFF].n;
    }
    zc_diag_destroy(&diag);
    for (int v = OFF; v < SHAKEN + SHAKES; v++) results_fini(&r[v]);
    return ok;
}
