/* If, Loop and Scan: their bodies become regions. */
#include "import/importer.h"
#include "import/steps.h"

static const Onnx__GraphProto *take_graph(zc_imp *im, zc_inode *n, const char *name)
{
    const Onnx__GraphProto *graph = zc_imp_take_graph(im, n, name);
    if (!graph && im->status == ZC_OK)
        zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs attribute '%s'", n->op_type, name);
    return graph;
}

/* ---- If ---- */

/* The branch that a condition known now takes stands in place of the If: the other one may even be
 * wrong for these shapes. */
static zc_status known_if(zc_imp *im, zc_inode *n, const Onnx__GraphProto *branch)
{
    zc_vid *out = zc_arena_alloc(n->arena, branch->n_output, sizeof *out);
    if (!out) return zc_imp_nomem(im, "values");
    if (branch->n_output != (size_t)n->nout)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "If: outputs of the branch (got %zu, need %d)",
                           branch->n_output, n->nout);
    ZC_TRY(zc_imp_splice(im, n, branch, 0, NULL, out));
    for (int i = 0; i < n->nout; i++)
        if (*n->out[i]) ZC_TRY(zc_imp_bind(im, n, i, out[i]));
    n->done = true;
    return ZC_OK;
}

zc_status zc_step_if(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    const Onnx__GraphProto *then_g = take_graph(im, n, "then_branch");
    const Onnx__GraphProto *else_g = take_graph(im, n, "else_branch");
    zc_ints cond;
    ZC_TRY(im->status);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    if (zc_imp_known_ints(im, n, n->in[0], &cond) && cond.n == 1) {
        ZC_TRY(zc_imp_no_more_attrs(im, n));
        return known_if(im, n, cond.v[0] ? then_g : else_g);
    }
    zc_nid id = zc_imp_plain(im, n);
    ZC_TRY(zc_imp_name_outputs(im, n, id));
    ZC_TRY(zc_imp_region(im, n, id, 0, then_g, NULL, 0));
    ZC_TRY(zc_imp_region(im, n, id, 1, else_g, NULL, 0));
    return zc_imp_finish_named(im, n, id);
}

/* ---- Loop ---- */

/* A carried value at some iteration: of its dimensions, which may change, only the number is known.
 */
static zc_type carried_type(zc_imp *im, zc_vid init)
{
    zc_type t = zc_val(im->g, init)->type;
    for (int i = 0; i < t.rank; i++) t.dims[i] = zc_dim_fresh(&im->g->dims);
    return t;
}

/* Carried values whose rank inference found to change have an unknown one in types from now on.
 * false: there are none. */
static bool forget_ranks(zc_imp *im, zc_nid id, size_t first, size_t count, zc_type *types)
{
    const zc_block *body = zc_node_at(im->g, id)->regions[0];
    bool any = false;
    for (size_t i = first; i < first + count; i++) {
        if (types[i].rank < 0 || zc_imp_rank(im, body->params.data[i]) >= 0) continue;
        types[i].rank = -1;
        any = true;
    }
    return any;
}

static void empty_region(zc_imp *im, zc_nid id)
{
    zc_block *body = zc_node_at(im->g, id)->regions[0];
    for (size_t i = 0; i < body->nodes.len; i++) zc_graph_remove(im->g, body->nodes.data[i]);
    body->params.len = body->nodes.len = body->outputs.len = 0;
}

/* The body with `count` values carried from input `first` on. What is made of its nodes may follow
 * from the ranks that the first iteration has: where they change, it is imported again without
 * them. */
static zc_status carried_region(zc_imp *im, zc_inode *n, zc_nid id, const Onnx__GraphProto *body,
                                zc_type *types, size_t first, size_t count)
{
    ZC_TRY(zc_imp_region(im, n, id, 0, body, types, (size_t)n->nin));
    im->status = zc_graph_infer(im->g, id, im->diag);
    while (im->status == ZC_OK && forget_ranks(im, id, first, count, types)) {
        empty_region(im, id);
        ZC_TRY(zc_imp_region(im, n, id, 0, body, types, (size_t)n->nin));
        im->status = zc_graph_infer(im->g, id, im->diag);
    }
    return im->status;
}

