/* Pointwise work on the result of a matrix product, convolution, normalisation or the like becomes
 * part of that operation: its attribute `epilogue`. What is saved is a launch, and the bytes of one
 * result, written and read. */
#include <stdlib.h>
#include <string.h>

#include "passes/compose.h"
#include "passes/rewrite.h"

typedef struct absorption {
    zc_graph *g;
    uint32_t *uses;
    zc_places places;
    size_t changes;
    zc_diag *diag;
} absorption;

static bool is_float(zc_dtype d)
{
    return d == ZC_F64 || d == ZC_F32 || d == ZC_F16 || d == ZC_BF16;
}

static bool one_result(const zc_node *n)
{
    for (int i = 1; i < n->nout; i++)
        if (n->out[i]) return false;
    return n->nout > 0 && n->out[0];
}

static uint32_t uses_by(const zc_node *n, zc_vid v)
{
    uint32_t count = 0;
    for (int i = 0; i < n->nin; i++) count += n->in[i] == v;
    return count;
}

/* May node p, which reads v, become the epilogue of v's producer? */
static bool can_absorb(const absorption *a, zc_nid p, zc_vid v)
{
    const zc_graph *g = a->g;
    zc_nid id = zc_producer(g, v);
    if (!id || a->places.block[id] != a->places.block[p]) return false;
    const zc_node *anchor = zc_node_at(g, id), *node = zc_node_at(g, p);
    const zc_op_info *info = zc_op_get(anchor->op);
    const zc_type *from = &zc_val(g, v)->type, *to = &zc_val(g, node->out[0])->type;
    return (info->flags & ZC_OPF_EPILOGUE) && !zc_op_epilogue(info, anchor->attrs) &&
           one_result(anchor) && uses_by(node, v) == a->uses[v] && is_float(from->dtype) &&
           zc_same_type(from, to);
}

/* The operand whose producer comes last, so that no other operand has to wait. */
static zc_vid find_anchor(const absorption *a, zc_nid p)
{
    const zc_node *node = zc_node_at(a->g, p);
    zc_vid found = 0;
    for (int i = 0; i < node->nin; i++)
        if (can_absorb(a, p, node->in[i]) &&
            (!found || a->places.order[zc_producer(a->g, node->in[i])] >
                           a->places.order[zc_producer(a->g, found)]))
            found = node->in[i];
    return found;
}

static bool collect(const absorption *a, zc_pw_group *gr, zc_vid anchor)
{
    const zc_node *node = zc_node_at(a->g, gr->nodes[0]);
    zc_pw_add_input(gr, anchor);
    for (int i = 0; i < node->nin; i++)
        if (!zc_pw_add_input(gr, node->in[i])) return false;
    zc_pw_inline(a->g, gr, 1);
    return gr->ninputs - 1 <= ZC_EPILOGUE_INPUTS;
}

/* Results that nobody wanted go: work at the end is for the one that is left. */
static void set_epilogue(zc_node *n, const char *text)
{
    const zc_op_info *info = zc_op_get(n->op);
    int field = info->field_count - 1;
    *(const char **)zc_attr_at(info, n->attrs, field) = text;
    zc_attr_mark(n->attrs, field);
    n->nout = 1;
}

/* The node takes the place of the pointwise one; inputs that it leaves out stay left out. */
static bool absorb(absorption *a, const zc_pw_group *gr, const char *text)
{
    zc_graph *g = a->g;
    zc_nid p = gr->nodes[0], old = zc_producer(g, gr->inputs[0]);
    zc_op op = zc_node_at(g, old)->op;
    const zc_op_info *info = zc_op_get(op);
    int first = zc_op_epilogue_first(info, zc_node_at(g, old)->attrs), extras = gr->ninputs - 1;
    int nin = extras ? first + extras : zc_node_at(g, old)->nin;
    zc_nid made = zc_graph_node(g, NULL, op, zc_node_at(g, old)->name, nin, NULL, 1);
    const char *epilogue = zc_arena_strdup(&g->arena, text);
    if (!made || !epilogue) return false;
    zc_node *n = zc_node_at(g, made);
    memcpy(n->attrs, zc_node_at(g, old)->attrs, info->attrs_size);
    set_epilogue(n, epilogue);
    memcpy(n->in, zc_node_at(g, old)->in, (size_t)zc_node_at(g, old)->nin * sizeof *n->in);
    for (int i = 0; i < extras; i++) n->in[first + i] = gr->inputs[1 + i];
    if (!zc_graph_inherit(g, made, old) || !zc_graph_inherit(g, made, p)) return false;
    zc_node_at(g, made)->out[0] = zc_node_at(g, p)->out[0];
    zc_graph_remove(g, old);
    zc_take_place(g, made, p);
    a->changes++;
    return true;
}

/* ---- through operations that only move elements ---- */

static bool only_moves(zc_op op)
{
    return (zc_op_get(op)->flags & ZC_OPF_VIEW) || op == ZC_OP_Transpose ||
           op == ZC_OP_DepthToSpace || op == ZC_OP_SpaceToDepth;
}

