#include "op/infer.h"

zc_status zc_dt_quantize(zc_infer *f);
zc_status zc_dt_dequantize(zc_infer *f);
zc_status zc_dt_dynamic_quantize(zc_infer *f);
zc_status zc_infer_quantize(zc_infer *f);
zc_status zc_infer_dequantize(zc_infer *f);
zc_status zc_infer_dynamic_quantize(zc_infer *f);

/* An element type given as a number, 0: not given. */
static zc_status given_dtype(zc_infer *f, const char *what, int64_t number, zc_dtype *out)
{
    *out = ZC_NONE;
    if (number == 0) return ZC_OK;
    if (number < 0 || number > ZC_DTYPE_END || !zc_dtype_valid((int)number))
        return zc_infer_fail(f, "%s is no element type (got %lld)", what, (long long)number);
    *out = (zc_dtype)number;
    return ZC_OK;
}

static bool is_quantized(zc_dtype d)
{
    return (zc_dtype_is_int(d) && zc_dtype_bits(d) <= 16) || zc_dtype_bits(d) < 8 ||
           (d >= ZC_F8E4M3FN && d <= ZC_F8E5M2FNUZ);
}

zc_status zc_dt_quantize(zc_infer *f)
{
    const zc_attrs_QuantizeLinear *a = ZC_ATTRS(f, QuantizeLinear);
    zc_dtype given;
    ZC_TRY(given_dtype(f, "output_dtype", a->output_dtype, &given));
    zc_dtype zero = zc_in_present(f, 2) ? zc_in(f, 2)->dtype : ZC_NONE;
    if (given && zero && given != zero)
        return zc_infer_fail(f, "output_dtype and the zero point differ (got %s and %s)",
                             zc_dtype_name(given), zc_dtype_name(zero));
    zc_dtype out = zero ? zero : given ? given : ZC_U8;
    if (!is_quantized(out)) return zc_infer_fail(f, "cannot quantize to %s", zc_dtype_name(out));
    f->out[0].type.dtype = out;
    return ZC_OK;
}

zc_status zc_dt_dequantize(zc_infer *f)
{
    const zc_attrs_DequantizeLinear *a = ZC_ATTRS(f, DequantizeLinear);
    zc_dtype given;
    ZC_TRY(given_dtype(f, "output_dtype", a->output_dtype, &given));
    f->out[0].type.dtype = given ? given : zc_in(f, 1)->dtype;
    if (!zc_dtype_is_float(f->out[0].type.dtype))
        return zc_infer_fail(f, "cannot dequantize to %s", zc_dtype_name(f->out[0].type.dtype));
    return ZC_OK;
}

static bool is_one_element(const zc_type *t)
{
    for (int d = 0; d < t->rank; d++)
        if (!zc_dim_is(t->dims[d], 1)) return false;
    return true;
}

/* Scales: one for all, one for each index of the axis, or one for each block along it. */
static zc_status check_scales(zc_infer *f, int64_t axis_attr, int64_t block)
{
    const zc_type *x = zc_in(f, 0), *s = zc_in(f, 1);
    bool one_zero = zc_in_present(f, 2) && is_one_element(s) && is_one_element(zc_in(f, 2));
    if (zc_in_present(f, 2) && !one_zero && zc_in(f, 2)->rank != s->rank)
        return zc_infer_fail(f, "scale and zero point differ in rank (got %d and %d)", s->rank,
                             zc_in(f, 2)->rank);
    for (int d = 0; zc_in_present(f, 2) && !one_zero && d < s->rank; d++)
        ZC_TRY(zc_infer_same(f, s->dims[d], zc_in(f, 2)->dims[d],
                             "dimensions of scale and zero point"));
    if (block < 0) return zc_infer_fail(f, "block_size is negative (got %lld)", (long long)block);
    if (block == 0 && is_one_element(s)) return ZC_OK;
    int axis;
    ZC_TRY(zc_infer_axis(f, axis_attr, x->rank, &axis));
    if (block == 0) {
        if (s->rank != 1)
            return zc_infer_fail(
                f, "scale has a wrong rank (got %d, need 0 or 1 without block_size)", s->rank);
        return zc_infer_same(f, x->dims[axis], s->dims[0], "sizes of the axis and of the scale");
    }
    if (s->rank != x->rank)
        return zc_infer_fail(f, "scale has a wrong rank (got %d, need %d with block_size)", s->rank,
                             x->rank);
    for (int d = 0; d < x->rank; d++) {
        zc_dim need =
            d == axis ? zc_dim_cdiv(f->dims, x->dims[d], zc_dim_const(block)) : x->dims[d];
        ZC_TRY(zc_infer_same(f, need, s->dims[d],
                             "dimensions of the input's blocks and of the scale"));
    }
    return ZC_OK;
}

zc_status zc_infer_quantize(zc_infer *f)
{
    const zc_attrs_QuantizeLinear *a = ZC_ATTRS(f, QuantizeLinear);
    ZC_TRY(check_scales(f, a->axis, a->block_size));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

zc_status zc_infer_dequantize(zc_infer *f)
{
    const zc_attrs_DequantizeLinear *a = ZC_ATTRS(f, DequantizeLinear);
    ZC_TRY(check_scales(f, a->axis, a->block_size));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

zc_status zc_dt_dynamic_quantize(zc_infer *f)
{
    f->out[0].type.dtype = f->out[2].type.dtype = ZC_U8;
    f->out[1].type.dtype = ZC_F32;
    return ZC_OK;
}

zc_status zc_infer_dynamic_quantize(zc_infer *f)
{
    zc_infer_copy(f, 0, 0);
    ZC_TRY(zc_infer_set(f, 1, 0, NULL));
    return zc_infer_set(f, 2, 0, NULL);
}
