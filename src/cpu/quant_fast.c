/* Quantisation between f32 and bytes, with one scale or one for each index of an axis. */
#include <math.h>

#include "cpu/fast.h"
#include "cpu/quant.h"

#define SIMD_SOURCE "cpu/quant_tmpl.h"
#include "cpu/simd_each.h"

/* Elements in rows that share a scale. */
typedef struct quant_job {
    const void *x;
    void *y;
    zc_dtype dtype; /* of what is quantised */
    const float *scale;
    const void *zero; /* NULL: 0 */
    int64_t scales, row;
} quant_job;

static bool is_byte(const zc_tensor *t)
{
    return t->dtype == ZC_U8 || t->dtype == ZC_I8;
}

static int32_t zero_at(const quant_job *j, int64_t i)
{
    return j->zero ? (int32_t)zc_load_i64(j->dtype, j->zero, i) : 0;
}

static void quantize_part(void *arg, int64_t begin, int64_t end)
{
    const quant_job *j = arg;
    while (begin < end) {
        int64_t r = begin / j->row, to = (r + 1) * j->row < end ? (r + 1) * j->row : end;
        SIMD_PICK(zc_simd_level(), quantize)
        ((const float *)j->x + begin, to - begin, j->scale[r % j->scales],
         zero_at(j, r % j->scales), j->dtype == ZC_I8, (uint8_t *)j->y + begin);
        begin = to;
    }
}

static void dequantize(const quant_job *j, int64_t at, int64_t n, int64_t s, float *y)
{
    const zc_simd level = zc_simd_level();
    const float scale = j->scale[s];
    const int32_t zero = zero_at(j, s);
    if (j->dtype == ZC_U8)
        SIMD_PICK(level, dequantize_u8)((const uint8_t *)j->x + at, n, scale, zero, y);
    else if (j->dtype == ZC_I8)
        SIMD_PICK(level, dequantize_i8)((const int8_t *)j->x + at, n, scale, zero, y);
    else
        SIMD_PICK(level, dequantize_i32)((const int32_t *)j->x + at, n, scale, zero, y);
}

static void dequantize_part(void *arg, int64_t begin, int64_t end)
{
    const quant_job *j = arg;
    while (begin < end) {
        int64_t r = begin / j->row, to = (r + 1) * j->row < end ? (r + 1) * j->row : end;
        dequantize(j, begin, to - begin, r % j->scales, (float *)j->y + begin);
        begin = to;
    }
}

static void set_rows(quant_job *j, const zc_kctx *k, int64_t axis_attr)
{
    const zc_tensor *x = &k->in[0];
    j->x = x->data;
    j->y = k->out[0].data;
    j->scale = k->in[1].data;
    j->zero = zc_input(k, 2) ? k->in[2].data : NULL;
    j->scales = zc_tensor_numel(&k->in[1]);
    j->row = zc_tensor_numel(x);
    if (j->scales > 1) j->row = zc_dims_span(x->dims, zc_axis(axis_attr, x->rank) + 1, x->rank);
}

static bool fits(const zc_kctx *k, int64_t block, const zc_tensor *bytes)
{
    bool zero = !zc_input(k, 2) || k->in[2].dtype == bytes->dtype;
    return block == 0 && k->in[1].dtype == ZC_F32 && zero && zc_tensor_numel(&k->in[0]) > 0;
}

bool zc_fits_quantize(const zc_kctx *k)
{
    const zc_attrs_QuantizeLinear *a = ZC_ATTRS(k, QuantizeLinear);
    return k->in[0].dtype == ZC_F32 && is_byte(&k->out[0]) &&
           (!a->precision || a->precision == ZC_F32) && fits(k, a->block_size, &k->out[0]);
}

zc_status zc_fast_quantize(zc_kctx *k)
{
    quant_job j = {.dtype = k->out[0].dtype};
    set_rows(&j, k, ZC_ATTRS(k, QuantizeLinear)->axis);
    zc_parallel(k, zc_tensor_numel(&k->in[0]), 8192, quantize_part, &j);
    return ZC_OK;
}

bool zc_fits_dequantize(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    return (is_byte(x) || x->dtype == ZC_I32) && k->out[0].dtype == ZC_F32 &&
           fits(k, ZC_ATTRS(k, DequantizeLinear)->block_size, x);
}

zc_status zc_fast_dequantize(zc_kctx *k)
{
    quant_job j = {.dtype = k->in[0].dtype};
    set_rows(&j, k, ZC_ATTRS(k, DequantizeLinear)->axis);
    zc_parallel(k, zc_tensor_numel(&k->in[0]), 8192, dequantize_part, &j);
    return ZC_OK;
}

/* ---- with a scale of its own ---- */

/* The scale, and the zero point. */
static int scale_of(float low, float high, float *scale)
{
    *scale = (high - low) / 255.0f;
    if (*scale == 0) *scale = 1; /* all zero: any scale does, and this one divides */
    const float zero = nearbyintf(-low / *scale);
    return !(zero > 0) ? 0 : zero > 255 ? 255 : (int)zero;
}

void zc_quant_range(const float *x, int64_t n, float *scale, int *zero)
{
    float low, high;
    SIMD_PICK(zc_simd_level(), range)(x, n, &low, &high);
    *zero = scale_of(low, high, scale);
}

void zc_quant_row(const float *x, int64_t n, float scale, int zero, uint8_t *y)
{
    SIMD_PICK(zc_simd_level(), quantize)(x, n, scale, zero, false, y);
}

void zc_quant_real(const int32_t *sums, int64_t n, int zero, const int32_t *columns, float by,
                   const float *scale, const float *bias, float *y)
{
    SIMD_PICK(zc_simd_level(), real)(sums, n, zero, columns, by, scale, bias, y);
}

enum { RANGES = 16 };

typedef struct range_job {
    const float *x;
    int64_t n;
    float low[RANGES], high[RANGES]; /* NaN where there is one */
} range_job;

static void find_range(void *arg, int i)
{
    range_job *j = arg;
    const int64_t from = j->n * i / RANGES, to = j->n * (i + 1) / RANGES;
    SIMD_PICK(zc_simd_level(), range)(j->x + from, to - from, &j->low[i], &j->high[i]);
}

bool zc_fits_dynamic_quantize(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && k->out[0].dtype == ZC_U8 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_dynamic_quantize(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    range_job r = {.x = x->data, .n = zc_tensor_numel(x)};
    float low = 0, high = 0;
    if (r.n < 8192)
        zc_pool_run(NULL, RANGES, find_range, &r);
    else
        zc_parts(k, RANGES, find_range, &r);
    for (int i = 0; i < RANGES; i++) {
        low = r.low[i] < low || isnan(r.low[i]) ? r.low[i] : low;
        high = r.high[i] > high || isnan(r.high[i]) ? r.high[i] : high;
    }
    float scale;
    const uint8_t point = (uint8_t)scale_of(low, high, &scale);
    quant_job j = {.x = x->data,
                   .y = k->out[0].data,
                   .dtype = ZC_U8,
                   .scale = &scale,
                   .zero = &point,
                   .scales = 1,
                   .row = r.n};
    zc_parallel(k, r.n, 8192, quantize_part, &j);
    if (zc_output(k, 1)) zc_put(&k->out[1], 0, (double)scale);
    if (zc_output(k, 2)) zc_puti(&k->out[2], 0, point);
    return ZC_OK;
}
