/* Pointwise grouping: chains and diamonds of pointwise operations of one shape become one Pointwise
 * node, whose expression is the composition of theirs. What is saved is the bytes of every
 * intermediate. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/expr.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

#define GROUP_NODES_MAX  32
#define GROUP_INPUTS_MAX 16
#define GROUP_TEXT_MAX   4096

typedef struct group {
    zc_nid nodes[GROUP_NODES_MAX]; /* the root first */
    int count;
    zc_vid inputs[GROUP_INPUTS_MAX];
    int ninputs;
} group;

typedef struct fusion {
    zc_graph *g;
    uint32_t *uses;
    uint32_t *inner;  /* by value: uses by the current group's nodes; 0 outside of try_grow */
    uint32_t *order;  /* by node: position in its block */
    zc_block **block; /* by node */
    size_t changes;
    zc_diag *diag;
} fusion;

/* ---- what may join ---- */

static bool is_expr_dtype(zc_dtype d)
{
    return zc_dtype_bits(d) >= 8 && zc_dtype_class(d) != ZC_CLASS_COMPLEX &&
           (d < ZC_F8E4M3FN || d == ZC_BF16);
}

static bool is_pointwise(const zc_graph *g, const zc_node *n)
{
    bool has_text = n->op == ZC_OP_Cast || (zc_op_get(n->op)->flags & ZC_OPF_POINTWISE);
    if (!has_text || n->nout != 1 || !n->out[0]) return false;
    const zc_type *out = &zc_val(g, n->out[0])->type;
    if (out->rank < 0 || !is_expr_dtype(out->dtype)) return false;
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i] || !is_expr_dtype(zc_val(g, n->in[i])->type.dtype)) return false;
    return true;
}

static bool in_group(const group *gr, zc_nid n)
{
    for (int i = 0; i < gr->count; i++)
        if (gr->nodes[i] == n) return true;
    return false;
}

static bool add_input(group *gr, zc_vid v)
{
    for (int i = 0; i < gr->ninputs; i++)
        if (gr->inputs[i] == v) return true;
    if (gr->ninputs == GROUP_INPUTS_MAX) return false;
    gr->inputs[gr->ninputs++] = v;
    return true;
}

/* The values that the group's nodes read from outside; false when too many. */
static bool collect_inputs(const fusion *f, group *gr)
{
    gr->ninputs = 0;
    for (int i = gr->count - 1; i >= 0; i--) {
        const zc_node *n = zc_node_at(f->g, gr->nodes[i]);
        for (int j = 0; j < n->nin; j++) {
            zc_nid p = zc_producer(f->g, n->in[j]);
            if (!(p && in_group(gr, p)) && !add_input(gr, n->in[j])) return false;
        }
    }
    return true;
}

static void count_inner(fusion *f, zc_nid n, int by)
{
    const zc_node *node = zc_node_at(f->g, n);
    for (int j = 0; j < node->nin; j++) f->inner[node->in[j]] += (uint32_t)by;
}

/* May p join? It computes the root's shape, and nobody outside wants its result. */
static bool can_join(const fusion *f, const group *gr, zc_nid p)
{
    const zc_node *node = zc_node_at(f->g, p);
    const zc_node *root = zc_node_at(f->g, gr->nodes[0]);
    if (gr->count == GROUP_NODES_MAX || in_group(gr, p) || !is_pointwise(f->g, node)) return false;
    if (f->block[p] != f->block[gr->nodes[0]]) return false;
    zc_vid v = node->out[0];
    return f->inner[v] == f->uses[v] &&
           zc_same_shape(&zc_val(f->g, v)->type, &zc_val(f->g, root->out[0])->type);
}

static bool try_join(fusion *f, group *gr, zc_nid p)
{
    if (!can_join(f, gr, p)) return false;
    gr->nodes[gr->count++] = p;
    count_inner(f, p, 1);
    if (collect_inputs(f, gr)) return true;
    count_inner(f, p, -1);
    gr->count--;
    return false;
}

/* Adds producers until none can join. */
static void grow(fusion *f, group *gr)
{
    count_inner(f, gr->nodes[0], 1);
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < gr->count; i++) {
            const zc_node *n = zc_node_at(f->g, gr->nodes[i]);
            for (int j = 0; j < n->nin; j++) {
                zc_nid p = zc_producer(f->g, n->in[j]);
                if (p && try_join(f, gr, p)) grown = true;
            }
        }
    }
    for (int i = 0; i < gr->count; i++) count_inner(f, gr->nodes[i], -1);
}

/* ---- the composed expression ---- */

static int by_order(const fusion *f, zc_nid a, zc_nid b)
{
    return f->order[a] < f->order[b] ? -1 : f->order[a] > f->order[b];
}

