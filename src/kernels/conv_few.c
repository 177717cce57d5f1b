#include "kernels/conv_few.h"

#include <math.h>

#include "base/number.h"
#include "kernels/candidates.h"

enum { SIDES = 3, COUNT = SIDES * 2 * 4 };

typedef struct few {
    int pixels, warpgroups, parts, steps;
    int64_t smem;
} few;

/* What conv_few_quant_sm90.cu has beside operands and sums: columns with their scales, and sums of
 * lines. */
static int64_t byte_smem(const zc_sm90_problem *p, const few *f)
{
    enum { WORD = 4, COLUMN = 24 };
    if (!p->column_words) return 0;
    return f->pixels * WORD + f->warpgroups * 64 * (COLUMN + p->column_words * WORD);
}

/* The number-th configuration; smem as zc/conv_few.cuh lays it out. */
static few few_of(const zc_sm90_problem *p, int number)
{
    static const int floats[SIDES] = {24, 40, 64}, bytes[SIDES] = {24, 32, 64};
    few f = {.pixels = (p->column_words ? bytes : floats)[number % SIDES],
             .warpgroups = 1 + number / SIDES % 2,
             .parts = 1 << number / (SIDES * 2)};
    int64_t channels = f.warpgroups * 64, pixel = (channels + 4) * 4;
    int64_t steps = zc_ceil_div(p->steps, f.parts), own = zc_ceil_div(f.pixels, f.parts);
    int64_t operands = steps * (channels + f.pixels) * ZC_SM90_LINE;
    int64_t sums = (f.pixels * pixel + 127) / 128 * 128;
    f.steps = steps < INT32_MAX ? (int)steps : INT32_MAX;
    f.smem = (operands > sums ? operands : sums) + (f.parts - 1) * own * pixel + (steps + 1) * 8 +
             byte_smem(p, &f);
    return f;
}

/* Microseconds: 48 bytes a cycle from the L2 cache to a multiprocessor, which runs so many blocks
 * at once as its memory holds; results, of which a byte takes a cycle (an H200's choices for
 * ResNet-50 at batch 1 say so); and parts that exchange their sums. */
static double us_of(const zc_sm90_problem *p, const few *f)
{
    const double clock = 1650, l2 = 48, fill = 1000, exchange = 1000, send = 32;
    const double finish = p->column_words ? 1 : 24;
    double channels = f->warpgroups * 64;
    int64_t blocks =
        zc_ceil_div(p->m, f->pixels) * zc_ceil_div(p->n, f->warpgroups * 64) * f->parts;
    int64_t each = zc_ceil_div(blocks, p->sm_count), at_once = ZC_SM90_SMEM / f->smem;
    double loads = f->steps * (channels + f->pixels) * ZC_SM90_LINE / l2;
    double sent = (f->parts - 1.0) / f->parts * f->pixels * channels * 4 / send;
    double results = f->pixels * channels / f->parts / finish;
    return ((double)each * (loads + sent + results) + (f->parts > 1 ? exchange : 0) +
            fill * (double)zc_ceil_div(each, at_once)) /
           clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const zc_sm90_problem *p = of;
    few f = few_of(p, number);
    if (f.smem > ZC_SM90_SMEM || f.parts > p->steps) return false;
    if (p->band && f.warpgroups * 64 != p->band) return false;
    if (p->phase && p->phase % (f.warpgroups * 64)) return false;
    *out = (zc_candidate){.config = {[ZC_FEW_PIXELS] = f.pixels,
                                     [ZC_FEW_WARPGROUPS] = f.warpgroups,
                                     [ZC_FEW_PARTS] = f.parts,
                                     [ZC_FEW_STEPS] = f.steps},
                          .threads = (uint32_t)f.warpgroups * 128,
                          .smem = (uint32_t)f.smem,
                          .cluster = (uint32_t)f.parts,
                          .us = us_of(p, &f)};
    zc_snprintf(out->name, sizeof out->name, "%d pixels x %d, %d parts", f.pixels,
                f.warpgroups * 64, f.parts);
    return true;
}

zc_status zc_gen_conv_few(zc_gen *g, const zc_sm90_problem *p)
{
    if (p->m > ZC_CONV_FEW_PIXELS) return zc_gen_decline(g, "many pixels");
    zc_gen_tensor_cores(g, "wgmma", zc_gen_in_type(g, 0));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, p, COUNT));
    if (g->declined[0]) return ZC_OK;
    if (!g->candidate && !g->regardless && g->us > zc_sm90_us(p))
        return zc_gen_decline(g, "large tiles are faster");
    return ZC_OK;
}

double zc_conv_few_or_tall_us(const zc_sm90_problem *p)
{
    const double tall = zc_sm90_us(p);
    return p->m > ZC_CONV_FEW_PIXELS ? tall : fmin(tall, zc_candidates_us(candidate_of, p, COUNT));
}

int zc_conv_few_channels(const int64_t *config)
{
    return (int)config[ZC_FEW_WARPGROUPS] * 64;
}

zc_status zc_conv_few_grid(zc_launch *l, struct zc_gemm_sm90_params *p, zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config;
    int64_t down = zc_ceil_div(p->g.m, config[ZC_FEW_PIXELS]);
    int64_t across = zc_ceil_div(p->g.n, zc_conv_few_channels(config));
    int64_t blocks = down * across * config[ZC_FEW_PARTS];
    p->order = zc_sm90_order(down, across, 1);
    if (p->g.m > INT32_MAX || blocks > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    *grid = (zc_dim3){(uint32_t)blocks, 1, 1};
    return ZC_OK;
}
