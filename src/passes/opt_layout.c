/* Channels last for convolutions over planes (on Hopper over one and three axes, too): convolutions
 * and the pointwise work, poolings, normalisations of groups, and what moves elements between them
 * run on NHWC tensors; transposes stand only where other operations need the channels-first form.
 *
 * On the CPU and on Hopper quantised convolutions are turned, too, with quantisation around them.
 * Of f32, a ReLU and an addition right after a convolution become part of it. Of f16 and bf16, and
 * of bytes on Hopper: weights are turned, too, and pointwise work is left to opt_epilogue. */
#include <stdlib.h>
#include <string.h>

#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/query.h"

/* The channels-last pooling of something made channels-last; 0: it is none. */
static zc_op pooling(const zc_layout *l, const zc_node *n)
{
    if (zc_node_out(n, 1) || !zc_layout_is_plane(l, n->in[0]) || !l->last[n->in[0]]) return 0;
    return n->op == ZC_OP_MaxPool       ? ZC_OP_MaxPoolNhwc
           : n->op == ZC_OP_AveragePool ? ZC_OP_AveragePoolNhwc
                                        : 0;
}

static bool pool(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    return zc_layout_turn(l, n, pooling(l, node), 1, &l->last[node->in[0]]);
}

/* Is it the mean over all sides, of something with a channels-last form? */
static bool is_plane_mean(const zc_layout *l, const zc_node *n)
{
    const zc_graph *g = l->g;
    bool pool = n->op == ZC_OP_GlobalAveragePool, reduce = n->op == ZC_OP_ReduceMean;
    if ((!pool && !reduce) || !zc_layout_is_plane(l, n->in[0]) || !l->last[n->in[0]]) return false;
    if (pool) return true;
    const zc_tensor *axes = zc_val(g, zc_node_in(n, ZC_IN_ReduceMean_axes))->data;
    if (!axes || !axes->data || axes->dtype != ZC_I64) return false;
    const int rank = zc_layout_rank(l, n->in[0]);
    const int64_t count = zc_tensor_numel(axes), *at = axes->data;
    unsigned seen = 0;
    for (int64_t i = 0; i < count; i++) seen |= 1u << (at[i] < 0 ? at[i] + rank : at[i]);
    return seen == (1u << rank) - 4; /* axes 2 to rank - 1 */
}

/* The mean over the sides has the same elements in the same order: a reshape brings the form. */
static bool plane_mean(zc_layout *l, zc_nid n)
{
    static const int64_t axes[] = {1, 2, 3}, shape[ZC_LAYOUT_AXES] = {0, 0, 1, 1, 1};
    const zc_node *node = zc_node_at(l->g, n);
    bool keeps =
        node->op == ZC_OP_GlobalAveragePool || ((const zc_attrs_ReduceMean *)node->attrs)->keepdims;
    zc_vid old = node->out[0], x = l->last[node->in[0]];
    const zc_type plane = zc_val(l->g, node->in[0])->type;
    zc_type type = {.dtype = plane.dtype, .rank = 2, .dims = {plane.dims[0], plane.dims[1]}};
    zc_vid over = zc_graph_const_i64(l->g, NULL, axes, plane.rank - 2, 1);
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, plane.rank, 1);
    zc_nid m = over && form ? zc_layout_add(l, ZC_OP_ReduceMean, zc_node_at(l->g, n)->name, 2,
                                            (zc_vid[]){x, over}, &type)
                            : 0;
    if (!m || !zc_graph_inherit(l->g, m, n)) return false;
    ZC_NODE_SET(l->g, ReduceMean, m, keepdims, 0);
    zc_vid mean = zc_layout_result(l, m);
    if (keeps) {
        type = zc_val(l->g, old)->type;
        zc_nid r = zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){mean, form}, &type);
        if (!r) return false;
        mean = zc_layout_result(l, r);
    }
    zc_graph_forward(l->g, old, mean);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* Groups of the channels, when it normalises groups of something made channels-last; else 0.
 */
static int64_t norm_groups(const zc_layout *l, const zc_node *n)
{
    const zc_graph *g = l->g;
    bool one = n->op == ZC_OP_InstanceNormalization, some = n->op == ZC_OP_GroupNormalization;
    if ((!one && !some) || zc_op_epilogue(zc_op_get(n->op), n->attrs)) return 0;
    if (!zc_layout_is_native(l, n->in[0])) return 0;
    for (int i = 1; i < 3; i++)
        if (zc_val(g, n->in[i])->type.dtype != zc_val(g, n->in[0])->type.dtype) return 0;
    zc_dim channels = zc_val(g, n->in[0])->type.dims[1];
    if (some) return ((const zc_attrs_GroupNormalization *)n->attrs)->num_groups;
    return zc_dim_is_const(channels) ? channels.k : 0;
}

