/* SparseTensorProto to a dense zc_tensor. */
#include <stdlib.h>
#include <string.h>

#include "import/tensor_proto.h"

/* values and indices as tensors, and what messages call the whole. */
typedef struct sparse_parts {
    const char *name;
    zc_tensor values;  /* [n] */
    zc_tensor indices; /* i64[n]: positions in the flattened tensor, or i64[n,rank] */
} sparse_parts;

static zc_status check_parts(const sparse_parts *parts, const zc_tensor *dense, zc_diag *diag)
{
    const zc_tensor *v = &parts->values, *ix = &parts->indices;
    if (zc_dtype_bits(v->dtype) < 8)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, parts->name,
                       "sparse tensors of %s are not supported", zc_dtype_name(v->dtype));
    if (v->rank != 1)
        return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                       "sparse values have the wrong rank (got %d, need 1)", v->rank);
    if (ix->dtype != ZC_I64)
        return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                       "sparse indices have the wrong type (got %s, need i64)",
                       zc_dtype_name(ix->dtype));
    if (ix->rank >= 1 && ix->rank <= 2 && ix->dims[0] == v->dims[0] &&
        (ix->rank == 1 || ix->dims[1] == dense->rank))
        return ZC_OK;
    char got[256];
    return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                   "sparse indices have the wrong shape (got %s, need [%lld] or [%lld,%d])",
                   zc_tensor_type_text(ix, got, sizeof got), (long long)v->dims[0],
                   (long long)v->dims[0], dense->rank);
}

/* Position of value i in the flattened tensor, or -1 when it is outside. */
static int64_t position(const zc_tensor *indices, const zc_tensor *dense, int64_t i)
{
    const int64_t *ix = indices->data;
    if (indices->rank == 1) return ix[i] >= 0 && ix[i] < zc_tensor_numel(dense) ? ix[i] : -1;
    int64_t at = 0;
    for (int d = 0; d < dense->rank; d++) {
        const int64_t v = ix[i * dense->rank + d];
        if (v < 0 || v >= dense->dims[d]) return -1;
        at = at * dense->dims[d] + v;
    }
    return at;
}

static zc_status scatter(const sparse_parts *parts, zc_tensor *dense, zc_diag *diag)
{
    const size_t size = zc_dtype_bits(dense->dtype) / 8;
    int64_t last = -1;
    for (int64_t i = 0; i < parts->values.dims[0]; i++) {
        const int64_t at = position(&parts->indices, dense, i);
        if (at < 0)
            return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                           "sparse index %lld is outside the tensor", (long long)i);
        if (at <= last)
            return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                           "sparse index %lld is not in order (need ascending indices)",
                           (long long)i);
        memcpy((char *)dense->data + (size_t)at * size,
               (const char *)parts->values.data + (size_t)i * size, size);
        last = at;
    }
    return ZC_OK;
}

static zc_status make_dense(const Onnx__SparseTensorProto *sparse, const sparse_parts *parts,
                            size_t max_bytes, zc_tensor *out, zc_diag *diag)
{
    zc_tensor dense = {.dtype = parts->values.dtype, .rank = (int)sparse->n_dims};
    if (sparse->n_dims > ZC_MAX_RANK)
        return zc_fail(diag, ZC_ERR_LIMIT, parts->name,
                       "too many dimensions (got %zu, need at most %d)", sparse->n_dims,
                       ZC_MAX_RANK);
    if (sparse->n_dims) memcpy(dense.dims, sparse->dims, sparse->n_dims * sizeof *dense.dims);
    size_t bytes = 0;
    if (!zc_tensor_bytes(&dense, &bytes))
        return zc_fail(diag, ZC_ERR_MODEL, parts->name,
                       "sparse dimensions are negative or overflow");
    if (bytes > max_bytes)
        return zc_fail(diag, ZC_ERR_LIMIT, parts->name,
                       "the dense form is too large (got %zu bytes, need at most %zu)", bytes,
                       max_bytes);
    ZC_TRY(check_parts(parts, &dense, diag));
    dense.data = bytes ? zc_calloc(bytes, 1) : NULL;
    if (bytes && !dense.data) return zc_fail_nomem(diag, "a sparse tensor", bytes);
    const zc_status status = scatter(parts, &dense, diag);
    if (status == ZC_OK)
        *out = dense;
    else
        free(dense.data);
    return status;
}

zc_status zc_tensor_from_sparse(const Onnx__SparseTensorProto *sparse, zc_external *ext,
                                size_t max_bytes, zc_tensor *out, zc_diag *diag)
{
    if (!sparse->values || !sparse->indices)
        return zc_fail(diag, ZC_ERR_MODEL, NULL, "a sparse tensor without %s",
                       sparse->values ? "indices" : "values");
    sparse_parts parts = {.name = sparse->values->name};
    if (parts.name && !*parts.name) parts.name = NULL;
    zc_status status = zc_tensor_from_proto(sparse->values, ext, &parts.values, diag);
    if (status == ZC_OK) {
        const char *before = zc_diag_lend_subject(diag, parts.name);
        status = zc_tensor_from_proto(sparse->indices, ext, &parts.indices, diag);
        zc_diag_lend_subject(diag, before);
    }
    if (status == ZC_OK) status = make_dense(sparse, &parts, max_bytes, out, diag);
    free(parts.values.data);
    free(parts.indices.data);
    return status;
}
