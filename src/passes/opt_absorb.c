/* Pointwise work on the result of a matrix product, convolution, normalisation or the like, or on
 * what a reduction or normalisation reads, becomes part of that operation: its attribute
 * `epilogue`, or `prologue`. What is saved is a launch, and the bytes of one value, written and
 * read.
 *
 * Prologues come behind epilogues: work that the operation before can take is better there, where
 * it is done once. */
#include <string.h>

#include "ir/index.h"
#include "op/kernels.h"
#include "op/reduce.h"
#include "passes/compose.h"
#include "passes/cost.h"
#include "passes/query.h"

typedef struct absorption {
    zc_graph *g;
    zc_index x;
    const zc_rule_target *target; /* NULL: the CPU */
    size_t changes;
    zc_diag *diag;
} absorption;

static bool on_gpu(const absorption *a)
{
    return a->target && a->target->cuda;
}

static bool is_float(const zc_graph *g, zc_vid v)
{
    zc_dtype d = zc_val(g, v)->type.dtype;
    return d == ZC_F64 || d == ZC_F32 || d == ZC_F16 || d == ZC_BF16;
}

static bool same_block(const absorption *a, zc_nid p, zc_nid q)
{
    return zc_index_place(&a->x, p)->block == zc_index_place(&a->x, q)->block;
}

/* ---- one node for two ---- */

/* Which node does the work, and the group of the one pointwise node that it is. */
typedef struct work {
    zc_pw_group gr;
    zc_nid anchor;
    bool at_end; /* an epilogue */
    const char *text;
} work;

/* Do all kernels that may serve the node take the work? The CPU's do. */
static bool kernels_take(const absorption *a, const work *w)
{
    const zc_rule_target *t = a->target;
    const zc_node *anchor = zc_node_at(a->g, w->anchor);
    zc_shape shapes[ZC_PW_INPUTS];
    zc_dtype types[ZC_PW_INPUTS];
    if (!t || !t->cuda) return true;
    for (int i = 0; i < w->gr.ninputs; i++) {
        const zc_type *type = &zc_val(a->g, w->gr.inputs[i])->type;
        shapes[i] = (zc_shape){.rank = type->rank, .dims = type->dims};
        types[i] = type->dtype;
    }
    const zc_work asked = {.at_end = w->at_end,
                           .widens = w->gr.widens,
                           .bytes = zc_op_get(anchor->op)->flags &
                                    (w->at_end ? ZC_OPF_BYTES : ZC_OPF_DEQUANTISES),
                           .dtype = types[0],
                           .to = shapes[0],
                           .n = w->gr.ninputs - 1,
                           .in = shapes + 1,
                           .types = types + 1};
    zc_dtype made = zc_val(a->g, anchor->out[0])->type.dtype;
    return !zc_takes_not(zc_takes_of(anchor->op, made, t->sm, t->sm_most), &asked);
}

static bool collect(const absorption *a, work *w, zc_vid x0)
{
    const zc_node *node = zc_node_at(a->g, w->gr.nodes[0]);
    zc_pw_add_input(&w->gr, x0);
    for (int i = 0; i < node->nin; i++)
        if (!zc_pw_add_input(&w->gr, node->in[i])) return false;
    zc_pw_inline(a->g, &w->gr, 1);
    return w->gr.ninputs - 1 <= (w->at_end ? ZC_EPILOGUE_INPUTS : ZC_PROLOGUE_INPUTS) &&
           kernels_take(a, w);
}

/* The anchor's inputs with those of the work: inputs that it leaves out stay left out. NULL: no
 * memory. */
static zc_vid *operands(const absorption *a, const work *w, int *nin)
{
    const zc_node *n = zc_node_at(a->g, w->anchor);
    const zc_op_info *info = zc_op_get(n->op);
    int at = w->at_end ? zc_op_epilogue_first(info, n->attrs) : info->max_in;
    int extras = w->gr.ninputs - 1, before = n->nin < at ? n->nin : at, later = n->nin - before;
    *nin = extras + later ? at + extras + later : n->nin;
    zc_vid *in = zc_arena_alloc(&a->g->arena, (size_t)*nin, sizeof *in);
    if (!in) return NULL;
    memcpy(in, n->in, (size_t)before * sizeof *in);
    if (extras) memcpy(in + at, w->gr.inputs + 1, (size_t)extras * sizeof *in);
    if (later) memcpy(in + at + extras, n->in + before, (size_t)later * sizeof *in);
    if (!w->at_end) in[0] = w->gr.inputs[0];
    return in;
}

