/* Types and shapes of random operations. */
#include "op/infer_common.h"

/* ---- element types ---- */

zc_status zc_dt_dropout(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    if (zc_in_present(f, 1)) ZC_TRY(zc_infer_need_float(f, 1));
    if (zc_in_present(f, 2) && f->in[2].type.dtype != ZC_BOOL)
        return zc_infer_fail(f, "training_mode must be bool (got %s)",
                             zc_dtype_name(f->in[2].type.dtype));
    f->out[0].type.dtype = f->in[0].type.dtype;
    if (f->nout > 1) f->out[1].type.dtype = ZC_BOOL;
    return ZC_OK;
}

static zc_status real(zc_infer *f, zc_dtype dtype)
{
    if (zc_dtype_is_float(dtype)) return zc_infer_set_dtype(f, dtype);
    return zc_infer_fail(f, "dtype must be a float type (got %s)", zc_dtype_name(dtype));
}

/* The attribute, or the type of the input. */
static zc_dtype or_input(const zc_infer *f, zc_dtype dtype)
{
    return dtype == ZC_NONE ? f->in[0].type.dtype : dtype;
}

zc_status zc_dt_random_normal(zc_infer *f)
{
    return real(f, ZC_ATTRS(f, RandomNormal)->dtype);
}

zc_status zc_dt_random_normal_like(zc_infer *f)
{
    return real(f, or_input(f, ZC_ATTRS(f, RandomNormalLike)->dtype));
}

zc_status zc_dt_random_uniform(zc_infer *f)
{
    return real(f, ZC_ATTRS(f, RandomUniform)->dtype);
}

zc_status zc_dt_random_uniform_like(zc_infer *f)
{
    return real(f, or_input(f, ZC_ATTRS(f, RandomUniformLike)->dtype));
}

zc_status zc_dt_bernoulli(zc_infer *f)
{
    zc_dtype dtype = or_input(f, ZC_ATTRS(f, Bernoulli)->dtype);
    ZC_TRY(zc_infer_need_float(f, 0));
    if (zc_dtype_class(dtype) == ZC_CLASS_COMPLEX)
        return zc_infer_fail(f, "dtype must not be complex (got %s)", zc_dtype_name(dtype));
    return zc_infer_set_dtype(f, dtype);
}

zc_status zc_dt_multinomial(zc_infer *f)
{
    zc_dtype dtype = ZC_ATTRS(f, Multinomial)->dtype;
    ZC_TRY(zc_infer_need_float(f, 0));
    if (dtype != ZC_I32 && dtype != ZC_I64)
        return zc_infer_fail(f, "dtype must be i32 or i64 (got %s)", zc_dtype_name(dtype));
    return zc_infer_set_dtype(f, dtype);
}

/* ---- shapes ---- */

/* Input i has one element. */
static zc_status single(zc_infer *f, int i, const char *what)
{
    ZC_TRY(zc_infer_need_vector(f, i, what));
    if (!zc_in_present(f, i) || zc_in(f, i)->rank == 0) return ZC_OK;
    return zc_infer_same(f, zc_in(f, i)->dims[0], zc_dim_const(1), what);
}

zc_status zc_infer_dropout(zc_infer *f)
{
    ZC_TRY(single(f, 1, "ratio"));
    ZC_TRY(single(f, 2, "training_mode"));
    for (int i = 0; i < f->nout; i++) zc_infer_copy(f, i, 0);
    return ZC_OK;
}

static zc_status given_shape(zc_infer *f, zc_ints shape)
{
    zc_dim dims[ZC_MAX_RANK];
    for (int i = 0; i < shape.n && i < ZC_MAX_RANK; i++) dims[i] = zc_dim_const(shape.v[i]);
    return zc_infer_set(f, 0, shape.n, dims);
}

zc_status zc_infer_random_normal(zc_infer *f)
{
    return given_shape(f, ZC_ATTRS(f, RandomNormal)->shape);
}

zc_status zc_infer_random_uniform(zc_infer *f)
{
    return given_shape(f, ZC_ATTRS(f, RandomUniform)->shape);
}

zc_status zc_infer_multinomial(zc_infer *f)
{
    int64_t samples = ZC_ATTRS(f, Multinomial)->sample_size;
    ZC_TRY(zc_infer_need_rank(f, 0, 2, 2));
    if (samples < 1)
        return zc_infer_fail(f, "sample_size out of range (got %lld, need at least 1)",
                             (long long)samples);
    const zc_dim dims[] = {zc_in(f, 0)->dims[0], zc_dim_const(samples)};
    return zc_infer_set(f, 0, 2, dims);
}
