/* Parts of int4, fp4 and w8: their products and convolutions multiply by the numbers that codes
 * stand for. On Hopper products keep the codes, behind a DequantizeLinear of which opt_packed makes
 * a PackedLinear, once their type is f16. */
#include <stdlib.h>
#include <string.h>

#include "passes/mixed.h"
#include "passes/query.h"

static zc_status no_memory(const zc_parted *p)
{
    return zc_fail_nomem(p->diag, "precision", 0);
}

/* Is node n one whose weights are to be codes? */
static bool is_coded(const zc_parted *p, zc_nid n, zc_scalable *s)
{
    const uint32_t number = n < p->nodes ? p->part_of[n] : 0;
    return number && zc_precision_code_bits(p->mixed->types[number - 1]) &&
           zc_codable_of(p->g, zc_node_at(p->g, n), s);
}

static const zc_code_form *form_of(const zc_parted *p, zc_nid n)
{
    const uint32_t number = p->part_of[n] - 1;
    return &p->mixed->parts.data[number].forms[p->mixed->types[number]];
}

/* Trials need no more than the codes' numbers. 0: no memory. */
static zc_vid floats_of(const zc_parted *p, const zc_coded_product *c)
{
    const zc_precision_type type = p->mixed->types[p->part_of[c->node] - 1];
    const int form = zc_kept_form_of(type, &c->s);
    const zc_vid kept = zc_kept_use(p->mixed->kept, p->g, c->s.w, form);
    zc_tensor made;
    if (kept) return kept;
    if (!zc_code_floats(p->g, &c->s, form_of(p, c->node), &made)) return 0;
    return zc_kept_take(p->mixed->kept, p->g, c->s.w, form, &made);
}

static bool code_product(const zc_parted *p, zc_coded_product *c, zc_parts_coded *out)
{
    if (p->mixed->emulate)
        c->coded.floats = floats_of(p, c);
    else if (!zc_code_weights(p->g, &c->s, form_of(p, c->node), &c->coded))
        return false;
    return c->coded.floats && ZC_VEC_PUSH(out, *c);
}

zc_status zc_parts_code(const zc_parted *p, zc_parts_coded *out)
{
    const zc_block *b = &p->g->top;
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_coded_product made = {.node = b->nodes.data[i]};
        if (!is_coded(p, made.node, &made.s)) continue;
        if (!code_product(p, &made, out)) return no_memory(p);
        zc_node_at(p->g, made.node)->in[1] = made.coded.floats;
    }
    return ZC_OK;
}

/* What stayed f32, or has no codes, keeps the floats. */
static zc_status keep_codes(const zc_parted *p, const zc_coded_product *c, zc_block *b)
{
    zc_graph *g = p->g;
    const zc_vid x = zc_node_at(g, c->node)->in[0];
    if (!c->coded.codes || zc_val(g, x)->type.dtype != ZC_F16) return ZC_OK;
    const zc_nid made = zc_dequantised_codes(g, &c->s, form_of(p, c->node), &c->coded);
    if (!made || !ZC_VEC_PUSH(&b->nodes, made)) return no_memory(p);
    zc_node_at(g, c->node)->in[1] = zc_node_at(g, made)->out[0];
    return ZC_OK;
}

zc_status zc_parts_keep_codes(const zc_parted *p, const zc_parts_coded *coded)
{
    zc_block *b = &p->g->top, old = *b;
    zc_status status = ZC_OK;
    size_t next = 0; /* of those that are coded, which are in the nodes' order */
    memset(&b->nodes, 0, sizeof b->nodes);
    for (size_t i = 0; i < old.nodes.len && status == ZC_OK; i++) {
        const zc_nid n = old.nodes.data[i];
        if (next < coded->len && coded->data[next].node == n)
            status = keep_codes(p, &coded->data[next++], b);
        if (status == ZC_OK && !ZC_VEC_PUSH(&b->nodes, n)) status = no_memory(p);
    }
    ZC_VEC_FINI(&old.nodes);
    return status;
}
