/* A lowered graph in f32 again, with roundings where types were narrow: what kernels compute that
 * sum in f32 and round their operands and results, by kernels that are fast everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/half.h"
#include "passes/precision.h"
#include "passes/query.h"

/* Rounds to 11 digits: what is cut off of x * (2^13 + 1) are the low 13. Larger numbers, infinities
 * and NaN stay. */
#define ROUND_TF32 "select(abs(x0) < 1e34, x0 * 8193.0 - (x0 * 8193.0 - x0), x0)"

typedef struct emulation {
    zc_graph *g;
    const zc_dtype *narrow;        /* by value: what it was lowered to; ZC_NONE: it was not */
    size_t count;                  /* entries of narrow */
    const zc_hollow_twins *hollow; /* the constants among these */
    zc_kept *kept;                 /* may be NULL */
    zc_diag *diag;
} emulation;

static zc_status no_memory(const emulation *e)
{
    return zc_fail_nomem(e->diag, "precision", 0);
}

static zc_dtype narrow_of(const emulation *e, zc_vid v)
{
    return v < e->count ? e->narrow[v] : ZC_NONE;
}

static const char *rounding(zc_dtype narrow)
{
    return narrow == ZC_F16 ? "f32(f16(x0))" : "f32(bf16(x0))";
}

/* ---- constants ---- */

static float tf32_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if (isfinite(x)) u = (u + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&x, &u, sizeof x);
    return x;
}

/* By f16, bf16, or (f32) tf32. */
static void round_floats(zc_dtype by, const float *x, float *y, int64_t n)
{
    enum { PIECE = 512 };
    uint16_t narrow[PIECE];
    for (int64_t first = 0; by != ZC_F32 && first < n; first += PIECE) {
        const int64_t count = n - first < PIECE ? n - first : PIECE;
        zc_precision_narrowed(by, x + first, narrow, count);
        zc_floats_of_halves(by, narrow, y + first, count);
    }
    for (int64_t i = 0; by == ZC_F32 && i < n; i++) y[i] = tf32_of(x[i]);
}

/* The constant v of f32, rounded. 0: no memory. */
static zc_vid rounded_const(const emulation *e, zc_vid v, zc_dtype by)
{
    const int form = zc_precision_kept_form(by);
    zc_tensor t = *zc_val(e->g, v)->data;
    const zc_vid kept = zc_kept_use(e->kept, e->g, v, form);
    if (kept) return kept;
    const int64_t n = t.data ? zc_tensor_numel(&t) : 0;
    float *x = t.data ? zc_calloc((size_t)n, sizeof *x) : NULL;
    if (t.data && !x) return 0;
    round_floats(by, t.data, x, n);
    t.data = x;
    return zc_kept_take(e->kept, e->g, v, form, &t);
}

/* ---- roundings ---- */

/* A node, in no block yet, that reads v. 0: no memory. */
static zc_nid rounding_node(zc_graph *g, zc_vid v, const char *expr)
{
    zc_nid n = zc_graph_node(g, NULL, ZC_OP_Pointwise, "precision", 1, &v, 1);
    if (n) ZC_NODE_SET(g, Pointwise, n, expr, expr);
    return n;
}

static zc_status push(const emulation *e, zc_block *b, zc_nid n)
{
    return n && ZC_VEC_PUSH(&b->nodes, n) ? ZC_OK : no_memory(e);
}

/* What node n makes as output i is rounded before anyone reads it. */
static zc_status round_output(const emulation *e, zc_nid n, int i, zc_block *b)
{
    zc_graph *g = e->g;
    zc_vid v = zc_node_at(g, n)->out[i];
    const zc_type type = zc_val(g, v)->type;
    zc_vid exact = zc_graph_value(g, zc_val(g, v)->name, ZC_VALUE_NODE, &type);
    zc_nid rounds = exact ? rounding_node(g, exact, rounding(e->narrow[v])) : 0;
    if (!rounds) return no_memory(e);
    zc_val(g, exact)->producer = n;
    zc_node_at(g, n)->out[i] = exact;
    zc_val(g, v)->producer = rounds;
    zc_node_at(g, rounds)->out[0] = v;
    return push(e, b, rounds);
}

