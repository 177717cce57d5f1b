/* Sparse products of many rows of f16 and bf16 on Hopper (gemm_sparse_sm90.cu): which of its
 * configurations, by a model of their cost. */
#include <math.h>
#include <string.h>

#include "abi/gemm_sparse_sm90.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/linear_cost.h"
#include "kernels/sm90.h"
#include "kernels/sparse_linear.h"

enum { TILE_ROWS, STAGES, SHARES, PARTS };
const char *const zc_config_gemm_sparse_sm90[] = {"tile_rows", "stages", "shares", "parts", NULL};

enum {
    GROUPS = 2, /* warpgroups that multiply, each a tile's 64 columns */
    COLUMNS = GROUPS * ZC_SPARSE_SIDE,
    THREADS = GROUPS * 128 + 32,
    PITCH = COLUMNS + 4, /* of the sums' lines */
    STAGES_LEAST = 2,
    REGISTERS = 65536, /* of a multiprocessor */
    BESIDE = 44        /* of a thread, beside its sums */
};

/* ---- the choice ---- */

static const int rows_of[] = {64, 96, 128, 160, 192, 224, 256, 32, 16};
static const int shares_of[] = {1, 2}; /* blocks on a multiprocessor */
static const int parts_of[] = {1, 2, 4, 8};

typedef struct problem {
    int64_t m, n, steps;
    int sm_count;
} problem;

typedef struct candidate {
    int rows, stages, shares, parts;
} candidate;

static int stage_of(const candidate *c)
{
    return c->rows * ZC_SM90_LINE + GROUPS * ZC_SPARSE_TILE_BYTES;
}

/* Bytes of sums: of a tile, and of those that other parts send. */
static int sums_of(const candidate *c)
{
    return c->rows * PITCH * 4;
}

static int received_of(const candidate *c)
{
    return (c->parts - 1) * (sums_of(c) / c->parts);
}

static int smem_of(const candidate *c)
{
    const int operands = c->stages * stage_of(c), sums = sums_of(c);
    const int barriers = 2 * c->stages + (c->parts > 1 ? 1 : 0);
    return (operands > sums ? operands : sums) + received_of(c) + barriers * 8;
}

static int64_t tiles_of(const problem *p, const candidate *c)
{
    return zc_ceil_div(p->m, c->rows) * zc_ceil_div(p->n, COLUMNS);
}

/* Until the matrix has come from memory: at its rate, if enough is on its way. */
static double memory_us(const problem *p, const candidate *c)
{
    const double rate = 4.1e6, latency = 2.4; /* bytes a us; us */
    const int64_t blocks = tiles_of(p, c) * c->parts, places = (int64_t)p->sm_count * c->shares;
    const double there = (double)(blocks < places ? blocks : places);
    const double asked = there * c->stages * GROUPS * ZC_SPARSE_TILE_BYTES / latency;
    const double tiles = (double)p->n / ZC_SPARSE_SIDE * (double)p->steps;
    return tiles * ZC_SPARSE_TILE_BYTES / fmin(rate, asked);
}

/* Microseconds, from what a multiprocessor does in a cycle: 2048 products of 16 bits, a place that
 * is not stored for nothing, of which four fifths are reached; 48 bytes from the L2 cache; 128 of
 * shared memory, which products read for each 64 columns anew and the copy engine writes. Sums go
 * through shared memory twice, as f32; what parts take to meet is gemm_few_sm90.c's, and what they
 * send comes as from the L2 cache. On an H100 it takes some 10 % more (4096^3 160 us, here 149). */
static double cost(const problem *p, const candidate *c)
{
    static const double meets[] = {0, 0, 1000, 0, 2000, 0, 0, 0, 4000}; /* cycles, by parts */
    const double clock = 1650, per_cycle = 2048 * 0.8, l2 = 48, shared = 128, fill = 1000;
    const double area = (double)c->rows * COLUMNS, steps = (double)zc_ceil_div(p->steps, c->parts);
    const int64_t waves = zc_ceil_div(tiles_of(p, c) * c->parts, (int64_t)p->sm_count * c->shares);
    const double products = area * ZC_SPARSE_SIDE / 2 / per_cycle, copies = stage_of(c) / l2;
    const double reads = GROUPS * ((double)c->rows * ZC_SM90_LINE + ZC_SPARSE_TILE_BYTES);
    const double moved = (reads + stage_of(c)) / shared;
    const double results = area * 2 * sizeof(float) / shared * (c->shares > 1 ? 0.5 : 1) / c->parts;
    const double meet = meets[c->parts] + received_of(c) / l2;
    const double step = fmax(fmax(products, copies), moved);
    const double all = (double)waves * c->shares * steps * step / clock;
    return fmax(all, memory_us(p, c)) + (double)waves * (c->shares * results + meet + fill) / clock;
}

