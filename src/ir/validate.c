/* The graph's own rules, all faults collected. */
#include <stdio.h>
#include <stdlib.h>

#include "ir/graph.h"

#define DEPTH_MAX 64

typedef struct validator {
    const zc_graph *g;
    const char *after; /* the pass that made the graph; NULL: somebody wrote it */
    zc_diag *diag;
    bool *live;      /* by value: defined, and its block has not ended */
    bool *defined;   /* by value: defined once already */
    bool *node_seen; /* by node */
    size_t faults;
} validator;

static zc_status verdict(const validator *v)
{
    return v->after ? ZC_ERR_INTERNAL : ZC_ERR_MODEL;
}

static void fault(validator *v, const char *subject, const char *what, const char *name)
{
    v->faults++;
    zc_fail(v->diag, verdict(v), subject, "%s%s%s%s" ZC_NAME, v->after ? "after " : "",
            v->after ? v->after : "", v->after ? ": " : "", what, name);
}

static void check_count(validator *v, const zc_node *node, const char *what, int got, int least,
                        int most)
{
    char text[128], range[32] = "";
    if (got >= least && got <= most) return;
    if (least < most) snprintf(range, sizeof range, " to %d", most);
    snprintf(text, sizeof text, "wrong number of %s (got %d, need %d%s) of ", what, got, least,
             range);
    fault(v, node->name, text, zc_op_get(node->op)->name);
}

static bool id_ok(const validator *v, zc_vid id)
{
    return id < v->g->values.len;
}

static void define(validator *v, const char *subject, zc_vid id, zc_value_kind kind)
{
    if (!id) return;
    if (!id_ok(v, id)) {
        fault(v, subject, "defines a value that does not exist", "");
        return;
    }
    const zc_value *value = zc_val(v->g, id);
    if (value->kind != kind) fault(v, subject, "defines a value of another kind: ", value->name);
    if (v->defined[id]) fault(v, subject, "defines a value for the second time: ", value->name);
    if (value->type.dtype == ZC_NONE)
        fault(v, subject, "has a result without a type: ", value->name);
    v->defined[id] = v->live[id] = true;
}

static void use(validator *v, const char *subject, zc_vid id)
{
    if (!id) return;
    if (!id_ok(v, id)) {
        fault(v, subject, "uses a value that does not exist", "");
        return;
    }
    const zc_value *value = zc_val(v->g, id);
    if (value->kind == ZC_VALUE_CONST) {
        if (!value->data) fault(v, subject, "uses a constant without data: ", value->name);
    } else if (!v->live[id]) {
        fault(v, subject, "uses a value before its definition or outside its block: ", value->name);
    }
}

static void walk_block(validator *v, const zc_block *b, const char *subject, unsigned depth);

static void walk_node(validator *v, zc_nid n, unsigned depth)
{
    if (n == 0 || n >= v->g->nodes.len || v->node_seen[n]) {
        fault(v, NULL, "a block lists a node that does not exist, or one twice", "");
        return;
    }
    v->node_seen[n] = true;
    const zc_node *node = zc_node_at(v->g, n);
    const zc_op_info *info = zc_op_get(node->op);
    if (node->op == ZC_OP_NONE) {
        fault(v, node->name, "a removed node is still listed", "");
        return;
    }
    check_count(v, node, "inputs", node->nin, info->min_in, zc_op_max_in(info, node->attrs));
    check_count(v, node, "outputs", node->nout, info->min_out, info->max_out);
    for (int i = 0; i < node->nin; i++) use(v, node->name, node->in[i]);
    for (int r = 0; r < node->nregions; r++) walk_block(v, node->regions[r], node->name, depth + 1);
    for (int i = 0; i < node->nout; i++) {
        define(v, node->name, node->out[i], ZC_VALUE_NODE);
        if (node->out[i] && id_ok(v, node->out[i]) && zc_val(v->g, node->out[i])->producer != n)
            fault(v, node->name,
                  "is not its result's producer: ", zc_val(v->g, node->out[i])->name);
    }
}

static void end_value(validator *v, zc_vid id)
{
    if (id && id_ok(v, id)) v->live[id] = false;
}

static void walk_block(validator *v, const zc_block *b, const char *subject, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        fault(v, subject, "regions are nested too deep", "");
        return;
    }
    for (size_t i = 0; i < b->params.len; i++)
        define(v, subject, b->params.data[i], ZC_VALUE_PARAM);
    for (size_t i = 0; i < b->nodes.len; i++) walk_node(v, b->nodes.data[i], depth);
    for (size_t i = 0; i < b->outputs.len; i++) {
        if (!b->outputs.data[i]) fault(v, subject, "an output is absent", "");
        use(v, subject, b->outputs.data[i]);
    }
    if (depth == 0) return;
    for (size_t i = 0; i < b->params.len; i++) end_value(v, b->params.data[i]);
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *node = zc_node_at(v->g, b->nodes.data[i]);
        for (int o = 0; o < node->nout; o++) end_value(v, node->out[o]);
    }
}

zc_status zc_graph_validate(const zc_graph *g, const char *after, zc_diag *diag)
{
    validator v = {.g = g, .after = after, .diag = diag};
    v.live = zc_calloc(g->values.len, sizeof *v.live);
    v.defined = zc_calloc(g->values.len, sizeof *v.defined);
    v.node_seen = zc_calloc(g->nodes.len, sizeof *v.node_seen);
    bool ok = v.live && v.defined && v.node_seen;
    if (ok) walk_block(&v, &g->top, g->name, 0);
    free(v.live);
    free(v.defined);
    free(v.node_seen);
    if (!ok) return zc_fail_nomem(diag, "validation", g->values.len);
    return v.faults ? verdict(&v) : ZC_OK;
}