zc_status zc_step_loop(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    const Onnx__GraphProto *body = take_graph(im, n, "body");
    ZC_TRY(im->status);
    while (n->nin < 2) n->in[n->nin++] = 0; /* trip count and condition */
    ZC_TRY(zc_imp_need_all(im, n, 2));
    zc_type *types = zc_arena_alloc(n->arena, (size_t)n->nin, sizeof *types);
    if (!types) return zc_imp_nomem(im, "types");
    types[0] = (zc_type){.dtype = ZC_I64};
    types[1] = (zc_type){.dtype = ZC_BOOL};
    for (int i = 2; i < n->nin; i++) types[i] = carried_type(im, n->in[i]);
    zc_nid id = zc_imp_plain(im, n);
    ZC_TRY(zc_imp_name_outputs(im, n, id));
    ZC_TRY(carried_region(im, n, id, body, types, 2, (size_t)n->nin - 2));
    return zc_imp_finish_named(im, n, id);
}

/* ---- Scan ---- */

static zc_status check_list(zc_imp *im, zc_inode *n, const char *name, zc_ints list, int64_t need,
                            bool directions)
{
    if (list.n && list.n != need)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '%s' has a wrong length (got %d, need %lld)", name, list.n,
                           (long long)need);
    for (int i = 0; directions && i < list.n; i++)
        if (list.v[i] != 0 && list.v[i] != 1)
            return zc_imp_fail(
                im, n, ZC_ERR_MODEL,
                "attribute '%s' has an entry that is no direction (got %lld, need 0 or 1)", name,
                (long long)list.v[i]);
    return ZC_OK;
}

static zc_status check_scan(zc_imp *im, zc_inode *n, zc_nid id)
{
    const zc_attrs_Scan *a = zc_node_at(im->g, id)->attrs;
    int64_t scans = a->num_scan_inputs;
    if (scans < 1 || scans > n->nin)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "num_scan_inputs out of range (got %lld, need [1, %d])",
                           (long long)scans, n->nin);
    int64_t outs = n->nout - (n->nin - scans);
    ZC_TRY(check_list(im, n, "scan_input_axes", a->scan_input_axes, scans, false));
    ZC_TRY(check_list(im, n, "scan_input_directions", a->scan_input_directions, scans, true));
    ZC_TRY(check_list(im, n, "scan_output_axes", a->scan_output_axes, outs, false));
    return check_list(im, n, "scan_output_directions", a->scan_output_directions, outs, true);
}

/* The type of one slice of a scanned value. */
static zc_status slice_type(zc_imp *im, zc_inode *n, zc_vid v, int64_t axis, zc_type *out)
{
    zc_type t = zc_val(im->g, v)->type;
    if (t.rank >= 0 && (axis < -t.rank || axis >= t.rank))
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "Scan: axis of a scanned input out of range (got %lld, need [%d, %d])",
                           (long long)axis, -t.rank, t.rank - 1);
    if (t.rank >= 0) {
        t.rank--;
        for (int d = (int)(axis < 0 ? axis + t.rank + 1 : axis); d < t.rank; d++)
            t.dims[d] = t.dims[d + 1];
    }
    *out = t;
    return ZC_OK;
}

/* The types of the body's inputs for inputs in[0..nin). NULL: failed. */
static zc_type *scan_types(zc_imp *im, zc_inode *n, const zc_attrs_Scan *a, const zc_vid *in,
                           int nin)
{
    zc_type *types = zc_arena_alloc(n->arena, (size_t)nin, sizeof *types);
    if (!types) zc_imp_nomem(im, "types");
    int states = nin - (int)a->num_scan_inputs;
    for (int i = 0; im->status == ZC_OK && i < nin; i++) {
        int64_t axis =
            i - states < a->scan_input_axes.n && i >= states ? a->scan_input_axes.v[i - states] : 0;
        if (i < states)
            types[i] = carried_type(im, in[i]);
        else
            slice_type(im, n, in[i], axis, &types[i]);
    }
    return im->status == ZC_OK ? types : NULL;
}

