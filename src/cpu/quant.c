/* Reference kernels of quantisation. */
#include <math.h>
#include <string.h>

#include "cpu/kernel.h"

/* Where element i of x finds its scale: x is [outer, axis, inner]. */
typedef struct scale_map {
    int64_t axis, inner,
        block;      /* block: elements of the axis that share a scale; 0: one scale for all */
    int64_t blocks; /* scales along the axis */
    bool by_inner;  /* blocked: outer and inner have scales of their own */
} scale_map;

static scale_map map_of(const zc_tensor *x, const zc_tensor *scale, int64_t axis_attr,
                        int64_t block)
{
    if (block == 0 && zc_tensor_numel(scale) == 1) return (scale_map){.block = 0};
    int axis = zc_axis(axis_attr, x->rank);
    return (scale_map){.axis = x->dims[axis],
                       .inner = zc_dims_span(x->dims, axis + 1, x->rank),
                       .block = block ? block : 1,
                       .blocks = block ? scale->dims[axis] : x->dims[axis],
                       .by_inner = block != 0};
}

static int64_t scale_at(const scale_map *m, int64_t i)
{
    if (m->block == 0) return 0;
    int64_t along = i / m->inner % m->axis / m->block;
    if (!m->by_inner) return along;
    return (i / m->inner / m->axis * m->blocks + along) * m->inner + i % m->inner;
}

static void integer_range(zc_dtype d, double *low, double *high)
{
    unsigned bits = zc_dtype_bits(d);
    bool is_signed = zc_dtype_class(d) == ZC_CLASS_INT;
    *low = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    *high = ldexp(1, is_signed ? (int)bits - 1 : (int)bits) - 1;
}

/* The quotient, rounded as the division's type rounds. */
static double divide(double x, double scale, zc_dtype precision)
{
    double q;
    zc_store_f64(precision, &q, 0, x / scale);
    return zc_load_f64(precision, &q, 0);
}

static void store_quantized(zc_tensor *y, int64_t i, double q, double zero, bool saturate)
{
    if (zc_dtype_is_int(y->dtype)) {
        double low, high;
        integer_range(y->dtype, &low, &high);
        q = nearbyint(q) + zero;
        q = isnan(q) ? 0 : q < low ? low : q > high ? high : q;
        zc_puti(y, i, (int64_t)q);
    } else if (zc_dtype_bits(y->dtype) == 8) {
        ((uint8_t *)y->data)[i] = zc_f32_to_f8(y->dtype, (float)q, saturate);
    } else {
        zc_put(y, i, q + zero);
    }
}

zc_status zc_k_QuantizeLinear(zc_kctx *k)
{
    const zc_attrs_QuantizeLinear *a = ZC_ATTRS(k, QuantizeLinear);
    const zc_tensor *x = &k->in[0], *scale = &k->in[1];
    const zc_tensor *zero = k->nin > 2 && zc_present(&k->in[2]) ? &k->in[2] : NULL;
    zc_dtype precision = a->precision         ? (zc_dtype)a->precision
                         : x->dtype == ZC_F64 ? ZC_F64
                                              : scale->dtype;
    if (!zc_dtype_is_float(precision)) precision = ZC_F32;
    scale_map m = map_of(x, scale, a->axis, a->block_size);
    size_t bytes = 0;
    if (zc_tensor_bytes(&k->out[0], &bytes) && bytes) memset(k->out[0].data, 0, bytes);
    int64_t n = zc_tensor_numel(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t s = scale_at(&m, i);
        double q = divide(zc_get(x, i), zc_get(scale, s), precision);
        store_quantized(&k->out[0], i, q, zero ? zc_get(zero, s) : 0, a->saturate != 0);
    }
    return ZC_OK;
}

zc_status zc_k_DequantizeLinear(zc_kctx *k)
{
    const zc_attrs_DequantizeLinear *a = ZC_ATTRS(k, DequantizeLinear);
    const zc_tensor *x = &k->in[0], *scale = &k->in[1];
    const zc_tensor *zero = k->nin > 2 && zc_present(&k->in[2]) ? &k->in[2] : NULL;
    scale_map m = map_of(x, scale, a->axis, a->block_size);
    int64_t n = zc_tensor_numel(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t s = scale_at(&m, i);
        double centred = zc_get(x, i) - (zero ? zc_get(zero, s) : 0);
        zc_put(&k->out[0], i, centred * zc_get(scale, s));
    }
    return ZC_OK;
}

/* Bytes cannot tell that there was NaN or infinity: a scale that is not finite does. */
zc_status zc_k_DynamicQuantizeLinear(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    int64_t n = zc_tensor_numel(x);
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        float v = (float)zc_get(x, i);
        low = v < low || isnan(v) ? v : low;
        high = v > high || isnan(v) ? v : high;
    }
    float scale = (high - low) / 255.0f;
    if (scale == 0) scale = 1; /* all zero: any scale does, and this one divides */
    float zero = nearbyintf(-low / scale);
    zero = !(zero > 0) ? 0 : zero > 255 ? 255 : zero;
    for (int64_t i = 0; i < n; i++) {
        float q = nearbyintf((float)zc_get(x, i) / scale) + zero;
        q = isnan(q) ? 0 : q < 0 ? 0 : q > 255 ? 255 : q;
        zc_puti(&k->out[0], i, (int64_t)q);
    }
    zc_put(&k->out[1], 0, (double)scale);
    zc_puti(&k->out[2], 0, (int64_t)zero);
    return ZC_OK;
}
