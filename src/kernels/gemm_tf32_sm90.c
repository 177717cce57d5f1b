/* Products of f32 rounded to tf32 on Hopper: gemm_sm90.cu, whose factors the copy engine rounds on
 * their way. The tensor cores take both along the summed axis, and look at no digits behind tf32's.
 */
#include "kernels/sm90.h"
#include "op/kernels.h"

const char *const zc_config_gemm_tf32_sm90[] = {ZC_SM90_CONFIG};

/* Microseconds that gemm_mma is held to take, beyond what a launch takes anyhow: parts of the
 * summed axis give all multiprocessors work, and cost a second launch. By 4096^3 on an H200 (23
 * TFLOP/s) and 128 x 768 x 768 on an H100 (14.2 with its launches). */
static double mma_us(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    const double clock = 1650, per_cycle = 53, fixed = 5;
    const double rows = (double)(s->m_high == INT64_MAX ? ZC_MM_FAR : s->m_high);
    const double products = rows * (double)s->n * (double)s->k * (double)zc_gen_sm90_items(g, form);
    return fixed + products / (g->sm_count * per_cycle * clock);
}

zc_status zc_gen_gemm_tf32_sm90(zc_gen *g)
{
    const zc_rows rows = zc_family_rows(ZC_FAMILY_gemm_tf32_sm90);
    zc_matmul_form form;
    zc_matmul_sizes s;
    if (!zc_gen_rounds_factors(g)) return zc_gen_decline(g, "no exact tensor core product of f32");
    ZC_TRY(zc_gen_sm90_form(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    if (s.m_low < rows.low)
        return zc_gen_decline(g, "rows that are not certain to be %d or more", rows.low);
    ZC_TRY(zc_gen_sm90_product(g, &form, &s));
    if (!g->declined[0] && !g->candidate && !g->regardless && g->us > mma_us(g, &form, &s))
        return zc_gen_decline(g, "few tiles of a long summed axis (%.1f us)", g->us);
    return ZC_OK;
}

zc_status zc_launch_gemm_tf32_sm90(zc_launch *l)
{
    return zc_launch_gemm_sm90(l);
}
