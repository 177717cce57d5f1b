/* Pointwise work on what a reduction or normalisation reads becomes part of it: its attribute
 * `prologue`. What is saved is a launch, and the bytes of one operand, written and read.
 *
 * It runs behind opt_epilogue: work that the operation before can take is better there, where it is
 * done once. */
#include <stdlib.h>
#include <string.h>

#include "passes/compose.h"
#include "passes/cost.h"
#include "passes/rewrite.h"

typedef struct absorption {
    zc_graph *g;
    uint32_t *uses;
    zc_places places;
    size_t changes;
    zc_diag *diag;
} absorption;

enum { ROW_KEPT = 4096 }; /* elements of a row that a GPU's kernels keep in registers */

static bool is_float(zc_dtype d)
{
    return d == ZC_F64 || d == ZC_F32 || d == ZC_F16 || d == ZC_BF16;
}

/* How often the operation's kernels read an element of the operand. */
static int times_read(const zc_graph *g, const zc_node *n)
{
    const zc_type *x = &zc_val(g, n->in[0])->type;
    zc_dim row = x->rank > 0 ? x->dims[x->rank - 1] : zc_dim_const(1);
    switch (n->op) {
    case ZC_OP_BatchNormalization:
        return ((const zc_attrs_BatchNormalization *)n->attrs)->training_mode ? 3 : 1;
    case ZC_OP_InstanceNormalization:
    case ZC_OP_GroupNormalization:
    case ZC_OP_MsGroupNorm:
    case ZC_OP_MeanVarianceNormalization:
        return 3;
    case ZC_OP_Softmax:
    case ZC_OP_LogSoftmax:
    case ZC_OP_LpNormalization:
        return zc_dim_is_const(row) && row.k <= ROW_KEPT ? 1 : 2;
    case ZC_OP_LayerNormalization:
    case ZC_OP_RMSNormalization:
    case ZC_OP_SkipLayerNormalization:
    case ZC_OP_SkipSimplifiedLayerNormalization:
        return zc_dim_is_const(row) && row.k <= ROW_KEPT ? 1 : 3;
    default:
        return 1;
    }
}

/* May the producer of node n's operand become its prologue? */
static bool can_absorb(const absorption *a, zc_nid n)
{
    const zc_graph *g = a->g;
    const zc_node *anchor = zc_node_at(g, n);
    const zc_op_info *info = zc_op_get(anchor->op);
    int extras;
    if (!(info->flags & ZC_OPF_PROLOGUE) || zc_op_prologue(info, anchor->attrs, &extras))
        return false;
    zc_vid v = anchor->in[0];
    zc_nid p = zc_producer(g, v);
    return p && a->uses[v] == 1 && a->places.block[p] == a->places.block[n] &&
           zc_pw_is(g, zc_node_at(g, p)) && is_float(zc_val(g, v)->type.dtype);
}

/* The work's inputs, the first of them of the operand's type; false: it has no such input. */
static bool collect(const absorption *a, zc_pw_group *gr, zc_vid v)
{
    const zc_node *node = zc_node_at(a->g, gr->nodes[0]);
    const zc_type *type = &zc_val(a->g, v)->type;
    for (int i = 0; i < node->nin && !gr->ninputs; i++)
        if (zc_same_type(&zc_val(a->g, node->in[i])->type, type)) zc_pw_add_input(gr, node->in[i]);
    if (!gr->ninputs) return false;
    for (int i = 0; i < node->nin; i++)
        if (!zc_pw_add_input(gr, node->in[i])) return false;
    zc_pw_inline(a->g, gr, 1);
    return gr->ninputs - 1 <= ZC_PROLOGUE_INPUTS;
}

static void set_prologue(zc_node *n, const char *text, int extras)
{
    const zc_op_info *info = zc_op_get(n->op);
    int field = zc_op_own_fields(info);
    *(const char **)zc_attr_at(info, n->attrs, field) = text;
    *(int64_t *)zc_attr_at(info, n->attrs, field + 1) = extras;
    zc_attr_mark(n->attrs, field);
    if (extras) zc_attr_mark(n->attrs, field + 1);
}

/* The node anew: its own inputs, those that it leaves out among them, the prologue's, and the
 * epilogue's. */
static bool absorb(absorption *a, const zc_pw_group *gr, zc_nid at, const char *text)
{
    zc_graph *g = a->g;
    const zc_op_info *info = zc_op_get(zc_node_at(g, at)->op);
    int nin = zc_node_at(g, at)->nin, nout = zc_node_at(g, at)->nout, extras = gr->ninputs - 1;
    int later = nin > info->max_in ? nin - info->max_in : 0;
    int all = extras + later ? info->max_in + extras + later : nin;
    zc_nid made =
        zc_graph_node(g, NULL, zc_node_at(g, at)->op, zc_node_at(g, at)->name, all, NULL, nout);
    const char *prologue = zc_arena_strdup(&g->arena, text);
    if (!made || !prologue || !zc_graph_inherit(g, made, gr->nodes[0]) ||
        !zc_graph_inherit(g, made, at))
        return false;
    zc_node *n = zc_node_at(g, made), *old = zc_node_at(g, at);
    memcpy(n->attrs, old->attrs, info->attrs_size);
    set_prologue(n, prologue, extras);
    memcpy(n->in, old->in, (size_t)(nin - later) * sizeof *n->in);
    n->in[0] = gr->inputs[0];
    for (int i = 0; i < extras; i++) n->in[info->max_in + i] = gr->inputs[1 + i];
    for (int i = 0; i < later; i++) n->in[info->max_in + extras + i] = old->in[info->max_in + i];
    memcpy(n->out, old->out, (size_t)nout * sizeof *n->out);
    zc_graph_remove(g, gr->nodes[0]);
    zc_take_place(g, made, at);
    a->changes++;
    return true;
}

static zc_status absorb_at(absorption *a, zc_nid n)
{
    zc_vid v = zc_node_at(a->g, n)->in[0];
    zc_pw_group gr = {.nodes = {zc_producer(a->g, v)}, .count = 1};
    if (!collect(a, &gr, v)) return ZC_OK;
    int times = times_read(a->g, zc_node_at(a->g, n));
    if (zc_cost_prologue(a->g, gr.inputs, gr.ninputs, v, times) <= 0) return ZC_OK;
    zc_buf text = {0};
    bool fits = false;
    zc_status status = zc_pw_compose(a->g, &gr, &text, &fits, a->diag);
    if (status == ZC_OK && fits && !absorb(a, &gr, n, text.data))
        status = zc_fail_nomem(a->diag, "prologue", 0);
    zc_buf_fini(&text);
    return status;
}

static zc_status absorb_block(absorption *a, const zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        if (zc_node_at(a->g, n)->op == ZC_OP_NONE) continue;
        if (can_absorb(a, n)) ZC_TRY(absorb_at(a, n));
        for (int r = 0; r < zc_node_at(a->g, n)->nregions; r++)
            ZC_TRY(absorb_block(a, zc_node_at(a->g, n)->regions[r]));
    }
    return ZC_OK;
}

zc_status zc_pass_opt_prologue(zc_pass *p)
{
    absorption a = {.g = p->g, .diag = p->diag, .uses = zc_graph_uses(p->g)};
    zc_status status = a.uses && zc_places_of(p->g, &a.places)
                           ? absorb_block(&a, &p->g->top)
                           : zc_fail_nomem(p->diag, "prologue", 0);
    p->changes += a.changes;
    free(a.uses);
    zc_places_fini(&a.places);
    return status;
}
