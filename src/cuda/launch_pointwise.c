#include "abi/pointwise.h"

#include <string.h>

#include "cuda/launch.h"
#include "cuda/pointwise.h"

enum { BLOCK = 256 };

static bool is_aligned(const zc_tensor *t, int vec)
{
    return (uintptr_t)t->data % (zc_dtype_bits(t->dtype) / 8 * (size_t)vec) == 0;
}

/* May a thread take `vec` neighbours at once? Each run of them must lie in one row, aligned. */
static bool can_vectorise(const zc_launch *l, const zc_collapsed *c, int vec)
{
    int last = c->rank - 1;
    if (c->rank == 0 || c->dims[last] % vec) return false;
    for (int i = 0; i < l->nout; i++)
        if (zc_present(&l->out[i]) && !is_aligned(&l->out[i], vec)) return false;
    for (int i = 0; i < l->nin; i++) {
        if (c->strides[i][last] == 0) continue;
        if (c->strides[i][last] != 1 || !is_aligned(&l->in[i], vec)) return false;
        for (int d = 0; d < last; d++)
            if (c->strides[i][d] % vec) return false;
    }
    return true;
}

static unsigned widest(int n, const zc_dtype *types)
{
    unsigned bits = 0;
    for (int i = 0; i < n; i++)
        if (types[i] != ZC_NONE && zc_dtype_bits(types[i]) > bits) bits = zc_dtype_bits(types[i]);
    return bits;
}

int zc_pointwise_vec(int nout, const zc_dtype *out, int nin, const zc_dtype *in)
{
    unsigned a = widest(nout, out), b = widest(nin, in), bits = a > b ? a : b;
    return bits <= 16 ? 8 : bits == 32 ? 4 : 2;
}

zc_status zc_launch_pointwise(zc_launch *l)
{
    struct zc_pointwise_params p;
    zc_collapsed c;
    zc_dtype in[ZC_POINT_INPUTS], out[ZC_POINT_OUTPUTS];
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_broadcast(l, &l->out[0], l->nin, l->in, ZC_POINT_RANK, &c));
    for (int i = 0; i < l->nout; i++) {
        out[i] = l->out[i].dtype;
        p.out[i] = l->out[i].data;
    }
    p.total = zc_tensor_numel(&l->out[0]);
    p.rank = c.rank;
    for (int d = 0; d < c.rank; d++) p.dims[d] = c.dims[d];
    for (int i = 0; i < l->nin; i++) {
        p.in[i] = l->in[i].data;
        in[i] = l->in[i].dtype;
        for (int d = 0; d < c.rank; d++) p.strides[i][d] = c.strides[i][d];
    }
    int vec = zc_pointwise_vec(l->nout, out, l->nin, in);
    bool vectorised = can_vectorise(l, &c, vec);
    int64_t threads = vectorised ? p.total / vec : p.total;
    bool wide = !l->is_static && p.total > INT32_MAX;
    zc_dim3 grid = {zc_launch_blocks(threads, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, (vectorised ? 0 : 1) + (wide ? 2 : 0), grid, BLOCK, 0, &p, sizeof p);
}
