/* Common subexpressions, and equal small constants. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

/* Constants up to this size are compared by their bytes. */
#define CONST_BYTES_MAX ((size_t)1 << 12)

typedef struct table {
    uint64_t *hashes;
    uint32_t *ids; /* 0: free */
    size_t cap;
} table;

static bool table_init(table *t, size_t entries)
{
    t->cap = 64;
    while (t->cap < entries * 2) t->cap *= 2;
    t->hashes = zc_calloc(t->cap, sizeof *t->hashes);
    t->ids = zc_calloc(t->cap, sizeof *t->ids);
    return t->hashes && t->ids;
}

static void table_fini(table *t)
{
    free(t->hashes);
    free(t->ids);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

/* ---- constants ---- */

static size_t small_bytes(const zc_tensor *t)
{
    size_t bytes;
    if (!t || !zc_tensor_bytes(t, &bytes) || bytes > CONST_BYTES_MAX || (bytes && !t->data))
        return SIZE_MAX;
    return bytes;
}

static uint64_t const_hash(const zc_tensor *t, size_t bytes)
{
    uint64_t h = mix((uint64_t)t->dtype, (uint64_t)t->rank);
    for (int d = 0; d < t->rank; d++) h = mix(h, (uint64_t)t->dims[d]);
    for (size_t i = 0; i < bytes; i++) h = mix(h, ((const unsigned char *)t->data)[i]);
    return h;
}

static bool const_equal(const zc_tensor *a, const zc_tensor *b, size_t bytes)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 &&
           (bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
}

static zc_status merge_constants(zc_graph *g, size_t *changes, zc_diag *diag)
{
    table t = {0};
    bool ok = table_init(&t, g->values.len);
    for (zc_vid v = 1; ok && v < g->values.len; v++) {
        const zc_value *value = zc_val(g, v);
        if (value->kind != ZC_VALUE_CONST || value->forward) continue;
        size_t bytes = small_bytes(value->data);
        if (bytes == SIZE_MAX) continue;
        uint64_t h = const_hash(value->data, bytes);
        size_t i = h & (t.cap - 1);
        while (t.ids[i] && (t.hashes[i] != h || small_bytes(zc_val(g, t.ids[i])->data) != bytes ||
                            !const_equal(zc_val(g, t.ids[i])->data, value->data, bytes)))
            i = (i + 1) & (t.cap - 1);
        if (t.ids[i]) {
            zc_graph_forward(g, v, t.ids[i]);
            ++*changes;
        } else {
            t.ids[i] = v;
            t.hashes[i] = h;
        }
    }
    table_fini(&t);
    if (!ok) return zc_fail_nomem(diag, "constants", 0);
    zc_graph_resolve(g);
    return ZC_OK;
}

/* ---- nodes ---- */

/* A merge of the whole graph. */
typedef struct merge {
    zc_graph *g;
    const void **attrs; /* by node */
    zc_arena arena;     /* of attributes that are not the node's own */
    size_t changes;
    zc_diag *diag;
} merge;

/* The node's attributes, or a copy with an axis that counts from the front. The node keeps its own:
 * rules ask for what the model says. NULL: no memory. */
static const void *front_axis(merge *m, const zc_node *n)
{
    const zc_op_info *info = zc_op_get(n->op);
    int field = zc_attr_find(info, "axis", strlen("axis"));
    if (field < 0 || info->fields[field].kind != ZC_ATTR_INT) return n->attrs;
    int rank = zc_val(m->g, n->in[0])->type.rank + (n->op == ZC_OP_OneHot);
    int64_t axis = *(const int64_t *)zc_attr_at(info, n->attrs, field);
    if (axis >= 0 || axis < -rank) return n->attrs;
    char *own = zc_arena_dup(&m->arena, n->attrs, 1, info->attrs_size);
    if (!own) return NULL;
    *(int64_t *)zc_attr_at(info, own, field) = axis + rank;
    zc_attr_mark(own, field);
    return own;
}

static uint64_t node_hash(const zc_node *n, const void *attrs)
{
    const zc_op_info *info = zc_op_get(n->op);
    uint64_t h = mix((uint64_t)n->op, (uint64_t)n->nout);
    h = mix(h, zc_attrs_hash(info, attrs));
    if (info->flags & ZC_OPF_COMMUTATIVE) return mix(h, (uint64_t)n->in[0] + n->in[1]);
    for (int i = 0; i < n->nin; i++) h = mix(h, n->in[i]);
    return h;
}

static bool same_inputs(const zc_node *a, const zc_node *b)
{
    if (a->nin != b->nin) return false;
    if (memcmp(a->in, b->in, (size_t)a->nin * sizeof *a->in) == 0) return true;
    return (zc_op_get(a->op)->flags & ZC_OPF_COMMUTATIVE) && a->in[0] == b->in[1] &&
           a->in[1] == b->in[0];
}

static bool node_equal(const merge *m, zc_nid x, zc_nid y)
{
    const zc_node *a = zc_node_at(m->g, x), *b = zc_node_at(m->g, y);
    return a->op == b->op && a->nout == b->nout && same_inputs(a, b) &&
           zc_attrs_equal(zc_op_get(a->op), m->attrs[x], m->attrs[y]);
}

static bool mergeable(const zc_node *n)
{
    return n->op != ZC_OP_NONE && n->nin > 0 &&
           !(zc_op_get(n->op)->flags & (ZC_OPF_RANDOM | ZC_OPF_REGIONS));
}

/* `keep` takes over `gone`'s results; one that keep did not want becomes wanted. */
static void merge_nodes(zc_graph *g, zc_nid keep, zc_nid gone)
{
    zc_node *k = zc_node_at(g, keep), *n = zc_node_at(g, gone);
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i]) continue;
        if (k->out[i]) {
            zc_graph_forward(g, n->out[i], k->out[i]);
        } else {
            k->out[i] = n->out[i];
            zc_val(g, k->out[i])->producer = keep;
        }
    }
    (void)zc_graph_inherit(g, keep, gone);
    zc_graph_remove(g, gone);
}

