#include "rules/index.h"

#include <stdlib.h>
#include <string.h>

/* Distance of neighbours at first; halved by each insertion between them. */
#define ORDER_GAP ((uint64_t)1 << 24)

void zc_rl_index_fini(zc_rl_index *x)
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

bool zc_rl_index_grow(zc_rl_index *x)
{
    size_t values = x->g->values.len, nodes = x->g->nodes.len;
    if (x->uses.len < values && !GROW(&x->uses, values)) return false;
    if (x->users.len < values && !GROW(&x->users, values)) return false;
    return x->places.len >= nodes || GROW(&x->places, nodes);
}

static bool add_edge(zc_rl_index *x, zc_vid v, zc_nid n)
{
    zc_rl_edge e = {.node = n, .next = x->users.data[v]};
    if (x->edges.len >= UINT32_MAX || !ZC_VEC_PUSH(&x->edges, e)) return false;
    x->users.data[v] = (uint32_t)(x->edges.len - 1);
    return true;
}

bool zc_rl_index_add(zc_rl_index *x, zc_nid n)
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

static void renumber(zc_rl_index *x, uint32_t block)
{
    uint64_t at = 0;
    for (zc_nid n = x->blocks.data[block].head; n; n = zc_rl_place_of(x, n)->next)
        zc_rl_place_of(x, n)->order = at += ORDER_GAP;
}

void zc_rl_index_link(zc_rl_index *x, zc_nid n, uint32_t block, zc_nid at)
{
    zc_rl_block *b = &x->blocks.data[block];
    zc_rl_place *p = zc_rl_place_of(x, n);
    zc_nid before = at ? zc_rl_place_of(x, at)->prev : b->tail;
    uint64_t lo = before ? zc_rl_place_of(x, before)->order : 0;
    uint64_t hi = at ? zc_rl_place_of(x, at)->order : lo + 2 * ORDER_GAP;
    *p = (zc_rl_place){.block = block, .prev = before, .next = at, .order = lo + (hi - lo) / 2};
    *(before ? &zc_rl_place_of(x, before)->next : &b->head) = n;
    *(at ? &zc_rl_place_of(x, at)->prev : &b->tail) = n;
    if (hi - lo < 2) renumber(x, block);
}

void zc_rl_index_remove(zc_rl_index *x, zc_nid n)
{
    zc_rl_place *p = zc_rl_place_of(x, n);
    zc_rl_block *b = &x->blocks.data[p->block];
    const zc_node *node = zc_node_at(x->g, n);
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]) x->uses.data[node->in[i]]--;
    *(p->prev ? &zc_rl_place_of(x, p->prev)->next : &b->head) = p->next;
    *(p->next ? &zc_rl_place_of(x, p->next)->prev : &b->tail) = p->prev;
    zc_graph_remove(x->g, n);
}

bool zc_rl_index_replace(zc_rl_index *x, zc_vid from, zc_vid to)
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

zc_nid zc_rl_index_within(const zc_rl_index *x, zc_nid n, uint32_t block)
{
    while (n && zc_rl_place_of(x, n)->block != block)
        n = x->blocks.data[zc_rl_place_of(x, n)->block].owner;
    return n;
}

/* ---- building ---- */

static int by_address(const void *a, const void *b)
{
    const zc_rl_block *p = a, *q = b;
    return (uintptr_t)p->b < (uintptr_t)q->b ? -1 : (uintptr_t)p->b > (uintptr_t)q->b;
}

/* blocks[1..] are sorted by address. */
static zc_rl_block *block_of(const zc_rl_index *x, zc_block *b)
{
    zc_rl_block key = {.b = b};
    if (x->blocks.len < 2) return NULL;
    return bsearch(&key, x->blocks.data + 1, x->blocks.len - 1, sizeof key, by_address);
}

static bool collect_blocks(zc_rl_index *x)
{
    zc_graph *g = x->g;
    if (!ZC_VEC_PUSH(&x->blocks, ((zc_rl_block){.b = &g->top}))) return false;
    for (size_t i = 0; i < g->blocks.len; i++)
        if (!ZC_VEC_PUSH(&x->blocks, ((zc_rl_block){.b = g->blocks.data[i]}))) return false;
    if (g->blocks.len) qsort(x->blocks.data + 1, g->blocks.len, sizeof *x->blocks.data, by_address);
    return true;
}

static bool add_block(zc_rl_index *x, uint32_t id)
{
    const zc_block *b = x->blocks.data[id].b;
    uint64_t order = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        const zc_node *node = zc_node_at(x->g, n);
        zc_rl_block *block = &x->blocks.data[id];
        if (node->op == ZC_OP_NONE) continue;
        *zc_rl_place_of(x, n) =
            (zc_rl_place){.block = id, .prev = block->tail, .order = order += ORDER_GAP};
        *(block->tail ? &zc_rl_place_of(x, block->tail)->next : &block->head) = n;
        block->tail = n;
        for (int r = 0; r < node->nregions; r++) {
            zc_rl_block *inner = block_of(x, node->regions[r]);
            if (inner) inner->owner = n;
        }
        if (!zc_rl_index_add(x, n)) return false;
    }
    for (size_t i = 0; i < b->outputs.len; i++) x->uses.data[b->outputs.data[i]]++;
    return true;
}

bool zc_rl_index_init(zc_rl_index *x, zc_graph *g)
{
    *x = (zc_rl_index){.g = g};
    bool ok = ZC_VEC_PUSH(&x->edges, ((zc_rl_edge){0})) && zc_rl_index_grow(x) && collect_blocks(x);
    for (uint32_t i = 0; ok && i < x->blocks.len; i++) ok = add_block(x, i);
    if (!ok) zc_rl_index_fini(x);
    return ok;
}

bool zc_rl_index_finish(zc_rl_index *x)
{
    for (size_t i = 0; i < x->blocks.len; i++) {
        zc_block *b = x->blocks.data[i].b;
        b->nodes.len = 0;
        for (zc_nid n = x->blocks.data[i].head; n; n = zc_rl_place_of(x, n)->next)
            if (!ZC_VEC_PUSH(&b->nodes, n)) return false;
    }
    return true;
}
