/* Sparse products of few rows of f16 and bf16 on Hopper (gemv_sparse_sm90.cu): warps, parts and
 * slots, by a model of their cost. */
#include <math.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/linear_cost.h"
#include "kernels/sm90.h"
#include "kernels/sparse_linear.h"

enum { ROWS, WARPS, PARTS, STEPS, SLOTS, BLOCKS, SHARES };
const char *const zc_config_gemv_sparse_sm90[] = {"rows",  "warps",  "parts",  "steps",
                                                  "slots", "blocks", "shares", NULL};

enum {
    ROWS_MOST = 16,   /* of a block */
    ROWS_AT_ONCE = 8, /* of x, of a product */
    SLOTS_MOST = 8,
    X_WORDS = 8,         /* of a tile, that a lane has of as many rows as are multiplied at once */
    REGISTERS = 65536,   /* of a multiprocessor */
    REGISTERS_MOST = 255 /* of a thread */
};

/* ---- the choice ---- */

typedef struct problem {
    int64_t m, n, steps;
    int sm_count;
} problem;

typedef struct candidate {
    int rows, warps, parts, steps, slots;
    int blocks, shares; /* on a multiprocessor; how many fit there */
} candidate;

/* What candidates are made of; the first of equal ones is taken. */
static const int warps_of[] = {8, 4, 16}, parts_of[] = {1, 2, 3, 4, 8};
/* Where fewer blocks than fit are asked for, those of the kernel behind have room beside them. */
static const struct {
    int blocks, shares;
} sharings[] = {{1, 2}, {1, 1}, {2, 2}};
enum { CANDIDATES = ZC_COUNTOF(warps_of) * ZC_COUNTOF(parts_of) * ZC_COUNTOF(sharings) };

/* Of a tile by eight rows of x, of one warp: eight products, as fast as mma's are. */
static const double product_us = 0.07;

/* Of eight rows of x. */
static int eights_of(const candidate *c)
{
    return (int)zc_ceil_div(c->rows, ROWS_AT_ONCE);
}

static uint32_t smem_of(const candidate *c)
{
    const int sums = c->rows * ZC_SPARSE_SIDE * 4;
    const int rings = c->warps * c->slots * (ZC_SPARSE_TILE_BYTES + 8);
    return (uint32_t)(rings + 2 * c->warps * sums + (c->parts > 1 ? c->parts * sums : 0) + 8);
}

/* Of the grid: its blocks, and those that are there at once, of which a multiprocessor has so many
 * beside each other; and how many parts of 64 columns there are for all. */
typedef struct load {
    int64_t blocks, there, beside, parts;
} load;

static load load_of(const problem *p, const candidate *c)
{
    const int64_t places = (int64_t)c->blocks * p->sm_count, tiles = p->n / ZC_SPARSE_SIDE;
    const int64_t blocks = zc_sm90_gemv_blocks(p->n, ZC_SPARSE_SIDE, c->parts, places);
    const int64_t there = blocks < places ? blocks : places;
    return (load){.blocks = blocks,
                  .there = there,
                  .beside = zc_ceil_div(there, p->sm_count),
                  .parts = tiles * c->parts};
}

/* Until what is stored of so many parts has come to as many blocks: the memory gives each as much
 * as it has asked for, up to its rate, and no multiprocessor gets more than the road from the L2
 * cache has. */
static double together_us(const problem *p, const candidate *c, int64_t parts)
{
    const double rate = 31e3, road = 79e3, latency = 2.4; /* bytes a us of a multiprocessor; us */
    const double slot = ZC_SPARSE_TILE_BYTES, bytes = (double)p->steps / c->parts * slot;
    const double asked = c->warps * c->slots * slot / latency;
    const double each = fmin(asked, road / (double)zc_ceil_div(parts, p->sm_count));
    return (double)parts * bytes / fmin(rate * p->sm_count, (double)parts * each);
}

/* Those that a block has beyond the first, and blocks that begin when others have ended, come
 * behind. The products of a tile hide behind the memory, where that takes longer. */
static double tiles_us(const problem *p, const candidate *c, const load *l)
{
    const int64_t times = l->parts / l->there, rest = l->parts % l->there;
    const double most_tiles =
        (double)zc_ceil_div(l->parts, p->sm_count) * (double)p->steps / c->parts;
    const double products = most_tiles * eights_of(c) * product_us / 4; /* warps at once */
    const double memory =
        (double)times * together_us(p, c, l->there) + (rest ? together_us(p, c, rest) : 0);
    return fmax(memory, products);
}

/* Microseconds beyond what any kernel takes, with the numbers of gemv_sm90.c and
 * gemv_packed_sm90.c: x comes from the L2 cache; blocks that start when others have ended wait for
 * their first copies; where no block more fits, the next kernel's do not begin. Not measured yet.
 */