/* `attrs` with the work as this one. NULL: no memory. */
static void *attrs_with_field(absorption *a, const work *w, int field)
{
    const zc_node *n = zc_node_at(a->g, w->anchor);
    const zc_op_info *info = zc_op_get(n->op);
    char *attrs = zc_arena_dup(&a->g->arena, n->attrs, 1, info->attrs_size);
    const char *text = zc_arena_strdup(&a->g->arena, w->text);
    if (!attrs || !text) return NULL;
    *(const char **)zc_attr_at(info, attrs, field) = text;
    zc_attr_mark(attrs, field);
    return attrs;
}

/* `attrs` with the work. NULL: no memory. */
static void *attrs_with(absorption *a, const work *w)
{
    const zc_op_info *info = zc_op_get(zc_node_at(a->g, w->anchor)->op);
    int field = w->at_end ? info->field_count - 1 : zc_op_own_fields(info);
    int extras = w->gr.ninputs - 1;
    void *attrs = attrs_with_field(a, w, field);
    if (!attrs || w->at_end || !extras) return attrs;
    *(int64_t *)zc_attr_at(info, attrs, field + 1) = extras;
    zc_attr_mark(attrs, field + 1);
    return attrs;
}

/* The anchor, with the work, stands where the later of both nodes stood. */
static bool join(absorption *a, const work *w)
{
    zc_graph *g = a->g;
    zc_nid p = w->gr.nodes[0], at = w->at_end ? p : w->anchor, gone = w->at_end ? w->anchor : p;
    int nin, nout = zc_node_at(g, at)->nout;
    const zc_node *anchor = zc_node_at(g, w->anchor);
    zc_vid *in = operands(a, w, &nin);
    void *attrs = attrs_with(a, w);
    zc_nid made = in ? zc_graph_node(g, NULL, anchor->op, anchor->name, nin, in, nout) : 0;
    if (!made || !attrs || !zc_graph_inherit(g, made, gone) || !zc_graph_inherit(g, made, at))
        return false;
    zc_node_at(g, made)->attrs = attrs;
    memcpy(zc_node_at(g, made)->out, zc_node_at(g, at)->out, (size_t)nout * sizeof(zc_vid));
    zc_index_remove(&a->x, gone);
    return zc_index_take_place(&a->x, made, at);
}

/* What `anchor` makes has this type, and all that it is until it is v. */
static void retype_moved(zc_graph *g, zc_nid anchor, zc_vid v, zc_dtype dtype)
{
    zc_nid n;
    do {
        zc_val(g, v)->type.dtype = dtype;
        n = zc_producer(g, v);
        v = zc_node_at(g, n)->in[0];
    } while (n != anchor);
}

/* The anchor does the work on elements that are moved later; what p made is what it read. */
static bool join_moved(absorption *a, const work *w)
{
    zc_graph *g = a->g;
    zc_nid p = w->gr.nodes[0];
    zc_vid out = zc_node_at(g, p)->out[0];
    void *attrs = attrs_with(a, w);
    if (!attrs || !zc_graph_inherit(g, w->anchor, p)) return false;
    retype_moved(g, w->anchor, w->gr.inputs[0], zc_val(g, out)->type.dtype);
    zc_node_at(g, w->anchor)->attrs = attrs;
    zc_node_at(g, w->anchor)->nout = 1;
    zc_index_remove(&a->x, p);
    zc_graph_forward(g, out, w->gr.inputs[0]);
    return zc_index_replace(&a->x, out, w->gr.inputs[0]);
}

static zc_status absorb(absorption *a, work *w, bool (*how)(absorption *a, const work *w))
{
    zc_buf text = {0};
    bool fits = false;
    zc_status status = zc_pw_compose(a->g, &w->gr, &text, &fits, a->diag);
    w->text = text.data;
    if (status == ZC_OK && fits && !how(a, w)) status = zc_fail_nomem(a->diag, "fused work", 0);
    a->changes += status == ZC_OK && fits;
    zc_buf_fini(&text);
    return status;
}

