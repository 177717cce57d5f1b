#include "passes/rewrite.h"

#include <stdlib.h>

bool zc_same_shape(const zc_type *a, const zc_type *b)
{
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!zc_dim_eq(a->dims[i], b->dims[i])) return false;
    return true;
}

bool zc_same_type(const zc_type *a, const zc_type *b)
{
    return a->dtype == b->dtype && zc_same_shape(a, b);
}

bool zc_is_splat(const zc_graph *g, zc_vid v, double x)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    if (!t || !t->data || zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) return false;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (zc_load_f64(t->dtype, t->data, i) != x) return false;
    return n > 0;
}

zc_nid zc_producer(const zc_graph *g, zc_vid v)
{
    return v && zc_val(g, v)->kind == ZC_VALUE_NODE ? zc_val(g, v)->producer : 0;
}

static void find_places(const zc_graph *g, const zc_block *b, zc_places *p)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        p->block[n] = b;
        p->order[n] = (uint32_t)i;
        for (int r = 0; r < zc_node_at(g, n)->nregions; r++)
            find_places(g, zc_node_at(g, n)->regions[r], p);
    }
}

bool zc_places_of(const zc_graph *g, zc_places *out)
{
    out->block = zc_calloc(g->nodes.len, sizeof *out->block);
    out->order = zc_calloc(g->nodes.len, sizeof *out->order);
    if (!out->block || !out->order) return false;
    find_places(g, &g->top, out);
    return true;
}

void zc_places_fini(zc_places *p)
{
    free(p->block);
    free(p->order);
}

void zc_take_place(zc_graph *g, zc_nid made, zc_nid at)
{
    zc_node content = *zc_node_at(g, made);
    for (int i = 0; i < content.nout; i++)
        if (content.out[i]) zc_val(g, content.out[i])->producer = at;
    *zc_node_at(g, at) = content;
    zc_graph_remove(g, made);
}

zc_status zc_each_node(zc_graph *g, zc_block *b, bool (*fn)(zc_graph *g, zc_nid n, void *user),
                       void *user, zc_diag *diag)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(g, n);
        if (node->op == ZC_OP_NONE) continue;
        for (int r = 0; r < node->nregions; r++)
            ZC_TRY(zc_each_node(g, node->regions[r], fn, user, diag));
        for (int j = 0; j < node->nin; j++) node->in[j] = zc_graph_resolved(g, node->in[j]);
        if (!fn(g, n, user)) return zc_fail_nomem(diag, "rewriting", 0);
    }
    return ZC_OK;
}
