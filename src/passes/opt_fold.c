/* Constant folding with the reference kernels: one semantics, and the same plan whatever machine
 * compiles. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"
#include "passes/passes.h"
#include "passes/quantised.h"

/* Results larger than this stay unfolded unless the node's inputs are as large, or they are
 * weights: a small model must not become a large plan (Expand, ConstantOfShape). */
#define FOLD_GROWTH_MAX ((size_t)1 << 16)
/* Quantised weights may become floats, at four times their size. What convolutions and products
 * read as weights alone, however little it is made of, would else be made and arranged in every
 * run. */
#define FOLD_WEIGHTS_MAX   ((size_t)16 << 20)
#define FOLD_WEIGHTS_SCALE 4
/* All results together: so many bytes, and so many times the constants that were there. A chain of
 * nodes that each double what they get, or add two, must end. */
#define FOLD_TOTAL_BASE  ((size_t)128 << 20)
#define FOLD_TOTAL_SCALE 8

typedef struct folder {
    zc_graph *g;
    size_t room; /* bytes that results may still take */
    bool keeps_codes;
    size_t *changes;
    zc_diag *diag;
} folder;

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : SIZE_MAX;
}

static bool inputs_constant(const zc_graph *g, const zc_node *node)
{
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && !zc_val(g, node->in[i])->data) return false;
    return true;
}

static bool has_hollow_input(const zc_graph *g, const zc_node *node)
{
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && zc_graph_is_hollow(g, node->in[i])) return true;
    return false;
}

static size_t input_bytes(const zc_graph *g, const zc_node *node)
{
    size_t sum = 0;
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]) sum += bytes_of(zc_val(g, node->in[i])->data);
    return sum;
}

/* Bytes of the outputs by their inferred types; SIZE_MAX when not all known. */
static size_t output_bytes(const zc_graph *g, const zc_node *node)
{
    size_t sum = 0;
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i]) continue;
        const zc_type *type = &zc_val(g, node->out[i])->type;
        zc_tensor t = {.dtype = type->dtype, .rank = type->rank};
        for (int d = 0; d < t.rank; d++) {
            if (!zc_dim_is_const(type->dims[d])) return SIZE_MAX;
            t.dims[d] = type->dims[d].k;
        }
        size_t bytes = t.rank < 0 ? SIZE_MAX : bytes_of(&t);
        if (bytes == SIZE_MAX || sum > SIZE_MAX - bytes) return SIZE_MAX;
        sum += bytes;
    }
    return sum;
}

/* How often a value is read, how often as the second factor of a product of floats, and as weights
 * of anything. */
typedef struct readers {
    size_t all, factors, weights;
} readers;

static bool is_factor(const zc_graph *g, const zc_node *node, int i)
{
    if (node->op != ZC_OP_MatMul || i != 1) return false;
    const zc_value *x = zc_val(g, zc_graph_resolved(g, node->in[0]));
    zc_dtype t = x->type.dtype;
    return !x->data && x->type.rank >= 1 && zc_dtype_is_float(t) && zc_dtype_bits(t) >= 16;
}

static bool is_weights(const zc_node *node, int i)
{
    bool weighs = node->op == ZC_OP_Conv || node->op == ZC_OP_ConvTranspose ||
                  node->op == ZC_OP_Gemm || node->op == ZC_OP_MatMul;
    return weighs && i == 1;
}

static void count_readers(const zc_graph *g, const zc_block *b, zc_vid v, readers *r)
{
    for (size_t o = 0; o < b->outputs.len; o++)
        r->all += zc_graph_resolved(g, b->outputs.data[o]) == v;
    for (size_t n = 0; n < b->nodes.len; n++) {
        const zc_node *node = zc_node_at(g, b->nodes.data[n]);
        for (int i = 0; node->op != ZC_OP_NONE && i < node->nin; i++) {
            bool reads = node->in[i] && zc_graph_resolved(g, node->in[i]) == v;
            r->all += reads;
            r->factors += reads && is_factor(g, node, i);
            r->weights += reads && is_weights(node, i);
        }
    }
}

static readers readers_of(const zc_graph *g, zc_vid v)
{
    readers r = {0};
    count_readers(g, &g->top, v, &r);
    for (size_t i = 0; i < g->blocks.len; i++) count_readers(g, g->blocks.data[i], v, &r);
    return r;
}

/* Is its one result weights to all that read it? */
static bool are_weights(const zc_graph *g, const zc_node *node)
{
    if (node->nout != 1 || !node->out[0]) return false;
    readers r = readers_of(g, node->out[0]);
    return r.all && r.weights == r.all;
}

/* A matrix that is read as it stands too, and transposed by products alone: they can read it as it
 * stands (rule linear_tied), and a transposed copy would be as large again. */
