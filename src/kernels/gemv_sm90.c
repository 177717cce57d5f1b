/* Products of one to eight rows of f16 and bf16 on Hopper by a matrix stored N x K (gemv_sm90.cu):
 * tiles, parts and slots, by a model of their cost. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/linear_cost.h"
#include "kernels/linear_moments.h"
#include "kernels/sm90.h"

enum { ROWS_MOST, COLS, WARPS, PARTS, STEPS, DEPTH, SLOTS, BLOCKS, SHARES };
const char *const zc_config_gemv_sm90[] = {"rows_most", "cols",  "warps",  "parts",  "steps",
                                           "depth",     "slots", "blocks", "shares", NULL};

enum {
    STEP = 16,  /* of the summed axis, of a product */
    GROUP = 16, /* columns of a slot */
    COLS_MOST = 64,
    SLOTS_MOST = 8,
    ROWS_BY_COST = 1,     /* more are the tuner's alone */
    STEPS_MOST = 64,      /* of a warp, whose part of A lies in registers */
    REGISTERS = 65536,    /* of a multiprocessor */
    REGISTERS_BESIDE = 56 /* of a thread, beside its part of A */
};

/* ---- the choice ---- */

typedef struct problem {
    int64_t m, n, k;
    bool keeps; /* moments of the result: a tile is a part that has them */
    int sm_count;
} problem;

typedef struct candidate {
    int cols, warps, parts, steps, depth, slots;
    int blocks, shares; /* on a multiprocessor; how many fit there */
} candidate;

/* What candidates are made of; the first of equal ones is taken. */
static const int cols_of[] = {16, 32, 64}, warps_of[] = {4, 8, 16}, parts_of[] = {1, 2, 4},
                 pieces_of[] = {2, 1}; /* slots that a warp's part of a tile takes */
/* Where fewer blocks than fit are asked for, those of the kernel behind have room beside them. */
static const struct {
    int blocks, shares;
} sharings[] = {{1, 1}, {1, 2}, {2, 2}};
enum {
    CANDIDATES = ZC_COUNTOF(cols_of) * ZC_COUNTOF(warps_of) * ZC_COUNTOF(parts_of) *
                 ZC_COUNTOF(pieces_of) * ZC_COUNTOF(sharings)
};

static int slot_of(const candidate *c)
{
    return GROUP * (c->depth * STEP * 2 + 16);
}

static uint32_t smem_of(const problem *p, const candidate *c)
{
    int sums = (int)p->m * c->cols * 4, rings = c->warps * c->slots * (slot_of(c) + 8);
    int parts = c->parts > 1 ? c->parts * sums : 0;
    return (uint32_t)(rings + 2 * c->warps * sums + parts + (int)p->m * 16 + 8);
}

/* Microseconds beyond what any kernel takes. Every multiprocessor has an equal share of the
 * memory's rate, if enough is on its way there in copies that are not too short; every block reads
 * A from the L2 cache before, and blocks that start when others have ended wait for their first
 * copies, which nothing hides. Fitted to 378 configurations of 4096 x 4096 and a row, and 16 with
 * eight, on an H100 (bench/NOTES.md); the rate is an H200's. */
static double cost(const problem *p, const candidate *c)
{
    const double rate = 31e3, latency = 2.4; /* bytes a us; us */
    const double a_copy = 4.2e-3, meet = 0.35, step = 0.01, a_warp = 0.02, l2 = 6e6;
    int64_t tiles = zc_ceil_div(p->n, c->cols) * c->parts;
    int64_t busiest = zc_ceil_div(tiles, p->sm_count);
    int64_t beside = busiest < c->blocks ? busiest : c->blocks;
    double bytes = (double)busiest * c->cols * (double)p->k / c->parts * 2;
    double fast = (double)beside * c->warps * c->slots * slot_of(c) / latency;
    double loads = bytes / (fast < rate ? fast : rate), copies = bytes / (c->depth * STEP * 2);
    int64_t places = (int64_t)c->blocks * p->sm_count;
    int64_t blocks = zc_sm90_gemv_blocks(p->n, c->cols, c->parts, places);
    double rows = (double)p->m * (double)p->k / c->parts * 2 * (double)blocks;
    int64_t again = (blocks - 1) / places;
    return (loads > copies * a_copy ? loads : copies * a_copy) + latency * (double)again +
           rows / l2 + meet * (c->parts - 1) + step * c->steps + a_warp * c->warps;
}

/* As many slots as fit beside the other blocks of the multiprocessor. */
static bool set_slots(const problem *p, candidate *c)
{
    const uint32_t most = (uint32_t)zc_sm90_smem(c->shares);
    c->slots = SLOTS_MOST;
    while (c->slots && smem_of(p, c) > most) c->slots--;
    return c->slots > 0;
}

