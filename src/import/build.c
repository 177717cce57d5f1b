/* Building nodes of the graph for one node of the model. */
#include "import/importer.h"

void *zc_imp_at(zc_imp *im, zc_op op, zc_nid id)
{
    return id ? zc_node_at(im->g, id)->attrs : im->dead;
}

/* The list that names the model's node as provenance. */
static const char **provenance(zc_imp *im, zc_inode *n)
{
    if (n->prov) return n->prov;
    const char *name = zc_arena_strdup(&im->g->arena, n->name);
    const char **prov = zc_arena_alloc(&im->g->arena, 1, sizeof *prov);
    if (!name || !prov) return NULL;
    prov[0] = name;
    return n->prov = prov;
}

zc_nid zc_imp_node(zc_imp *im, zc_inode *n, zc_op op, int nin, const zc_vid *in, int nout)
{
    if (im->status != ZC_OK) return 0;
    if (++im->nodes > ZC_IMP_NODES_MAX) {
        zc_imp_fail(im, n, ZC_ERR_LIMIT,
                    "too many nodes, inlined functions counted (need at most %zu)",
                    ZC_IMP_NODES_MAX);
        return 0;
    }
    const char **prov = provenance(im, n);
    zc_nid id = prov ? zc_graph_node(im->g, im->block, op, n->name, nin, in, nout) : 0;
    if (!id) {
        zc_imp_nomem(im, "nodes");
        return 0;
    }
    zc_node *node = zc_node_at(im->g, id);
    node->prov = prov;
    node->nprov = 1;
    return id;
}

static bool infer(zc_imp *im, zc_nid id)
{
    if (im->status == ZC_OK) im->status = zc_graph_infer(im->g, id, im->diag);
    /* Whatever else was found then comes of it. */
    if (im->g->dims.failed && im->status != ZC_ERR_NOMEM) zc_imp_nomem(im, "symbolic dimensions");
    return im->status == ZC_OK;
}

zc_vid zc_imp_done(zc_imp *im, zc_inode *n, zc_nid id)
{
    (void)n;
    if (im->status != ZC_OK || !id) return 0;
    const int nout = zc_node_at(im->g, id)->nout;
    for (int i = 0; i < nout; i++) {
        if (zc_graph_out(im->g, id, i, NULL)) continue;
        zc_imp_nomem(im, "values");
        return 0;
    }
    return infer(im, id) ? zc_node_at(im->g, id)->out[0] : 0;
}

zc_status zc_imp_name_outputs(zc_imp *im, zc_inode *n, zc_nid id)
{
    if (im->status != ZC_OK || !id) return im->status;
    const int nout = zc_node_at(im->g, id)->nout;
    for (int i = 0; i < n->nout; i++) {
        if (!*n->out[i]) continue;
        if (i >= nout)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "%s has too many outputs (got %d, need at most %d)", n->op_type,
                               n->nout, nout);
        const zc_name *name = zc_scope_own(im->scope, n->out[i]);
        if (!zc_graph_out(im->g, id, i, name->as ? name->as : name->text))
            return zc_imp_nomem(im, "values");
    }
    return ZC_OK;
}

static zc_status check_info(zc_imp *im, const char *text)
{
    const zc_smap_slot *s = zc_smap_find(&im->scope->infos, text, strlen(text));
    if (!s) return ZC_OK;
    const Onnx__ValueInfoProto *info = im->scope->graph->value_info[s->value];
    return im->status = zc_imp_check_type(im, zc_scope_own(im->scope, text)->vid, info);
}

zc_status zc_imp_bind(zc_imp *im, zc_inode *n, int i, zc_vid v)
{
    zc_name *name = zc_scope_own(im->scope, n->out[i]);
    name->vid = v;
    name->state = ZC_NAME_READY;
    return im->status = check_info(im, n->out[i]);
}

zc_status zc_imp_finish_named(zc_imp *im, zc_inode *n, zc_nid id)
{
    n->done = true;
    if (!id || !infer(im, id)) return im->status;
    for (int i = 0; i < n->nout; i++)
        if (*n->out[i]) ZC_TRY(zc_imp_bind(im, n, i, zc_node_at(im->g, id)->out[i]));
    return ZC_OK;
}