static double cost(const problem *p, const candidate *c)
{
    const double l2 = 6e6, latency = 2.4, meet = 0.35, a_warp = 0.02, alone = 0.9;
    const load l = load_of(p, c);
    const int64_t again = (l.blocks - 1) / l.there;
    const double x = (double)c->rows * (double)p->steps * ZC_SPARSE_SIDE / c->parts * 2;
    return (double)zc_ceil_div(p->m, c->rows) *
           (tiles_us(p, c, &l) + x * (double)l.blocks / l2 + product_us * eights_of(c) +
            a_warp * c->warps + meet * (c->parts - 1) + latency * (double)again +
            (l.beside == c->shares ? alone : 0));
}

/* As many slots as fit beside the other blocks of the multiprocessor, and as a warp has use for. */
static bool set_slots(const problem *p, candidate *c)
{
    const uint32_t fits = (uint32_t)zc_sm90_smem(c->shares);
    const load l = load_of(p, c);
    const int64_t tiles = zc_ceil_div(l.parts, l.blocks) * c->steps;
    c->slots = tiles < SLOTS_MOST ? (int)tiles : SLOTS_MOST;
    while (c->slots && smem_of(c) > fits) c->slots--;
    return c->slots > 0;
}

/* A thread has its part of x, the sums of a tile, and 56 registers more. */
static bool fits_registers(const candidate *c)
{
    const int sums = ZC_SPARSE_SIDE / 16 * 4, beside = 56;
    const int each = (c->steps * X_WORDS + sums) * eights_of(c) + beside;
    return each <= REGISTERS_MOST && each * c->warps * 32 * c->shares <= REGISTERS;
}

/* Number `number` of all; false: not for this product. */
static bool shape_of(const problem *p, int number, candidate *c)
{
    const int sharing = zc_candidate_digit(&number, ZC_COUNTOF(sharings));
    *c = (candidate){.rows = p->m < 1           ? 1
                             : p->m < ROWS_MOST ? (int)p->m
                                                : ROWS_MOST,
                     .blocks = sharings[sharing].blocks,
                     .shares = sharings[sharing].shares};
    c->parts = parts_of[zc_candidate_digit(&number, ZC_COUNTOF(parts_of))];
    c->warps = warps_of[zc_candidate_digit(&number, ZC_COUNTOF(warps_of))];
    const int64_t sharers = (int64_t)c->warps * c->parts, steps = zc_ceil_div(p->steps, sharers);
    if (steps > REGISTERS_MOST || p->steps < sharers) return false;
    c->steps = (int)steps;
    return fits_registers(c) && set_slots(p, c);
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    if (!shape_of(p, number, &c)) return false;
    *out = (zc_candidate){.config = {[ROWS] = c.rows,
                                     [WARPS] = c.warps,
                                     [PARTS] = c.parts,
                                     [STEPS] = c.steps,
                                     [SLOTS] = c.slots,
                                     [BLOCKS] = c.blocks,
                                     [SHARES] = c.shares},
                          .threads = (uint32_t)c.warps * 32,
                          .smem = smem_of(&c),
                          .cluster = (uint32_t)c.parts,
                          .us = cost(p, &c)};
    zc_snprintf(out->name, sizeof out->name, "%d warps in %d parts", c.warps, c.parts);
    return true;
}

static problem problem_of(int64_t m, const zc_sparse *w, int sm_count)
{
    return (problem){.m = m, .n = w->n, .steps = w->steps, .sm_count = sm_count};
}

double zc_gemv_sparse_sm90_us(const zc_linear_work *w)
{
    const zc_sparse of = {.n = w->n, .k = w->k, .steps = w->k / ZC_SPARSE_SIDE};
    const problem p = problem_of(w->m, &of, zc_usual_processors(90));
    return zc_candidates_us(candidate_of, &p, CANDIDATES);
}

/* ---- the specialisation ---- */

zc_status zc_gen_gemv_sparse_sm90(zc_gen *g)
{
    zc_sparse_sizes s;
    ZC_TRY(zc_gen_sparse_sm90(g, &s));
    if (g->declined[0]) return ZC_OK;
    const problem p = problem_of(s.m, &s.w, g->sm_count);
    zc_gen_tensor_cores(g, "mma.sp", zc_gen_in_type(g, ZC_IN_SparseLinear_x));
    ZC_TRY(zc_gen_candidates(g, "mma.sp", candidate_of, &p, CANDIDATES));
    if (g->declined[0]) return ZC_OK;
    const double tall = zc_gemm_sparse_sm90_us(&(zc_linear_work){s.m, s.w.n, s.w.k});
    if (!g->candidate && !g->regardless && tall < g->us)
        return zc_gen_decline(g, "larger tiles are faster (%.1f us, not %.1f)", tall, g->us);
    zc_gen_define(g, "SUMMED", "%lld", (long long)s.w.k);
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemv_sparse_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    struct zc_sparse_linear_params p;
    ZC_TRY(zc_launch_sparse(l, &p));
    const int64_t passes = zc_ceil_div(p.m, config[ROWS]);
    if (passes > UINT16_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)p.m, (long long)p.n);
    const int64_t blocks =
        zc_sm90_gemv_blocks(p.n, ZC_SPARSE_SIDE, (int)config[PARTS], config[BLOCKS] * l->sm_count);
    zc_dim3 grid = {(uint32_t)blocks, (uint32_t)passes, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
