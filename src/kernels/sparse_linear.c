/* SparseLinear of any type (sparse_linear.cu), and what the families of f16 and bf16 share:
 * gemm_sparse_mma.c, and Hopper's gemv_sparse_sm90.c and gemm_sparse_sm90.c. */
#include "kernels/sparse_linear.h"

#include <string.h>

#include "kernels/linear_cost.h"

/* ---- the specialisation ---- */

const int64_t zc_sparse_ranges[ZC_SPARSE_RANGES] = {1, 8, 16, 32, 64, 128, 256, ZC_MM_FAR};

zc_status zc_gen_sparse(zc_gen *g, zc_sparse_sizes *s)
{
    const zc_pvalue *x = zc_gen_in(g, ZC_IN_SparseLinear_x);
    zc_tensor w;
    int64_t low;
    *s = (zc_sparse_sizes){.m = INT64_MAX};
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_tensor(zc_gen_in(g, ZC_IN_SparseLinear_w), &w);
    if (!zc_sparse_of(&w, &s->w)) return zc_gen_decline(g, "elements that are not in tiles");
    zc_gen_size(g, x->dims, x->rank - 1, zc_sparse_ranges, ZC_SPARSE_RANGES - 1, &low, &s->m);
    if (s->m == INT64_MAX) s->m = ZC_MM_FAR;
    zc_gen_type(g, "T", x->dtype);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_define(g, "ACC", "%s", x->dtype == ZC_F64 ? "f64" : "f32");
    zc_gen_define(g, "BIAS", "%d", zc_gen_in(g, ZC_IN_SparseLinear_bias) != NULL);
    return zc_gen_epilogue(g);
}

static bool is_constant(const zc_gen *g)
{
    return zc_gen_in(g, ZC_IN_SparseLinear_w)->kind == ZC_P_CONST &&
           zc_gen_in(g, ZC_IN_SparseLinear_places)->kind == ZC_P_CONST;
}

zc_status zc_gen_sparse_half(zc_gen *g, zc_sparse_sizes *s)
{
    ZC_TRY(zc_gen_sparse(g, s));
    if (g->declined[0]) return ZC_OK;
    const zc_dtype x = zc_gen_in_type(g, ZC_IN_SparseLinear_x);
    if (x != ZC_F16 && x != ZC_BF16) return zc_gen_decline(g, "rows of %s", zc_dtype_name(x));
    if (s->w.n > INT32_MAX || s->w.k > INT32_MAX) return zc_gen_decline(g, "too large a matrix");
    return ZC_OK;
}

zc_status zc_gen_sparse_sm90(zc_gen *g, zc_sparse_sizes *s)
{
    ZC_TRY(zc_gen_sparse_half(g, s));
    if (!g->declined[0] && is_constant(g)) zc_gen_define(g, "CONSTANT", "1");
    return ZC_OK;
}

zc_status zc_gen_sparse_linear(zc_gen *g)
{
    zc_sparse_sizes s;
    return zc_gen_sparse(g, &s);
}

/* ---- the launch ---- */

zc_status zc_launch_sparse(zc_launch *l, struct zc_sparse_linear_params *p)
{
    zc_sparse w;
    const zc_tensor *x = &l->in[ZC_IN_SparseLinear_x];
    memset(p, 0, sizeof *p);
    if (!zc_sparse_of(&l->in[ZC_IN_SparseLinear_w], &w) || x->dims[x->rank - 1] != w.k)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "rows do not fit the matrix (got %lld elements, need %lld)",
                       (long long)x->dims[x->rank - 1], (long long)w.k);
    p->x = x->data;
    p->w = l->in[ZC_IN_SparseLinear_w].data;
    p->places = l->in[ZC_IN_SparseLinear_places].data;
    p->bias = zc_launch_in(l, ZC_IN_SparseLinear_bias);
    p->y = l->out[0].data;
    p->m = zc_tensor_numel(&l->out[0]) / w.n;
    p->n = w.n;
    p->k = w.k;
    return zc_launch_epilogue(l, &p->fused);
}

zc_status zc_launch_sparse_linear(zc_launch *l)
{
    enum { THREADS = 256, BLOCKS_MOST = 65535 };
    struct zc_sparse_linear_params p;
    ZC_TRY(zc_launch_sparse(l, &p));
    zc_dim3 grid = {zc_launch_blocks(p.m * p.n, THREADS, BLOCKS_MOST), 1, 1};
    return zc_launch_kernel(l, 0, grid, THREADS, 0, &p, sizeof p);
}
