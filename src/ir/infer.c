/* Type and shape inference over the graph; the per-operation functions are in src/op. */
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"

static zc_status infer_block(zc_graph *g, zc_block *b, zc_diag *diag);

static zc_operand operand_of(const zc_graph *g, zc_vid v)
{
    if (!v) return (zc_operand){.type = {.dtype = ZC_NONE, .rank = -1}, .vals = {.n = -1}};
    const zc_value *value = zc_val(g, v);
    return (zc_operand){.type = value->type, .vals = value->vals, .data = value->data};
}

/* Infers a node without regions. results: room for one a result. */
static zc_status infer_results(const zc_graph *g, const zc_node *node, zc_dims *dims,
                               zc_arena *arena, zc_operand *results, zc_diag *diag)
{
    zc_operand *in = zc_calloc((size_t)node->nin, sizeof *in);
    if (!in) return zc_fail_nomem(diag, "operands", 0);
    for (int i = 0; i < node->nin; i++) in[i] = operand_of(g, node->in[i]);
    zc_infer f = {.op = node->op,
                  .info = zc_op_get(node->op),
                  .attrs = node->attrs,
                  .dims = dims,
                  .arena = arena,
                  .custom = g->custom,
                  .nin = node->nin,
                  .nout = node->nout,
                  .in = in,
                  .out = results,
                  .subject = node->name,
                  .diag = diag};
    zc_status status = zc_infer_run(&f);
    free(in);
    return status;
}

static zc_status infer_plain(zc_graph *g, zc_nid n, zc_diag *diag)
{
    const zc_node *node = zc_node_at(g, n);
    zc_operand *results = zc_calloc((size_t)node->nout, sizeof *results);
    if (!results) return zc_fail_nomem(diag, "results", 0);
    zc_status status = infer_results(g, node, &g->dims, &g->arena, results, diag);
    for (int i = 0; status == ZC_OK && i < node->nout; i++) {
        if (!node->out[i]) continue;
        zc_val(g, node->out[i])->type = results[i].type;
        zc_val(g, node->out[i])->vals = results[i].vals;
    }
    free(results);
    return status;
}

/* ---- control flow ---- */

/* What holds whichever of the two a value has. */
static zc_type join(zc_graph *g, const zc_type *a, const zc_type *b)
{
    zc_type t = *a;
    if (a->rank != b->rank) t.rank = -1;
    for (int i = 0; i < t.rank; i++)
        if (!zc_dim_eq(a->dims[i], b->dims[i])) t.dims[i] = zc_dim_fresh(&g->dims);
    return t;
}

static void set_out(zc_graph *g, const zc_node *node, int i, const zc_type *type)
{
    if (i >= node->nout || !node->out[i]) return;
    zc_val(g, node->out[i])->type = *type;
    zc_val(g, node->out[i])->vals = (zc_vals){.n = -1};
}

static const zc_type *region_out(const zc_graph *g, const zc_block *b, size_t i)
{
    return &zc_val(g, b->outputs.data[i])->type;
}

static zc_status need(bool ok, const zc_node *node, const char *what, size_t got, size_t want,
                      zc_diag *diag)
{
    if (ok) return ZC_OK;
    return zc_fail(diag, ZC_ERR_MODEL, node->name, "%s: %s (got %zu, need %zu)",
                   zc_op_get(node->op)->name, what, got, want);
}

static zc_status infer_if(zc_graph *g, const zc_node *node, zc_diag *diag)
{
    ZC_TRY(need(node->nregions == 2, node, "branches", (size_t)node->nregions, 2, diag));
    const zc_block *then_b = node->regions[0], *else_b = node->regions[1];
    ZC_TRY(infer_block(g, node->regions[0], diag));
    ZC_TRY(infer_block(g, node->regions[1], diag));
    ZC_TRY(need(then_b->outputs.len == (size_t)node->nout, node, "outputs of the then-branch",
                then_b->outputs.len, (size_t)node->nout, diag));
    ZC_TRY(need(else_b->outputs.len == (size_t)node->nout, node, "outputs of the else-branch",
                else_b->outputs.len, (size_t)node->nout, diag));
    for (int i = 0; i < node->nout; i++) {
        const zc_type *a = region_out(g, then_b, (size_t)i), *b = region_out(g, else_b, (size_t)i);
        if (a->dtype != b->dtype)
            return zc_fail(diag, ZC_ERR_MODEL, node->name,
                           "If: branches give output %d different types (got %s and %s)", i,
                           zc_dtype_name(a->dtype), zc_dtype_name(b->dtype));
        zc_type t = join(g, a, b);
        set_out(g, node, i, &t);
    }
    return ZC_OK;
}