static bool group_norm(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    int64_t groups = norm_groups(l, node);
    float epsilon = node->op == ZC_OP_GroupNormalization
                        ? ((const zc_attrs_GroupNormalization *)node->attrs)->epsilon
                        : ((const zc_attrs_InstanceNormalization *)node->attrs)->epsilon;
    zc_type type = zc_layout_last_type(&zc_val(l->g, node->out[0])->type);
    zc_nid m = zc_layout_add(l, ZC_OP_MsGroupNorm, node->name, 3,
                             (zc_vid[]){l->last[node->in[0]], node->in[1], node->in[2]}, &type);
    if (!m) return false;
    ZC_NODE_SET(l->g, MsGroupNorm, m, groups, groups);
    ZC_NODE_SET(l->g, MsGroupNorm, m, epsilon, epsilon);
    ZC_NODE_SET(l->g, MsGroupNorm, m, channels_last, 1);
    return zc_layout_replace(l, n, m);
}

/* A plane of the result's shape with a channels-last form. */
static bool is_twin(const zc_layout *l, zc_vid v, const zc_type *out)
{
    return zc_layout_is_plane(l, v) && l->last[v] && zc_same_shape(&zc_val(l->g, v)->type, out);
}

/* The constant with the dimensions of `type`; 0: no memory. */
static zc_vid viewed_const(zc_layout *l, zc_vid v, const zc_type *type)
{
    zc_tensor t = *zc_val(l->g, v)->data;
    t.rank = type->rank;
    for (int d = 0; d < t.rank; d++) t.dims[d] = type->dims[d].k;
    zc_vid made = zc_graph_const(l->g, zc_val(l->g, v)->name, &t, false);
    return made && zc_layout_room(l) ? made : 0;
}

static zc_vid channels_last(zc_layout *l, zc_vid v, int rank)
{
    const zc_type t = zc_val(l->g, v)->type;
    int first = t.rank - rank + 1, n = first ? rank : 1;
    int64_t channels = t.dims[first].k, shape[ZC_LAYOUT_AXES] = {0, 1, 1, 1, 1};
    shape[rank - 1] = channels;
    zc_type type = {.dtype = t.dtype, .rank = n};
    for (int d = 0; d < n; d++) type.dims[d] = zc_dim_const(d == n - 1 ? channels : 1);
    if (first) type.dims[0] = t.dims[0];
    const zc_tensor *known = zc_val(l->g, v)->data;
    if (known && known->data) return viewed_const(l, v, &type);
    zc_vid form = zc_graph_const_i64(l->g, NULL, first ? shape : &channels, n, 1);
    zc_nid r = form ? zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, &type) : 0;
    return r ? zc_layout_result(l, r) : 0;
}

/* A plane of so many axes. */
static bool is_of_rank(const zc_layout *l, zc_vid v, int rank)
{
    return zc_layout_is_plane(l, v) && zc_layout_rank(l, v) == rank;
}

/* Every input is a plane, one number a channel, or one element; half of the planes or more have a
 * channels-last form. */
static bool is_pointwise(const zc_layout *l, const zc_node *n)
{
    if (!(zc_op_get(n->op)->flags & ZC_OPF_POINTWISE) || !zc_layout_is_plane(l, n->out[0]))
        return false;
    const int rank = zc_layout_rank(l, n->out[0]);
    int with = 0, without = 0;
    for (int i = 0; i < n->nin; i++) {
        const zc_vid v = n->in[i];
        const bool plane = is_of_rank(l, v, rank);
        if (plane && l->last[v])
            with++;
        else if (zc_layout_is_single(l, v) || zc_layout_is_channels(l, v, rank))
            continue;
        else if (plane && !zc_val(l->g, v)->data)
            without++;
        else
            return false;
    }
    return with > 0 && with >= without;
}

/* The convolution that made v and whose result nobody else needs, with room for the fusion. */
static zc_nid open_conv(const zc_layout *l, zc_vid v)
{
    zc_nid p = zc_producer(l->g, v);
    if (!p || zc_node_at(l->g, p)->op != ZC_OP_ConvNhwc || l->uses[v] != 1) return 0;
    if (zc_val(l->g, v)->type.dtype != ZC_F32) return 0;
    const zc_attrs_ConvNhwc *a = zc_node_at(l->g, p)->attrs;
    return *a->activation ? 0 : p;
}

