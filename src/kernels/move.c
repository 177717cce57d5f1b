/* Kernels that move elements know their size at most; one text serves many operations. */
/* Operations that are copies between views of their operands. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/gen.h"
#include "kernels/move_form.h"
#include "op/half.h"
#include "op/slice.h"

/* ---- the specialisation ---- */

static bool is_false(const zc_pvalue *v)
{
    return !v || (v->kind == ZC_P_CONST && v->bytes == 1 && *(const unsigned char *)v->data == 0);
}

/* Is the scale such that zx_quantised divides by it? */
static bool near_scale(const zc_gen *g)
{
    zc_tensor t;
    if (!zc_gen_constant(g, ZC_IN_TransposeCast_scale, &t) || t.dtype != ZC_F32) return false;
    const double scale = zc_load_f64(t.dtype, t.data, 0);
    return scale >= 0x1p-100 && scale <= 0x1p100;
}

static zc_status gen_cast(zc_gen *g)
{
    const zc_dtype from = zc_gen_in_type(g, 0), to = zc_gen_out_type(g, 0);
    const unsigned in = zc_dtype_bits(from) / 8, out = zc_dtype_bits(to) / 8;
    snprintf(g->label, sizeof g->label, "move");
    zc_gen_define(g, "CASTS", "1");
    zc_gen_define(g, "WIDENS", "%d", out > in);
    zc_gen_define(g, "ELEMENT", "%u", out > in ? in : out);
    zc_gen_type(g, "FROM", from);
    zc_gen_type(g, "TO", to);
    zc_gen_define(g, "QUANTISES", "%d", zc_gen_in(g, ZC_IN_TransposeCast_scale) != NULL);
    if (zc_gen_in(g, ZC_IN_TransposeCast_scale)) {
        zc_gen_type(g, "SCALE", zc_gen_in_type(g, ZC_IN_TransposeCast_scale));
        zc_gen_define(g, "NEAR_SCALE", "%d", near_scale(g));
    } else
        zc_gen_define(g, "MOST", "%.9g", fmin(zc_half_max(to), FLT_MAX));
    return ZC_OK;
}