static bool is_tied(const zc_graph *g, const zc_node *node)
{
    if (node->op != ZC_OP_Transpose) return false;
    const zc_ints *perm = &((const zc_attrs_Transpose *)node->attrs)->perm;
    if (perm->n != 2 || perm->v[0] != 1) return false;
    readers out = readers_of(g, node->out[0]);
    return out.all && out.factors == out.all && readers_of(g, node->in[0]).all > 1;
}

static bool worth_folding(const folder *f, const zc_node *node)
{
    const zc_graph *g = f->g;
    const zc_op_info *info = zc_op_get(node->op);
    if (f->keeps_codes && node->op == ZC_OP_DequantizeLinear) return false;
    if (info->flags & (ZC_OPF_RANDOM | ZC_OPF_REGIONS) || node->nout == 0) return false;
    if (!inputs_constant(g, node) || is_tied(g, node)) return false;
    size_t in = input_bytes(g, node);
    if (info->flags & ZC_OPF_DYNAMIC) return in <= FOLD_GROWTH_MAX && !has_hollow_input(g, node);
    size_t out = output_bytes(g, node);
    bool kept = out <= FOLD_GROWTH_MAX || out <= in ||
                (out <= FOLD_WEIGHTS_MAX && out / FOLD_WEIGHTS_SCALE <= in);
    return out <= f->room && (kept || (out <= FOLD_WEIGHTS_MAX && are_weights(g, node)));
}

static zc_status replace_outputs(zc_graph *g, zc_nid n, zc_tensor *out, zc_diag *diag)
{
    for (int i = 0; i < zc_node_at(g, n)->nout; i++) {
        zc_vid old = zc_node_at(g, n)->out[i];
        if (!old) continue;
        zc_vid v = zc_graph_const(g, zc_val(g, old)->name, &out[i], true);
        out[i].data = NULL;
        if (!v) return zc_fail_nomem(diag, "folded constant", 0);
        zc_graph_forward(g, old, v);
    }
    zc_graph_remove(g, n);
    return ZC_OK;
}

/* A matrix of codes that is turned behind its dequantisation, as a product of layers reads it. */
static bool turns_codes(const zc_graph *g, const zc_node *n, zc_quantised *codes)
{
    if (n->op != ZC_OP_Transpose || !zc_dequantised(g, n->in[0], codes)) return false;
    const zc_tensor *t = zc_known(g, codes->x);
    const zc_attrs_Transpose *a = n->attrs;
    return t && t->rank == 2 && zc_dtype_bits(t->dtype) == 8 &&
           (!ZC_ATTR_GIVEN(Transpose, a, perm) || a->perm.v[0] == 1);
}

/* It is turned as it stands, so that the product finds codes. */
static zc_status turn_codes(folder *f, zc_nid n, const zc_quantised *codes)
{
    zc_graph *g = f->g;
    const zc_vid in[] = {zc_turned(g, codes->x), codes->scale, codes->zero};
    const int64_t to =
        ((const zc_attrs_DequantizeLinear *)zc_node_at(g, codes->by)->attrs)->output_dtype;
    if (!in[0] || !zc_graph_inherit(g, n, codes->by) ||
        !zc_graph_become(g, n, ZC_OP_DequantizeLinear, codes->zero ? 3 : 2, in))
        return zc_fail_nomem(f->diag, "turned codes", 0);
    if (codes->axis >= 0) ZC_NODE_SET(g, DequantizeLinear, n, axis, 1 - codes->axis);
    if (to) ZC_NODE_SET(g, DequantizeLinear, n, output_dtype, to);
    ++*f->changes;
    return ZC_OK;
}

/* What constants without bytes give has none. */
static zc_status fold_hollow(zc_graph *g, zc_nid n, zc_diag *diag)
{
    for (int i = 0; i < zc_node_at(g, n)->nout; i++) {
        zc_vid old = zc_node_at(g, n)->out[i];
        if (!old) continue;
        const char *name = zc_val(g, old)->name;
        zc_vid v = zc_graph_hollow(g, name, &zc_val(g, old)->type);
        if (!v) return zc_fail_nomem(diag, "folded constant", 0);
        zc_graph_forward(g, old, v);
    }
    zc_graph_remove(g, n);
    return ZC_OK;
}

zc_status zc_evaluate(const zc_graph *g, const zc_node *n, zc_tensor *out, zc_diag *diag)
{
    zc_tensor *in = zc_calloc((size_t)n->nin + 1, sizeof *in);
    if (!in) return zc_fail_nomem(diag, "operands", 0);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) in[i] = *zc_val(g, n->in[i])->data;
    for (int i = 0; i < n->nout; i++)
        out[i] = (zc_tensor){.dtype = n->out[i] ? zc_val(g, n->out[i])->type.dtype : ZC_NONE};
    zc_status status = zc_cpu_eval(n->op, n->attrs, n->nin, in, n->nout, out, true, n->name, diag);
    free(in);
    return status;
}

