#include "cpu/index.h"

#include <math.h>
#include <string.h>

zc_status zc_index_read(zc_kctx *k, const zc_tensor *t, int64_t i, int64_t limit, int64_t *out)
{
    int64_t v = zc_geti(t, i);
    if (v < -limit || v >= limit) {
        return zc_kernel_fail(k, "index %lld out of range (got %lld, need [%lld, %lld])",
                              (long long)i, (long long)v, (long long)-limit, (long long)limit - 1);
    }
    *out = v < 0 ? v + limit : v;
    return ZC_OK;
}

zc_status zc_index_read_all(zc_kctx *k, const zc_tensor *t, int64_t limit, int64_t **out)
{
    int64_t n = zc_tensor_numel(t);
    int64_t *v = zc_scratch_get(k->scratch, (size_t)n * sizeof *v);
    if (!v) return zc_fail_nomem(k->diag, "indices", (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) ZC_TRY(zc_index_read(k, t, i, limit, &v[i]));
    *out = v;
    return ZC_OK;
}

zc_status zc_index_tuples(zc_kctx *k, const zc_tensor *t, const zc_tensor *data, int axis,
                          int64_t **out)
{
    int n = (int)t->dims[t->rank - 1];
    int64_t tuples = zc_dims_span(t->dims, 0, t->rank - 1);
    int64_t batch = zc_dims_span(t->dims, 0, axis);
    int64_t *v = zc_scratch_get(k->scratch, (size_t)tuples * sizeof *v);
    if (!v) return zc_fail_nomem(k->diag, "index offsets", (size_t)tuples * sizeof *v);
    for (int64_t i = 0; i < tuples; i++) {
        int64_t at = i / (tuples / batch);
        for (int j = 0; j < n; j++) {
            int64_t one;
            ZC_TRY(zc_index_read(k, t, i * n + j, data->dims[axis + j], &one));
            at = at * data->dims[axis + j] + one;
        }
        v[i] = at;
    }
    *out = v;
    return ZC_OK;
}

static uint64_t float_key(double v)
{
    uint64_t bits;
    if (isnan(v)) return ZC_ORDER_NAN;
    if (v == 0) v = 0;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

uint64_t zc_order_key(const zc_tensor *t, int64_t i)
{
    switch (zc_dtype_class(t->dtype)) {
    case ZC_CLASS_FLOAT:
        return float_key(t->dtype == ZC_F32 ? (double)((const float *)t->data)[i] : zc_get(t, i));
    case ZC_CLASS_INT:
        return (uint64_t)zc_geti(t, i) ^ (uint64_t)1 << 63;
    default:
        return (uint64_t)zc_geti(t, i);
    }
}
