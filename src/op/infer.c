#include "op/infer.h"
#include "op/expr.h"

#include <stdlib.h>
#include <string.h>

/* ---- dispatch ---- */

static const struct {
    zc_infer_fn dtype, shape;
} rows[ZC_OP_COUNT] = {
#define OP(name, mini, maxi, mino, maxo, dt, infer, fl)                                            \
    [ZC_OP_##name] = {zc_dt_##dt, zc_infer_##infer},
#define PW(name, n, dt, fl, text) [ZC_OP_##name] = {zc_dt_##dt, zc_infer_pointwise},
#include "op/ops.def"
};

static zc_status check_arity(zc_infer *f)
{
    const zc_op_info *info = f->info;
    int most = zc_op_max_in(info, f->attrs);
    if (f->nin < info->min_in || f->nin > most) {
        return zc_infer_fail(f, "%s has a wrong number of inputs (got %d, need %d to %d)",
                             info->name, f->nin, info->min_in, most);
    }
    if (f->nout < info->min_out || f->nout > info->max_out) {
        return zc_infer_fail(f, "%s has a wrong number of outputs (got %d, need %d to %d)",
                             info->name, f->nout, info->min_out, info->max_out);
    }
    for (int i = 0; i < info->min_in; i++) {
        bool optional = info->flags & ZC_OPF_REGIONS;
        if (!optional && !zc_in_present(f, i))
            return zc_infer_fail(f, "%s needs input %d, which is left out", info->name, i);
    }
    return ZC_OK;
}

static bool any_rank_unknown(const zc_infer *f)
{
    for (int i = 0; i < f->nin; i++) {
        if (zc_in_present(f, i) && f->in[i].type.rank < 0) return true;
    }
    return false;
}

/* Pointwise work within an operation: its inputs [first, end) broadcast to x0, whose element type
 * it keeps, or where it may (`flags` of the operation), makes another. */
typedef struct fused_work {
    const char *name, *text;
    const char *what; /* x0 is */
    const zc_type *x0;
    int first, end;
    unsigned flags;
} fused_work;

/* The type that it makes of x0 of this type. */
static zc_status fused_type(zc_infer *f, const fused_work *w, zc_dtype x0, zc_dtype *made)
{
    zc_dtype in[1 + ZC_EPILOGUE_INPUTS];
    int n = 0;
    in[n++] = x0;
    for (int i = w->first; i < w->end; i++) in[n++] = f->in[i].type.dtype;
    zc_expr *e = f->temp ? zc_arena_alloc(f->temp, 1, sizeof *e) : zc_calloc(1, sizeof *e);
    if (!e) return zc_fail_nomem(f->diag, w->name, sizeof *e);
    zc_status status = zc_expr_parse(w->text, in, n, NULL, 0, e, f->subject, f->diag);
    if (status == ZC_OK) *made = zc_expr_dtype(e, 0);
    if (!f->temp) free(e);
    return status;
}

static bool is_byte(zc_dtype t)
{
    return t == ZC_U8 || t == ZC_I8;
}

static zc_status check_fused_type(zc_infer *f, const fused_work *w, zc_dtype *made)
{
    zc_dtype x0 = w->x0->dtype;
    ZC_TRY(fused_type(f, w, x0, made));
    if (w->flags & ZC_OPF_DEQUANTISES && is_byte(x0) && zc_dtype_is_float(*made)) return ZC_OK;
    if (w->flags & ZC_OPF_SUMS && zc_dtype_is_float(*made)) return ZC_OK;
    if (w->flags & ZC_OPF_QUANTISES && *made == ZC_F8E4M3FN) return ZC_OK;
    if (w->flags & (ZC_OPF_QUANTISES | ZC_OPF_BYTES) && is_byte(*made)) return ZC_OK;
    if (w->flags & ZC_OPF_WIDENS && zc_dtype_is_float(x0) && *made == ZC_F32) {
        x0 = ZC_F32;
        ZC_TRY(fused_type(f, w, x0, made));
    }
    if (*made == x0) return ZC_OK;
    return zc_infer_fail(f, "the %s changes the element type (got %s, need %s)", w->name,
                         zc_dtype_name(*made), zc_dtype_name(x0));
}

/* made: the type of the result. */
static zc_status check_fused(zc_infer *f, const fused_work *w, zc_dtype *made)
{
    const zc_type *x0 = w->x0;
    for (int i = w->first; i < w->end; i++) {
        zc_type both = *x0;
        if (!zc_in_present(f, i)) return zc_infer_fail(f, "%s input %d is left out", w->name, i);
        ZC_TRY(zc_infer_broadcast(f, x0, zc_in(f, i), &both));
        bool same = both.rank == x0->rank;
        for (int d = 0; same && d < x0->rank; d++) same = zc_dim_eq(both.dims[d], x0->dims[d]);
        if (!same) return zc_infer_fail(f, "input %d is larger than the %s", i, w->what);
    }
    return check_fused_type(f, w, made);
}

/* w->text is NULL where there is none. */
static zc_status prologue_of(zc_infer *f, fused_work *w)
{
    int extras, end = zc_op_epilogue_first(f->info, f->attrs);
    *w = (fused_work){.name = "prologue",
                      .text = zc_op_prologue(f->info, f->attrs, &extras),
                      .what = "operand",
                      .x0 = zc_in(f, 0),
                      .first = f->info->max_in,
                      .end = f->nin < end ? f->nin : end,
                      .flags = f->info->flags & ZC_OPF_DEQUANTISES};
    if (w->text && f->nin < end && extras)
        return zc_infer_fail(f, "the prologue has a wrong number of inputs (got %d, need %d)",
                             f->nin - f->info->max_in, extras);
    return ZC_OK;
}

static zc_status check_prologue(zc_infer *f)
{
    fused_work w;
    zc_dtype made;
    ZC_TRY(prologue_of(f, &w));
    return w.text ? check_fused(f, &w, &made) : ZC_OK;
}

/* Input 0 as the operation has it: floats, where the prologue makes them of bytes. */
static zc_status read_first(zc_infer *f, zc_operand *first)
{
    fused_work w;
    *first = f->in[0];
    if (!is_byte(first->type.dtype)) return ZC_OK;
    ZC_TRY(prologue_of(f, &w));
    if (!w.text) return ZC_OK;
    first->vals = (zc_vals){.n = -1};
    return fused_type(f, &w, first->type.dtype, &first->type.dtype);
}

static zc_status check_epilogue(zc_infer *f)
{
    const char *text = zc_op_epilogue(f->info, f->attrs);
    if (!text) return ZC_OK;
    for (int i = 1; i < f->nout; i++)
        if (f->out[i].type.dtype != ZC_NONE)
            return zc_infer_fail(f, "an epilogue needs a node of one result");
    const zc_type plain = f->out[0].type;
    const fused_work w = {
        "epilogue", text,          "result", &plain, zc_op_epilogue_first(f->info, f->attrs),
        f->nin,     f->info->flags};
    return check_fused(f, &w, &f->out[0].type.dtype);
}

/* The last output, where the operation may have one that is made of the first. */
static zc_status check_also(zc_infer *f)
{
    const int last = f->info->max_out - 1;
    const char *text = zc_op_also(f->info, f->attrs);
    if (!(f->info->flags & ZC_OPF_ALSO)) return ZC_OK;
    if (!text != (f->nout <= last))
        return zc_infer_fail(f, "output %d and attribute 'also' need each other", last);
    if (!text) return ZC_OK;
    if (zc_op_epilogue(f->info, f->attrs))
        return zc_infer_fail(f, "it has both attributes 'also' and 'epilogue'");
    const fused_work w = {"attribute 'also'", text, "result", &f->out[0].type, 0, 0, 0};
    f->out[last].type = f->out[0].type;
    return fused_type(f, &w, f->out[0].type.dtype, &f->out[last].type.dtype);
}

zc_status zc_infer_run(zc_infer *f)
{
    if (f->op <= ZC_OP_NONE || f->op >= ZC_OP_COUNT || !rows[f->op].shape)
        return zc_infer_fail(f, "no such operation (got %d)", (int)f->op);
    ZC_TRY(check_arity(f));
    for (int i = 0; i < f->nout; i++) {
        f->out[i].type = (zc_type){.dtype = ZC_NONE, .rank = -1};
        f->out[i].vals = (zc_vals){.n = -1};
    }
    zc_infer own = *f;
    own.nin = zc_op_own_inputs(f->info, f->nin);
    enum { MOST = 2 }; /* inputs of an operation with ZC_OPF_DEQUANTISES */
    zc_operand in[MOST];
    if (f->info->flags & ZC_OPF_DEQUANTISES) {
        for (int i = 0; i < own.nin; i++) in[i] = f->in[i];
        ZC_TRY(read_first(f, &in[0]));
        own.in = in;
    }
    ZC_TRY(rows[f->op].dtype(&own));
    if (any_rank_unknown(f) && !(f->info->flags & ZC_OPF_RANKLESS)) return ZC_OK;
    ZC_TRY(rows[f->op].shape(&own));
    ZC_TRY(check_prologue(f));
    ZC_TRY(check_epilogue(f));
    ZC_TRY(check_also(f));
    if (f->dims && f->dims->failed) return zc_fail_nomem(f->diag, "symbolic dimensions", 0);
    return ZC_OK;
}

bool zc_vals_of(const zc_tensor *t, zc_arena *arena, zc_vals *out)
{
    *out = (zc_vals){.n = -1};
    bool integral = zc_dtype_is_int(t->dtype) || t->dtype == ZC_BOOL;
    if (!integral || t->rank > 1) return true;
    int64_t n = zc_tensor_numel(t);
    if (n < 0 || n > ZC_VALS_MAX || (n && !t->data)) return true;
    zc_dim *v = zc_arena_alloc(arena, (size_t)n, sizeof *v);
    if (!v) return false;
    for (int64_t i = 0; i < n; i++) v[i] = zc_dim_const(zc_load_i64(t->dtype, t->data, i));
    *out = (zc_vals){.n = (int)n, .v = v};
    return true;
}

bool zc_operand_of(const zc_tensor *t, zc_arena *arena, zc_operand *out)
{
    *out = (zc_operand){.type = {.dtype = t->dtype, .rank = t->rank}, .vals = {.n = -1}};
    if (t->dtype == ZC_NONE) return true;
    for (int i = 0; i < t->rank; i++) out->type.dims[i] = zc_dim_const(t->dims[i]);
    out->data = t;
    return zc_vals_of(t, arena, &out->vals);
}

/* ---- helpers ---- */

zc_status zc_infer_axis(zc_infer *f, int64_t axis, int rank, int *out)
{
    if (axis < -(int64_t)rank || axis >= rank) {
        return zc_infer_fail(f, "axis out of range (got %lld, need [%d, %d])", (long long)axis,
                             -rank, rank - 1);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return ZC_OK;
}

zc_status zc_infer_axes(zc_infer *f, const int64_t *axes, int n, int rank, bool mask[ZC_MAX_RANK])
{
    memset(mask, 0, ZC_MAX_RANK * sizeof *mask);
    for (int i = 0; i < n; i++) {
        int axis = 0;
        ZC_TRY(zc_infer_axis(f, axes[i], rank, &axis));
        if (mask[axis]) return zc_infer_fail(f, "axis %d is given twice", axis);
        mask[axis] = true;
    }
    return ZC_OK;
}

zc_status zc_infer_const_ints(zc_infer *f, int i, const int64_t **v, int *n)
{
    *v = NULL;
    *n = -1;
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_vals *vals = &f->in[i].vals;
    if (vals->n < 0) return ZC_OK;
    int64_t *out = zc_arena_alloc(f->arena, (size_t)vals->n, sizeof *out);
    if (!out) return zc_fail_nomem(f->diag, "integer list", (size_t)vals->n * sizeof *out);
    for (int j = 0; j < vals->n; j++) {
        if (!zc_dim_is_const(vals->v[j])) return ZC_OK;
        out[j] = vals->v[j].k;
    }
    *v = out;
    *n = vals->n;
    return ZC_OK;
}

int zc_infer_vector_len(const zc_infer *f, int i)
{
    if (!zc_in_present(f, i)) return -1;
    if (f->in[i].vals.n >= 0) return f->in[i].vals.n;
    const zc_type *t = &f->in[i].type;
    if (t->rank == 0) return 1;
    if (t->rank != 1 || !zc_dim_is_const(t->dims[0]) || t->dims[0].k > ZC_VALS_MAX) return -1;
    return (int)t->dims[0].k;
}

zc_status zc_infer_set(zc_infer *f, int i, int rank, const zc_dim *dims)
{
    if (i >= f->nout) return ZC_OK;
    if (rank > ZC_MAX_RANK)
        return zc_infer_fail(f, "output rank too large (got %d, need at most %d)", rank,
                             ZC_MAX_RANK);
    zc_type *t = &f->out[i].type;
    t->rank = rank;
    for (int d = 0; d < rank; d++) t->dims[d] = dims ? dims[d] : zc_dim_fresh(f->dims);
    for (int d = 0; d < rank; d++) {
        if (zc_dim_is_const(t->dims[d]) && t->dims[d].k < 0) {
            return zc_infer_fail(f,
                                 "output %d has a negative or overflowing dimension %d (got %lld)",
                                 i, d, (long long)t->dims[d].k);
        }
    }
    return ZC_OK;
}

void zc_infer_copy(zc_infer *f, int i, int j)
{
    if (i >= f->nout) return;
    zc_dtype dtype = f->out[i].type.dtype;
    f->out[i].type = f->in[j].type;
    f->out[i].type.dtype = dtype;
}

void zc_infer_unknown(zc_infer *f, int i)
{
    if (i < f->nout) f->out[i].type.rank = -1;
}

zc_status zc_infer_same(zc_infer *f, zc_dim a, zc_dim b, const char *what)
{
    if (zc_dim_is_const(a) && zc_dim_is_const(b) && a.k != b.k) {
        return zc_infer_fail(f, "%s differ (got %lld and %lld)", what, (long long)a.k,
                             (long long)b.k);
    }
    return ZC_OK;
}

static zc_status broadcast_dim(zc_infer *f, zc_dim a, zc_dim b, zc_dim *out)
{
    if (zc_dim_eq(a, b) || zc_dim_is(b, 1)) {
        *out = a;
    } else if (zc_dim_is(a, 1)) {
        *out = b;
    } else if (zc_dim_is_const(a) && zc_dim_is_const(b)) {
        return zc_infer_fail(f, "shapes do not broadcast (got dimensions %lld and %lld)",
                             (long long)a.k, (long long)b.k);
    } else if (zc_dim_is_const(a)) {
        *out = a; /* b is 1 or equal to a */
    } else if (zc_dim_is_const(b)) {
        *out = b;
    } else if (zc_dim_dynamic(f->dims, a) || zc_dim_dynamic(f->dims, b)) {
        *out = zc_dim_fresh(f->dims);
    } else {
        *out = zc_dim_max(f->dims, a, b);
    }
    return ZC_OK;
}

zc_status zc_infer_broadcast(zc_infer *f, const zc_type *a, const zc_type *b, zc_type *out)
{
    zc_type r = {.dtype = out->dtype, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= r.rank; i++) {
        zc_dim one = zc_dim_const(1);
        zc_dim da = i <= a->rank ? a->dims[a->rank - i] : one;
        zc_dim db = i <= b->rank ? b->dims[b->rank - i] : one;
        ZC_TRY(broadcast_dim(f, da, db, &r.dims[r.rank - i]));
    }
    *out = r;
    return ZC_OK;
}

zc_dim zc_infer_span(zc_infer *f, const zc_type *t, int from, int to)
{
    zc_dim p = zc_dim_const(1);
    for (int i = from; i < to; i++) p = zc_dim_mul(f->dims, p, t->dims[i]);
    return p;
}

zc_dim *zc_infer_vals(zc_infer *f, int i, int n)
{
    if (i >= f->nout || n < 0 || n > ZC_VALS_MAX) return NULL;
    zc_dim *v = zc_arena_alloc(f->arena, (size_t)n, sizeof *v);
    if (v) f->out[i].vals = (zc_vals){.n = n, .v = v};
    return v;
}

/* ---- rules shared by many rows ---- */

static zc_status dtype_all(zc_infer *f, zc_dtype dtype)
{
    for (int i = 0; i < f->nout; i++) f->out[i].type.dtype = dtype;
    return ZC_OK;
}

zc_status zc_dt_in0(zc_infer *f)
{
    return dtype_all(f, f->in[0].type.dtype);
}
zc_status zc_dt_in1(zc_infer *f)
{
    return dtype_all(f, f->in[1].type.dtype);
}
zc_status zc_dt_in2(zc_infer *f)
{
    return dtype_all(f, f->in[2].type.dtype);
}
zc_status zc_dt_bool(zc_infer *f)
{
    return dtype_all(f, ZC_BOOL);
}
zc_status zc_dt_i64(zc_infer *f)
{
    return dtype_all(f, ZC_I64);
}

zc_status zc_infer_same0(zc_infer *f)
{
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

/* Control flow gets its types from its regions: zc_graph_infer. */
zc_status zc_dt_regions(zc_infer *f)
{
    return zc_infer_fail(f, "%s is inferred from its regions", f->info->name);
}

zc_status zc_infer_regions(zc_infer *f)
{
    return zc_dt_regions(f);
}
