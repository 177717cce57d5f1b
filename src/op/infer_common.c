#include "op/infer_common.h"

#include <stdlib.h>

zc_status zc_infer_need_int(zc_infer *f, int i, const char *what)
{
    if (!zc_in_present(f, i) || zc_dtype_is_int(f->in[i].type.dtype)) return ZC_OK;
    return zc_infer_fail(f, "%s must be integers (got %s)", what,
                         zc_dtype_name(f->in[i].type.dtype));
}

zc_status zc_infer_need_vector(zc_infer *f, int i, const char *what)
{
    if (!zc_in_present(f, i) || f->in[i].type.rank <= 1) return ZC_OK;
    return zc_infer_fail(f, "%s must be a vector (got rank %d)", what, f->in[i].type.rank);
}

zc_status zc_infer_need_scalar(zc_infer *f, int i, const char *what)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_type *t = &f->in[i].type;
    bool one =
        t->rank == 0 || (t->rank == 1 && (!zc_dim_is_const(t->dims[0]) || t->dims[0].k == 1));
    if (one || t->rank < 0) return ZC_OK;
    return zc_infer_fail(f, "%s must be one number (got shape %s)", what,
                         zc_infer_dims_text(f, t->rank, t->dims));
}

zc_status zc_infer_need_alike(zc_infer *f, int i, int j)
{
    if (!zc_in_present(f, i) || !zc_in_present(f, j)) return ZC_OK;
    zc_dtype a = f->in[i].type.dtype, b = f->in[j].type.dtype;
    if (a == b) return ZC_OK;
    return zc_infer_fail(f, "inputs %d and %d differ in element type (got %s and %s)", i, j,
                         zc_dtype_name(a), zc_dtype_name(b));
}

zc_status zc_infer_need_float(zc_infer *f, int i)
{
    zc_dtype t = f->in[i].type.dtype;
    if (zc_dtype_is_float(t)) return ZC_OK;
    return zc_infer_fail(f, "input %d needs a float type (got %s)", i, zc_dtype_name(t));
}

zc_status zc_infer_need_8bit(zc_infer *f, int i)
{
    zc_dtype t = f->in[i].type.dtype;
    if (t == ZC_I8 || t == ZC_U8) return ZC_OK;
    return zc_infer_fail(f, "input %d needs type i8 or u8 (got %s)", i, zc_dtype_name(t));
}

zc_status zc_infer_set_dtype(zc_infer *f, zc_dtype dtype)
{
    for (int i = 0; i < f->nout; i++) f->out[i].type.dtype = dtype;
    return ZC_OK;
}

zc_status zc_infer_need_rank(zc_infer *f, int i, int lo, int hi)
{
    int rank = f->in[i].type.rank;
    if (rank >= lo && rank <= hi) return ZC_OK;
    if (lo == hi)
        return zc_infer_fail(f, "input %d has a wrong rank (got %d, need %d)", i, rank, lo);
    return zc_infer_fail(f, "input %d has a wrong rank (got %d, need %d to %d)", i, rank, lo, hi);
}

bool zc_infer_scalar(const zc_infer *f, int i, zc_dim *out)
{
    if (!zc_in_present(f, i) || f->in[i].vals.n != 1) return false;
    *out = f->in[i].vals.v[0];
    return true;
}

static zc_status too_large(zc_infer *f, zc_dim a, char sign, zc_dim b)
{
    return zc_infer_fail(f, "a dimension is too large (got %lld %c %lld)", (long long)a.k, sign,
                         (long long)b.k);
}

zc_status zc_infer_add(zc_infer *f, zc_dim a, zc_dim b, zc_dim *out)
{
    int64_t unused;
    if (zc_dim_is_const(a) && zc_dim_is_const(b) && !zc_add_i64(a.k, b.k, &unused))
        return too_large(f, a, '+', b);
    *out = zc_dim_add(f->dims, a, b);
    return ZC_OK;
}

zc_status zc_infer_mul(zc_infer *f, zc_dim a, zc_dim b, zc_dim *out)
{
    int64_t unused;
    if (zc_dim_is_const(a) && zc_dim_is_const(b) && !zc_mul_i64(a.k, b.k, &unused))
        return too_large(f, a, '*', b);
    *out = zc_dim_mul(f->dims, a, b);
    return ZC_OK;
}

void zc_infer_pass_vals(zc_infer *f)
{
    if (f->out[0].type.rank >= 0 && f->out[0].type.rank <= 1) f->out[0].vals = f->in[0].vals;
}

const char *zc_infer_dims_text(zc_infer *f, int rank, const zc_dim *dims)
{
    zc_buf buf = {0};
    zc_buf_puts(&buf, "[");
    for (int i = 0; i < rank; i++) {
        if (i) zc_buf_puts(&buf, ",");
        zc_dim_print(f->dims, dims[i], &buf);
    }
    zc_buf_puts(&buf, "]");
    char *text = buf.failed || rank < 0 ? NULL : zc_arena_strdup(f->arena, buf.data);
    zc_buf_fini(&buf);
    return text ? text : "?";
}

void zc_infer_out_dtype(zc_infer *f, int i, zc_dtype dtype)
{
    if (i < f->nout) f->out[i].type.dtype = dtype;
}

zc_status zc_infer_need_shape(zc_infer *f, int i, int rank, const zc_dim *dims, const char *what)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_type *t = zc_in(f, i);
    bool fits = t->rank == rank;
    for (int d = 0; fits && d < rank; d++)
        fits =
            !zc_dim_is_const(t->dims[d]) || !zc_dim_is_const(dims[d]) || t->dims[d].k == dims[d].k;
    if (fits) return ZC_OK;
    return zc_infer_fail(f, "%s has a wrong shape (got %s, need %s)", what,
                         zc_infer_dims_text(f, t->rank, t->dims),
                         zc_infer_dims_text(f, rank, dims));
}
