/* Reference kernels of element type conversion. */
#include <math.h>
#include <string.h>

#include "cpu/kernel.h"

static bool is_f8(zc_dtype d)
{
    return d >= ZC_F8E4M3FN && d <= ZC_F8E5M2FNUZ;
}

typedef struct cast_options {
    bool saturate;
    zc_round round; /* f8e8m0 */
} cast_options;

static void store_float(zc_tensor *y, int64_t i, double v, const cast_options *o)
{
    if (is_f8(y->dtype))
        ((uint8_t *)y->data)[i] = zc_f32_to_f8(y->dtype, (float)v, o->saturate);
    else if (y->dtype == ZC_F8E8M0)
        ((uint8_t *)y->data)[i] = zc_f32_to_f8e8m0((float)v, o->round, o->saturate);
    else
        zc_put(y, i, v);
}

/* Out of range is undefined in ONNX; 4-bit and 2-bit integers keep their low bits, as its test data
 * do. */
static void store_nibble(zc_tensor *y, int64_t i, double v)
{
    zc_puti(y, i, v > -9e18 && v < 9e18 ? (int64_t)v : 0);
}

static void cast_element(const zc_tensor *x, zc_tensor *y, int64_t i, const cast_options *o)
{
    bool to_float = zc_dtype_is_float(y->dtype);
    if (zc_dtype_is_float(x->dtype) && zc_dtype_is_int(y->dtype) && zc_dtype_bits(y->dtype) < 8)
        store_nibble(y, i, zc_get(x, i));
    else if (zc_dtype_is_float(x->dtype) || (to_float && x->dtype != ZC_I64 && x->dtype != ZC_U64))
        store_float(y, i, zc_get(x, i), o);
    else if (!to_float)
        zc_puti(y, i, zc_geti(x, i));
    else if (y->dtype == ZC_F32) /* in one rounding */
        ((float *)y->data)[i] =
            x->dtype == ZC_U64 ? (float)((uint64_t *)x->data)[i] : (float)((int64_t *)x->data)[i];
    else
        store_float(y, i, zc_get(x, i), o);
}

static zc_round round_of(const char *mode)
{
    if (strcmp(mode, "down") == 0) return ZC_ROUND_DOWN;
    return strcmp(mode, "nearest") == 0 ? ZC_ROUND_NEAREST : ZC_ROUND_UP;
}

static zc_status cast(zc_kctx *k, int64_t saturate, const char *round_mode)
{
    const zc_tensor *x = &k->in[0];
    zc_tensor *y = &k->out[0];
    cast_options o = {.saturate = saturate != 0, .round = round_of(round_mode)};
    int64_t n = zc_tensor_numel(x);
    size_t bytes = 0;
    if (zc_dtype_class(x->dtype) == ZC_CLASS_COMPLEX ||
        zc_dtype_class(y->dtype) == ZC_CLASS_COMPLEX) {
        if (x->dtype != y->dtype) return zc_kernel_unsupported(k, "Cast of complex numbers");
        if (zc_tensor_bytes(x, &bytes) && bytes) memmove(y->data, x->data, bytes);
        return ZC_OK;
    }
    bool packed = zc_dtype_bits(y->dtype) < 8;
    if (packed && zc_tensor_bytes(y, &bytes) && bytes) memset(y->data, 0, bytes);
    for (int64_t i = 0; i < n; i++) cast_element(x, y, i, &o);
    return ZC_OK;
}

zc_status zc_k_Cast(zc_kctx *k)
{
    const zc_attrs_Cast *a = ZC_ATTRS(k, Cast);
    return cast(k, a->saturate, a->round_mode);
}

zc_status zc_k_CastLike(zc_kctx *k)
{
    const zc_attrs_CastLike *a = ZC_ATTRS(k, CastLike);
    return cast(k, a->saturate, a->round_mode);
}

zc_status zc_k_BitCast(zc_kctx *k)
{
    size_t bytes;
    if (zc_tensor_bytes(&k->in[0], &bytes) && bytes) memmove(k->out[0].data, k->in[0].data, bytes);
    return ZC_OK;
}