/* Dimensions that a loop was found to change, by carried value: the symbols that stand for them. */
typedef struct widened {
    bool rank, dims[ZC_MAX_RANK];
} widened;

/* The type a carried value starts with: the initial one, less what an earlier inference of this
 * loop (an outer loop infers it again) already found to change. */
static void start_type(zc_graph *g, zc_value *param, const zc_type *init, widened *w)
{
    zc_type start = *init;
    const zc_type *old = &param->type;
    bool known = old->dtype == init->dtype && old->dtype != ZC_NONE;
    w->rank = known && old->rank < 0 && init->rank >= 0;
    if (w->rank) start.rank = -1;
    for (int d = 0; known && d < start.rank && old->rank == start.rank; d++) {
        w->dims[d] =
            !zc_dim_eq(old->dims[d], start.dims[d]) && zc_dim_dynamic(&g->dims, old->dims[d]);
        if (w->dims[d]) start.dims[d] = old->dims[d];
    }
    param->type = start;
    param->vals = (zc_vals){.n = -1};
}

/* Forgets of *param what the body's result contradicts; true when something was. */
static bool widen(zc_graph *g, zc_type *param, const zc_type *out, widened *w)
{
    bool changed = false;
    if (param->rank >= 0 && param->rank != out->rank) {
        param->rank = -1;
        w->rank = changed = true;
    }
    for (int d = 0; d < param->rank; d++) {
        if (w->dims[d] || zc_dim_eq(param->dims[d], out->dims[d])) continue;
        param->dims[d] = zc_dim_fresh(&g->dims);
        w->dims[d] = changed = true;
    }
    return changed;
}

static zc_status same_dtype(const zc_node *node, size_t i, const zc_type *param, const zc_type *out,
                            zc_diag *diag)
{
    if (param->dtype == out->dtype) return ZC_OK;
    return zc_fail(
        diag, ZC_ERR_MODEL, node->name, "%s: carried value %zu changes its type (got %s, need %s)",
        zc_op_get(node->op)->name, i, zc_dtype_name(out->dtype), zc_dtype_name(param->dtype));
}

/* Infers the body until its results fit its parameters. Widening only loses facts (a dimension,
 * then the rank), each once, so it ends. */
static zc_status iterate(zc_graph *g, const zc_node *node, zc_block *body, size_t first_param,
                         size_t first_out, size_t n, widened *w, zc_diag *diag)
{
    for (bool again = true; again;) {
        again = false;
        ZC_TRY(infer_block(g, body, diag));
        for (size_t i = 0; i < n; i++) {
            zc_type *p = &zc_val(g, body->params.data[first_param + i])->type;
            const zc_type *out = region_out(g, body, first_out + i);
            ZC_TRY(same_dtype(node, i, p, out, diag));
            again |= widen(g, p, out, &w[i]);
        }
    }
    return ZC_OK;
}

/* Types of the n carried values: parameters of the body from first_param on, its results from
 * first_out on. */
static zc_status carry_fixpoint(zc_graph *g, const zc_node *node, zc_block *body,
                                size_t first_param, size_t first_out, const zc_vid *init, size_t n,
                                zc_diag *diag)
{
    widened *w = zc_calloc(n, sizeof *w);
    if (!w) return zc_fail_nomem(diag, "carried values", n * sizeof *w);
    for (size_t i = 0; i < n; i++)
        start_type(g, zc_val(g, body->params.data[first_param + i]), &zc_val(g, init[i])->type,
                   &w[i]);
    zc_status status = iterate(g, node, body, first_param, first_out, n, w, diag);
    free(w);
    return status;
}

/* A carried value after the loop: as before it when the loop keeps its shape, else what differs is
 * unknown. */
static void set_carried(zc_graph *g, const zc_node *node, int i, const zc_type *param, zc_vid init)
{
    zc_type t = join(g, param, &zc_val(g, init)->type);
    set_out(g, node, i, &t);
}

static void set_scanned(zc_graph *g, const zc_node *node, int i, const zc_type *slice, int64_t axis,
                        zc_dim length)
{
    zc_type t = *slice;
    if (slice->rank >= ZC_MAX_RANK) t.rank = -1;
    if (t.rank >= 0) {
        int at = (int)(axis < 0 ? axis + t.rank + 1 : axis);
        t.rank++;
        for (int d = t.rank - 1; d > at; d--) t.dims[d] = t.dims[d - 1];
        t.dims[at] = length;
        /* A slice's own unknowns may differ from one iteration to the next. */
        for (int d = 0; d < t.rank; d++)
            if (d != at && zc_dim_dynamic(&g->dims, t.dims[d])) t.dims[d] = zc_dim_fresh(&g->dims);
    }
    set_out(g, node, i, &t);
}

