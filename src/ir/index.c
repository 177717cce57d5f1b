#include "ir/index.h"

#include <stdlib.h>
#include <string.h>

/* Distance of neighbours at first; halved by each insertion between them. */
#define ORDER_GAP ((uint64_t)1 << 24)

void zc_index_fini(zc_index *x)
{
    ZC_VEC_FINI(&x->uses);
    ZC_VEC_FINI(&x->users);
    ZC_VEC_FINI(&x->edges);
    ZC_VEC_FINI(&x->places);
    ZC_VEC_FINI(&x->blocks);
}

/* Lengthens with zeros. */
#define GROW(v, need)                                                                              \
    (zc_vec_reserve((void **)&(v)->data, &(v)->cap, (need), sizeof *(v)->data) &&                  \
     (memset((v)->data + (v)->len, 0, ((need) - (v)->len) * sizeof *(v)->data), (v)->len = (need), \
      true))

bool zc_index_grow(zc_index *x)
{
    size_t values = x->g->values.len, nodes = x->g->nodes.len;
    if (x->uses.len < values && !GROW(&x->uses, values)) return false;
    if (x->users.len < values && !GROW(&x->users, values)) return false;
    return x->places.len >= nodes || GROW(&x->places, nodes);
}

static bool add_edge(zc_index *x, zc_vid v, zc_nid n)
{
    zc_use e = {.node = n, .next = x->users.data[v]};
    if (x->edges.len >= UINT32_MAX || !ZC_VEC_PUSH(&x->edges, e)) return false;
    x->users.data[v] = (uint32_t)(x->edges.len - 1);
    return true;
}

bool zc_index_add(zc_index *x, zc_nid n)
{
    const zc_node *node = zc_node_at(x->g, n);
    for (int i = 0; i < node->nin; i++) {
        if (!node->in[i]) continue;
        x->uses.data[node->in[i]]++;
        if (!add_edge(x, node->in[i], n)) return false;
    }
    return true;
}

/* ---- order ---- */

static void renumber(zc_index *x, uint32_t block)
{
    uint64_t at = 0;
    for (zc_nid n = x->blocks.data[block].head; n; n = zc_index_place(x, n)->next)
        zc_index_place(x, n)->order = at += ORDER_GAP;
}

void zc_index_link(zc_index *x, zc_nid n, uint32_t block, zc_nid at)
{
    zc_node_list *b = &x->blocks.data[block];
    zc_node_place *p = zc_index_place(x, n);
    zc_nid before = at ? zc_index_place(x, at)->prev : b->tail;
    uint64_t lo = before ? zc_index_place(x, before)->order : 0;
    uint64_t hi = at ? zc_index_place(x, at)->order : lo + 2 * ORDER_GAP;
    *p = (zc_node_place){.block = block, .prev = before, .next = at, .order = lo + (hi - lo) / 2};
    *(before ? &zc_index_place(x, before)->next : &b->head) = n;
    *(at ? &zc_index_place(x, at)->prev : &b->tail) = n;
    if (hi - lo < 2) renumber(x, block);
}

static void drop_uses(zc_index *x, zc_nid n)
{
    const zc_node *node = zc_node_at(x->g, n);
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]) x->uses.data[node->in[i]]--;
}

void zc_index_remove(zc_index *x, zc_nid n)
{
    zc_node_place *p = zc_index_place(x, n);
    zc_node_list *b = &x->blocks.data[p->block];
    drop_uses(x, n);
    *(p->prev ? &zc_index_place(x, p->prev)->next : &b->head) = p->next;
    *(p->next ? &zc_index_place(x, p->next)->prev : &b->tail) = p->prev;
    zc_graph_remove(x->g, n);
}

bool zc_index_take_place(zc_index *x, zc_nid made, zc_nid at)
{
    zc_graph *g = x->g;
    zc_node content = *zc_node_at(g, made);
    drop_uses(x, at);
    for (int i = 0; i < content.nout; i++)
        if (content.out[i]) zc_val(g, content.out[i])->producer = at;
    *zc_node_at(g, at) = content;
    zc_graph_remove(g, made);
    return zc_index_grow(x) && zc_index_add(x, at);
}

