/* Products of few rows of f16 and bf16 on Hopper (gemm_few_sm90.cu): tiles and parts, by a model of
 * their cost. */
#include <math.h>
#include <string.h>

#include "abi/gemm_few_sm90.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/divisor.h"
#include "kernels/linear_cost.h"
#include "kernels/linear_moments.h"
#include "kernels/sm90.h"

enum { TILE_ROWS, GROUPS, PARTS, STEPS, STAGES };
const char *const zc_config_gemm_few_sm90[] = {"tile_rows", "groups", "parts",
                                               "steps",     "stages", NULL};

enum {
    SIDE = 64,        /* columns of a tile, and of the summed axis a step */
    PITCH = SIDE + 4, /* of the sums' lines */
    TILE_MOST = 128,
    PARTS_MOST = 8,
    TILINGS = TILE_MOST / 8 * 4 * 3,
    ROWS_OF_BYTES = 8, /* so many or fewer take as long as B's bytes */
    SHARED_MOST = 3,   /* blocks that share a multiprocessor */
    SHAPES = TILINGS * SHARED_MOST
};

/* ---- the choice ---- */

typedef struct problem {
    int64_t m, n, k, items;
    bool heavy;  /* is there more to do with a sum than to add a bias? */
    bool uneven; /* tiles that do work in vain, too */
    bool shared; /* blocks that share a multiprocessor, too */
    int sm_count;
} problem;

typedef struct candidate {
    int rows, groups, parts, steps, stages, shared;
} candidate;

static uint32_t smem_of(const candidate *c)
{
    int operands = c->stages * (SIDE + c->rows) * ZC_SM90_LINE, sums = c->rows * PITCH * 4;
    int kept = operands > c->groups * sums ? operands : c->groups * sums;
    int received = (c->parts - 1) * sums / c->parts;
    return (uint32_t)(kept + received + (2 * c->stages + 1) * 8);
}

/* Microseconds, beyond what any kernel takes: fitted to a chain of products of 128 rows on an H200
 * (bench/NOTES.md). A step takes as long as its products or its rows of A from the L2 cache; blocks
 * of one wave have their part of B before they begin, those behind it start anew. */
static double cost(const problem *p, const candidate *c)
{
    static const double meets[] = {0, 0, 1000, 0, 2000, 0, 0, 0, 4000}; /* cycles, by parts */
    const double clock = 1650, l2 = 48, turn = 70, a_block = 15, join = 900, start = 1000;
    const double element = p->heavy ? 40 : 20; /* cycles of a thread */
    int64_t blocks = zc_ceil_div(p->m, c->rows) * zc_ceil_div(p->n, SIDE) * p->items * c->parts;
    int64_t waves = zc_ceil_div(blocks, p->sm_count);
    double product = c->rows > 32 ? c->rows * 2.5 : 80, loads = c->rows * ZC_SM90_LINE / l2;
    double step = (product > loads ? product : loads) + turn / c->groups,
           b = SIDE * ZC_SM90_LINE / l2;
    double first = c->steps * (c->stages < c->steps ? step + b / 2 : step);
    double results = (double)c->rows * SIDE / c->parts / (128 * c->groups) * element;
    double meet = meets[c->parts] + (c->parts > 1 && c->groups > 1 ? join : 0);
    double groups = 90 * c->groups * (c->groups - 1);
    double later = (double)(waves - 1) * (c->steps * (step + b) + start + results);
    return (first + later + results + meet + groups + (double)blocks * a_block) / clock;
}

/* The same for so few rows that B's bytes decide: blocks that share a multiprocessor wait for
 * theirs together, and what is on its way limits how fast they come. Fitted to which were the
 * fastest of the products of a Llama of 7B shape on an H200. */
static double cost_of_bytes(const problem *p, const candidate *c)
{
    const double rate = 30e3, latency = 1.2; /* bytes a us; us */
    const double fixed = 1.5, meet = 0.5, turn = 0.6;
    int64_t blocks = zc_ceil_div(p->n, SIDE) * p->items * c->parts;
    int64_t together = zc_ceil_div(blocks, p->sm_count);
    if (together > c->shared) together = c->shared;
    double bytes = (double)together * SIDE * ZC_SM90_LINE, fast = bytes * c->stages / latency;
    double step = bytes / (fast < rate ? fast : rate);
    if (step < turn / c->groups) step = turn / c->groups;
    double waves = (double)zc_ceil_div(blocks, p->sm_count * together);
    return waves * (step * c->steps + fixed) + meet * (c->parts + c->groups - 2);
}

/* As many stages as steps, or as fit beside the other blocks of the multiprocessor: of those that
 * are filled again each warpgroup has its own. */
static int stages_of(const candidate *c, int shared)
{
    const int fit = ZC_SM90_SMEM / ZC_SM90_LINE / SIDE;
    const uint32_t most = (uint32_t)zc_sm90_smem(shared);
    candidate with = *c;
    with.stages = c->steps < fit ? c->steps : fit;
    while (with.stages && smem_of(&with) > most) with.stages--;
    if (with.stages < c->steps) with.stages -= with.stages % c->groups;
    return with.stages;
}