zc_status zc_step_scan(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    const Onnx__GraphProto *body = take_graph(im, n, "body");
    ZC_TRY(im->status);
    ZC_TRY(zc_imp_need_all(im, n, 0));
    zc_nid id = zc_imp_plain(im, n);
    ZC_TRY(im->status);
    ZC_TRY(check_scan(im, n, id));
    ZC_TRY(zc_imp_name_outputs(im, n, id));
    const zc_attrs_Scan *a = zc_node_at(im->g, id)->attrs;
    size_t states = (size_t)(n->nin - a->num_scan_inputs);
    zc_type *types = scan_types(im, n, a, n->in, n->nin);
    if (!types) return im->status;
    ZC_TRY(carried_region(im, n, id, body, types, 0, states));
    return zc_imp_finish_named(im, n, id);
}

/* The inner Scan of one batch entry, in the region of the outer one. */
static zc_status scan_entry(zc_imp *im, zc_inode *n, const Onnx__GraphProto *body, zc_block *b,
                            int64_t scans, zc_ints directions)
{
    zc_nid id = zc_imp_node(im, n, ZC_OP_Scan, n->nin, b->params.data, n->nout);
    ZC_TRY(im->status);
    ZC_IMP_SET(im, Scan, id, num_scan_inputs, scans);
    if (directions.n) ZC_IMP_SET(im, Scan, id, scan_input_directions, directions);
    zc_type *types = scan_types(im, n, zc_node_at(im->g, id)->attrs, b->params.data, n->nin);
    if (!types) return im->status;
    ZC_TRY(carried_region(im, n, id, body, types, 0, (size_t)(n->nin - scans)));
    zc_imp_done(im, n, id);
    for (int i = 0; im->status == ZC_OK && i < n->nout; i++)
        if (!ZC_VEC_PUSH(&b->outputs, zc_node_at(im->g, id)->out[i])) zc_imp_nomem(im, "values");
    return im->status;
}

/* Scan-8 ran over axis 1 for every entry of axis 0, states included: an outer Scan over axis 0. */
zc_status zc_step_scan_8(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    const Onnx__GraphProto *body = take_graph(im, n, "body");
    int64_t scans = zc_imp_take_int(im, n, "num_scan_inputs", 0);
    zc_ints directions;
    zc_imp_take_ints(im, n, "directions", &directions);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (zc_imp_in(n, 0))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "Scan before opset 9 with sequence_lens is not supported");
    if (n->nin) n->nin--;
    n->in++;
    n->cap_in--;
    ZC_TRY(zc_imp_need_all(im, n, 0));
    if (scans < 1 || scans > n->nin)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "num_scan_inputs out of range (got %lld, need [1, %d])",
                           (long long)scans, n->nin);
    ZC_TRY(check_list(im, n, "directions", directions, scans, true));
    directions.v =
        zc_arena_dup(&im->g->arena, directions.v, (size_t)directions.n, sizeof *directions.v);
    zc_nid id = zc_imp_node(im, n, ZC_OP_Scan, n->nin, n->in, n->nout);
    zc_block *outer_block = im->block, *b = id ? zc_graph_region(im->g, id, 0) : NULL;
    if (!b || !directions.v) return zc_imp_nomem(im, "regions");
    ZC_IMP_SET(im, Scan, id, num_scan_inputs, (int64_t)n->nin);
    ZC_TRY(zc_imp_name_outputs(im, n, id));
    for (int i = 0; i < n->nin; i++) {
        zc_type t;
        ZC_TRY(slice_type(im, n, n->in[i], 0, &t));
        zc_vid v = zc_graph_value(im->g, NULL, ZC_VALUE_PARAM, &t);
        if (!v || !ZC_VEC_PUSH(&b->params, v)) return zc_imp_nomem(im, "values");
    }
    im->block = b;
    im->status = scan_entry(im, n, body, b, scans, directions);
    im->block = outer_block;
    ZC_TRY(im->status);
    return zc_imp_finish_named(im, n, id);
}