bool zc_index_replace(zc_index *x, zc_vid from, zc_vid to)
{
    for (uint32_t e = x->users.data[from]; e; e = x->edges.data[e].next) {
        zc_nid n = x->edges.data[e].node;
        const zc_node *node = zc_node_at(x->g, n);
        bool any = false;
        for (int i = 0; i < node->nin; i++) {
            if (node->in[i] != from) continue;
            node->in[i] = to;
            any = true;
        }
        if (any && !add_edge(x, to, n)) return false;
    }
    x->uses.data[to] += x->uses.data[from];
    x->uses.data[from] = 0;
    return true;
}

zc_nid zc_index_within(const zc_index *x, zc_nid n, uint32_t block)
{
    while (n && zc_index_place(x, n)->block != block)
        n = x->blocks.data[zc_index_place(x, n)->block].owner;
    return n;
}

/* ---- building ---- */

static int by_address(const void *a, const void *b)
{
    const zc_node_list *p = a, *q = b;
    return (uintptr_t)p->b < (uintptr_t)q->b ? -1 : (uintptr_t)p->b > (uintptr_t)q->b;
}

/* blocks[1..] are sorted by address. */
static zc_node_list *block_of(const zc_index *x, zc_block *b)
{
    zc_node_list key = {.b = b};
    if (x->blocks.len < 2) return NULL;
    return bsearch(&key, x->blocks.data + 1, x->blocks.len - 1, sizeof key, by_address);
}

static bool collect_blocks(zc_index *x)
{
    zc_graph *g = x->g;
    if (!ZC_VEC_PUSH(&x->blocks, ((zc_node_list){.b = &g->top}))) return false;
    for (size_t i = 0; i < g->blocks.len; i++)
        if (!ZC_VEC_PUSH(&x->blocks, ((zc_node_list){.b = g->blocks.data[i]}))) return false;
    if (g->blocks.len) qsort(x->blocks.data + 1, g->blocks.len, sizeof *x->blocks.data, by_address);
    return true;
}

static bool add_block(zc_index *x, uint32_t id)
{
    const zc_block *b = x->blocks.data[id].b;
    uint64_t order = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        const zc_node *node = zc_node_at(x->g, n);
        zc_node_list *block = &x->blocks.data[id];
        if (node->op == ZC_OP_NONE) continue;
        *zc_index_place(x, n) =
            (zc_node_place){.block = id, .prev = block->tail, .order = order += ORDER_GAP};
        *(block->tail ? &zc_index_place(x, block->tail)->next : &block->head) = n;
        block->tail = n;
        for (int r = 0; r < node->nregions; r++) {
            zc_node_list *inner = block_of(x, node->regions[r]);
            if (inner) inner->owner = n;
        }
        if (!zc_index_add(x, n)) return false;
    }
    for (size_t i = 0; i < b->outputs.len; i++) x->uses.data[b->outputs.data[i]]++;
    return true;
}

bool zc_index_init(zc_index *x, zc_graph *g)
{
    *x = (zc_index){.g = g};
    bool ok = ZC_VEC_PUSH(&x->edges, ((zc_use){0})) && zc_index_grow(x) && collect_blocks(x);
    for (uint32_t i = 0; ok && i < x->blocks.len; i++) ok = add_block(x, i);
    if (!ok) zc_index_fini(x);
    return ok;
}

bool zc_index_finish(zc_index *x)
{
    for (size_t i = 0; i < x->blocks.len; i++) {
        zc_block *b = x->blocks.data[i].b;
        b->nodes.len = 0;
        for (zc_nid n = x->blocks.data[i].head; n; n = zc_index_place(x, n)->next)
            if (!ZC_VEC_PUSH(&b->nodes, n)) return false;
    }
    return true;
}
