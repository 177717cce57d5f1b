/* Products of few rows of f16 and bf16 on Hopper by codes of 4 and 8 bits (gemv_packed_sm90.cu):
 * tiles, parts and slots, by a model of their cost. */
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/packed_linear.h"
#include "kernels/sm90.h"

enum { ROWS, COLS, WARPS, PARTS, STEPS, SLOTS, SCALES, BLOCKS, SHARES };
const char *const zc_config_gemv_packed_sm90[] = {"rows",  "cols",   "warps",  "parts",  "steps",
                                                  "slots", "scales", "blocks", "shares", NULL};

enum {
    GROUP = ZC_PACKED_COLUMNS, /* columns of a slot */
    STEP_PIECES = 2,           /* of a step along the summed axis */
    STEP_BYTES = STEP_PIECES * ZC_PACKED_BYTES * GROUP,
    ROWS_AT_ONCE = 8, /* of x, of a product */
    TURNED = 864,     /* bytes of shared memory in which a warp makes digits of its row */
    RUN_MOST = 128,   /* codes that are summed as integers */
    ROWS_MOST = 16,   /* of a block */
    SLOTS_MOST = 8,
    REGISTERS = 65536,    /* of a multiprocessor */
    REGISTERS_MOST = 255, /* of a thread */
    REGISTERS_BESIDE = 64 /* of a thread, beside its part of x */
};

/* ---- the choice ---- */

typedef struct problem {
    zc_packed_sizes s;
    int64_t rows; /* as they are counted */
    int sm_count;
} problem;

typedef struct candidate {
    int rows, cols, warps, parts, steps, slots, scales;
    int blocks, shares; /* on a multiprocessor; how many fit there */
} candidate;

/* What candidates are made of; the first of equal ones is taken. */
static const int cols_of[] = {16, 32, 64}, warps_of[] = {8, 16, 4}, parts_of[] = {1, 2, 4},
                 rows_of[] = {ROWS_MOST, ROWS_AT_ONCE, 1};
/* Where fewer blocks than fit are asked for, those of the kernel behind have room beside them. */
static const struct {
    int blocks, shares;
} sharings[] = {{1, 2}, {1, 1}, {2, 2}};
enum {
    CANDIDATES = ZC_COUNTOF(cols_of) * ZC_COUNTOF(warps_of) * ZC_COUNTOF(parts_of) *
                 ZC_COUNTOF(rows_of) * ZC_COUNTOF(sharings)
};

static int slot_of(const problem *p, const candidate *c)
{
    return c->steps * STEP_BYTES + c->scales * GROUP * (p->s.scale_bytes + p->s.zero_bytes);
}

static uint32_t smem_of(const problem *p, const candidate *c)
{
    int sums = c->rows * c->cols * 4, rings = c->warps * c->slots * (slot_of(p, c) + 8);
    int parts = c->parts > 1 ? c->parts * sums : 0;
    int turned = c->rows == 1 ? c->warps * TURNED : 0;
    return (uint32_t)(rings + 2 * c->warps * sums + parts + turned + 8);
}

/* Of a multiprocessor that has most to do. */
typedef struct load {
    int64_t tiles, beside; /* of it; blocks side by side */
    int64_t slots, blocks; /* of all warps; of the grid */
    double bytes;
} load;

static load load_of(const problem *p, const candidate *c)
{
    const int64_t tiles = zc_ceil_div(p->s.w.n, c->cols) * c->parts;
    const int64_t busiest = zc_ceil_div(tiles, p->sm_count), slots = busiest * (c->cols / GROUP);
    return (load){.tiles = busiest,
                  .beside = busiest < c->blocks ? busiest : c->blocks,
                  .slots = slots * c->warps,
                  .blocks = zc_sm90_gemv_blocks(p->s.w.n, c->cols, c->parts,
                                                (int64_t)c->blocks * p->sm_count),
                  .bytes = (double)(slots * c->warps) * slot_of(p, c)};
}

