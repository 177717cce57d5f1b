#include <stdlib.h>

#include "passes/passes.h"

static bool is_used(const zc_node *node, const uint32_t *uses)
{
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && uses[node->out[i]]) return true;
    return false;
}

static void drop_uses(const zc_node *node, uint32_t *uses);

static void drop_block_uses(const zc_graph *g, const zc_block *b, uint32_t *uses)
{
    for (size_t i = 0; i < b->nodes.len; i++) drop_uses(zc_node_at(g, b->nodes.data[i]), uses);
    for (size_t i = 0; i < b->outputs.len; i++) uses[b->outputs.data[i]]--;
}

static void drop_uses(const zc_node *node, uint32_t *uses)
{
    for (int i = 0; i < node->nin; i++) uses[node->in[i]]--;
}

/* Backwards, so that whole chains go in one sweep. Regions are swept before their node is judged:
 * what they no longer use counts. */
static void sweep(zc_graph *g, zc_block *b, uint32_t *uses, size_t *changes)
{
    for (size_t i = b->nodes.len; i-- > 0;) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(g, n);
        if (node->op == ZC_OP_NONE) continue;
        if (is_used(node, uses)) {
            for (int r = 0; r < node->nregions; r++) sweep(g, node->regions[r], uses, changes);
            continue;
        }
        drop_uses(node, uses);
        for (int r = 0; r < node->nregions; r++) drop_block_uses(g, node->regions[r], uses);
        zc_graph_remove(g, n);
        ++*changes;
    }
}

/* Optional outputs that nobody uses need not be computed. */
static void drop_outputs(zc_graph *g, const uint32_t *uses, size_t *changes)
{
    for (size_t n = 1; n < g->nodes.len; n++) {
        zc_node *node = &g->nodes.data[n];
        const zc_op_info *info = zc_op_get(node->op);
        if (info->flags & ZC_OPF_REGIONS) continue;
        for (int i = info->min_out; i < node->nout; i++) {
            if (!node->out[i] || uses[node->out[i]]) continue;
            node->out[i] = 0;
            ++*changes;
        }
    }
}

zc_status zc_pass_opt_dce(zc_pass *p)
{
    uint32_t *uses = zc_graph_uses(p->g);
    if (!uses) return zc_fail_nomem(p->diag, "use counts", p->g->values.len);
    sweep(p->g, &p->g->top, uses, &p->changes);
    drop_outputs(p->g, uses, &p->changes);
    free(uses);
    return ZC_OK;
}
