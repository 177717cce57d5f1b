/* Operators on sequences and optionals. */
#include "import/composite.h"
#include "import/steps.h"

static zc_status give_bool(zc_imp *im, zc_inode *n, bool value)
{
    zc_tensor t = {.dtype = ZC_BOOL, .data = &value};
    return zc_imp_finish_as(im, n, zc_imp_const(im, zc_imp_out_name(im, n), &t));
}

/* ---- operands ---- */

static zc_status need_tensor(zc_imp *im, zc_inode *n, int i)
{
    if (!zc_is_composite(zc_imp_in(n, i))) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s: input %d is %s (need a tensor)", n->op_type, i,
                       zc_composite_kind(im, n->in[i]));
}

/* Input i, a sequence. Its items outlive other composites. */
static zc_status need_sequence(zc_imp *im, zc_inode *n, int i, zc_composite *out)
{
    zc_vid v = n->in[i];
    const char *kind = zc_is_composite(v) ? zc_composite_kind(im, v) : "a tensor";
    if (!zc_is_composite(v) || zc_composite_of(im, v)->kind != ZC_SEQUENCE)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s: input %d is %s (need a sequence)", n->op_type,
                           i, kind);
    *out = *zc_composite_of(im, v);
    return ZC_OK;
}

/* A position, input i: below `end`, negative ones count from the end. */
static zc_status known_position(zc_imp *im, zc_inode *n, int i, int count, int end, int *out)
{
    zc_ints at;
    ZC_TRY(need_tensor(im, n, i));
    if (!zc_imp_known_ints(im, n, n->in[i], &at))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "%s: the position is known only when the model runs", n->op_type);
    if (at.n != 1 || at.v[0] < -count || at.v[0] >= end)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "%s: position out of range (got %lld, need [%d, %d])", n->op_type,
                           at.n == 1 ? (long long)at.v[0] : -1LL, -count, end - 1);
    *out = (int)(at.v[0] < 0 ? at.v[0] + count : at.v[0]);
    return ZC_OK;
}

/* ---- Identity ---- */

zc_status zc_step_identity(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    return zc_is_composite(n->in[0]) ? zc_imp_finish_as(im, n, n->in[0]) : ZC_OK;
}

/* ---- sequences ---- */

zc_status zc_step_sequence_construct(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_all(im, n, 0));
    return zc_imp_finish_as(im, n, zc_sequence(im, n, n->in, n->nin, ZC_NONE));
}

zc_status zc_step_sequence_empty(zc_imp *im, zc_inode *n)
{
    int64_t dtype = zc_imp_take_int(im, n, "dtype", ZC_F32);
    ZC_TRY(im->status);
    ZC_TRY(zc_imp_need_inputs(im, n, 0, 0));
    if (dtype < 0 || dtype > INT32_MAX || !zc_dtype_valid((int)dtype))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "SequenceEmpty: no data type of numbers (got %lld)", (long long)dtype);
    return zc_imp_finish_as(im, n, zc_sequence(im, n, NULL, 0, (zc_dtype)dtype));
}

/* seq with `drop` items at `at` replaced by `count` others. */
static zc_status splice(zc_imp *im, zc_inode *n, const zc_composite *seq, int at, int drop,
                        const zc_vid *items, int count)
{
    int total = seq->n - drop + count;
    zc_vid *all = zc_arena_alloc(n->arena, (size_t)total, sizeof *all);
    if (!all) return zc_imp_nomem(im, "sequences");
    for (int i = 0; i < total; i++) {
        if (i < at)
            all[i] = seq->items[i];
        else
            all[i] = i < at + count ? items[i - at] : seq->items[i - count + drop];
    }
    return zc_imp_finish_as(im, n, zc_sequence(im, n, all, total, seq->dtype));
}

zc_status zc_step_sequence_insert(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 3));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    ZC_TRY(need_tensor(im, n, 1));
    int at = seq.n;
    if (zc_imp_in(n, 2)) ZC_TRY(known_position(im, n, 2, seq.n, seq.n + 1, &at));
    return splice(im, n, &seq, at, 0, &n->in[1], 1);
}