/* What is done with codes that have come: warps hide each other's waiting, a block has its tiles in
 * turn; and what beginning and ending cost. Measured with a row in bytes, with more in floats. */
static double work_of(const candidate *c, const load *l)
{
    if (c->rows > 1) {
        const double step = 0.03, a_warp = 0.02, alone = 0.9; /* alone: no room for the next */
        return step * (double)(l->slots * c->steps) / 8 + a_warp * c->warps +
               (l->beside == c->shares ? alone : 0);
    }
    const double step = 0.006, scale = 0.25, hidden = 4, turn = 0.1, a_warp = 0.06;
    const double work = (double)l->slots * (c->steps + scale * c->scales);
    return step * work * (1 + hidden / (double)(c->warps * l->beside)) +
           turn * (double)l->tiles / (double)l->beside + a_warp * c->warps;
}

/* Microseconds beyond what any kernel takes, as in gemv_sm90.c: every multiprocessor has an equal
 * share of the memory's rate, if enough is on its way there; blocks that start when others have
 * ended wait for their first copies; and what is done with codes that have come. */
static double cost(const problem *p, const candidate *c)
{
    const bool one = c->rows == 1;
    const double rate = 31e3, l2 = 6e6; /* bytes a us */
    const double latency = one ? 1.2 : 2.4, meet = one ? 0.5 : 0.35;
    const load l = load_of(p, c);
    const double most = (double)(l.beside * c->warps * c->slots) * slot_of(p, c);
    const double fast = (most < l.bytes ? most : l.bytes) / latency;
    const int64_t again = (l.blocks - 1) / ((int64_t)c->blocks * p->sm_count);
    const double rows = (double)c->rows * (double)p->s.w.k / c->parts * 2 * (double)l.blocks;
    return (double)zc_ceil_div(p->rows, c->rows) *
           (l.bytes / (fast < rate ? fast : rate) + rows / l2 + work_of(c, &l) +
            latency * (double)again + meet * (c->parts - 1));
}

/* As many slots as fit beside the other blocks of the multiprocessor, and as a block has use for.
 */
static bool set_slots(const problem *p, candidate *c)
{
    const uint32_t most = (uint32_t)zc_sm90_smem(c->shares);
    const int64_t tiles = zc_ceil_div(
        zc_ceil_div(p->s.w.n, c->cols),
        zc_sm90_gemv_blocks(p->s.w.n, c->cols, c->parts, (int64_t)c->blocks * p->sm_count) /
            c->parts);
    const int64_t groups = tiles * (c->cols / GROUP);
    c->slots = groups < SLOTS_MOST ? (int)groups : SLOTS_MOST;
    while (c->slots && smem_of(p, c) > most) c->slots--;
    return c->slots > 0;
}

/* Scales of a column that a warp's part may need. */
static int scales_of(const problem *p, int steps)
{
    const int64_t own = (int64_t)steps * STEP_PIECES * p->s.w.piece, block = p->s.w.k / p->s.blocks;
    if (own % block == 0) return (int)(own / block);
    return block % own == 0 ? 1 : (int)((own - 1) / block + 2);
}

/* Registers of a thread for its part of x: of rows at once, or of the digits of one. */
static int registers_of_x(const problem *p, const candidate *c)
{
    const int codes = c->steps * STEP_PIECES * p->s.w.piece;
    if (c->rows > 1) return codes / ROWS_AT_ONCE * (int)zc_ceil_div(c->rows, ROWS_AT_ONCE);
    const int64_t block = p->s.w.k / p->s.blocks;
    const int64_t run = block < RUN_MOST ? block : RUN_MOST; /* sums for zero points */
    return codes / (2 * ROWS_AT_ONCE) + (p->s.zero_bytes ? 2 * (int)zc_ceil_div(codes, run) : 0);
}

static bool fits_registers(const problem *p, const candidate *c)
{
    const int each = registers_of_x(p, c) + REGISTERS_BESIDE;
    return each <= REGISTERS_MOST && each * c->warps * 32 * c->shares <= REGISTERS;
}