zc_status zc_imp_finish(zc_imp *im, zc_inode *n, zc_nid id)
{
    ZC_TRY(zc_imp_name_outputs(im, n, id));
    return zc_imp_finish_named(im, n, id);
}

zc_status zc_imp_finish_first(zc_imp *im, zc_inode *n, zc_nid id, int most)
{
    const int nout = n->nout;
    if (nout > most)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s has too many outputs (got %d, need at most %d)",
                           n->op_type, nout, most);
    n->nout = nout < 1 ? nout : 1;
    zc_status status = zc_imp_finish(im, n, id);
    n->nout = nout;
    return status;
}

/* ---- short forms ---- */

static zc_vid op_of(zc_imp *im, zc_inode *n, zc_op op, int nin, const zc_vid *in)
{
    return zc_imp_done(im, n, zc_imp_node(im, n, op, nin, in, 1));
}

zc_vid zc_imp_op1(zc_imp *im, zc_inode *n, zc_op op, zc_vid a)
{
    return op_of(im, n, op, 1, &a);
}

zc_vid zc_imp_op2(zc_imp *im, zc_inode *n, zc_op op, zc_vid a, zc_vid b)
{
    return op_of(im, n, op, 2, (zc_vid[]){a, b});
}

zc_status zc_imp_finish_op(zc_imp *im, zc_inode *n, zc_op op, int nin, const zc_vid *in)
{
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(im, n, zc_imp_node(im, n, op, nin, in, 1));
}

zc_status zc_imp_finish_value(zc_imp *im, zc_inode *n, zc_vid v)
{
    return zc_imp_finish_op(im, n, ZC_OP_Identity, 1, &v);
}

const char *zc_imp_out_name(const zc_imp *im, const zc_inode *n)
{
    if (!n->nout || !*n->out[0]) return NULL;
    const zc_name *name = zc_scope_own(im->scope, n->out[0]);
    return name->as ? name->as : name->text;
}

zc_status zc_imp_finish_as(zc_imp *im, zc_inode *n, zc_vid v)
{
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (n->nout > 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s has too many outputs (got %d, need 1)",
                           n->op_type, n->nout);
    n->done = true;
    return zc_imp_bind(im, n, 0, v);
}

void zc_imp_all_outputs(zc_inode *n)
{
    n->nout = (int)n->proto->n_output;
}

zc_vid zc_imp_cast(zc_imp *im, zc_inode *n, zc_vid v, zc_dtype to)
{
    if (im->status != ZC_OK || zc_imp_dtype(im, v) == to) return v;
    zc_nid id = zc_imp_node(im, n, ZC_OP_Cast, 1, &v, 1);
    ZC_IMP_SET(im, Cast, id, to, to);
    return zc_imp_done(im, n, id);
}

zc_vid zc_imp_reshape(zc_imp *im, zc_inode *n, zc_vid v, const int64_t *shape, int rank)
{
    return zc_imp_op2(im, n, ZC_OP_Reshape, v, zc_imp_ints(im, shape, rank, 1));
}

zc_vid zc_imp_sizes(zc_imp *im, zc_inode *n, zc_vid v, int64_t start, int64_t end)
{
    zc_nid id = zc_imp_node(im, n, ZC_OP_Shape, 1, &v, 1);
    ZC_IMP_SET(im, Shape, id, start, start);
    ZC_IMP_SET(im, Shape, id, end, end);
    return zc_imp_done(im, n, id);
}

zc_vid zc_imp_slice(zc_imp *im, zc_inode *n, zc_vid v, zc_vid from, zc_vid to, int64_t axis)
{
    const zc_vid in[] = {v, from, to, zc_imp_ints(im, &axis, 1, 1)};
    return zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Slice, 4, in, 1));
}

