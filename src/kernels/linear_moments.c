/* LinearMoments on any architecture (linear_moments.cu), and what the products on Hopper share with
 * it. */
#include "kernels/linear_moments.h"

#include <string.h>

_Static_assert((int)ZC_MOMENTS_PART == (int)ZC_MOMENTS_COLUMNS, "one meaning of moments");

void zc_gen_row_moments(zc_gen *g, const zc_matmul_sizes *s)
{
    if (g->step->op != ZC_OP_LinearMoments) return;
    const zc_attrs_LinearMoments *a = ZC_ATTRS(g, LinearMoments);
    zc_gen_define(g, "MOMENTS", "1");
    zc_gen_define(g, "K", "%lld", (long long)s->k);
    zc_gen_define(g, "N", "%lld", (long long)s->n);
    zc_gen_define(g, "A_NORM", "%d", zc_gen_in(g, ZC_IN_LinearMoments_moments) != NULL);
    zc_gen_define(g, "A_RMS", "%d", a->rms != 0);
    zc_gen_define(g, "SKIP", "%d", zc_gen_in(g, ZC_IN_LinearMoments_skip) != NULL);
    zc_gen_define(g, "SKIP_NORM", "%d", zc_gen_in(g, ZC_IN_LinearMoments_skip_moments) != NULL);
    zc_gen_define(g, "SKIP_RMS", "%d", a->skip_rms != 0);
    zc_gen_define(g, "SKIP_SHIFT", "%d", zc_gen_in(g, ZC_IN_LinearMoments_beta) != NULL);
    zc_gen_define(g, "KEEP", "%d", zc_gen_out_type(g, 1) != ZC_NONE);
}

void zc_launch_row_moments(const zc_launch *l, struct zc_row_moments_params *p)
{
    memset(p, 0, sizeof *p);
    if (l->op != ZC_OP_LinearMoments) return;
    const zc_attrs_LinearMoments *a = ZC_ATTRS(l, LinearMoments);
    *p = (struct zc_row_moments_params){.x = zc_launch_in(l, ZC_IN_LinearMoments_moments),
                                        .sums = zc_launch_in(l, ZC_IN_LinearMoments_sums),
                                        .skip = zc_launch_in(l, ZC_IN_LinearMoments_skip),
                                        .skip_x = zc_launch_in(l, ZC_IN_LinearMoments_skip_moments),
                                        .gamma = zc_launch_in(l, ZC_IN_LinearMoments_gamma),
                                        .beta = zc_launch_in(l, ZC_IN_LinearMoments_beta),
                                        .y = zc_launch_out(l, 1),
                                        .epsilon = a->epsilon,
                                        .skip_epsilon = a->skip_epsilon};
}

bool zc_gen_moments_skip(const zc_gen *g)
{
    return g->step->op == ZC_OP_LinearMoments && zc_gen_in(g, ZC_IN_LinearMoments_skip);
}

bool zc_gen_moments_beside_a(const zc_gen *g)
{
    return zc_gen_moments_skip(g) ||
           (g->step->op == ZC_OP_LinearMoments && zc_gen_out_type(g, 1) != ZC_NONE);
}

zc_status zc_gen_linear_moments(zc_gen *g)
{
    zc_dtype dtype = zc_gen_out_type(g, 0);
    zc_matmul_form form;
    if (dtype == ZC_F64) return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    zc_matmul_sizes s = zc_gen_matmul_sizes(g, &form);
    if (s.k < 0 || s.n < 0) return zc_gen_decline(g, "rows that are not certain");
    zc_gen_row_moments(g, &s);
    return zc_gen_matmul_spec(g, &form);
}

zc_status zc_launch_linear_moments(zc_launch *l)
{
    enum { BLOCK = 128 };
    struct zc_linear_moments_params p;
    zc_matmul_form form;
    zc_matmul mm;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    ZC_TRY(zc_matmul_of(l, &form, &mm));
    if (mm.batch == 0) return ZC_OK;
    ZC_TRY(zc_matmul_params(l, &form, &mm, 16, &p.g));
    zc_launch_row_moments(l, &p.moments);
    int64_t warps = mm.m * zc_ceil_div(mm.n, ZC_MOMENTS_PART);
    zc_dim3 grid = {zc_launch_blocks(warps, BLOCK / 32, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