/* Number `number` of all; false: not for this product. */
static bool shape_of(const problem *p, int number, candidate *c)
{
    const int sharing = zc_candidate_digit(&number, ZC_COUNTOF(sharings));
    const int pieces = pieces_of[zc_candidate_digit(&number, ZC_COUNTOF(pieces_of))];
    c->blocks = sharings[sharing].blocks;
    c->shares = sharings[sharing].shares;
    c->parts = parts_of[zc_candidate_digit(&number, ZC_COUNTOF(parts_of))];
    c->warps = warps_of[zc_candidate_digit(&number, ZC_COUNTOF(warps_of))];
    c->cols = cols_of[zc_candidate_digit(&number, ZC_COUNTOF(cols_of))];
    int64_t all = zc_ceil_div(p->k, STEP), sharers = (int64_t)c->warps * c->parts;
    int64_t steps = zc_ceil_div(all, sharers);
    if (steps > STEPS_MOST || steps < pieces || steps * (sharers - 1) >= all) return false;
    c->steps = (int)steps;
    c->depth = (int)zc_ceil_div(steps, pieces);
    if (p->keeps && c->cols != ZC_MOMENTS_PART) return false;
    int registers = (c->steps * 2 + REGISTERS_BESIDE) * c->warps * 32;
    return registers * c->shares <= REGISTERS && set_slots(p, c);
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    if (!shape_of(p, number, &c)) return false;
    *out = (zc_candidate){.config = {[ROWS_MOST] = p->m,
                                     [COLS] = c.cols,
                                     [WARPS] = c.warps,
                                     [PARTS] = c.parts,
                                     [STEPS] = c.steps,
                                     [DEPTH] = c.depth,
                                     [SLOTS] = c.slots,
                                     [BLOCKS] = c.blocks,
                                     [SHARES] = c.shares},
                          .threads = (uint32_t)c.warps * 32,
                          .smem = smem_of(p, &c),
                          .cluster = (uint32_t)c.parts,
                          .us = cost(p, &c)};
    zc_snprintf(out->name, sizeof out->name, "%d columns, %d warps in %d parts", c.cols, c.warps,
                c.parts);
    return true;
}

double zc_gemv_sm90_us(const zc_linear_work *w)
{
    if (w->m > ROWS_BY_COST) return INFINITY;
    const problem p = {.m = w->m, .n = w->n, .k = w->k, .sm_count = zc_usual_processors(90)};
    return zc_candidates_us(candidate_of, &p, CANDIDATES);
}

/* ---- the specialisation ---- */

zc_status zc_gen_gemv_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_sm90_few(g, ZC_FAMILY_gemv_sm90, &form, &s));
    if (g->declined[0]) return ZC_OK;
    if (!form.b_along_k) return zc_gen_decline(g, "B is not stored N x K");
    if (!g->candidate && !g->regardless && s.m_high > ROWS_BY_COST)
        return zc_gen_decline(g, "more rows than one, with which gemm_few_sm90 was faster");
    problem p = {.m = s.m_high,
                 .n = s.n,
                 .k = s.k,
                 .keeps = g->step->op == ZC_OP_LinearMoments && zc_gen_out_type(g, 1) != ZC_NONE,
                 .sm_count = g->sm_count};
    zc_gen_tensor_cores(g, "mma", zc_gen_plain_result(g));
    ZC_TRY(zc_gen_candidates(g, "mma", candidate_of, &p, CANDIDATES));
    if (g->declined[0]) return ZC_OK;
    zc_gen_define(g, "SUMMED", "%lld", (long long)s.k);
    zc_gen_row_moments(g, &s);
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemv_sm90(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_linear_moments_params p;
    const int64_t *config = l->kernel->config;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_sm90_operands(l, &form, &mm, &p.g));
    if (mm.batch == 0 || mm.m == 0) return ZC_OK;
    if (mm.batch > 1 || mm.m > config[ROWS_MOST])
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                       "more rows than its kernel has (got %lld of %lld items, need at most %lld)",
                       (long long)mm.m, (long long)mm.batch, (long long)config[ROWS_MOST]);
    zc_launch_row_moments(l, &p.moments);
    if (form.norm) ZC_TRY(zc_matmul_partial_sums(l, &mm, 1, sizeof(float), &p.g));
    int64_t blocks = zc_sm90_gemv_blocks(mm.n, (int)config[COLS], (int)config[PARTS],
                                         config[BLOCKS] * l->sm_count);
    if (mm.n > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld columns)",
                       (long long)mm.n);
    zc_dim3 grid = {(uint32_t)blocks, 1, 1};
    ZC_TRY(zc_launch_configured(l, grid, &p, sizeof p));
    return form.norm ? zc_matmul_launch_norm(l, &p.g) : ZC_OK;
}
