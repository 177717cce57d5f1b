/* Types and shapes of reductions. */
#include "op/infer_common.h"
#include "op/reduce.h"

bool zc_is_reduction(zc_op op)
{
#define X(name) || op == ZC_OP_##name
    return false ZC_REDUCTIONS(X);
#undef X
}

zc_reduce_attrs zc_reduce_attrs_of(zc_op op, const void *attrs)
{
    zc_reduce_attrs r = {.keepdims = true};
    switch (op) {
#define X(name)                                                                                    \
    case ZC_OP_##name: {                                                                           \
        const zc_attrs_##name *a = attrs;                                                          \
        r.keepdims = a->keepdims != 0;                                                             \
        r.noop_with_empty_axes = a->noop_with_empty_axes != 0;                                     \
        break;                                                                                     \
    }
        ZC_REDUCTIONS(X)
#undef X
    default:
        break;
    }
    return r;
}

zc_status zc_dt_reduce(zc_infer *f)
{
    zc_dtype dtype = f->in[0].type.dtype;
    bool order = f->op == ZC_OP_ReduceMax || f->op == ZC_OP_ReduceMin;
    if (zc_dtype_class(dtype) == ZC_CLASS_COMPLEX || (dtype == ZC_BOOL && !order))
        return zc_infer_fail(f, "%s does not take %s", f->info->name, zc_dtype_name(dtype));
    return zc_dt_in0(f);
}

/* A constant of a narrow type may have wrapped. */
static bool fits(zc_dtype dtype, zc_dim d)
{
    int64_t stored[1] = {0};
    if (!zc_dim_is_const(d)) return true;
    zc_store_i64(dtype, stored, 0, d.k);
    return zc_load_i64(dtype, stored, 0) == d.k;
}

/* The sum, product, maximum or minimum of a known vector. */
static void reduce_vals(zc_infer *f)
{
    const zc_vals *in = &f->in[0].vals;
    if (in->n < 1 || f->in[0].type.dtype == ZC_BOOL) return;
    zc_dim r = in->v[0];
    for (int i = 1; i < in->n; i++) {
        switch (f->op) {
        case ZC_OP_ReduceSum:
            r = zc_dim_add(f->dims, r, in->v[i]);
            break;
        case ZC_OP_ReduceProd:
            r = zc_dim_mul(f->dims, r, in->v[i]);
            break;
        case ZC_OP_ReduceMax:
            r = zc_dim_max(f->dims, r, in->v[i]);
            break;
        case ZC_OP_ReduceMin:
            r = zc_dim_min(f->dims, r, in->v[i]);
            break;
        default:
            return;
        }
    }
    bool identity = in->n == 1 && (f->op == ZC_OP_ReduceSum || f->op == ZC_OP_ReduceProd ||
                                   f->op == ZC_OP_ReduceMax || f->op == ZC_OP_ReduceMin);
    if (in->n == 1 && !identity) return;
    zc_dim *v = fits(f->in[0].type.dtype, r) ? zc_infer_vals(f, 0, 1) : NULL;
    if (v) *v = r;
}

zc_status zc_infer_reduce(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_reduce_attrs a = zc_reduce_attrs_of(f->op, f->attrs);
    const int64_t *axes;
    int n, len = zc_infer_vector_len(f, 1);
    ZC_TRY(zc_infer_need_int(f, 1, "axes"));
    ZC_TRY(zc_infer_need_vector(f, 1, "axes"));
    ZC_TRY(zc_infer_const_ints(f, 1, &axes, &n));
    if (zc_in_present(f, 1) && n < 0) {
        if (a.keepdims) return zc_infer_set(f, 0, in->rank, NULL);
        return len < 1 || len > in->rank ? ZC_OK : zc_infer_set(f, 0, in->rank - len, NULL);
    }
    bool mask[ZC_MAX_RANK] = {0}, all = n <= 0 && !a.noop_with_empty_axes;
    if (n > 0) ZC_TRY(zc_infer_axes(f, axes, n, in->rank, mask));
    zc_dim dims[ZC_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; i++) {
        if (!all && !mask[i])
            dims[rank++] = in->dims[i];
        else if (a.keepdims)
            dims[rank++] = zc_dim_const(1);
    }
    ZC_TRY(zc_infer_set(f, 0, rank, dims));
    if (in->rank == 1 && (all || mask[0])) reduce_vals(f);
    return ZC_OK;
}
