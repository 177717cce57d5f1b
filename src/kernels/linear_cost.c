#include "kernels/linear_cost.h"

#include <math.h>

#include "kernels/choose.h"
#include "kernels/sm90.h"

static double tall_us(const zc_linear_work *w)
{
    const zc_sm90_problem p = {.m = w->m,
                               .n = w->n,
                               .steps = zc_ceil_div(w->k, ZC_SM90_DEPTH),
                               .items = 1,
                               .sm_count = zc_usual_processors(90),
                               .fused_tile = -1};
    return zc_sm90_us(&p) + ZC_SM90_TALL_FIXED;
}

/* Of gemm_few_sm90's two models that of up to eight rows says which configuration is the fastest,
 * not what it takes, and the other does not count the memory: but no product takes less than a
 * tenth more than one of a row (16 rows by 4096 x 4096 12.8 us on an H100, one 11.7). */
static double few_us(const zc_linear_work *w)
{
    const zc_linear_work one = {.m = 1, .n = w->n, .k = w->k};
    const zc_linear_work few = {.m = w->m > 9 ? w->m : 9, .n = w->n, .k = w->k};
    const double us = zc_gemv_sm90_us(&one);
    return w->m > one.m ? fmax(1.1 * us, zc_gemm_few_sm90_us(&few)) : us;
}

double zc_linear_dense_us(const zc_linear_work *w)
{
    return w->m < ZC_SM90_ROWS ? few_us(w) : fmin(few_us(w), tall_us(w));
}

double zc_linear_sparse_us(const zc_linear_work *w)
{
    return fmin(zc_gemv_sparse_sm90_us(w), zc_gemm_sparse_sm90_us(w));
}