zc_status zc_gen_move(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (g->step->op == ZC_OP_TransposeCast) return gen_cast(g);
    if (g->step->op != ZC_OP_BitCast && zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (g->step->op == ZC_OP_Dropout && !is_false(zc_gen_in(g, 2)))
        return zc_gen_decline(g, "dropout in training");
    snprintf(g->label, sizeof g->label, "move");
    unsigned bits = zc_dtype_bits(in->dtype);
    zc_gen_define(g, "ELEMENT", "%u", bits < 8 ? 1 : bits / 8);
    if (zc_moves_parts(g->step->op)) g->pitched = ZC_PITCHED_ALL;
    return ZC_OK;
}

/* ---- the launch ---- */

static char *element(const zc_tensor *t, int64_t i)
{
    return (char *)t->data + i * zc_move_size(t);
}

static int axis_of(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- the same bytes under another shape ---- */

static zc_status copy_bytes(zc_launch *l)
{
    size_t from = 0, to = 0;
    if (!zc_tensor_bytes(&l->in[0], &from) || !zc_tensor_bytes(&l->out[0], &to) || from != to) {
        char a[256], b[256];
        return zc_launch_fail(l, "element counts do not agree (got input %s for shape %s)",
                              zc_tensor_type_text(&l->in[0], a, sizeof a),
                              zc_tensor_type_text(&l->out[0], b, sizeof b));
    }
    if (to == 0 || l->out[0].data == l->in[0].data) return ZC_OK;
    return zc_launch_copy(l, l->out[0].data, l->in[0].data, to);
}

/* Without training it is a copy, and everything is kept. */
static zc_status dropout(zc_launch *l)
{
    size_t n = (size_t)zc_tensor_numel(&l->in[0]);
    bool training = l->nin > 2 && zc_present(&l->host[2]) && l->host[2].data &&
                    *(const uint8_t *)l->host[2].data;
    double ratio = 0.5;
    if (l->nin > 1 && zc_present(&l->host[1]) && l->host[1].data)
        ratio = zc_load_f64(l->host[1].dtype, l->host[1].data, 0);
    if (training && ratio != 0)
        return zc_fail(l->diag, ZC_ERR_UNSUPPORTED, l->subject, "dropout in training on the GPU");
    if (l->nout > 1 && zc_present(&l->out[1]) && n) ZC_TRY(zc_launch_fill(l, l->out[1].data, 1, n));
    return zc_present(&l->out[0]) ? copy_bytes(l) : ZC_OK;
}

/* ---- permutations ---- */

/* A tensor of those dimensions with its axes in the order `perm`. */
static void put_order(int rank, const int64_t *dims, const int *perm, zc_move *m)
{
    zc_tensor in = {.rank = rank}, out = {.rank = rank};
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        in.dims[i] = dims[i];
        out.dims[i] = dims[perm[i]];
    }
    zc_move_strides(&in, from);
    zc_move_strides(&out, to);
    for (int i = 0; i < rank; i++) zc_move_axis(m, out.dims[i], to[i], from[perm[i]]);
}

/* Output 0 is input 0, seen under `dims`, with axes in the order `perm`. */
static zc_status permute(zc_launch *l, int rank, const int64_t *dims, const int *perm)
{
    zc_move m = {0};
    put_order(rank, dims, perm, &m);
    return zc_move_run(l, &m, zc_move_size(&l->in[0]), l->out[0].data, l->in[0].data);
}

/* Which axes of the input the result's are. */
static zc_status order_of(zc_launch *l, const zc_ints *wanted, int perm[ZC_MAX_RANK])
{
    const zc_tensor *in = &l->in[0];
    int64_t dims[ZC_MAX_RANK];
    for (int i = 0; i < in->rank; i++) {
        perm[i] = wanted->n ? (int)wanted->v[i] : in->rank - 1 - i;
        dims[i] = in->dims[perm[i]];
    }
    return zc_move_check(l, &l->out[0], in->rank, dims, "the output");
}

static zc_status transpose(zc_launch *l)
{
    int perm[ZC_MAX_RANK];
    ZC_TRY(order_of(l, &ZC_ATTRS(l, Transpose)->perm, perm));
    return permute(l, l->in[0].rank, l->in[0].dims, perm);
}

static zc_status transpose_cast(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    int perm[ZC_MAX_RANK];
    zc_move m = {.scale = zc_launch_in(l, ZC_IN_TransposeCast_scale),
                 .zero = zc_launch_in(l, ZC_IN_TransposeCast_zero)};
    ZC_TRY(order_of(l, &ZC_ATTRS(l, TransposeCast)->perm, perm));
    put_order(in->rank, in->dims, perm, &m);
    return zc_move_cast(l, &m);
}

static zc_status depth_to_space(zc_launch *l)
{
    const zc_attrs_DepthToSpace *a = ZC_ATTRS(l, DepthToSpace);
    const int64_t *d = l->in[0].dims, b = a->blocksize;
    int64_t channels = d[1] / (b * b);
    ZC_TRY(zc_move_check(l, &l->out[0], 4, (int64_t[]){d[0], channels, d[2] * b, d[3] * b},
                         "the output"));
    ZC_TRY(zc_move_check_length(l, channels * b * b, d[1], "number of channels"));
    if (strcmp(a->mode, "DCR") == 0)
        return permute(l, 6, (int64_t[]){d[0], b, b, channels, d[2], d[3]},
                       (int[]){0, 3, 4, 1, 5, 2});
    return permute(l, 6, (int64_t[]){d[0], channels, b, b, d[2], d[3]}, (int[]){0, 1, 4, 2, 5, 3});
}

static zc_status space_to_depth(zc_launch *l)
{
    const int64_t *d = l->in[0].dims, b = ZC_ATTRS(l, SpaceToDepth)->blocksize;
    ZC_TRY(zc_move_check(l, &l->out[0], 4, (int64_t[]){d[0], d[1] * b * b, d[2] / b, d[3] / b},
                         "the output"));
    ZC_TRY(zc_move_check(l, &l->in[0], 4, (int64_t[]){d[0], d[1], d[2] / b * b, d[3] / b * b},
                         "the input"));
    return permute(l, 6, (int64_t[]){d[0], d[1], d[2] / b, b, d[3] / b, b},
                   (int[]){0, 3, 5, 1, 2, 4});
}

/* ---- Concat and Split ---- */

/* From one row of a tensor along an axis to the next, in elements of that axis. */
static int64_t row_pitch(const zc_tensor *t, int axis, int64_t pitch)
{
    return axis == t->rank - 1 ? pitch : t->dims[axis];
}

/* A tensor that must have the shape of the whole but along the axis; pitch: of its last axis. */
static zc_status add_part(zc_launch *l, zc_parts *p, const zc_tensor *part, int64_t pitch,
                          const char *what)
{
    const zc_tensor *whole = p->whole;
    int64_t dims[ZC_MAX_RANK];
    memcpy(dims, whole->dims, sizeof dims);
    if (part->rank == whole->rank) dims[p->axis] = part->dims[p->axis];
    ZC_TRY(zc_move_check(l, part, whole->rank, dims, what));
    if (dims[p->axis] > whole->dims[p->axis] - p->at)
        return zc_launch_fail(l, "the parts exceed the axis (got more than its length %lld)",
                              (long long)whole->dims[p->axis]);
    return zc_parts_add(l, p, part->data, dims[p->axis], row_pitch(part, p->axis, pitch));
}

static zc_status concat(zc_launch *l)
{
    const zc_tensor *out = &l->out[0];
    zc_parts p = {
        .whole = out, .axis = axis_of(ZC_ATTRS(l, Concat)->axis, out->rank), .joins = true};
    p.pitch = row_pitch(out, p.axis, zc_launch_out_pitch(l, 0));
    for (int i = 0; i < l->nin; i++)
        ZC_TRY(add_part(l, &p, &l->in[i], zc_launch_in_pitch(l, i), "an input"));
    ZC_TRY(zc_parts_run(l, &p));
    return zc_move_check_length(l, p.at, out->dims[p.axis], "sum of the inputs' lengths");
}

static zc_status split(zc_launch *l)
{
    const zc_tensor *in = &l->in[0],
                    *lengths = l->nin > 1 && zc_present(&l->host[1]) ? &l->host[1] : NULL;
    zc_parts p = {.whole = in, .axis = axis_of(ZC_ATTRS(l, Split)->axis, in->rank)};
    p.pitch = row_pitch(in, p.axis, zc_launch_in_pitch(l, 0));
    int64_t dim = in->dims[p.axis], part = dim / l->nout + (dim % l->nout != 0);
    if (lengths)
        ZC_TRY(zc_move_check_length(l, zc_tensor_numel(lengths), l->nout, "number of parts"));
    for (int i = 0; i < l->nout; i++) {
        int64_t len = lengths           ? zc_load_i64(lengths->dtype, lengths->data, i)
                      : i < l->nout - 1 ? part
                                        : dim - part * (l->nout - 1);
        if (len < 0 || len > dim - p.at)
            return zc_launch_fail(l, "part %d does not fit the axis (got length %lld of %lld left)",
                                  i, (long long)len, (long long)(dim - p.at));
        if (!zc_present(&l->out[i])) {
            ZC_TRY(zc_parts_add(l, &p, NULL, len, 0));
            continue;
        }
        ZC_TRY(zc_move_check_length(l, l->out[i].dims[p.axis], len, "length of an output"));
        ZC_TRY(add_part(l, &p, &l->out[i], zc_launch_out_pitch(l, i), "an output"));
    }
    ZC_TRY(zc_parts_run(l, &p));
    return zc_move_check_length(l, p.at, dim, "sum of the parts' lengths");
}

/* ---- Slice ---- */

typedef struct slices {
    int64_t first[ZC_MAX_RANK], step[ZC_MAX_RANK], dims[ZC_MAX_RANK];
} slices;

static zc_status read_slices(zc_launch *l, slices *s)
{
    const zc_tensor *in = &l->in[0];
    int64_t v[5][ZC_MAX_RANK]; /* row i: host input i */
    int n[5] = {0};
    for (int i = 1; i < 5; i++) ZC_TRY(zc_launch_ints(l, i, v[i], ZC_MAX_RANK, &n[i]));
    for (int i = 2; i < 5; i++)
        if (n[i] >= 0) ZC_TRY(zc_move_check_length(l, n[i], n[1], "number of bounds"));
    for (int i = 0; i < in->rank; i++) {
        s->first[i] = 0;
        s->step[i] = 1;
        s->dims[i] = in->dims[i];
    }
    if (n[1] > in->rank)
        return zc_launch_fail(l, "more bounds than axes (got %d for rank %d)", n[1], in->rank);
    for (int j = 0; j < n[1]; j++) {
        int64_t axis = n[3] >= 0 ? v[3][j] : j, by = n[4] >= 0 ? v[4][j] : 1;
        if (axis < -in->rank || axis >= in->rank || by == 0)
            return zc_launch_fail(l,
                                  "axis or step out of range (got axis %lld of rank %d, step %lld)",
                                  (long long)axis, in->rank, (long long)by);
        int a = axis_of(axis, in->rank);
        zc_slice_span(in->dims[a], v[1][j], v[2][j], by, &s->first[a], &s->dims[a]);
        s->step[a] = s->dims[a] > 1 ? by : 0; /* a step that is not taken may be of any size */
    }
    return ZC_OK;
}

/* Neighbours of the last axis alone, in each of several lines. */
static bool is_part(const zc_tensor *in, const slices *s)
{
    const int last = in->rank - 1;
    for (int i = 0; i < last; i++)
        if (s->dims[i] != in->dims[i] || (s->dims[i] > 1 && s->step[i] != 1)) return false;
    return zc_dims_span(in->dims, 0, last) > 1 && (s->dims[last] == 1 || s->step[last] == 1);
}

static zc_status slice_part(zc_launch *l, int64_t first)
{
    const zc_tensor *in = &l->in[0], *out = &l->out[0];
    const int axis = in->rank - 1;
    zc_parts p = {
        .whole = in, .axis = axis, .at = first, .first = first, .pitch = zc_launch_in_pitch(l, 0)};
    ZC_TRY(zc_parts_add(l, &p, out->data, out->dims[axis], zc_launch_out_pitch(l, 0)));
    return zc_parts_run(l, &p);
}

static zc_status slice(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    zc_tensor *out = &l->out[0];
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], at = 0;
    slices s;
    zc_move m = {0};
    ZC_TRY(read_slices(l, &s));
    ZC_TRY(zc_move_check(l, out, in->rank, s.dims, "the output"));
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    if (in->rank && is_part(in, &s)) return slice_part(l, s.first[in->rank - 1]);
    zc_move_strides(in, from);
    zc_move_strides(out, to);
    for (int i = 0; i < in->rank; i++) {
        at += s.first[i] * from[i];
        zc_move_axis(&m, s.dims[i], to[i], s.step[i] * from[i]);
    }
    return zc_move_run(l, &m, zc_move_size(in), out->data, element(in, at));
}