/* Within one block: a node of an inner block may not serve an outer one. */
static zc_status merge_block(merge *m, const zc_block *b)
{
    zc_graph *g = m->g;
    table t = {0};
    bool ok = table_init(&t, b->nodes.len);
    zc_status status = ZC_OK;
    for (size_t at = 0; ok && status == ZC_OK && at < b->nodes.len; at++) {
        zc_nid n = b->nodes.data[at];
        zc_node *node = zc_node_at(g, n);
        for (int i = 0; i < node->nin; i++) node->in[i] = zc_graph_resolved(g, node->in[i]);
        for (int r = 0; status == ZC_OK && r < node->nregions; r++)
            status = merge_block(m, node->regions[r]);
        if (!mergeable(node)) continue;
        m->attrs[n] = front_axis(m, node);
        ok = m->attrs[n] != NULL;
        if (!ok) break;
        uint64_t h = node_hash(node, m->attrs[n]);
        size_t i = h & (t.cap - 1);
        while (t.ids[i] && (t.hashes[i] != h || !node_equal(m, t.ids[i], n)))
            i = (i + 1) & (t.cap - 1);
        if (t.ids[i]) {
            merge_nodes(g, t.ids[i], n);
            m->changes++;
        } else {
            t.ids[i] = n;
            t.hashes[i] = h;
        }
    }
    table_fini(&t);
    return ok ? status : zc_fail_nomem(m->diag, "common subexpressions", b->nodes.len);
}

zc_status zc_pass_opt_cse(zc_pass *p)
{
    ZC_TRY(merge_constants(p->g, &p->changes, p->diag));
    merge m = {.g = p->g, .diag = p->diag, .attrs = zc_calloc(p->g->nodes.len, sizeof *m.attrs)};
    zc_arena_init(&m.arena, 0);
    zc_status status = m.attrs ? merge_block(&m, &p->g->top)
                               : zc_fail_nomem(p->diag, "common subexpressions", p->g->nodes.len);
    zc_arena_fini(&m.arena);
    free(m.attrs);
    p->changes += m.changes;
    return status;
}
