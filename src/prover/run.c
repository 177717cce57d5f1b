#include "prover/run.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"
#include "rules/check.h"

static void drop_values(zc_rl_run *r)
{
    for (size_t i = 0; r->value && r->owned && i < r->s.g->values.len; i++)
        if (r->owned[i]) free(r->value[i].data);
    free(r->value);
    free(r->owned);
    r->value = NULL;
    r->owned = NULL;
}

void zc_rl_run_fini(zc_rl_run *r)
{
    if (r->s.g) drop_values(r);
    zc_graph_destroy(&r->s.g);
}

/* ---- symbols ---- */

int zc_rl_bindings(const zc_rl_sample *s)
{
    return s->symbol_count ? 2 + 2 * s->symbol_count : 1;
}

int64_t zc_rl_symbol_size(const zc_rl_run *r, int i)
{
    int64_t own = r->s.symbols[i].size;
    int of_own = r->binding - 2 - 2 * i;
    if (r->binding == 1) return 2 * own + 7;
    return of_own == 0 ? 0 : of_own == 1 ? 1 : own;
}

/* -1: no symbol of an input. */
static int64_t dim_of(const zc_rl_run *r, zc_dim d)
{
    const zc_rl_sample *s = &r->s;
    if (zc_dim_is_const(d)) return d.k;
    const zc_dim_node *n = &s->g->dims.nodes[d.e - 1];
    for (int i = 0; n->kind == ZC_DIM_SYM && i < s->symbol_count; i++)
        if (strcmp(s->symbols[i].name, n->name) == 0) return zc_rl_symbol_size(r, i);
    return -1;
}

/* ---- values ---- */

static bool fill_input(zc_rl_run *r, const zc_rl_rule *rule, const zc_rl_choice *c, zc_vid v)
{
    const zc_value *value = zc_val(r->s.g, v);
    int var = zc_rl_var_find(rule, value->name);
    zc_tensor *t = &r->value[v];
    size_t bytes;
    *t = (zc_tensor){.dtype = value->type.dtype, .rank = value->type.rank};
    for (int i = 0; i < t->rank; i++) t->dims[i] = dim_of(r, value->type.dims[i]);
    if (var < 0 || !zc_tensor_bytes(t, &bytes)) return false;
    t->data = zc_calloc(bytes, 1);
    r->owned[v] = true;
    /* The wide sample gets what the narrow type holds. */
    zc_dtype own = zc_dtype_is_float(t->dtype) ? r->s.own[var] : t->dtype;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; t->data && i < n; i++)
        zc_rl_sample_store(c, own, t->dtype, var, i, t->data);
    r->work += (size_t)n;
    return t->data != NULL;
}

/* Multiplications count, where a product has many of them for an element. */
static size_t work_of(const zc_node *n, const zc_tensor *in, const zc_tensor *out)
{
    bool is_product = n->op == ZC_OP_MatMul || n->op == ZC_OP_Gemm || n->op == ZC_OP_Linear;
    int64_t inner = is_product && in->rank ? in->dims[in->rank - 1] : 1;
    return (size_t)(zc_tensor_numel(out) * (inner > 0 ? inner : 1));
}

static zc_status run_node(zc_rl_run *r, zc_nid n)
{
    const zc_node *node = zc_node_at(r->s.g, n);
    zc_tensor in[ZC_RL_LIST_MAX], out[8];
    if (node->nin > ZC_RL_LIST_MAX || node->nout > 8) return ZC_ERR_LIMIT;
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i] ? r->value[node->in[i]] : (zc_tensor){.dtype = ZC_NONE};
    for (int i = 0; i < node->nout; i++)
        out[i] =
            (zc_tensor){.dtype = node->out[i] ? zc_val(r->s.g, node->out[i])->type.dtype : ZC_NONE};
    zc_status status =
        zc_cpu_eval(node->op, node->attrs, node->nin, in, node->nout, out, true, node->name, NULL);
    for (int i = 0; status == ZC_OK && i < node->nout; i++) {
        if (!node->out[i]) continue;
        r->value[node->out[i]] = out[i];
        r->owned[node->out[i]] = true;
        r->work += work_of(node, &in[0], &out[i]);
    }
    return status;
}

bool zc_rl_run_all(zc_rl_run *r, const zc_rl_rule *rule, const zc_rl_choice *c, int binding)
{
    const zc_graph *g = r->s.g;
    drop_values(r);
    r->work = 0;
    r->binding = binding;
    r->value = zc_calloc(g->values.len, sizeof *r->value);
    r->owned = zc_calloc(g->values.len, sizeof *r->owned);
    bool ok = r->value && r->owned;
    for (size_t i = 0; ok && i < g->values.len; i++)
        if (zc_val(g, (zc_vid)i)->data) r->value[i] = *zc_val(g, (zc_vid)i)->data;
    for (size_t i = 0; ok && i < g->top.params.len; i++)
        ok = fill_input(r, rule, c, g->top.params.data[i]);
    for (size_t i = 0; ok && i < g->top.nodes.len; i++)
        ok = run_node(r, g->top.nodes.data[i]) == ZC_OK;
    return ok;
}