static zc_status round_factors(const emulation *e, zc_nid n, zc_block *b)
{
    zc_graph *g = e->g;
    for (int i = 0; i < 2 && i < zc_node_at(g, n)->nin; i++) {
        zc_vid v = zc_node_at(g, n)->in[i], rounded;
        if (!v || zc_val(g, v)->type.dtype != ZC_F32) continue;
        if (zc_val(g, v)->kind == ZC_VALUE_CONST) {
            rounded = rounded_const(e, v, ZC_F32);
        } else {
            zc_nid rounds = rounding_node(g, v, ROUND_TF32);
            rounded = rounds ? zc_graph_out(g, rounds, 0, zc_val(g, v)->name) : 0;
            if (rounded) zc_val(g, rounded)->type = zc_val(g, v)->type;
            ZC_TRY(push(e, b, rounds));
        }
        if (!rounded) return no_memory(e);
        zc_node_at(g, n)->in[i] = rounded;
    }
    return ZC_OK;
}

/* A conversion that lowering put in becomes one to f32. */
static bool become_rounding(const emulation *e, zc_nid n)
{
    zc_graph *g = e->g;
    zc_vid v = zc_node_at(g, n)->out[0];
    if (zc_node_at(g, n)->op == ZC_OP_Cast) {
        ZC_NODE_SET(g, Cast, n, to, ZC_F32);
        return true;
    }
    const char *expr = zc_precision_clamp_text(e->narrow[v]);
    if (zc_node_at(g, n)->op != ZC_OP_Pointwise ||
        strcmp(ZC_NODE_ATTRS(g, Pointwise, n)->expr, expr) != 0)
        return false;
    ZC_NODE_SET(g, Pointwise, n, expr, zc_precision_rounding_text(e->narrow[v]));
    return true;
}

static zc_status emulate_block(const emulation *e, zc_block *b);

static zc_status emulate_node(const emulation *e, zc_nid n, zc_block *b)
{
    const zc_node *node = zc_node_at(e->g, n);
    int nregions = node->nregions, nout = node->nout;
    bool is_exact = nregions || (zc_op_get(node->op)->flags & ZC_OPF_VIEW);
    for (int r = 0; r < nregions; r++) ZC_TRY(emulate_block(e, zc_node_at(e->g, n)->regions[r]));
    if (node->tf32) ZC_TRY(round_factors(e, n, b));
    ZC_TRY(push(e, b, n));
    for (int i = 0; i < nout && !is_exact; i++) {
        if (narrow_of(e, zc_node_at(e->g, n)->out[i]) == ZC_NONE || become_rounding(e, n)) continue;
        ZC_TRY(round_output(e, n, i, b));
    }
    return ZC_OK;
}

static zc_status emulate_block(const emulation *e, zc_block *b)
{
    zc_block old = *b;
    memset(&b->nodes, 0, sizeof b->nodes);
    zc_status status = ZC_OK;
    for (size_t i = 0; i < old.nodes.len && status == ZC_OK; i++)
        if (zc_node_at(e->g, old.nodes.data[i])->op != ZC_OP_NONE)
            status = emulate_node(e, old.nodes.data[i], b);
    ZC_VEC_FINI(&old.nodes);
    return status;
}

static zc_status widen_values(const emulation *e)
{
    for (zc_vid v = 1; v < e->count; v++)
        if (e->narrow[v] != ZC_NONE) zc_val(e->g, v)->type.dtype = ZC_F32;
    for (size_t i = 0; i < e->hollow->len; i++) {
        const zc_hollow_twin *h = &e->hollow->data[i];
        zc_vid rounded = rounded_const(e, h->of, e->narrow[h->twin]);
        if (!rounded) return no_memory(e);
        zc_graph_forward(e->g, h->twin, rounded);
    }
    zc_graph_resolve(e->g);
    return ZC_OK;
}

zc_status zc_precision_emulate(zc_graph *g, const zc_dtype *was, size_t count,
                               const zc_hollow_twins *hollow, zc_kept *kept, zc_diag *diag)
{
    zc_dtype *narrow = zc_calloc(g->values.len, sizeof *narrow);
    emulation e = {.g = g,
                   .narrow = narrow,
                   .count = g->values.len,
                   .hollow = hollow,
                   .kept = kept,
                   .diag = diag};
    if (!narrow) return zc_fail_nomem(diag, "precision", g->values.len);
    for (zc_vid v = 1; v < e.count; v++) {
        zc_dtype is = zc_val(g, v)->type.dtype;
        bool lowered = (is == ZC_F16 || is == ZC_BF16) && (v >= count || was[v] != is);
        narrow[v] = lowered ? is : ZC_NONE;
    }
    zc_status status = widen_values(&e);
    if (status == ZC_OK) status = emulate_block(&e, &g->top);
    free(narrow);
    return status;
}
