/* A concrete tensor: contiguous, row-major, not owning its bytes. */
#ifndef ZC_OP_TENSOR_H
#define ZC_OP_TENSOR_H

#include "base/diag.h"
#include "op/dtype.h"

/* Most dimensions a tensor may have. */
#define ZC_MAX_RANK 16

typedef struct zc_tensor {
    zc_dtype dtype; /* ZC_NONE: an optional operand that is absent */
    int rank;
    int64_t dims[ZC_MAX_RANK];
    void *data; /* may be NULL when it has no elements */
} zc_tensor;

/* Elements in dims, or -1 on a negative dimension or overflow. */
int64_t zc_numel(int rank, const int64_t *dims);
static inline int64_t zc_tensor_numel(const zc_tensor *t)
{
    return zc_numel(t->rank, t->dims);
}
/* Bytes of data; false on overflow. */
bool zc_tensor_bytes(const zc_tensor *t, size_t *out);
static inline bool zc_present(const zc_tensor *t)
{
    return t && t->dtype != ZC_NONE;
}
/* Product of dims[from..to), or -1 as zc_numel (a tensor without elements may have such a part). */
int64_t zc_dims_span(const int64_t *dims, int from, int to);
/* Row-major strides in elements. */
void zc_strides(const zc_tensor *t, int64_t strides[ZC_MAX_RANK]);
/* "f32[2,3]" into buf, cut at n; returns buf. */
const char *zc_tensor_type_text(const zc_tensor *t, char *buf, size_t n);

#endif
