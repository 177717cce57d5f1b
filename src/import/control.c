/* If, Loop and Scan: their bodies become regions. */
#include <stdlib.h>

#include "import/composite.h"
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
    ZC_TRY(zc_imp_splice(im, n, branch, NULL, 0, NULL, out));
    for (int i = 0; i < n->nout; i++)
        if (*n->out[i]) ZC_TRY(zc_imp_bind(im, n, i, out[i]));
    n->done = true;
    return ZC_OK;
}

/* The branches give composites: in the same form, so that one node gives all of their tensors. */
static zc_status finish_composites(zc_imp *im, zc_inode *n, zc_nid id, const zc_vid *then_out,
                                   const zc_vid *else_out)
{
    size_t width = 0;
    for (int i = 0; i < n->nout; i++) {
        if (!zc_composite_alike(im, then_out[i], else_out[i]))
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "If: output %d is a sequence or an optional, and how many tensors "
                               "it has is known only when the model runs",
                               i);
        width += zc_composite_width(im, then_out[i]);
    }
    zc_vid *out = zc_arena_alloc(&im->g->arena, width, sizeof *out);
    if (!out) return zc_imp_nomem(im, "values");
    zc_node_at(im->g, id)->nout = (int)width;
    zc_node_at(im->g, id)->out = out;
    zc_imp_done(im, n, id);
    ZC_TRY(im->status);
    const zc_vid *next = out;
    for (int i = 0; i < n->nout; i++) {
        zc_vid v = zc_composite_like(im, n, then_out[i], &next);
        ZC_TRY(im->status);
        if (*n->out[i]) ZC_TRY(zc_imp_bind(im, n, i, v));
    }
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
    zc_vid *then_out = zc_arena_alloc(n->arena, then_g->n_output, sizeof *then_out);
    zc_vid *else_out = zc_arena_alloc(n->arena, else_g->n_output, sizeof *else_out);
    if (!then_out || !else_out) return zc_imp_nomem(im, "values");
    ZC_TRY(zc_imp_region_outputs(im, n, id, 0, then_g, NULL, 0, then_out));
    ZC_TRY(zc_imp_region_outputs(im, n, id, 1, else_g, NULL, 0, else_out));
    bool composites = false;
    for (size_t i = 0; i < then_g->n_output; i++) composites |= zc_is_composite(then_out[i]);
    for (size_t i = 0; i < else_g->n_output; i++) composites |= zc_is_composite(else_out[i]);
    if (!composites) return zc_imp_finish_named(im, n, id);
    if (then_g->n_output != (size_t)n->nout || else_g->n_output != (size_t)n->nout)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "If: outputs of the branches (got %zu and %zu, need %d)",
                           then_g->n_output, else_g->n_output, n->nout);
    return finish_composites(im, n, id, then_out, else_out);
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

/* A body that carries composites is unrolled. */
typedef struct unrolled {
    const Onnx__GraphProto *body;
    int states;
    zc_vid *in;     /* of the body: iteration, condition, states */
    zc_vid *out;    /* of the body: condition, states, scanned values */
    zc_vids *scans; /* what the iterations gave of each scanned value */
    size_t nscans;
} unrolled;

/* A boolean or whole number that must be known, input or output `what`. */
static zc_status known_number(zc_imp *im, zc_inode *n, zc_vid v, const char *what, int64_t *out)
{
    zc_ints list = {0};
    if (!zc_is_composite(v) && zc_imp_known_ints(im, n, v, &list) && list.n == 1) {
        *out = list.v[0];
        return ZC_OK;
    }
    return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                       "Loop: a sequence or an optional is carried, so that %s must be known, and "
                       "it is known only when the model runs",
                       what);
}

