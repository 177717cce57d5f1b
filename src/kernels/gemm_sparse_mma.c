/* Sparse products of f16 and bf16 by warps, from sm_80 on (gemm_sparse_mma.cu): which of its
 * configurations, by a model of their cost. */
#include <math.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/linear_cost.h"
#include "kernels/sparse_linear.h"

enum { ROWS, ACROSS, DOWN, SHARERS, STAGES, BESIDE };
const char *const zc_config_gemm_sparse_mma[] = {"rows",   "across", "down", "sharers",
                                                 "stages", "beside", NULL};

enum {
    LINE = ZC_SPARSE_SIDE * 2, /* bytes of x, of a step */
    STAGES_LEAST = 2,
    STAGES_MOST = 4,
    WARPS_LEAST = 4,
    WARPS_MOST = 16,
    SMEM_MOST = 101376, /* of a block where code for sm_80 runs, too: on sm_86 and sm_89 */
    RESERVED = 1024,    /* bytes of shared memory that a block takes beside its own */
    REGISTERS = 65536,  /* of a multiprocessor */
    REGISTERS_MOST = 255,
    REGISTERS_OTHER = 64 /* of a thread, beside its sums */
};

/* ---- the choice ---- */

static const int rows_of[] = {64, 32, 16, 8}; /* of a warp */
static const int warps_of[] = {4, 2, 1};      /* side by side, below each other, sharers */
static const int beside_of[] = {1, 2};        /* blocks on a multiprocessor */
enum { OF_WARPS = ZC_COUNTOF(warps_of) };
enum { CANDIDATES = ZC_COUNTOF(rows_of) * OF_WARPS * OF_WARPS * OF_WARPS * ZC_COUNTOF(beside_of) };

typedef struct problem {
    zc_linear_work w;
    const zc_mma_chip *chip;
    int sm_count;
} problem;

static int64_t steps_of(const problem *p)
{
    return p->w.k / ZC_SPARSE_SIDE;
}

typedef struct candidate {
    int rows, across, down, sharers, stages, beside;
} candidate;

static int warps_in(const candidate *c)
{
    return c->across * c->down * c->sharers;
}

/* Bytes of a step of the summed axis. */
static int step_of(const candidate *c)
{
    return c->rows * c->down * LINE + c->across * ZC_SPARSE_TILE_BYTES;
}

static int smem_of(const candidate *c)
{
    return c->stages * c->sharers * step_of(c);
}

/* Cycles of a step of one block, of whose sparse products two thirds are reached (a guess). A warp
 * reads its columns' stored elements and places once, and x's rows. Nothing hides a meeting of the
 * warps of a block alone. */
static double step_cycles(const problem *p, const candidate *c)
{
    const double reached = 2.0 / 3, meet = 80, warps = c->across * c->down;
    const double area = (double)c->rows * ZC_SPARSE_SIDE * warps;
    const zc_mma_step step = {.products = area * ZC_SPARSE_SIDE / (2 * p->chip->products * reached),
                              .copied = step_of(c),
                              .read = warps * (ZC_SPARSE_TILE_BYTES + (double)c->rows * LINE)};
    return zc_mma_step_cycles(p->chip, &step) + (c->beside > 1 ? 0 : meet / c->sharers);
}

/* Until the matrix and the rows have come from memory, or gone there: at its rate, if enough is on
 * its way. */
static double memory_us(const problem *p, const candidate *c, int64_t tiles)
{
    const double reached = 0.8, latency = 1.2; /* us */
    const int64_t places = (int64_t)p->sm_count * c->beside;
    const double there = (double)(tiles < places ? tiles : places);
    const double matrix =
        (double)p->w.n / ZC_SPARSE_SIDE * (double)steps_of(p) * ZC_SPARSE_TILE_BYTES;
    const double asked = there * (c->stages - 1) * c->sharers * step_of(c) / latency;
    const double busy = (double)(tiles < p->sm_count ? tiles : p->sm_count);
    const double road = busy * p->chip->l2 * p->chip->clock;
    return (matrix + zc_linear_rows_bytes(&p->w)) /
           fmin(p->chip->memory * reached, fmin(asked, road));
}

/* Microseconds beyond what a launch takes anyhow. Sums go through shared memory, those of sharers
 * with a meeting of the block for each eight rows; where two blocks share a multiprocessor one's
 * results hide under the other's products. Not measured yet. */