zc_nid zc_imp_transpose(zc_imp *im, zc_inode *n, zc_vid v, const int64_t *perm, int rank)
{
    if (im->status != ZC_OK) return 0;
    const int64_t *own = zc_arena_dup(&im->g->arena, perm, (size_t)rank, sizeof *perm);
    zc_nid id = zc_imp_node(im, n, ZC_OP_Transpose, 1, &v, 1);
    if (!own) zc_imp_nomem(im, "an attribute");
    ZC_IMP_SET(im, Transpose, id, perm, ((zc_ints){.n = rank, .v = own}));
    return id;
}

zc_vid zc_imp_channels_first(zc_imp *im, zc_inode *n, zc_vid v)
{
    int64_t perm[ZC_MAX_RANK] = {0};
    const int rank = zc_imp_rank(im, v);
    for (int i = 1; i < rank; i++) perm[i] = i == 1 ? rank - 1 : i - 1;
    return zc_imp_done(im, n, zc_imp_transpose(im, n, v, perm, rank));
}

zc_nid zc_imp_channels_last(zc_imp *im, zc_inode *n, zc_vid v)
{
    int64_t perm[ZC_MAX_RANK] = {0};
    const int rank = zc_imp_rank(im, v);
    for (int i = 1; i < rank; i++) perm[i] = i == rank - 1 ? 1 : i + 1;
    return zc_imp_transpose(im, n, v, perm, rank);
}

zc_nid zc_imp_expr(zc_imp *im, zc_inode *n, int nin, const zc_vid *in, const char *expr)
{
    zc_nid id = zc_imp_node(im, n, ZC_OP_Pointwise, nin, in, 1);
    const char *own = zc_arena_strdup(&im->g->arena, expr);
    if (!own) zc_imp_nomem(im, "an expression");
    ZC_IMP_SET(im, Pointwise, id, expr, own);
    return id;
}

/* ---- the node as it stands ---- */

zc_nid zc_imp_plain(zc_imp *im, zc_inode *n)
{
    const zc_op_info *info = zc_op_get(n->op);
    /* An output that the operation always has may be left out by the model. */
    int nout = n->nout < info->min_out ? info->min_out : n->nout;
    zc_nid id = zc_imp_node(im, n, n->op, n->nin, n->in, nout);
    if (id) im->status = zc_imp_attrs_copy(im, n, id);
    return im->status == ZC_OK ? id : 0;
}

zc_status zc_imp_finish_plain(zc_imp *im, zc_inode *n)
{
    return zc_imp_finish(im, n, zc_imp_plain(im, n));
}

/* ---- inputs ---- */

void zc_imp_set_in(zc_imp *im, zc_inode *n, int i, zc_vid v)
{
    if (i >= n->cap_in) {
        zc_imp_nomem(im, "inputs");
        return;
    }
    while (n->nin <= i) n->in[n->nin++] = 0;
    n->in[i] = v;
    while (n->nin && !n->in[n->nin - 1]) n->nin--;
}

zc_status zc_imp_need_inputs(zc_imp *im, zc_inode *n, int min, int max)
{
    if (n->nin < min || n->nin > max)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "%s has a wrong number of inputs (got %d, need %d to %d)", n->op_type,
                           n->nin, min, max);
    for (int i = 0; i < min; i++)
        if (!n->in[i])
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs input %d, which is left out",
                               n->op_type, i);
    return ZC_OK;
}

zc_status zc_imp_need_all(zc_imp *im, zc_inode *n, int from)
{
    for (int i = from; i < n->nin; i++)
        if (!n->in[i])
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs input %d, which is left out",
                               n->op_type, i);
    return ZC_OK;
}

int zc_imp_rank(const zc_imp *im, zc_vid v)
{
    return v ? zc_val(im->g, v)->type.rank : -1;
}

zc_dtype zc_imp_dtype(const zc_imp *im, zc_vid v)
{
    return v ? zc_val(im->g, v)->type.dtype : ZC_NONE;
}

int zc_imp_need_rank(zc_imp *im, zc_inode *n, zc_vid v, const char *what)
{
    int rank = zc_imp_rank(im, v);
    if (rank < 0 && im->status == ZC_OK)
        zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "%s needs a known rank of %s", n->op_type, what);
    return rank;
}