static zc_status infer_loop(zc_graph *g, const zc_node *node, zc_diag *diag)
{
    ZC_TRY(need(node->nregions == 1, node, "bodies", (size_t)node->nregions, 1, diag));
    zc_block *body = node->regions[0];
    size_t carried = (size_t)node->nin - 2;
    ZC_TRY(need(body->params.len == carried + 2, node, "inputs of the body", body->params.len,
                carried + 2, diag));
    ZC_TRY(need(body->outputs.len == (size_t)node->nout + 1, node, "outputs of the body",
                body->outputs.len, (size_t)node->nout + 1, diag));
    ZC_TRY(need((size_t)node->nout >= carried, node, "outputs", (size_t)node->nout, carried, diag));
    for (size_t i = 0; i < carried; i++)
        ZC_TRY(need(node->in[2 + i] != 0, node, "carried value left out", i, i, diag));
    zc_type scalar = {.dtype = ZC_I64, .rank = 0};
    zc_val(g, body->params.data[0])->type = scalar;
    scalar.dtype = ZC_BOOL;
    zc_val(g, body->params.data[1])->type = scalar;
    ZC_TRY(carry_fixpoint(g, node, body, 2, 1, node->in + 2, carried, diag));
    for (size_t i = 0; i < (size_t)node->nout; i++) {
        if (i < carried)
            set_carried(g, node, (int)i, &zc_val(g, body->params.data[2 + i])->type,
                        node->in[2 + i]);
        else
            set_scanned(g, node, (int)i, region_out(g, body, i + 1), 0, zc_dim_fresh(&g->dims));
    }
    return ZC_OK;
}

static int64_t int_at(zc_ints list, size_t i)
{
    return i < (size_t)list.n ? list.v[i] : 0;
}

static zc_status scan_slice(zc_graph *g, const zc_node *node, size_t i, zc_vid input, zc_vid param,
                            zc_dim *length, zc_diag *diag)
{
    const zc_attrs_Scan *a = node->attrs;
    zc_type t = zc_val(g, input)->type;
    if (t.rank >= 0) {
        int64_t axis = int_at(a->scan_input_axes, i);
        if (axis < -t.rank || axis >= t.rank)
            return zc_fail(diag, ZC_ERR_MODEL, node->name,
                           "Scan: axis of scanned input %zu out of range (got %lld, need [%d, %d])",
                           i, (long long)axis, -t.rank, t.rank - 1);
        int at = (int)(axis < 0 ? axis + t.rank : axis);
        *length = t.dims[at];
        t.rank--;
        for (int d = at; d < t.rank; d++) t.dims[d] = t.dims[d + 1];
    }
    zc_val(g, param)->type = t;
    zc_val(g, param)->vals = (zc_vals){.n = -1};
    return ZC_OK;
}

static zc_status infer_scan(zc_graph *g, const zc_node *node, zc_diag *diag)
{
    const zc_attrs_Scan *a = node->attrs;
    ZC_TRY(need(node->nregions == 1, node, "bodies", (size_t)node->nregions, 1, diag));
    zc_block *body = node->regions[0];
    if (a->num_scan_inputs < 1 || a->num_scan_inputs > node->nin)
        return zc_fail(diag, ZC_ERR_MODEL, node->name,
                       "Scan: num_scan_inputs out of range (got %lld, need [1, %d])",
                       (long long)a->num_scan_inputs, node->nin);
    size_t scans = (size_t)a->num_scan_inputs, states = (size_t)node->nin - scans;
    ZC_TRY(need(body->params.len == (size_t)node->nin, node, "inputs of the body", body->params.len,
                (size_t)node->nin, diag));
    ZC_TRY(need(body->outputs.len == (size_t)node->nout, node, "outputs of the body",
                body->outputs.len, (size_t)node->nout, diag));
    ZC_TRY(need((size_t)node->nout >= states, node, "outputs", (size_t)node->nout, states, diag));
    for (int i = 0; i < node->nin; i++)
        ZC_TRY(need(node->in[i] != 0, node, "input left out", (size_t)i, (size_t)i, diag));
    zc_dim length = zc_dim_fresh(&g->dims);
    for (size_t i = 0; i < scans; i++)
        ZC_TRY(scan_slice(g, node, i, node->in[states + i], body->params.data[states + i], &length,
                          diag));
    ZC_TRY(carry_fixpoint(g, node, body, 0, 0, node->in, states, diag));
    for (size_t i = 0; i < (size_t)node->nout; i++) {
        const zc_type *out = region_out(g, body, i);
        int64_t axis = i < states ? 0 : int_at(a->scan_output_axes, i - states);
        if (i >= states && out->rank >= 0 && (axis < -(out->rank + 1) || axis > out->rank))
            return zc_fail(
                diag, ZC_ERR_MODEL, node->name,
                "Scan: axis of scanned output %zu out of range (got %lld, need [%d, %d])",
                i - states, (long long)axis, -(out->rank + 1), out->rank);
        if (i < states)
            set_carried(g, node, (int)i, &zc_val(g, body->params.data[i])->type, node->in[i]);
        else
            set_scanned(g, node, (int)i, out, axis, length);
    }
    return ZC_OK;
}