/* One iteration; *goes_on: the condition that it ends with. */
static zc_status unroll_one(zc_imp *im, zc_inode *n, unrolled *u, int64_t i, int64_t *goes_on)
{
    const char *prefix = zc_iteration_prefix(im, n, i);
    u->in[0] = zc_imp_scalar(im, ZC_I64, (double)i);
    u->in[1] = zc_imp_scalar(im, ZC_BOOL, 1);
    ZC_TRY(im->status);
    if (i == ZC_SEQUENCE_MAX || ++im->visited > ZC_IMP_NODES_MAX)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT,
                           "Loop: too many iterations to be unrolled (need at most %lld)",
                           (long long)ZC_SEQUENCE_MAX);
    ZC_TRY(zc_imp_splice(im, n, u->body, prefix, (size_t)u->states + 2, u->in, u->out));
    ZC_TRY(known_number(im, n, u->out[0], "the condition", goes_on));
    memcpy(u->in + 2, u->out + 1, (size_t)u->states * sizeof *u->in);
    const zc_vid *scanned = u->out + 1 + u->states;
    ZC_TRY(zc_need_tensors(im, n, scanned, u->nscans, "scanned output"));
    for (size_t k = 0; k < u->nscans; k++)
        if (!ZC_VEC_PUSH(&u->scans[k], scanned[k])) return zc_imp_nomem(im, "values");
    return ZC_OK;
}

static zc_status unroll_all(zc_imp *im, zc_inode *n, unrolled *u)
{
    int64_t trips = INT64_MAX, goes_on = 1;
    if (n->in[0]) ZC_TRY(known_number(im, n, n->in[0], "the number of iterations", &trips));
    if (n->in[1]) ZC_TRY(known_number(im, n, n->in[1], "the condition", &goes_on));
    for (int64_t i = 0; i < trips && goes_on; i++) ZC_TRY(unroll_one(im, n, u, i, &goes_on));
    for (int k = 0; k < u->states; k++)
        if (k < n->nout && *n->out[k]) ZC_TRY(zc_imp_bind(im, n, k, u->in[2 + k]));
    for (size_t k = 0; k < u->nscans; k++) {
        int i = u->states + (int)k;
        const zc_vids *parts = &u->scans[k];
        if (i >= n->nout || !*n->out[i]) continue;
        if (!parts->len)
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "Loop: output %d is of no iteration, so that its type is not known",
                               i);
        ZC_TRY(zc_imp_bind(im, n, i, zc_stack(im, n, parts->data, (int)parts->len, 0)));
    }
    n->done = true;
    return ZC_OK;
}

static zc_status unroll(zc_imp *im, zc_inode *n, const Onnx__GraphProto *body)
{
    unrolled u = {.body = body, .states = n->nin - 2};
    size_t states = (size_t)u.states;
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    ZC_TRY(zc_need_tensors(im, n, n->in, 2, "input"));
    if (body->n_output < states + 1 || body->n_output - 1 < (size_t)n->nout)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "Loop: outputs of the body (got %zu, need %zu)",
                           body->n_output,
                           1 + (states > (size_t)n->nout ? states : (size_t)n->nout));
    u.nscans = body->n_output - 1 - states;
    u.in = zc_arena_alloc(n->arena, states + 2, sizeof *u.in);
    u.out = zc_arena_alloc(n->arena, body->n_output, sizeof *u.out);
    u.scans = zc_arena_alloc(n->arena, u.nscans, sizeof *u.scans);
    if (!u.in || !u.out || !u.scans) return zc_imp_nomem(im, "values");
    memcpy(u.in + 2, n->in + 2, states * sizeof *u.in);
    zc_status status = unroll_all(im, n, &u);
    for (size_t k = 0; k < u.nscans; k++) ZC_VEC_FINI(&u.scans[k]);
    return status;
}

zc_status zc_step_loop(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    const Onnx__GraphProto *body = take_graph(im, n, "body");
    ZC_TRY(im->status);
    while (n->nin < 2) n->in[n->nin++] = 0; /* trip count and condition */
    ZC_TRY(zc_imp_need_all(im, n, 2));
    for (int i = 0; i < n->nin; i++)
        if (zc_is_composite(n->in[i])) return unroll(im, n, body);
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