zc_status zc_step_sequence_erase(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    int at = seq.n - 1;
    if (zc_imp_in(n, 1)) ZC_TRY(known_position(im, n, 1, seq.n, seq.n, &at));
    if (!seq.n) return zc_imp_fail(im, n, ZC_ERR_MODEL, "SequenceErase: the sequence is empty");
    return splice(im, n, &seq, at, 1, NULL, 0);
}

zc_status zc_step_sequence_length(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    int64_t length = seq.n;
    zc_tensor t = {.dtype = ZC_I64, .data = &length};
    return zc_imp_finish_as(im, n, zc_imp_const(im, zc_imp_out_name(im, n), &t));
}

/* ---- from a sequence to one tensor ---- */

static zc_vid with_axis(zc_imp *im, zc_inode *n, zc_op op, zc_vid v, int64_t axis)
{
    return zc_imp_op2(im, n, op, v, zc_imp_ints(im, &axis, 1, 1));
}

zc_vid zc_stack(zc_imp *im, zc_inode *n, const zc_vid *items, int count, int64_t axis)
{
    zc_vid *parts = zc_arena_alloc(n->arena, (size_t)count, sizeof *parts);
    if (!parts) zc_imp_nomem(im, "values");
    for (int i = 0; i < count && im->status == ZC_OK; i++)
        parts[i] = with_axis(im, n, ZC_OP_Unsqueeze, items[i], axis);
    zc_nid id = zc_imp_node(im, n, ZC_OP_Concat, count, parts, 1);
    ZC_IMP_SET(im, Concat, id, axis, axis);
    return zc_imp_done(im, n, id);
}

zc_status zc_step_concat_from_sequence(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    bool has_axis = zc_imp_has_attr(n, "axis");
    int64_t axis = zc_imp_take_int(im, n, "axis", 0);
    bool stack = zc_imp_take_int(im, n, "new_axis", 0) != 0;
    ZC_TRY(im->status);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    if (!has_axis)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "ConcatFromSequence needs attribute 'axis'");
    if (!seq.n)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "ConcatFromSequence: the sequence is empty");
    if (stack) return zc_imp_finish_value(im, n, zc_stack(im, n, seq.items, seq.n, axis));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Concat, seq.n, seq.items, 1);
    ZC_IMP_SET(im, Concat, id, axis, axis);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(im, n, id);
}

static bool same_sizes(const zc_imp *im, const zc_composite *seq)
{
    const zc_type *first = seq->n ? &zc_val(im->g, seq->items[0])->type : NULL;
    if (!first || first->rank < 0) return false;
    for (int i = 0; i < seq->n; i++) {
        const zc_type *t = &zc_val(im->g, seq->items[i])->type;
        if (t->rank != first->rank) return false;
        for (int d = 0; d < t->rank; d++)
            if (!zc_dim_is_const(t->dims[d]) || !zc_dim_is_const(first->dims[d]) ||
                t->dims[d].k != first->dims[d].k)
                return false;
    }
    return true;
}

/* Where the position is known only at run time, tensors of one size can be gathered from. */
zc_status zc_step_sequence_at(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    zc_ints known;
    int at;
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    ZC_TRY(need_tensor(im, n, 1));
    if (!zc_imp_known_ints(im, n, n->in[1], &known) && same_sizes(im, &seq)) {
        zc_vid stack = zc_stack(im, n, seq.items, seq.n, 0);
        return zc_imp_finish_op(im, n, ZC_OP_Gather, 2, (zc_vid[]){stack, n->in[1]});
    }
    ZC_TRY(known_position(im, n, 1, seq.n, seq.n, &at));
    return zc_imp_finish_as(im, n, seq.items[at]);
}

/* ---- SplitToSequence ---- */