/* Number `number` of all; false: not for this product. */
static bool shape_of(const problem *p, int number, candidate *c)
{
    int tiling = number % TILINGS;
    *c = (candidate){.rows = (tiling / 12 + 1) * 8,
                     .parts = 1 << tiling / 3 % 4,
                     .groups = 1 << tiling % 3,
                     .shared = number / TILINGS + 1};
    int64_t all = zc_ceil_div(p->k, SIDE), steps = zc_ceil_div(all, c->parts);
    if (steps > INT32_MAX / SIDE || (c->parts > 1 && steps * (c->parts - 1) >= all)) return false;
    c->steps = (int)steps;
    if (c->rows % c->parts || c->steps < c->groups) return false;
    c->stages = stages_of(c, c->shared);
    if (c->shared > 1 && c->stages == stages_of(c, c->shared - 1)) return false;
    /* A warpgroup leaves a stage once its next step has begun. */
    return c->stages == c->steps || c->stages >= 2 * c->groups;
}

/* Tiles of other rows do as much work in vain as one of these. */
static bool is_even(const problem *p, const candidate *c)
{
    int64_t down = zc_ceil_div(p->m, c->rows);
    return zc_ceil_div(zc_ceil_div(p->m, down), 8) * 8 == c->rows;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    if (!shape_of(p, number, &c) || !(p->uneven || is_even(p, &c))) return false;
    if (c.shared > 1 && !p->shared) return false;
    *out = (zc_candidate){.config = {[TILE_ROWS] = c.rows,
                                     [GROUPS] = c.groups,
                                     [PARTS] = c.parts,
                                     [STEPS] = c.steps,
                                     [STAGES] = c.stages},
                          .threads = (uint32_t)c.groups * 128 + 32,
                          .smem = smem_of(&c),
                          .cluster = (uint32_t)c.parts,
                          .us = p->m <= ROWS_OF_BYTES ? cost_of_bytes(p, &c) : cost(p, &c)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d in %d parts, %d groups", c.rows, SIDE, c.parts,
                c.groups);
    return true;
}

double zc_gemm_few_sm90_us(const zc_linear_work *w)
{
    if (w->m > zc_family_rows(ZC_FAMILY_gemm_few_sm90).high) return INFINITY;
    const problem p = {.m = w->m,
                       .n = w->n,
                       .k = w->k,
                       .items = 1,
                       .shared = w->m <= ROWS_OF_BYTES,
                       .sm_count = zc_usual_processors(90)};
    return zc_candidates_us(candidate_of, &p, SHAPES);
}

/* ---- the specialisation ---- */

zc_status zc_gen_gemm_few_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_sm90_few(g, ZC_FAMILY_gemm_few_sm90, &form, &s));
    if (g->declined[0]) return ZC_OK;
    problem p = {.m = s.m_high,
                 .n = s.n,
                 .k = s.k,
                 .items = zc_gen_sm90_items(g, &form),
                 .heavy = form.activation || zc_op_epilogue(g->info, g->attrs),
                 .uneven = g->candidate,
                 .shared = s.m_high <= ROWS_OF_BYTES || g->candidate || g->regardless,
                 .sm_count = g->sm_count};
    zc_gen_tensor_cores(g, "wgmma", zc_gen_plain_result(g));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, SHAPES));
    if (g->declined[0]) return ZC_OK;
    double tall = zc_gen_gemm_sm90_us(g, &form, &s) + ZC_SM90_TALL_FIXED;
    if (!g->candidate && !g->regardless && s.m_low >= ZC_SM90_ROWS && tall < g->us)
        return zc_gen_decline(g, "larger tiles are faster (%.1f us, not %.1f)", tall, g->us);
    zc_gen_row_moments(g, &s);
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_few_sm90(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_few_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_sm90_operands(l, &form, &mm, &p.product.g));
    if (mm.batch == 0 || mm.m == 0) return ZC_OK;
    const int64_t *config = l->kernel->config;
    int64_t down = zc_ceil_div(mm.m, config[TILE_ROWS]), across = zc_ceil_div(mm.n, SIDE), blocks;
    if (mm.batch_rank > 1 || mm.m > INT32_MAX || !zc_mul_i64(down, across, &blocks) ||
        !zc_mul_i64(blocks, mm.batch, &blocks) || blocks > INT32_MAX / config[PARTS])
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)mm.m, (long long)mm.n);
    p.by_down = zc_divisor_of(down);
    p.by_across = zc_divisor_of(across);
    zc_launch_row_moments(l, &p.product.moments);
    if (form.norm) ZC_TRY(zc_matmul_partial_sums(l, &mm, 1, sizeof(float), &p.product.g));
    ZC_TRY(zc_sm90_maps(l, &form, &mm, (int)config[TILE_ROWS], SIDE, 0, &p.product));
    zc_dim3 grid = {(uint32_t)(blocks * config[PARTS]), 1, 1};
    ZC_TRY(zc_launch_configured(l, grid, &p, sizeof p));
    return form.norm ? zc_matmul_launch_norm(l, &p.product.g) : ZC_OK;
}