static void sort_nodes(const fusion *f, group *gr)
{
    for (int i = 1; i < gr->count; i++)
        for (int j = i; j > 0 && by_order(f, gr->nodes[j], gr->nodes[j - 1]) < 0; j--) {
            zc_nid t = gr->nodes[j];
            gr->nodes[j] = gr->nodes[j - 1];
            gr->nodes[j - 1] = t;
        }
}

/* The name that value v has in the group's expression. */
static void put_value(const fusion *f, const group *gr, zc_vid v, zc_buf *out)
{
    for (int i = 0; i < gr->ninputs; i++) {
        if (gr->inputs[i] != v) continue;
        zc_buf_printf(out, "x%d", i);
        return;
    }
    for (int i = 0; i < gr->count; i++)
        if (zc_node_at(f->g, gr->nodes[i])->out[0] == v) zc_buf_printf(out, "t%d", i);
}

/* Which input a name means: x y z w, x0 x1 ...; -1: none. */
static int input_index(const char *name, size_t len)
{
    static const char letters[] = "xyzw";
    if (len == 1 && strchr(letters, name[0])) return (int)(strchr(letters, name[0]) - letters);
    if (len < 2 || len > 3 || name[0] != 'x') return -1;
    int i = 0;
    for (size_t k = 1; k < len; k++) {
        if (!isdigit((unsigned char)name[k])) return -1;
        i = i * 10 + (name[k] - '0');
    }
    return i;
}

static bool put_attr(const zc_node *n, const char *name, size_t len, zc_buf *out)
{
    const zc_op_info *info = zc_op_get(n->op);
    int i = zc_attr_find(info, name, len);
    if (i < 0) return false;
    const void *at = zc_attr_at(info, n->attrs, i);
    if (info->fields[i].kind == ZC_ATTR_INT)
        zc_buf_printf(out, "(%lld)", (long long)*(const int64_t *)at);
    else if (info->fields[i].kind == ZC_ATTR_FLOAT)
        zc_buf_printf(out, "(%.9g)", (double)*(const float *)at);
    else
        return false;
    return true;
}