zc_status zc_graph_infer(zc_graph *g, zc_nid n, zc_diag *diag)
{
    const zc_node *node = zc_node_at(g, n);
    switch (node->op) {
    case ZC_OP_If:
        return infer_if(g, node, diag);
    case ZC_OP_Loop:
        return infer_loop(g, node, diag);
    case ZC_OP_Scan:
        return infer_scan(g, node, diag);
    default:
        return infer_plain(g, n, diag);
    }
}

static zc_status infer_block(zc_graph *g, zc_block *b, zc_diag *diag)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        if (zc_node_at(g, b->nodes.data[i])->op != ZC_OP_NONE)
            ZC_TRY(zc_graph_infer(g, b->nodes.data[i], diag));
    }
    return ZC_OK;
}

zc_status zc_graph_infer_all(zc_graph *g, zc_diag *diag)
{
    return infer_block(g, &g->top, diag);
}

/* ---- what a model says against what inference found ---- */

bool zc_type_contradicts(const zc_type *a, const zc_type *b)
{
    if (a->dtype != ZC_NONE && b->dtype != ZC_NONE && a->dtype != b->dtype) return true;
    if (a->rank < 0 || b->rank < 0) return false;
    if (a->rank != b->rank) return true;
    for (int i = 0; i < a->rank; i++)
        if (zc_dim_is_const(a->dims[i]) && zc_dim_is_const(b->dims[i]) &&
            a->dims[i].k != b->dims[i].k)
            return true;
    return false;
}

/* ---- what passes left against what inference finds ---- */

static zc_status contradiction(const zc_graph *g, const zc_node *node, const zc_type *got,
                               const zc_value *value, const zc_dims *dims, zc_diag *diag)
{
    zc_buf ta = {0}, tb = {0};
    zc_type_print(dims, got, &ta);
    zc_type_print(&g->dims, &value->type, &tb);
    zc_status status =
        zc_fail(diag, ZC_ERR_MODEL, node->name, "gives " ZC_NAME " another type (got %s, need %s)",
                value->name, ta.data ? ta.data : "?", tb.data ? tb.data : "?");
    zc_buf_fini(&ta);
    zc_buf_fini(&tb);
    return status;
}

static zc_status recheck_node(const zc_graph *g, const zc_node *node, zc_dims *dims,
                              zc_arena *arena, zc_diag *diag)
{
    zc_operand *results = zc_arena_alloc(arena, (size_t)node->nout, sizeof *results);
    if (!results) return zc_fail_nomem(diag, "results", 0);
    ZC_TRY(infer_results(g, node, dims, arena, results, diag));
    for (int i = 0; i < node->nout; i++) {
        const zc_value *value = zc_val(g, node->out[i]);
        if (node->out[i] && zc_type_contradicts(&results[i].type, &value->type))
            return contradiction(g, node, &results[i].type, value, dims, diag);
    }
    return ZC_OK;
}

zc_status zc_graph_recheck(const zc_graph *g, zc_diag *diag)
{
    zc_dims dims;
    zc_arena arena;
    zc_status status = ZC_OK;
    if (!zc_dims_fork(&dims, &g->dims)) return zc_fail_nomem(diag, "symbolic dimensions", 0);
    zc_arena_init(&arena, 0);
    for (size_t i = 0; status == ZC_OK && i < g->top.nodes.len; i++) {
        const zc_node *node = zc_node_at(g, g->top.nodes.data[i]);
        if (zc_op_get(node->op)->flags & ZC_OPF_REGIONS) continue;
        status = recheck_node(g, node, &dims, &arena, diag);
        zc_arena_reset(&arena);
    }
    zc_arena_fini(&arena);
    zc_dims_fini(&dims);
    return status;
}

void zc_type_print(const zc_dims *dims, const zc_type *type, zc_buf *out)
{
    zc_buf_puts(out, type->dtype == ZC_NONE ? "none" : zc_dtype_name(type->dtype));
    if (type->rank < 0) {
        zc_buf_puts(out, "[*]");
        return;
    }
    zc_buf_puts(out, "[");
    for (int i = 0; i < type->rank; i++) {
        if (i) zc_buf_puts(out, ",");
        zc_dim_print(dims, type->dims[i], out);
    }
    zc_buf_puts(out, "]");
}