/* Blocks share the summed axis where one wave has all of them. */
static bool shares_axis(const problem *p, const candidate *c)
{
    return c->shares == 1 && c->rows % c->parts == 0 && p->steps >= c->parts &&
           tiles_of(p, c) * c->parts <= p->sm_count;
}

/* As many stages as fit beside the other blocks of the multiprocessor. */
static bool set_stages(candidate *c)
{
    const int fits = zc_sm90_smem(c->shares);
    c->stages = ZC_SM90_STAGES;
    while (c->stages >= STAGES_LEAST && smem_of(c) > fits) c->stages--;
    return c->stages >= STAGES_LEAST;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    c.shares = shares_of[zc_candidate_digit(&number, ZC_COUNTOF(shares_of))];
    c.rows = rows_of[zc_candidate_digit(&number, ZC_COUNTOF(rows_of))];
    c.parts = parts_of[zc_candidate_digit(&number, ZC_COUNTOF(parts_of))];
    if ((c.rows / 2 + BESIDE) * THREADS * c.shares > REGISTERS) return false;
    if ((c.parts > 1 && !shares_axis(p, &c)) || !set_stages(&c)) return false;
    *out = (zc_candidate){
        .config =
            {[TILE_ROWS] = c.rows, [STAGES] = c.stages, [SHARES] = c.shares, [PARTS] = c.parts},
        .threads = THREADS,
        .smem = (uint32_t)smem_of(&c),
        .cluster = (uint32_t)c.parts,
        .us = cost(p, &c)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d%s in %d parts", c.rows, COLUMNS,
                c.shares > 1 ? ", two at a time" : "", c.parts);
    return true;
}

/* ---- the specialisation ---- */

enum { CANDIDATES = ZC_COUNTOF(rows_of) * ZC_COUNTOF(shares_of) * ZC_COUNTOF(parts_of) };

static problem problem_of(int64_t m, const zc_sparse *w, int sm_count)
{
    return (problem){.m = m, .n = w->n, .steps = w->steps, .sm_count = sm_count};
}

double zc_gemm_sparse_sm90_us(const zc_linear_work *w)
{
    const zc_sparse of = {.n = w->n, .k = w->k, .steps = w->k / ZC_SPARSE_SIDE};
    const problem p = problem_of(w->m, &of, zc_usual_processors(90));
    return zc_candidates_us(candidate_of, &p, CANDIDATES) + ZC_SM90_TALL_FIXED;
}

zc_status zc_gen_gemm_sparse_sm90(zc_gen *g)
{
    zc_sparse_sizes s;
    ZC_TRY(zc_gen_sparse_sm90(g, &s));
    if (g->declined[0]) return ZC_OK;
    const zc_dtype x = zc_gen_in_type(g, ZC_IN_SparseLinear_x);
    const problem p = problem_of(s.m, &s.w, g->sm_count);
    zc_gen_tensor_cores(g, "wgmma.sp", x);
    ZC_TRY(zc_gen_candidates(g, "wgmma.sp", candidate_of, &p, CANDIDATES));
    if (g->declined[0]) return ZC_OK;
    zc_gen_sm90_factors(g, x, x);
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_sparse_sm90(zc_launch *l)
{
    const int64_t rows = l->kernel->config[TILE_ROWS];
    struct zc_gemm_sparse_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_sparse(l, &p.g));
    if (p.g.m == 0) return ZC_OK;
    const int64_t down = zc_ceil_div(p.g.m, rows), across = zc_ceil_div(p.g.n, COLUMNS);
    int64_t blocks;
    if (p.g.m > INT32_MAX - rows || !zc_mul_i64(down, across, &blocks) ||
        !zc_mul_i64(blocks, l->kernel->config[PARTS], &blocks) || blocks > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)p.g.m, (long long)p.g.n);
    zc_tensor_box x =
        zc_sm90_box(p.g.x, l->in[ZC_IN_SparseLinear_x].dtype, p.g.k, p.g.m, 1, p.g.k, 0);
    x.rank = 2;
    x.box[1] = (uint32_t)rows;
    ZC_TRY(zc_launch_tensor_map(l, &x, &p.x));
    p.down = (int)down;
    p.across = (int)across;
    zc_dim3 grid = {(uint32_t)blocks, 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