/* Writes one identifier of node k's own text as the group's text needs it. */
static void put_name(const fusion *f, const group *gr, int k, const char *name, size_t len,
                     bool is_call, zc_buf *out)
{
    const zc_node *n = zc_node_at(f->g, gr->nodes[k]);
    int input = input_index(name, len);
    static const char *const words[] = {"inf", "nan", "true", "false"};
    bool word = is_call;
    for (size_t i = 0; i < ZC_COUNTOF(words); i++)
        word |= strlen(words[i]) == len && memcmp(words[i], name, len) == 0;
    if (word)
        zc_buf_append(out, name, len);
    else if (input >= 0 && input < n->nin)
        put_value(f, gr, n->in[input], out);
    else if (!put_attr(n, name, len, out))
        zc_buf_printf(out, "t%d_%.*s", k, (int)len, name); /* bound by the node's own text */
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Node k's text with its names replaced. Numbers such as 1e-3 are copied whole. */
static void put_text(const fusion *f, const group *gr, int k, const char *text, zc_buf *out)
{
    while (*text) {
        size_t len = 0;
        if (isdigit((unsigned char)*text) || *text == '.') {
            while (is_name_char(text[len]) || text[len] == '.' ||
                   ((text[len] == '-' || text[len] == '+') &&
                    (text[len - 1] == 'e' || text[len - 1] == 'E')))
                len++;
            zc_buf_append(out, text, len);
        } else if (is_name_char(*text)) {
            while (is_name_char(text[len])) len++;
            put_name(f, gr, k, text, len, text[len] == '(', out);
        } else {
            len = 1;
            zc_buf_append(out, text, 1);
        }
        text += len;
    }
}

static void put_node(const fusion *f, const group *gr, int k, zc_buf *out)
{
    const zc_node *n = zc_node_at(f->g, gr->nodes[k]);
    bool is_root = k == gr->count - 1;
    char cast[32];
    const char *text = zc_op_get(n->op)->expr;
    if (n->op == ZC_OP_Pointwise) text = ((const zc_attrs_Pointwise *)n->attrs)->expr;
    if (n->op == ZC_OP_Cast) {
        snprintf(cast, sizeof cast, "%s(x)", zc_dtype_name(zc_val(f->g, n->out[0])->type.dtype));
        text = cast;
    }
    const char *last = strrchr(text, ';');
    if (last) {
        zc_buf own = {0};
        zc_buf_append(&own, text, (size_t)(last + 1 - text));
        if (!own.failed) put_text(f, gr, k, own.data, out);
        out->failed |= own.failed;
        zc_buf_fini(&own);
        zc_buf_puts(out, " ");
        text = last + 1;
    }
    while (*text == ' ') text++;
    if (!is_root) zc_buf_printf(out, "t%d = ", k);
    put_text(f, gr, k, text, out);
    if (!is_root) zc_buf_puts(out, "; ");
}

/* The engine's own limits decide whether the composition is usable. */
static bool parses(const fusion *f, const group *gr, const char *text, zc_dtype out)
{
    zc_dtype dtypes[GROUP_INPUTS_MAX];
    for (int i = 0; i < gr->ninputs; i++) dtypes[i] = zc_val(f->g, gr->inputs[i])->type.dtype;
    zc_expr *e = zc_calloc(1, sizeof *e);
    bool ok = e && zc_expr_parse(text, dtypes, gr->ninputs, NULL, 0, e, NULL, NULL) == ZC_OK &&
              e->nodes[e->count - 1].dtype == out;
    free(e);
    return ok;
}

/* ---- replacing ---- */

static bool replace(fusion *f, group *gr, const char *text)
{
    zc_graph *g = f->g;
    zc_nid root = gr->nodes[gr->count - 1];
    zc_nid made =
        zc_graph_node(g, NULL, ZC_OP_Pointwise, zc_node_at(g, root)->name, gr->ninputs, 1);
    const char *expr = zc_arena_strdup(&g->arena, text);
    if (!made || !expr) return false;
    zc_attrs_Pointwise *a = zc_node_at(g, made)->attrs;
    a->expr = expr;
    a->set = UINT64_C(1) << ZC_AT_Pointwise_expr;
    for (int i = 0; i < gr->ninputs; i++) zc_node_at(g, made)->in[i] = gr->inputs[i];
    for (int i = 0; i < gr->count; i++)
        if (!zc_graph_inherit(g, made, gr->nodes[i])) return false;
    zc_vid out = zc_node_at(g, root)->out[0];
    zc_node_at(g, made)->out[0] = out;
    zc_val(g, out)->producer =
        root; /* the root's slot in the block now holds the new node's content */
    zc_node content = *zc_node_at(g, made);
    for (int i = 0; i < gr->count - 1; i++) zc_graph_remove(g, gr->nodes[i]);
    *zc_node_at(g, root) = content;
    zc_graph_remove(g, made);
    return true;
}

static zc_status fuse_at(fusion *f, zc_nid root)
{
    group gr = {.nodes = {root}, .count = 1};
    if (!collect_inputs(f, &gr)) return ZC_OK;
    grow(f, &gr);
    if (gr.count == 1 || !collect_inputs(f, &gr)) return ZC_OK;
    zc_dtype out = zc_val(f->g, zc_node_at(f->g, root)->out[0])->type.dtype;
    sort_nodes(f, &gr);
    zc_buf text = {0};
    for (int k = 0; k < gr.count; k++) put_node(f, &gr, k, &text);
    bool ok = !text.failed;
    if (ok && text.len <= GROUP_TEXT_MAX && parses(f, &gr, text.data, out)) {
        ok = replace(f, &gr, text.data);
        f->changes += (size_t)gr.count - 1;
    }
    zc_buf_fini(&text);
    return ok ? ZC_OK : zc_fail_nomem(f->diag, "fusion", 0);
}

/* From the last node backwards, so that a group is grown from its final result. */
static zc_status fuse_block(fusion *f, zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        f->order[b->nodes.data[i]] = (uint32_t)i;
        f->block[b->nodes.data[i]] = b;
    }
    for (size_t i = b->nodes.len; i-- > 0;) {
        zc_nid n = b->nodes.data[i];
        const zc_node *node = zc_node_at(f->g, n);
        if (node->op != ZC_OP_NONE && is_pointwise(f->g, node)) ZC_TRY(fuse_at(f, n));
        for (int r = 0; r < zc_node_at(f->g, n)->nregions; r++)
            ZC_TRY(fuse_block(f, zc_node_at(f->g, n)->regions[r]));
    }
    return ZC_OK;
}

zc_status zc_pass_opt_pointwise(zc_graph *g, size_t *changes, zc_diag *diag)
{
    fusion f = {.g = g, .diag = diag, .uses = zc_graph_uses(g)};
    f.inner = zc_calloc(g->values.len, sizeof *f.inner);
    f.order = zc_calloc(g->nodes.len, sizeof *f.order);
    f.block = zc_calloc(g->nodes.len, sizeof *f.block);
    zc_status status = f.uses && f.inner && f.order && f.block ? fuse_block(&f, &g->top)
                                                               : zc_fail_nomem(diag, "fusion", 0);
    *changes += f.changes;
    free(f.uses);
    free(f.inner);
    free(f.order);
    free(f.block);
    return status;
}