/* ---- Expand and Tile ---- */

static zc_status expand(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    zc_tensor *out = &l->out[0];
    int64_t shape[ZC_MAX_RANK], from[ZC_MAX_RANK], to[ZC_MAX_RANK];
    int n;
    zc_move m = {0};
    ZC_TRY(zc_launch_ints(l, 1, shape, ZC_MAX_RANK, &n));
    bool ok = out->rank == (n > in->rank ? n : in->rank);
    for (int i = 0; ok && i < out->rank; i++) {
        int a = i - (out->rank - in->rank), b = i - (out->rank - n);
        int64_t have = a >= 0 ? in->dims[a] : 1, want = b >= 0 ? shape[b] : 1;
        ok = out->dims[i] == (want == 1 ? have : want) && (have == 1 || have == out->dims[i]);
    }
    if (!ok) {
        char a[256], b[256];
        return zc_launch_fail(l, "input does not broadcast to the shape (got %s for %s)",
                              zc_tensor_type_text(in, a, sizeof a),
                              zc_tensor_type_text(out, b, sizeof b));
    }
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    zc_move_strides(in, from);
    zc_move_strides(out, to);
    for (int i = 0; i < out->rank; i++) {
        int a = i - (out->rank - in->rank);
        zc_move_axis(&m, out->dims[i], to[i], a >= 0 && in->dims[a] > 1 ? from[a] : 0);
    }
    return zc_move_run(l, &m, zc_move_size(in), out->data, in->data);
}

