#include "kernels/linear_cost.h"

#include "kernels/choose.h"
#include "kernels/sm90.h"

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

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

/* What the memory takes for the matrix, which models of products with tiles do not count. */
static double memory_us(const zc_linear_work *w, double bytes)
{
    const double rate = 4.1e6; /* bytes a us, an H200's */
    return bytes * (double)w->n * (double)w->k / rate;
}

double zc_linear_dense_us(const zc_linear_work *w)
{
    const double few = least(zc_gemv_sm90_us(w), zc_gemm_few_sm90_us(w));
    const double us = w->m < ZC_SM90_ROWS ? few : least(few, tall_us(w));
    return most(us, memory_us(w, 2));
}

double zc_linear_sparse_us(const zc_linear_work *w)
{
    const double us = least(zc_gemv_sparse_sm90_us(w), zc_gemm_sparse_sm90_us(w));
    return most(us, memory_us(w, 2 * 9.0 / 16));
}