static double cost(const problem *p, const candidate *c)
{
    const double shared = 128, fill = 1500, meet = 60; /* bytes a cycle; cycles */
    const int cols = c->across * ZC_SPARSE_SIDE, lines = c->down * c->rows;
    const int64_t tiles = zc_ceil_div(p->w.m, lines) * zc_ceil_div(p->w.n, cols);
    const int64_t waves = zc_ceil_div(tiles, (int64_t)p->sm_count * c->beside);
    const int64_t beside = waves > 1 ? c->beside : zc_ceil_div(tiles, p->sm_count);
    const double steps = (double)zc_ceil_div(steps_of(p), c->sharers) * c->sharers;
    const double products = (double)(waves * beside) * steps * step_cycles(p, c);
    const double moved = 2 * sizeof(float) * (double)cols * lines * c->sharers / shared;
    const double results = moved + (c->sharers > 1 ? meet * c->rows / 4 : 0);
    const double behind = fill + results * (double)beside * (c->beside > 1 ? 0.5 : 1);
    return fmax(products / p->chip->clock, memory_us(p, c, tiles)) +
           (double)waves * behind / p->chip->clock;
}

/* As many stages as fit beside the other blocks of the multiprocessor. */
static bool set_stages(const problem *p, candidate *c)
{
    const int each = p->chip->shared / c->beside - RESERVED;
    const int fits = each < SMEM_MOST ? each : SMEM_MOST;
    c->stages = STAGES_MOST;
    while (c->stages >= STAGES_LEAST && smem_of(c) > fits) c->stages--;
    return c->stages >= STAGES_LEAST;
}

static bool fits_registers(const candidate *c)
{
    const int each = c->rows * ZC_SPARSE_SIDE / 32 + REGISTERS_OTHER;
    return each <= REGISTERS_MOST && each * warps_in(c) * 32 * c->beside <= REGISTERS;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    c.beside = beside_of[zc_candidate_digit(&number, ZC_COUNTOF(beside_of))];
    c.rows = rows_of[zc_candidate_digit(&number, ZC_COUNTOF(rows_of))];
    c.across = warps_of[zc_candidate_digit(&number, OF_WARPS)];
    c.down = warps_of[zc_candidate_digit(&number, OF_WARPS)];
    c.sharers = warps_of[zc_candidate_digit(&number, OF_WARPS)];
    if (warps_in(&c) < WARPS_LEAST || warps_in(&c) > WARPS_MOST || steps_of(p) < c.sharers ||
        !fits_registers(&c) || !set_stages(p, &c))
        return false;
    *out = (zc_candidate){.config = {[ROWS] = c.rows,
                                     [ACROSS] = c.across,
                                     [DOWN] = c.down,
                                     [SHARERS] = c.sharers,
                                     [STAGES] = c.stages,
                                     [BESIDE] = c.beside},
                          .threads = (uint32_t)warps_in(&c) * 32,
                          .smem = (uint32_t)smem_of(&c),
                          .cluster = 1,
                          .us = cost(p, &c)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d by %d warps", c.rows * c.down,
                c.across * ZC_SPARSE_SIDE, warps_in(&c));
    return true;
}

double zc_gemm_sparse_mma_us(const zc_linear_work *w, int arch)
{
    const problem p = {*w, zc_mma_chip_of(arch), zc_usual_processors(arch)};
    return zc_candidates_us(candidate_of, &p, CANDIDATES);
}

/* ---- the specialisation ---- */

zc_status zc_gen_gemm_sparse_mma(zc_gen *g)
{
    zc_sparse_sizes s;
    ZC_TRY(zc_gen_sparse_half(g, &s));
    if (g->declined[0]) return ZC_OK;
    if (s.w.groups * s.w.steps > INT32_MAX) return zc_gen_decline(g, "too large a matrix");
    const problem p = {{s.m, s.w.n, s.w.k}, zc_mma_chip_of(g->arch), g->sm_count};
    zc_gen_tensor_cores(g, "mma.sp", zc_gen_in_type(g, ZC_IN_SparseLinear_x));
    ZC_TRY(zc_gen_candidates(g, "mma.sp", candidate_of, &p, CANDIDATES));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_sparse_mma(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    struct zc_sparse_linear_params p;
    zc_dim3 grid;
    ZC_TRY(zc_launch_sparse(l, &p));
    if (p.m == 0) return ZC_OK;
    const zc_matmul mm = {.m = p.m, .n = p.n, .k = p.k, .batch = 1};
    ZC_TRY(zc_matmul_grid(l, &mm, (int)(config[DOWN] * config[ROWS]),
                          (int)config[ACROSS] * ZC_SPARSE_SIDE, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}