/* The last thing in the new list other than transposes back, so that what a fused operand needs is
 * there. */
static bool move_to_end(zc_layout *l, zc_nid n)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->out.len; i++)
        if (l->out.data[i] != n) l->out.data[kept++] = l->out.data[i];
    l->out.len = kept;
    return zc_layout_keep(l, n);
}

/* Add or Relu becomes part of the convolution p, whose channels-first result is `first`: its result
 * is then the convolution's, and nobody needs `first` any more. */
static bool absorb(zc_layout *l, zc_nid n, zc_nid p, zc_vid first, zc_vid residual)
{
    zc_graph_remove(l->g, zc_producer(l->g, first));
    zc_node *made = zc_node_at(l->g, p);
    if (residual)
        made->in[ZC_IN_ConvNhwc_residual] = residual;
    else
        ZC_NODE_SET(l->g, ConvNhwc, p, activation, "Relu");
    zc_vid old = zc_node_at(l->g, n)->out[0];
    if (!move_to_end(l, p) || !zc_graph_inherit(l->g, p, n)) return false;
    zc_vid back = zc_layout_to_first(l, zc_layout_result(l, p));
    if (!back) return false;
    l->last[back] = l->last[old] = zc_layout_result(l, p);
    l->uses[zc_layout_result(l, p)] = l->uses[old];
    zc_graph_forward(l->g, old, back);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

static bool try_absorb(zc_layout *l, zc_nid n, bool *done)
{
    const zc_node *node = zc_node_at(l->g, n);
    *done = false;
    if (node->op == ZC_OP_Relu) {
        zc_nid p = open_conv(l, l->last[node->in[0]]);
        *done = p != 0;
        return !p || absorb(l, n, p, node->in[0], 0);
    }
    const zc_type *out = &zc_val(l->g, node->out[0])->type;
    if (node->op != ZC_OP_Add || !is_twin(l, node->in[0], out) || !is_twin(l, node->in[1], out))
        return true;
    for (int i = 1; i >= 0; i--) {
        zc_nid p = open_conv(l, l->last[node->in[i]]);
        if (!p || zc_node_at(l->g, p)->in[ZC_IN_ConvNhwc_residual] || node->in[0] == node->in[1])
            continue;
        *done = true;
        return absorb(l, n, p, node->in[i], l->last[node->in[1 - i]]);
    }
    return true;
}

static bool pointwise(zc_layout *l, zc_nid n)
{
    bool done;
    if (!try_absorb(l, n, &done)) return false;
    if (done) return true;
    const zc_node *node = zc_node_at(l->g, n);
    const int rank = zc_layout_rank(l, node->out[0]);
    zc_vid in[8];
    if (node->nin > (int)ZC_COUNTOF(in)) return zc_layout_keep(l, n);
    for (int i = 0; i < node->nin; i++) {
        zc_vid v = zc_node_at(l->g, n)->in[i];
        const bool turns = is_of_rank(l, v, rank) && l->last[v];
        in[i] = turns                               ? l->last[v]
                : zc_layout_is_single(l, v)         ? v
                : zc_layout_is_channels(l, v, rank) ? channels_last(l, v, rank)
                                                    : zc_layout_last_of(l, v);
        if (!in[i]) return false;
        node = zc_node_at(l->g, n);
    }
    zc_type type = zc_layout_last_type(&zc_val(l->g, node->out[0])->type);
    zc_nid m = zc_layout_add(l, node->op, node->name, node->nin, in, &type);
    if (!m) return false;
    zc_node_at(l->g, m)->attrs = zc_node_at(l->g, n)->attrs;
    return zc_layout_replace(l, n, m);
}

/* ---- transposes that the model has ---- */

static bool turns(const zc_layout *l, const zc_node *n, const int64_t perms[][ZC_LAYOUT_AXES])
{
    const zc_attrs_Transpose *a = n->attrs;
    if (n->op != ZC_OP_Transpose || !zc_layout_is_plane(l, n->in[0])) return false;
    const int rank = zc_layout_rank(l, n->in[0]);
    return a->perm.n == rank && memcmp(a->perm.v, perms[rank], (size_t)rank * sizeof(int64_t)) == 0;
}

/* To channels last, of what has that form already. */
static bool is_turned(const zc_layout *l, const zc_node *n)
{
    return turns(l, n, zc_to_last) && l->last[n->in[0]];
}

static bool take_turned(zc_layout *l, zc_nid n)
{
    zc_vid old = zc_node_at(l->g, n)->out[0], twin = l->last[zc_node_at(l->g, n)->in[0]];
    zc_nid p = zc_producer(l->g, twin);
    if (p && !zc_graph_inherit(l->g, p, n)) return false;
    l->uses[twin] += l->uses[old];
    zc_graph_forward(l->g, old, twin);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* From channels last: what it was is the twin. */
static bool keep_twin(zc_layout *l, zc_nid n)
{
    l->last[zc_node_at(l->g, n)->out[0]] = zc_node_at(l->g, n)->in[0];
    return zc_layout_keep(l, n);
}

/* ---- back, in another type ---- */

/* Is f32 made of 16 bits that were made channels-last? */
static bool is_widened(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Cast || !zc_layout_is_native(l, n->in[0])) return false;
    return zc_layout_is_half(zc_val(l->g, n->in[0])->type.dtype) &&
           zc_val(l->g, n->out[0])->type.dtype == ZC_F32 && !zc_layout_is_line(l, n->in[0]);
}

static bool widen(zc_layout *l, zc_nid n)
{
    const zc_vid v = l->last[zc_node_at(l->g, n)->in[0]], old = zc_node_at(l->g, n)->out[0];
    zc_nid m = zc_layout_cast(l, v, zc_to_first[zc_layout_rank(l, v)], ZC_F32);
    if (!m || !zc_graph_inherit(l->g, m, n)) return false;
    zc_graph_forward(l->g, old, zc_layout_result(l, m));
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

static bool is_pool(const zc_layout *l, const zc_node *n)
{
    return pooling(l, n) != 0;
}

static bool is_group_norm(const zc_layout *l, const zc_node *n)
{
    return norm_groups(l, n) != 0;
}

static bool is_back(const zc_layout *l, const zc_node *n)
{
    return turns(l, n, zc_to_first);
}

const zc_layout_op zc_layout_others[] = {{is_pool, pool, ZC_LAYOUT_FOLLOWS, NULL},
                                         {is_plane_mean, plane_mean, ZC_LAYOUT_READS, NULL},
                                         {is_group_norm, group_norm, ZC_LAYOUT_FOLLOWS, NULL},
                                         {is_pointwise, pointwise, ZC_LAYOUT_FOLLOWS, NULL},
                                         {is_widened, widen, ZC_LAYOUT_WIDENS, NULL},
                                         {is_turned, take_turned, ZC_LAYOUT_LEAVES, NULL},
                                         {is_back, keep_twin, ZC_LAYOUT_ENTERS, NULL},
                                         {NULL, NULL, ZC_LAYOUT_FOLLOWS, NULL}};

static bool turn(zc_layout *l, zc_nid n)
{
    const zc_layout_op *op = zc_layout_op_of(l, zc_node_at(l->g, n));
    return op && !zc_layout_stays(l, n) ? op->make(l, n) : zc_layout_keep(l, n);
}

static zc_status block(zc_layout *l, zc_block *b)
{
    l->out.len = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(l->g, n);
        for (int j = 0; j < node->nin; j++) node->in[j] = zc_graph_resolved(l->g, node->in[j]);
        if (!turn(l, n)) return zc_fail_nomem(l->diag, "layout", 0);
    }
    b->nodes.len = 0;
    for (size_t i = 0; i < l->out.len; i++)
        if (!ZC_VEC_PUSH(&b->nodes, l->out.data[i])) return zc_fail_nomem(l->diag, "layout", 0);
    return ZC_OK;
}

zc_status zc_pass_opt_layout(zc_pass *p)
{
    zc_layout l = {.half = zc_pass_has(p, ZC_FAMILY_conv_sm90),
                   .bytes = zc_pass_bytes(p),
                   .g = p->g,
                   .diag = p->diag,
                   .uses = zc_graph_uses(p->g),
                   .values = p->g->values.len};
    l.last = zc_calloc(l.values, sizeof *l.last);
    l.ranks = zc_layout_ranks(&l);
    zc_status status = l.uses && l.last ? ZC_OK : zc_fail_nomem(p->diag, "layout", 0);
    if (status == ZC_OK && l.half) {
        status = zc_layout_weigh(&l, p->options->told);
        l.ranks = zc_layout_ranks(&l);
    }
    if (status == ZC_OK) status = block(&l, &p->g->top);
    p->changes += l.changes;
    free(l.stays);
    free(l.uses);
    free(l.last);
    ZC_VEC_FINI(&l.out);
    return status;
}
