#include "abi/multinomial.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"
#include "kernels/random.h"

/* ---- the specialisation ---- */

zc_status zc_gen_multinomial(zc_gen *g)
{
    zc_dtype in = zc_gen_in_type(g, 0);
    if (!zc_kernel_type(in)) return zc_gen_decline(g, "element type %s", zc_dtype_name(in));
    zc_gen_type(g, "IN", in);
    zc_gen_type(g, "OUT", zc_gen_out_type(g, 0));
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256 };

static zc_status get_memory(zc_launch *l, struct zc_multinomial_params *p)
{
    void *sums, *totals;
    size_t bytes;
    if (!zc_mul_size((size_t)p->rows, (size_t)p->classes, &bytes) ||
        !zc_mul_size(bytes, sizeof(double), &bytes))
        return zc_launch_fail(l, "too many classes (got %lld x %lld)", p->rows, p->classes);
    ZC_TRY(zc_launch_scratch(l, bytes, &sums));
    ZC_TRY(zc_launch_scratch(l, (size_t)p->rows * 2 * sizeof(double), &totals));
    p->sums = sums;
    p->totals = totals;
    return ZC_OK;
}

zc_status zc_launch_multinomial(zc_launch *l)
{
    const zc_attrs_Multinomial *a = ZC_ATTRS(l, Multinomial);
    struct zc_multinomial_params p = {.in = l->in[0].data,
                                      .out = l->out[0].data,
                                      .rows = l->in[0].dims[0],
                                      .classes = l->in[0].dims[1],
                                      .samples = l->out[0].dims[1],
                                      .key = ZC_LAUNCH_RANDOM_KEY(l, Multinomial, a),
                                      .fault = l->fault,
                                      .step = l->step_id};
    if (p.rows == 0 || p.samples == 0) return ZC_OK;
    if (p.classes == 0) return zc_launch_fail(l, "there are no classes");
    ZC_TRY(get_memory(l, &p));
    zc_dim3 rows = {zc_launch_blocks(p.rows, 1, 0), 1, 1};
    ZC_TRY(zc_launch_kernel(l, 0, rows, BLOCK, 0, &p, sizeof p));
    return zc_launch_kernel(l, 1, zc_move_grid(l, p.rows * p.samples), BLOCK, 0, &p, sizeof p);
}