/* ---- epilogues ---- */

static bool one_result(const zc_node *n)
{
    for (int i = 1; i < n->nout; i++)
        if (n->out[i]) return false;
    return n->nout > 0 && n->out[0];
}

/* Are there elements that work may be done on? */
static bool takes_elements(const absorption *a, const zc_op_info *info, zc_vid v)
{
    return is_float(a->g, v) || info->flags & (ZC_OPF_SUMS | ZC_OPF_BYTES);
}

/* May node n take work on its result v, for the node p? */
static bool takes_epilogue(const absorption *a, zc_nid n, zc_nid p, zc_vid v)
{
    if (!n || !same_block(a, n, p)) return false;
    const zc_node *anchor = zc_node_at(a->g, n);
    const zc_op_info *info = zc_op_get(anchor->op);
    return (info->flags & ZC_OPF_EPILOGUE) && !zc_op_epilogue(info, anchor->attrs) &&
           one_result(anchor) && takes_elements(a, info, v);
}

/* Has v the result's type, or one of which node n, which makes v, may make it? What the CPU
 * computes in place is quantised afterwards. */
static bool same_or_wider(const absorption *a, zc_nid n, zc_vid v, const zc_type *to)
{
    zc_type from = zc_val(a->g, v)->type;
    const unsigned flags = zc_op_get(zc_node_at(a->g, n)->op)->flags;
    const bool quantises = flags & ZC_OPF_QUANTISES && (on_gpu(a) || !(flags & ZC_OPF_INPLACE));
    bool half = from.dtype == ZC_F16 || from.dtype == ZC_BF16;
    bool widens = (half && flags & ZC_OPF_WIDENS) || (from.dtype == ZC_I32 && flags & ZC_OPF_SUMS);
    if (to->dtype == ZC_F32 && widens) from.dtype = ZC_F32;
    if (to->dtype == ZC_F8E4M3FN && quantises) from.dtype = ZC_F8E4M3FN;
    if ((to->dtype == ZC_U8 || to->dtype == ZC_I8) && (quantises || flags & ZC_OPF_BYTES))
        from.dtype = to->dtype;
    return zc_same_type(&from, to);
}

static uint32_t uses_by(const zc_node *n, zc_vid v)
{
    uint32_t count = 0;
    for (int i = 0; i < n->nin; i++) count += n->in[i] == v;
    return count;
}

/* The operand whose producer comes last, so that no other operand has to wait. */
static zc_vid find_anchor(const absorption *a, zc_nid p)
{
    const zc_node *node = zc_node_at(a->g, p);
    const zc_type *to = &zc_val(a->g, node->out[0])->type;
    zc_vid found = 0;
    uint64_t last = 0;
    for (int i = 0; i < node->nin; i++) {
        zc_vid v = node->in[i];
        zc_nid n = zc_producer(a->g, v);
        if (!takes_epilogue(a, n, p, v) || uses_by(node, v) != a->x.uses.data[v] ||
            !same_or_wider(a, n, v, to) || zc_index_place(&a->x, n)->order <= last)
            continue;
        found = v;
        last = zc_index_place(&a->x, n)->order;
    }
    return found;
}

/* The one operand of p, beside numbers, that a node makes, and p as a group of it; 0: none. */
static zc_vid only_operand(const zc_graph *g, zc_nid p, zc_pw_group *gr)
{
    const zc_node *node = zc_node_at(g, p);
    for (int i = 0; i < node->nin; i++) {
        *gr = (zc_pw_group){.nodes = {p}, .count = 1};
        zc_pw_add_input(gr, node->in[i]);
        for (int j = 0; j < node->nin; j++) zc_pw_add_input(gr, node->in[j]);
        zc_pw_inline(g, gr, 1);
        if (gr->ninputs == 1 && zc_producer(g, node->in[i])) return node->in[i];
    }
    return 0;
}

/* The node whose elements v has, moved, and that nobody else wants; 0: there is none. */
static zc_nid moved_anchor(const absorption *a, zc_nid at, zc_vid v)
{
    const uint32_t *uses = a->x.uses.data;
    zc_nid n = zc_producer(a->g, v);
    for (; n && uses[v] == 1 && zc_only_moves(zc_node_at(a->g, n)->op); n = zc_producer(a->g, v))
        v = zc_node_at(a->g, n)->in[0];
    return uses[v] == 1 && takes_epilogue(a, n, at, v) ? n : 0;
}