static zc_status tile(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    zc_tensor *out = &l->out[0];
    int64_t repeats[ZC_MAX_RANK], from[ZC_MAX_RANK], to[ZC_MAX_RANK], dims[ZC_MAX_RANK];
    int n;
    zc_move m = {0};
    ZC_TRY(zc_launch_ints(l, 1, repeats, ZC_MAX_RANK, &n));
    ZC_TRY(zc_move_check_length(l, n, in->rank, "number of repeats"));
    for (int i = 0; i < n; i++)
        if (repeats[i] < 0 || !zc_mul_i64(in->dims[i], repeats[i], &dims[i]))
            return zc_launch_fail(l, "repeat %d out of range (got %lld)", i, (long long)repeats[i]);
    ZC_TRY(zc_move_check(l, out, in->rank, dims, "the output"));
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    zc_move_strides(in, from);
    zc_move_strides(out, to);
    for (int i = 0; i < in->rank; i++) {
        zc_move_axis(&m, repeats[i], to[i] * in->dims[i], 0);
        zc_move_axis(&m, in->dims[i], to[i], from[i]);
    }
    return zc_move_run(l, &m, zc_move_size(in), out->data, in->data);
}

zc_status zc_launch_move(zc_launch *l)
{
    static const struct {
        zc_op op;
        zc_launch_fn run;
    } kinds[] = {{ZC_OP_Transpose, transpose},
                 {ZC_OP_TransposeCast, transpose_cast},
                 {ZC_OP_DepthToSpace, depth_to_space},
                 {ZC_OP_SpaceToDepth, space_to_depth},
                 {ZC_OP_Concat, concat},
                 {ZC_OP_Split, split},
                 {ZC_OP_Slice, slice},
                 {ZC_OP_Expand, expand},
                 {ZC_OP_Tile, tile},
                 {ZC_OP_Dropout, dropout}};
    for (size_t i = 0; i < ZC_COUNTOF(kinds); i++)
        if (l->op == kinds[i].op) return kinds[i].run(l);
    return copy_bytes(l);
}