static zc_status fold_node(zc_graph *g, zc_nid n, zc_diag *diag)
{
    if (has_hollow_input(g, zc_node_at(g, n))) return fold_hollow(g, n, diag);
    const int nout = zc_node_at(g, n)->nout;
    zc_tensor *out = zc_calloc((size_t)nout, sizeof *out);
    if (!out) return zc_fail_nomem(diag, "results", 0);
    zc_status status = zc_evaluate(g, zc_node_at(g, n), out, diag);
    if (status == ZC_OK) status = replace_outputs(g, n, out, diag);
    for (int i = 0; i < nout; i++) free(out[i].data);
    free(out);
    return status;
}

/* A value whose elements inference knows (shape arithmetic) is a constant although nobody computed
 * it. */
static zc_status fold_vals(zc_graph *g, zc_vid v, size_t *changes, zc_diag *diag)
{
    const zc_value *value = zc_val(g, v);
    if (value->kind != ZC_VALUE_NODE || value->vals.n < 0) return ZC_OK;
    zc_tensor t = {.dtype = value->type.dtype, .rank = value->type.rank};
    for (int d = 0; d < t.rank; d++) {
        if (!zc_dim_is_const(value->type.dims[d])) return ZC_OK;
        t.dims[d] = value->type.dims[d].k;
    }
    if (t.rank < 0 || zc_tensor_numel(&t) != value->vals.n) return ZC_OK;
    for (int i = 0; i < value->vals.n; i++)
        if (!zc_dim_is_const(value->vals.v[i])) return ZC_OK;
    t.data = zc_calloc((size_t)value->vals.n, 16);
    if (!t.data) return zc_fail_nomem(diag, "folded constant", 0);
    for (int i = 0; i < value->vals.n; i++) zc_store_i64(t.dtype, t.data, i, value->vals.v[i].k);
    zc_vid c = zc_graph_const(g, value->name, &t, true);
    if (!c) return zc_fail_nomem(diag, "folded constant", 0);
    zc_graph_forward(g, v, c);
    ++*changes;
    return ZC_OK;
}

static zc_status fold_block(folder *f, zc_block *b);

static void resolve_inputs(zc_graph *g, zc_nid n)
{
    zc_node *node = zc_node_at(g, n);
    for (int i = 0; i < node->nin; i++) node->in[i] = zc_graph_resolved(g, node->in[i]);
}

static zc_status fold_one(folder *f, zc_nid n)
{
    zc_graph *g = f->g;
    zc_quantised codes;
    resolve_inputs(g, n);
    if (f->keeps_codes && turns_codes(g, zc_node_at(g, n), &codes)) return turn_codes(f, n, &codes);
    if (worth_folding(f, zc_node_at(g, n))) {
        size_t bytes = output_bytes(g, zc_node_at(g, n));
        /* A kernel that refuses (an index out of range, say) leaves the node to report it at run
         * time. */
        zc_status status = fold_node(g, n, NULL);
        if (status == ZC_ERR_NOMEM) return zc_fail_nomem(f->diag, "folding", 0);
        if (status != ZC_OK) return ZC_OK;
        f->room -= bytes <= f->room ? bytes : 0; /* dynamic results are small */
        ++*f->changes;
        return ZC_OK;
    }
    for (int i = 0; i < zc_node_at(g, n)->nout; i++) {
        zc_vid v = zc_node_at(g, n)->out[i];
        if (v) ZC_TRY(fold_vals(g, v, f->changes, f->diag));
    }
    for (int r = 0; r < zc_node_at(g, n)->nregions; r++)
        ZC_TRY(fold_block(f, zc_node_at(g, n)->regions[r]));
    return ZC_OK;
}

static zc_status fold_block(folder *f, zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++)
        if (zc_node_at(f->g, b->nodes.data[i])->op != ZC_OP_NONE)
            ZC_TRY(fold_one(f, b->nodes.data[i]));
    return ZC_OK;
}

static size_t total_room(const zc_graph *g)
{
    size_t room = FOLD_TOTAL_BASE;
    for (size_t v = 1; v < g->values.len; v++) {
        const zc_value *value = &g->values.data[v];
        size_t bytes = value->kind == ZC_VALUE_CONST && value->data ? bytes_of(value->data) : 0;
        if (bytes > (SIZE_MAX - room) / FOLD_TOTAL_SCALE) return SIZE_MAX;
        room += bytes * FOLD_TOTAL_SCALE;
    }
    return room;
}

static zc_status fold(zc_pass *p, bool keeps_codes)
{
    folder f = {.g = p->g,
                .room = total_room(p->g),
                .keeps_codes = keeps_codes,
                .changes = &p->changes,
                .diag = p->diag};
    return fold_block(&f, &p->g->top);
}

/* Models trained for quantisation have their weights as floats that are quantised in the graph. */
zc_status zc_pass_opt_fold_codes(zc_pass *p)
{
    return fold(p, true);
}

zc_status zc_pass_opt_fold(zc_pass *p)
{
    return fold(p, false);
}
