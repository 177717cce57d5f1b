#include "abi/pointwise.h"

#include <string.h>

#include "cuda/collapse.h"
#include "cuda/launch.h"
#include "cuda/pointwise.h"

enum { BLOCK = 256 };

/* May a thread take `vec` neighbours at once? Each run of them must lie in one row, aligned. */
static bool can_vectorise(const zc_launch *l, const zc_collapsed *c, int vec)
{
    if (c->rank == 0 || c->dims[c->rank - 1] % vec) return false;
    for (int i = 0; i <= l->nin; i++) {
        const zc_tensor *t = i < l->nin ? &l->in[i] : &l->out[0];
        bool along = i == l->nin || c->strides[i][c->rank - 1] == 1;
        if (!along && c->strides[i][c->rank - 1] != 0) return false;
        if (!along) continue;
        size_t bytes = zc_dtype_bits(t->dtype) / 8 * (size_t)vec;
        if ((uintptr_t)t->data % bytes) return false;
        for (int d = 0; i < l->nin && d < c->rank - 1; d++)
            if (c->strides[i][d] % vec) return false;
    }
    return true;
}

int zc_pointwise_vec(zc_dtype out, int nin, const zc_dtype *in)
{
    unsigned bits = zc_dtype_bits(out);
    for (int i = 0; i < nin; i++)
        if (zc_dtype_bits(in[i]) > bits) bits = zc_dtype_bits(in[i]);
    return bits <= 16 ? 8 : bits == 32 ? 4 : 2;
}

zc_status zc_launch_pointwise(zc_launch *l)
{
    struct zc_pointwise_params p;
    zc_collapsed c;
    zc_dtype types[ZC_POINT_INPUTS];
    memset(&p, 0, sizeof p);
    zc_collapse_broadcast(&l->out[0], l->nin, l->in, &c);
    if (c.rank > ZC_POINT_RANK)
        return zc_fail(
            l->diag, ZC_ERR_LIMIT, l->subject,
            "broadcast pattern too irregular for the GPU kernel (got %d axes, need at most %d)",
            c.rank, ZC_POINT_RANK);
    p.out = l->out[0].data;
    p.total = zc_tensor_numel(&l->out[0]);
    p.rank = c.rank;
    for (int d = 0; d < c.rank; d++) p.dims[d] = c.dims[d];
    for (int i = 0; i < l->nin; i++) {
        p.in[i] = l->in[i].data;
        types[i] = l->in[i].dtype;
        for (int d = 0; d < c.rank; d++) p.strides[i][d] = c.strides[i][d];
    }
    int vec = zc_pointwise_vec(l->out[0].dtype, l->nin, types);
    bool vectorised = can_vectorise(l, &c, vec);
    int64_t threads = vectorised ? p.total / vec : p.total;
    bool wide = !l->is_static && p.total > INT32_MAX;
    zc_dim3 grid = {zc_launch_blocks(threads, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, (vectorised ? 0 : 1) + (wide ? 2 : 0), grid, BLOCK, 0, &p, sizeof p);
}