/* What is moved may become bytes, not larger. */
static zc_status epilogue_through(absorption *a, zc_nid p)
{
    work w = {.at_end = true};
    zc_vid v = only_operand(a->g, p, &w.gr);
    w.anchor = v ? moved_anchor(a, p, v) : 0;
    const zc_type *to = &zc_val(a->g, zc_node_at(a->g, p)->out[0])->type;
    if (!w.anchor || zc_dtype_bits(to->dtype) > zc_dtype_bits(zc_val(a->g, v)->type.dtype) ||
        !same_or_wider(a, w.anchor, v, to) || !kernels_take(a, &w))
        return ZC_OK;
    return absorb(a, &w, join_moved);
}

static zc_status epilogue_at(absorption *a, zc_nid p)
{
    if (!zc_pw_is(a->g, zc_node_at(a->g, p))) return ZC_OK;
    zc_vid v = find_anchor(a, p);
    if (!v) return epilogue_through(a, p);
    work w = {.gr = {.nodes = {p}, .count = 1}, .anchor = zc_producer(a->g, v), .at_end = true};
    const zc_dtype from = zc_val(a->g, v)->type.dtype;
    const zc_dtype to = zc_val(a->g, zc_node_at(a->g, p)->out[0])->type.dtype;
    w.gr.widens = from != ZC_I32 && to == ZC_F32 && from != to;
    return collect(a, &w, v) ? absorb(a, &w, join) : ZC_OK;
}

/* ---- results beside ---- */

/* The node that can make what p makes of its result v, and v, too. */
static zc_nid also_anchor(const absorption *a, zc_nid p, zc_vid v)
{
    const zc_nid n = v ? zc_producer(a->g, v) : 0;
    if (!n || !same_block(a, n, p) || !is_float(a->g, v)) return 0;
    const zc_node *anchor = zc_node_at(a->g, n);
    const zc_op_info *info = zc_op_get(anchor->op);
    const zc_type *made = &zc_val(a->g, zc_node_at(a->g, p)->out[0])->type;
    zc_type alike = zc_val(a->g, v)->type;
    alike.dtype = made->dtype;
    const bool may = (info->flags & ZC_OPF_ALSO) && anchor->out[0] == v &&
                     !zc_op_also(info, anchor->attrs) && !zc_op_epilogue(info, anchor->attrs);
    return may && zc_same_type(&alike, made) && zc_kernel_type(made->dtype) ? n : 0;
}

/* The anchor with p's result as its last, in its place; without the first where nobody else reads
 * that. */
static bool join_beside(absorption *a, const work *w)
{
    zc_graph *g = a->g;
    const zc_nid p = w->gr.nodes[0];
    const zc_node *anchor = zc_node_at(g, w->anchor);
    const zc_op_info *info = zc_op_get(anchor->op);
    const int nout = info->max_out;
    void *attrs = attrs_with_field(a, w, zc_op_also_field(info));
    const zc_nid made =
        zc_graph_node(g, NULL, anchor->op, anchor->name, anchor->nin, anchor->in, nout);
    if (!made || !attrs || !zc_graph_inherit(g, made, w->anchor) || !zc_graph_inherit(g, made, p))
        return false;
    anchor = zc_node_at(g, w->anchor);
    zc_node *node = zc_node_at(g, made);
    node->attrs = attrs;
    memcpy(node->out, anchor->out, (size_t)anchor->nout * sizeof *node->out);
    node->out[nout - 1] = zc_node_at(g, p)->out[0];
    const zc_vid first = node->out[0];
    if (uses_by(zc_node_at(g, p), first) == a->x.uses.data[first]) node->out[0] = 0;
    zc_index_remove(&a->x, p);
    return zc_index_take_place(&a->x, made, w->anchor);
}

static zc_status beside_at(absorption *a, zc_nid p)
{
    work w = {.anchor = 0};
    if (!zc_pw_is(a->g, zc_node_at(a->g, p))) return ZC_OK;
    w.anchor = also_anchor(a, p, only_operand(a->g, p, &w.gr));
    return w.anchor ? absorb(a, &w, join_beside) : ZC_OK;
}