/* Parts of `size` of an axis of `whole` (-1: not known), the last one smaller. */
static zc_status equal_parts(zc_imp *im, zc_inode *n, int64_t whole, int64_t size, zc_ints *out)
{
    if (size < 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "SplitToSequence: size of a part (got %lld, need at least 1)",
                           (long long)size);
    if (whole < 0)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "SplitToSequence: the size of the axis, and so the length of the "
                           "sequence, is not known (fix its dimension: --dim NAME=N)");
    int64_t count = whole / size + (whole % size != 0);
    if (count > ZC_SEQUENCE_MAX)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT,
                           "the sequence is too long (got %lld, need at most %lld)",
                           (long long)count, (long long)ZC_SEQUENCE_MAX);
    int64_t *sizes = zc_arena_alloc(n->arena, (size_t)count, sizeof *sizes);
    if (!sizes) return zc_imp_nomem(im, "sequences");
    for (int64_t i = 0; i < count; i++) sizes[i] = i < count - 1 ? size : whole - i * size;
    *out = (zc_ints){.n = (int)count, .v = sizes};
    return ZC_OK;
}

/* The sizes of the parts as a value, and how many there are. */
static zc_status part_sizes(zc_imp *im, zc_inode *n, zc_dim whole, zc_vid *out, int *count)
{
    zc_ints split = {.n = 1, .v = (const int64_t[]){1}};
    const zc_vid v = zc_imp_in(n, 1);
    const zc_type *t = v ? &zc_val(im->g, v)->type : NULL;
    if (t && t->rank == 1 && zc_dim_is_const(t->dims[0]) && t->dims[0].k <= ZC_SEQUENCE_MAX) {
        *out = v;
        *count = (int)t->dims[0].k;
        return ZC_OK;
    }
    if (v && (t->rank != 0 || !zc_imp_known_ints(im, n, v, &split)))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "SplitToSequence: how many parts there are is known only when the model "
                           "runs");
    ZC_TRY(equal_parts(im, n, zc_dim_is_const(whole) ? whole.k : -1, split.v[0], &split));
    *out = zc_imp_ints(im, split.v, split.n, 1);
    *count = split.n;
    return im->status;
}

zc_status zc_step_split_to_sequence(zc_imp *im, zc_inode *n)
{
    int64_t axis = zc_imp_take_int(im, n, "axis", 0);
    bool keep = zc_imp_take_int(im, n, "keepdims", 1) != 0 || zc_imp_in(n, 1);
    zc_vid in[2] = {zc_imp_in(n, 0)};
    int count = 0;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    int rank = zc_imp_need_rank(im, n, in[0], "its input");
    ZC_TRY(im->status);
    if (axis < -rank || axis >= rank)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "SplitToSequence: axis out of range (got %lld, need [%d, %d])",
                           (long long)axis, -rank, rank - 1);
    zc_dim whole = zc_val(im->g, in[0])->type.dims[axis < 0 ? axis + rank : axis];
    ZC_TRY(part_sizes(im, n, whole, &in[1], &count));
    if (!count)
        return zc_imp_finish_as(im, n, zc_sequence(im, n, NULL, 0, zc_imp_dtype(im, in[0])));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Split, 2, in, count);
    ZC_IMP_SET(im, Split, id, axis, axis);
    zc_imp_done(im, n, id);
    zc_vid *parts = zc_arena_alloc(n->arena, (size_t)count, sizeof *parts);
    if (!parts) return zc_imp_nomem(im, "sequences");
    for (int i = 0; i < count && im->status == ZC_OK; i++) {
        parts[i] = zc_node_at(im->g, id)->out[i];
        if (!keep) parts[i] = with_axis(im, n, ZC_OP_Squeeze, parts[i], axis);
    }
    return zc_imp_finish_as(im, n, zc_sequence(im, n, parts, count, ZC_NONE));
}

/* ---- SequenceMap ---- */