static bool suits_rows(int rows, int64_t most)
{
    if (rows == 1) return most <= 1;
    return most > (rows > ROWS_AT_ONCE ? ROWS_AT_ONCE : 1);
}

/* Number `number` of all; false: not for this product. */
static bool shape_of(const problem *p, int number, candidate *c)
{
    const int sharing = zc_candidate_digit(&number, ZC_COUNTOF(sharings));
    c->blocks = sharings[sharing].blocks;
    c->shares = sharings[sharing].shares;
    c->rows = rows_of[zc_candidate_digit(&number, ZC_COUNTOF(rows_of))];
    c->parts = parts_of[zc_candidate_digit(&number, ZC_COUNTOF(parts_of))];
    c->warps = warps_of[zc_candidate_digit(&number, ZC_COUNTOF(warps_of))];
    c->cols = cols_of[zc_candidate_digit(&number, ZC_COUNTOF(cols_of))];
    const int64_t all = p->s.w.pieces / STEP_PIECES, sharers = (int64_t)c->warps * c->parts;
    const int64_t steps = zc_ceil_div(all, sharers);
    if (p->s.norm && c->parts > 1) return false; /* its blocks have whole rows */
    if (steps > REGISTERS_MOST || steps * (sharers - 1) >= all) return false;
    c->steps = (int)steps;
    c->scales = scales_of(p, c->steps);
    return suits_rows(c->rows, p->s.m_high) && fits_registers(p, c) && set_slots(p, c);
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    candidate c;
    if (!shape_of(p, number, &c)) return false;
    *out = (zc_candidate){.config = {[ROWS] = c.rows,
                                     [COLS] = c.cols,
                                     [WARPS] = c.warps,
                                     [PARTS] = c.parts,
                                     [STEPS] = c.steps,
                                     [SLOTS] = c.slots,
                                     [SCALES] = c.scales,
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

/* ---- the specialisation ---- */

static bool is_constant(const zc_gen *g)
{
    static const int inputs[] = {ZC_IN_PackedLinear_w, ZC_IN_PackedLinear_scale,
                                 ZC_IN_PackedLinear_zero, ZC_IN_PackedLinear_gain};
    for (size_t i = 0; i < ZC_COUNTOF(inputs); i++) {
        const zc_pvalue *v = zc_gen_in(g, inputs[i]);
        if (v && v->kind != ZC_P_CONST) return false;
    }
    return true;
}

zc_status zc_gen_gemv_packed_sm90(zc_gen *g)
{
    problem p = {.sm_count = g->sm_count};
    ZC_TRY(zc_gen_packed(g, &p.s));
    if (g->declined[0]) return ZC_OK;
    const zc_dtype x = zc_gen_in_type(g, ZC_IN_PackedLinear_x);
    if (x != ZC_F16 && x != ZC_BF16) return zc_gen_decline(g, "rows of %s", zc_dtype_name(x));
    if (p.s.w.pieces % STEP_PIECES || p.s.w.k > INT32_MAX)
        return zc_gen_decline(g, "an odd number of pieces of codes");
    p.rows = p.s.m_high < ZC_MM_FAR ? p.s.m_high : p.s.m_low;
    ZC_TRY(zc_gen_candidates(g, "mma", candidate_of, &p, CANDIDATES));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, "mma", g->config[ROWS] > 1 ? x : ZC_I8);
    if (is_constant(g)) zc_gen_define(g, "CONSTANT", "1");
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemv_packed_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    struct zc_packed_linear_params p;
    ZC_TRY(zc_launch_packed(l, &p));
    const int64_t passes = zc_ceil_div(p.m, config[ROWS]);
    if (passes > UINT16_MAX || p.n > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)p.m, (long long)p.n);
    int64_t blocks = zc_sm90_gemv_blocks(p.n, (int)config[COLS], (int)config[PARTS],
                                         config[BLOCKS] * l->sm_count);
    zc_dim3 grid = {(uint32_t)blocks, (uint32_t)passes, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