/* ---- prologues ---- */

enum { ROW_KEPT = 4096 }; /* elements of a row that a GPU's kernels keep in registers */

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

/* The node that may become the prologue of node n; 0: there is none. */
static zc_nid prologue_of(const absorption *a, zc_nid n)
{
    const zc_node *anchor = zc_node_at(a->g, n);
    const zc_op_info *info = zc_op_get(anchor->op);
    int extras;
    if (!(info->flags & ZC_OPF_PROLOGUE) || zc_op_prologue(info, anchor->attrs, &extras)) return 0;
    zc_vid v = anchor->in[0];
    zc_nid p = zc_producer(a->g, v);
    bool takes = p && a->x.uses.data[v] == 1 && same_block(a, p, n) &&
                 zc_pw_is(a->g, zc_node_at(a->g, p)) && is_float(a->g, v);
    return takes ? p : 0;
}

/* Do node n's kernels read bytes, too? On a GPU reductions', and softmax's of rows whose length is
 * certain. */
static bool reads_bytes(const absorption *a, const zc_node *n)
{
    const zc_type *x = &zc_val(a->g, n->in[0])->type;
    if (on_gpu(a) && zc_is_reduction(n->op)) return true;
    if (!on_gpu(a) || n->op != ZC_OP_Softmax || x->rank < 1) return false;
    const int64_t axis = ((const zc_attrs_Softmax *)n->attrs)->axis;
    return (axis == -1 || axis == x->rank - 1) && zc_dim_is_const(x->dims[x->rank - 1]);
}

/* The first input of p that has its result's type, or where node n reads them bytes of its shape;
 * 0: none has. */
static zc_vid alike(const absorption *a, zc_nid p, zc_nid n)
{
    const zc_node *node = zc_node_at(a->g, p);
    const zc_type *made = &zc_val(a->g, node->out[0])->type;
    const bool bytes = reads_bytes(a, zc_node_at(a->g, n));
    for (int i = 0; i < node->nin; i++) {
        const zc_type *x = &zc_val(a->g, node->in[i])->type;
        const bool is_byte = x->dtype == ZC_U8 || x->dtype == ZC_I8;
        if (zc_same_type(x, made) || (bytes && is_byte && zc_same_shape(x, made)))
            return node->in[i];
    }
    return 0;
}

static zc_status prologue_at(absorption *a, zc_nid n)
{
    zc_nid p = prologue_of(a, n);
    zc_vid x0 = p ? alike(a, p, n) : 0;
    work w = {.gr = {.nodes = {p}, .count = 1}, .anchor = n};
    if (!x0 || !collect(a, &w, x0)) return ZC_OK;
    const zc_node *anchor = zc_node_at(a->g, n);
    int times = times_read(a->g, anchor);
    if (zc_cost_prologue(a->g, w.gr.inputs, w.gr.ninputs, anchor->in[0], times) <= 0) return ZC_OK;
    return absorb(a, &w, join);
}

/* ---- the passes ---- */

typedef zc_status (*visitor)(absorption *a, zc_nid n);

static zc_status each(absorption *a, const zc_block *b, visitor visit)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        if (zc_node_at(a->g, n)->op == ZC_OP_NONE) continue;
        ZC_TRY(visit(a, n));
        for (int r = 0; r < zc_node_at(a->g, n)->nregions; r++)
            ZC_TRY(each(a, zc_node_at(a->g, n)->regions[r], visit));
    }
    return ZC_OK;
}

static zc_status run(zc_pass *p, visitor visit)
{
    absorption a = {.g = p->g, .target = p->options->target, .diag = p->diag};
    if (!zc_index_init(&a.x, p->g)) return zc_fail_nomem(p->diag, "fused work", 0);
    zc_status status = each(&a, &p->g->top, visit);
    p->changes += a.changes;
    zc_index_fini(&a.x);
    return status;
}

zc_status zc_pass_opt_epilogue(zc_pass *p)
{
    const zc_rule_target *target = p->options->target;
    ZC_TRY(run(p, epilogue_at));
    return target && target->cuda ? run(p, beside_at)
                                  : ZC_OK; /* saves launches, and nothing else */
}

zc_status zc_pass_opt_prologue(zc_pass *p)
{
    return run(p, prologue_at);
}