/* The one operand of p, beside numbers; 0: it has several. */
static zc_vid only_operand(const zc_graph *g, const zc_pw_group *of)
{
    const zc_node *node = zc_node_at(g, of->nodes[0]);
    for (int i = 0; i < node->nin; i++) {
        zc_pw_group gr = *of;
        zc_pw_add_input(&gr, node->in[i]);
        for (int j = 0; j < node->nin; j++) zc_pw_add_input(&gr, node->in[j]);
        zc_pw_inline(g, &gr, 1);
        if (gr.ninputs == 1 && zc_producer(g, node->in[i])) return node->in[i];
    }
    return 0;
}

/* The node whose elements v has, moved, and that nobody else wants; 0: there is none. */
static zc_nid moved_anchor(const absorption *a, zc_nid at, zc_vid v)
{
    const zc_graph *g = a->g;
    zc_nid n = zc_producer(g, v);
    for (; n && a->uses[v] == 1 && only_moves(zc_node_at(g, n)->op); n = zc_producer(g, v))
        v = zc_node_at(g, n)->in[0];
    if (!n || a->uses[v] != 1 || a->places.block[n] != a->places.block[at]) return 0;
    const zc_node *anchor = zc_node_at(g, n);
    const zc_op_info *info = zc_op_get(anchor->op);
    bool takes = (info->flags & ZC_OPF_EPILOGUE) && !zc_op_epilogue(info, anchor->attrs);
    return takes && one_result(anchor) && is_float(zc_val(g, v)->type.dtype) ? n : 0;
}

/* The anchor does p's work on the elements before they are moved; what p made is what it read. */
static bool absorb_moved(absorption *a, const zc_pw_group *gr, zc_nid anchor, const char *text)
{
    zc_graph *g = a->g;
    zc_nid p = gr->nodes[0];
    zc_vid v = gr->inputs[0], out = zc_node_at(g, p)->out[0];
    zc_node *n = zc_node_at(g, anchor);
    const zc_op_info *info = zc_op_get(n->op);
    char *attrs = zc_arena_alloc(&g->arena, 1, info->attrs_size);
    const char *epilogue = zc_arena_strdup(&g->arena, text);
    if (!attrs || !epilogue || !zc_graph_inherit(g, anchor, p)) return false;
    memcpy(attrs, n->attrs, info->attrs_size);
    n->attrs = attrs;
    set_epilogue(n, epilogue);
    zc_graph_remove(g, p);
    zc_graph_forward(g, out, v);
    a->uses[v] = a->uses[out];
    a->changes++;
    return true;
}

static zc_status absorb_through(absorption *a, zc_nid p)
{
    zc_pw_group gr = {.nodes = {p}, .count = 1};
    zc_vid v = only_operand(a->g, &gr);
    zc_nid anchor = v ? moved_anchor(a, p, v) : 0;
    zc_vid out = zc_node_at(a->g, p)->out[0];
    if (!anchor || !zc_same_type(&zc_val(a->g, v)->type, &zc_val(a->g, out)->type) ||
        !collect(a, &gr, v))
        return ZC_OK;
    zc_buf text = {0};
    bool fits = false;
    zc_status status = zc_pw_compose(a->g, &gr, &text, &fits, a->diag);
    if (status == ZC_OK && fits && !absorb_moved(a, &gr, anchor, text.data))
        status = zc_fail_nomem(a->diag, "epilogue", 0);
    zc_buf_fini(&text);
    return status;
}

static zc_status absorb_at(absorption *a, zc_nid p)
{
    zc_pw_group gr = {.nodes = {p}, .count = 1};
    zc_vid anchor = find_anchor(a, p);
    if (!anchor) return absorb_through(a, p);
    if (!collect(a, &gr, anchor)) return ZC_OK;
    zc_buf text = {0};
    bool fits = false;
    zc_status status = zc_pw_compose(a->g, &gr, &text, &fits, a->diag);
    if (status == ZC_OK && fits && !absorb(a, &gr, text.data))
        status = zc_fail_nomem(a->diag, "epilogue", 0);
    zc_buf_fini(&text);
    return status;
}

static zc_status absorb_block(absorption *a, const zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(a->g, n);
        if (node->op == ZC_OP_NONE) continue;
        for (int j = 0; j < node->nin; j++) node->in[j] = zc_graph_resolved(a->g, node->in[j]);
        if (zc_pw_is(a->g, zc_node_at(a->g, n))) ZC_TRY(absorb_at(a, n));
        for (int r = 0; r < zc_node_at(a->g, n)->nregions; r++)
            ZC_TRY(absorb_block(a, zc_node_at(a->g, n)->regions[r]));
    }
    return ZC_OK;
}

zc_status zc_pass_opt_epilogue(zc_pass *p)
{
    absorption a = {.g = p->g, .diag = p->diag, .uses = zc_graph_uses(p->g)};
    zc_status status = a.uses && zc_places_of(p->g, &a.places)
                           ? absorb_block(&a, &p->g->top)
                           : zc_fail_nomem(p->diag, "epilogue", 0);
    p->changes += a.changes;
    free(a.uses);
    zc_places_fini(&a.places);
    return status;
}
