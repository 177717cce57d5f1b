#include "kernels/linear_cost.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/choose.h"
#include "kernels/sm90.h"

enum { HOPPER = 90 };

const int zc_linear_archs[ZC_LINEAR_ARCHS] = {80, 86, 89, HOPPER, 120};

/* ---- Hopper ---- */

static double tall_us(const zc_linear_work *w)
{
    const zc_sm90_problem p = {.m = w->m,
                               .n = w->n,
                               .steps = zc_ceil_div(w->k, ZC_SM90_DEPTH),
                               .items = 1,
                               .sm_count = zc_usual_processors(HOPPER),
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

static double hopper_dense_us(const zc_linear_work *w)
{
    return w->m < ZC_SM90_ROWS ? few_us(w) : fmin(few_us(w), tall_us(w));
}

/* ---- others ---- */

/* A100, RTX A6000, RTX 4090, RTX 5090. Sums are f32, for which GeForce has half the products of
 * their chips. */
static const zc_mma_chip chips[] = {{80, 1024, 1410, 2.04e6, 48, 167936},
                                    {86, 512, 1800, 0.77e6, 16, 102400},
                                    {89, 256, 2520, 1.01e6, 16, 102400},
                                    {120, 256, 2410, 1.79e6, 16, 102400}};

const zc_mma_chip *zc_mma_chip_of(int arch)
{
    for (size_t i = 0; i < ZC_COUNTOF(chips); i++)
        if (chips[i].arch == arch) return &chips[i];
    return &chips[0];
}

double zc_linear_rows_bytes(const zc_linear_work *w)
{
    return (double)w->m * (double)(w->k + w->n) * 2;
}

double zc_mma_step_cycles(const zc_mma_chip *c, const zc_mma_step *s)
{
    const double shared = 128, bare = 0.1; /* bytes a cycle */
    const double copies = s->copied / c->l2, moved = (s->copied + s->read) / shared;
    return fmax(fmax(s->products, copies), moved) + bare * (copies + moved);
}

/* Of tiles of gemm_mma.cu, so many one after another. Its warps have tiles of side / 2 rows by 32
 * columns and read their factors for 16 places of the summed axis at once. */
static double tiles_us(const zc_mma_chip *c, int64_t k, int side, double waves)
{
    const double depth = 16, line = depth * 2, warps = side / 16.0, reached = 0.8;
    const zc_mma_step step = {.products = (double)side * side * depth / (c->products * reached),
                              .copied = 2 * side * line,
                              .read = warps * (side / 2.0 + 32) * line};
    return waves * (double)zc_ceil_div(k, (int64_t)depth) * zc_mma_step_cycles(c, &step) / c->clock;
}

/* Where small tiles are few, parts of the summed axis fill the GPU, and a launch adds them up. */
static double mma_dense_us(const zc_linear_work *w, int arch)
{
    enum { SMALL = 64, LARGE = 128, ROWS_ALONE = 8 }; /* so few rows are no tensor core's work */
    const double reached = 0.8, adds_up = 2;
    const zc_mma_chip *c = zc_mma_chip_of(arch);
    const double memory =
        ((double)w->n * (double)w->k * 2 + zc_linear_rows_bytes(w)) / (c->memory * reached);
    if (w->m <= ROWS_ALONE) return memory;
    const double processors = zc_usual_processors(arch);
    const double small = (double)zc_ceil_div(w->m, SMALL) * (double)zc_ceil_div(w->n, SMALL);
    const double large = (double)zc_ceil_div(w->m, LARGE) * (double)zc_ceil_div(w->n, LARGE);
    const bool parts = small < processors;
    const double waves = parts ? small / processors : ceil(small / processors);
    const double small_us = tiles_us(c, w->k, SMALL, waves) + (parts ? adds_up : 0);
    return fmax(memory, fmin(small_us, tiles_us(c, w->k, LARGE, ceil(large / processors))));
}

double zc_linear_dense_us(const zc_linear_work *w, int arch)
{
    return arch == HOPPER ? hopper_dense_us(w) : mma_dense_us(w, arch);
}

double zc_linear_sparse_us(const zc_linear_work *w, int arch)
{
    if (arch != HOPPER) return zc_gemm_sparse_mma_us(w, arch);
    return fmin(zc_gemv_sparse_sm90_us(w), zc_gemm_sparse_sm90_us(w));
}
