#include "op/tensor.h"

#include <stdio.h>

#include "base/mem.h"

int64_t zc_numel(int rank, const int64_t *dims)
{
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return -1;
        if (dims[i] == 0) empty = true;
    }
    if (empty) return 0; /* whatever the product of the others */
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (!zc_mul_i64(n, dims[i], &n)) return -1;
    return n;
}

bool zc_tensor_bytes(const zc_tensor *t, size_t *out)
{
    return zc_dtype_bytes(t->dtype, zc_tensor_numel(t), out);
}

void zc_strides(const zc_tensor *t, int64_t strides[ZC_MAX_RANK])
{
    int64_t s = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        strides[i] = s;
        s = (int64_t)((uint64_t)s * (uint64_t)t->dims[i]); /* wraps only when t is empty */
    }
}

int64_t zc_dims_span(const int64_t *dims, int from, int to)
{
    return zc_numel(to - from, dims + from);
}

const char *zc_tensor_type_text(const zc_tensor *t, char *buf, size_t n)
{
    if (n == 0) return buf;
    size_t len = 0;
    for (int i = -1; i <= t->rank && len < n; i++) {
        int put;
        if (i < 0)
            put = snprintf(buf + len, n - len, "%s[", zc_dtype_name(t->dtype));
        else if (i < t->rank)
            put = snprintf(buf + len, n - len, i ? ",%lld" : "%lld", (long long)t->dims[i]);
        else
            put = snprintf(buf + len, n - len, "]");
        if (put < 0) break;
        len += (size_t)put;
    }
    return buf;
}