const char *zc_iteration_prefix(zc_imp *im, zc_inode *n, int64_t i)
{
    zc_buf buf = {0};
    zc_buf_printf(&buf, ZC_NAME "/%lld", n->name, (long long)i);
    const char *prefix = buf.failed ? NULL : zc_arena_strndup(n->arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    if (!prefix) zc_imp_nomem(im, "names");
    return prefix;
}

/* Item i of each sequence among the inputs, and the tensors as they are. */
static zc_status map_inputs(zc_imp *im, zc_inode *n, int i, int count, zc_vid *out)
{
    for (int k = 0; k < n->nin; k++) {
        zc_composite seq;
        out[k] = n->in[k];
        if (!zc_is_composite(n->in[k])) continue;
        ZC_TRY(need_sequence(im, n, k, &seq));
        if (seq.n != count)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "SequenceMap: length of sequence %d (got %d, need %d)", k, seq.n,
                               count);
        out[k] = seq.items[i];
    }
    return ZC_OK;
}

zc_status zc_step_sequence_map(zc_imp *im, zc_inode *n)
{
    zc_composite seq;
    const Onnx__GraphProto *body = zc_imp_take_graph(im, n, "body");
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    ZC_TRY(zc_imp_need_all(im, n, 0));
    ZC_TRY(zc_imp_need_inputs(im, n, 1, n->nin));
    ZC_TRY(need_sequence(im, n, 0, &seq));
    if (!body || body->n_output < (size_t)n->nout)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "SequenceMap: outputs of the body (got %zu, need %d)",
                           body ? body->n_output : 0, n->nout);
    const size_t nout = body->n_output, count = (size_t)seq.n;
    zc_vid *in = zc_arena_alloc(n->arena, (size_t)n->nin, sizeof *in);
    zc_vid *out = zc_arena_alloc(n->arena, nout, sizeof *out);
    zc_vid **rows = zc_arena_alloc(n->arena, nout, sizeof *rows);
    if (!in || !out || !rows) return zc_imp_nomem(im, "sequences");
    for (size_t k = 0; k < nout; k++)
        if (!(rows[k] = zc_arena_alloc(n->arena, count, sizeof **rows)))
            return zc_imp_nomem(im, "sequences");
    for (size_t i = 0; i < count; i++) {
        const char *prefix = zc_iteration_prefix(im, n, (int64_t)i);
        ZC_TRY(im->status);
        ZC_TRY(map_inputs(im, n, (int)i, seq.n, in));
        ZC_TRY(zc_imp_splice(im, n, body, prefix, (size_t)n->nin, in, out));
        ZC_TRY(zc_need_tensors(im, n, out, nout, "output of the body"));
        for (size_t k = 0; k < nout; k++) rows[k][i] = out[k];
    }
    for (int k = 0; k < n->nout; k++)
        if (*n->out[k]) ZC_TRY(zc_imp_bind(im, n, k, zc_sequence(im, n, rows[k], seq.n, ZC_NONE)));
    n->done = true;
    return im->status;
}

/* ---- optionals ---- */

zc_status zc_step_optional(zc_imp *im, zc_inode *n)
{
    zc_imp_take(im, n, "type", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO);
    ZC_TRY(zc_imp_need_inputs(im, n, 0, 1));
    zc_vid v = zc_imp_in(n, 0);
    if (v && zc_is_composite(v) && zc_composite_of(im, v)->kind == ZC_OPTIONAL)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "Optional: input 0 is an optional (need a tensor or a sequence)");
    return zc_imp_finish_as(im, n, zc_optional(im, n, v));
}

zc_status zc_step_optional_get_element(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_vid v = n->in[0];
    if (!zc_is_composite(v)) return zc_imp_finish_value(im, n, v);
    const zc_composite c = *zc_composite_of(im, v);
    if (c.kind == ZC_SEQUENCE) return zc_imp_finish_as(im, n, v);
    if (!c.n) return zc_imp_fail(im, n, ZC_ERR_MODEL, "OptionalGetElement: the optional is empty");
    return zc_imp_finish_as(im, n, c.items[0]);
}

zc_status zc_step_optional_has_element(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 0, 1));
    zc_vid v = zc_imp_in(n, 0);
    if (!v || !zc_is_composite(v)) return give_bool(im, n, v != 0);
    const zc_composite *c = zc_composite_of(im, v);
    return give_bool(im, n, c->kind == ZC_SEQUENCE || c->n);
}
