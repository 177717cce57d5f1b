/* Products of f16 and bf16 on Hopper (gemm_sm90.cu): which of its configurations, by a model of
 * their cost. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/divisor.h"
#include "kernels/linear_moments.h"
#include "kernels/sm90.h"

const char *const zc_config_gemm_sm90[] = {ZC_SM90_CONFIG};

/* ---- the choice ---- */

/* parts: of the summed axis, which the blocks of a cluster share. */
typedef struct shape {
    int tile_m, tile_n, cluster, pingpong, parts;
} shape;

static const shape shapes[] = {
    {128, 256, 1, 0, 1}, {128, 256, 2, 0, 1}, {256, 128, 1, 0, 1}, {256, 128, 2, 0, 1},
    {128, 192, 1, 0, 1}, {128, 192, 2, 0, 1}, {128, 128, 1, 1, 1}, {128, 128, 2, 1, 1},
    {128, 128, 1, 0, 1}, {128, 64, 1, 0, 1},  {256, 64, 1, 0, 1},  {128, 64, 1, 1, 1},
    {128, 192, 1, 1, 1}, {128, 192, 2, 1, 1}, {128, 128, 1, 0, 2}, {192, 128, 1, 0, 1},
    {128, 144, 1, 0, 1}, {128, 160, 1, 0, 1}, {128, 176, 1, 0, 1}, {128, 208, 1, 0, 1},
    {128, 224, 1, 0, 1}, {128, 240, 1, 0, 1}, {128, 144, 1, 1, 1}, {128, 160, 1, 1, 1},
};

typedef zc_sm90_problem problem;

/* A tile in turn of more elements has no registers left for the moments of its rows, for its
 * columns' scales, or for bytes. */
enum { CROWDED_MOST = 128 * 128 };

enum { STAGES_LEAST = 2 };

/* Columns of a product whose sums are added to others: of two such products sums are in registers
 * beside the tile's. */
static int stepwise_columns(int tile_n)
{
    enum { HALVES_MOST = 192 };
    return tile_n > HALVES_MOST ? tile_n / 4 : tile_n / 2;
}

/* Warpgroups that multiply: of bytes four share a tile that has rows for them. */
static int byte_groups_of(int64_t tile_m)
{
    return tile_m > ZC_SM90_TALL ? 4 : 2;
}

static int groups_of(const problem *p, const shape *s)
{
    if (p->column_words) return byte_groups_of(s->tile_m);
    return s->tile_m == ZC_SM90_TALL ? 3 : 2;
}

/* Columns of the panels that a tile's results leave by, and B comes by where its lines lie across
 * the summed axis: the last one overlaps the one before it, or has more than the tile. */
static int in_panels(int tile_n)
{
    return (int)zc_ceil_div(tile_n, ZC_SM90_DEPTH) * ZC_SM90_DEPTH;
}

/* Columns of the result in a tile. */
static int result_n(const problem *p, const shape *s)
{
    return p->gated ? s->tile_n / 2 : s->tile_n;
}

/* Lines of B in a stage. */
static int b_lines(const problem *p, const shape *s)
{
    return p->across ? in_panels(s->tile_n) : s->tile_n;
}

/* Panels may overlap: of one product's results only where that is measured, as with no pause
 * between runs it was no faster, and slower with pauses (bench/NOTES.md). They may not where each
 * is a part of the rows' moments, or where threads store, which spills; for bytes and e4m3 it has
 * not been tried. */
static bool panels_overlap(const problem *p)
{
    return p->uneven && !p->moments && !p->piece && !p->column_words && !p->scales;
}

/* What gemm_quant_sm90.cu has beside the ring: panels that results go through; of each team, or of
 * both products of a pair, columns with their scales, and sums of lines. (Crossed products have the
 * latter in registers; the stages of measured choices leave them their room.) */
int zc_sm90_byte_smem(const zc_sm90_problem *p, int tile_m, int tile_n, bool pingpong)
{
    enum { WORD = 4, COLUMN = 24, PANELS = 2 * ZC_SM90_RESULTS };
    int team = tile_m * WORD + tile_n * (COLUMN + p->column_words * WORD);
    return (pingpong || p->pair ? 2 : 1) * team + (p->piece ? 0 : PANELS);
}

int zc_sm90_byte_panel(int64_t tile_n)
{
    return tile_n < ZC_SM90_LINE ? (int)tile_n : ZC_SM90_LINE;
}

/* Those beyond the tile have to lie beyond the result. */
bool zc_sm90_panels_fit(const zc_sm90_problem *p, int tile_n)
{
    return !p->column_words || p->piece || p->n <= tile_n ||
           tile_n % zc_sm90_byte_panel(tile_n) == 0;
}

static uint32_t smem_of(const problem *p, const shape *s, int stages)
{
    int each = p->piece ? ZC_SM90_LAID : ZC_SM90_RESULTS;
    int results = p->norm           ? 0
                  : p->column_words ? zc_sm90_byte_smem(p, s->tile_m, s->tile_n, s->pingpong)
                                    : groups_of(p, s) * each;
    if (s->parts > 1) results += 64 * s->tile_n * (int)sizeof(float) + 8;
    if (p->scales) results += (s->pingpong ? 2 : 1) * 2 * s->tile_n * (int)sizeof(float);
    return (uint32_t)(stages * ((s->tile_m + b_lines(p, s)) * ZC_SM90_LINE + 16) + results);
}

/* The results that wait have one panel of each warpgroup. */
static bool has_one_panel(const problem *p, const shape *s)
{
    return !s->pingpong && s->tile_m == 64 * groups_of(p, s) && s->tile_n <= ZC_SM90_LINE;
}

/* Cycles of a block's tiles. In turn, results are made while the other's products run; those of
 * bytes take longer than products, and one warpgroup three times as long as two (so 41 of 48
 * measured choices are the cheapest). */
double zc_sm90_cycles(const zc_sm90_problem *p, bool pingpong, int64_t tiles, double products,
                      double results)
{
    if (!pingpong) return (double)tiles * (products + results);
    if (!p->column_words) return (double)tiles * (products + results * (tiles > 1 ? 0.25 : 1));
    return fmax((double)tiles * products, (double)zc_ceil_div(tiles, 2) * (products + 3 * results));
}

/* Cycles in which shared memory gives the products of a step their factors, A's lines once and B's
 * for each 64 rows, and takes those of a later one. It bounds bytes by tiles of 128 x 128. */
static double shared_of(const problem *p, const shape *s)
{
    const double reached = 0.9;
    if (!p->column_words) return 0;
    return (2 * s->tile_m + s->tile_n * (s->tile_m / 64.0 + 1)) / reached;
}

/* Elements of results a cycle (guesses): sums as they are, those that threads store, and sums of
 * bytes that are scaled in f64. */
double zc_sm90_finish(const zc_sm90_problem *p)
{
    enum { PLAIN = 24, STORED = 12, SCALED = 8 };
    if (p->column_words) return p->unscaled ? PLAIN : SCALED;
    return p->piece ? STORED : PLAIN;
}

/* Microseconds, from what a multiprocessor does in a cycle: 2048 products of 16-bit factors, twice
 * as many of 8 bits, half as many of 32, of which four fifths are reached, and 48 bytes from the L2
 * cache. A tile's first stages arrive after some 1000 cycles. Blocks in pairs wait for each other
 * in every step, which took what they save of the L2 cache or more in all that was measured. */
static double cost(const problem *p, const shape *s)
{
    const double clock = 1650, per_cycle = 2048 * 0.8, l2 = 48, fill = 1000, pair = 64, join = 1500;
    int64_t tiles = zc_ceil_div(p->m, s->tile_m * s->cluster) * zc_ceil_div(p->n, result_n(p, s)) *
                    p->items * s->parts;
    int64_t waves = zc_ceil_div(tiles, p->sm_count / s->cluster);
    double area = (double)s->tile_m * s->tile_n;
    double products = area * ZC_SM90_DEPTH / per_cycle;
    double loads = (s->tile_m + (double)b_lines(p, s) / s->cluster) * ZC_SM90_LINE / l2;
    double made = (double)s->tile_m * in_panels(result_n(p, s));
    double results = made / zc_sm90_finish(p);
    double step = fmax(fmax(products, loads), shared_of(p, s)) + (s->cluster > 1 ? pair : 0);
    double steps = (double)zc_ceil_div(p->steps, s->parts);
    if (s->parts > 1) results += join;
    if (p->pair) results *= 2;
    return (zc_sm90_cycles(p, s->pingpong, waves, steps * step, results) + fill) / clock;
}

/* Blocks share the summed axis of tiles that one wave has. */
static bool shares(const problem *p, const shape *s)
{
    int64_t tiles = zc_ceil_div(p->m, s->tile_m) * zc_ceil_div(p->n, s->tile_n) * p->items;
    bool plain = !p->gated && !p->moments && !p->column_words;
    return p->parts && plain && p->steps >= s->parts && tiles <= p->sm_count / s->parts;
}

/* Rows of tiles that neighbouring blocks share columns of. What columns are of bytes is made anew
 * for others, so that a block keeps its own where it can. */
static int raster_of(const problem *p, const shape *s)
{
    const int64_t across = zc_ceil_div(p->n, s->tile_n), blocks = p->sm_count / s->cluster;
    return p->column_words && blocks % across == 0 ? 1 : 8;
}

/* Columns that are dealt out by 64 are copied by one block. */
static bool is_torn(const problem *p, const shape *s)
{
    return p->column_words && !p->piece && s->tile_n / s->cluster % ZC_SM90_DEPTH;
}

/* Of the warpgroups that share a tile of bytes so many have blocks of 64 columns of their own,
 * where there are as many; others share these and have a part of their rows. */
static int team_of(int64_t tile_m, bool pingpong)
{
    return pingpong ? 1 : byte_groups_of(tile_m);
}

static int beside_of(int64_t tile_n, int team)
{
    const int blocks = (int)(tile_n / ZC_SM90_DEPTH);
    return blocks < team ? blocks : team;
}

static bool is_crossed(const problem *p, const shape *s)
{
    const int team = team_of(s->tile_m, s->pingpong), beside = beside_of(s->tile_n, team);
    return p->crossed && s->tile_n % (beside * ZC_SM90_DEPTH) == 0 && team % beside == 0;
}

int zc_sm90_crossed_rows(const int64_t *config)
{
    const int64_t tile_m = config[ZC_SM90_TILE_M], tile_n = config[ZC_SM90_TILE_N];
    const int team = team_of(tile_m, config[ZC_SM90_PINGPONG]);
    return (int)tile_m / (team / beside_of(tile_n, team));
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    const shape *s = &shapes[number];
    if (p->stepwise && s->pingpong) return false;
    if (is_torn(p, s)) return false;
    if (!zc_sm90_panels_fit(p, s->tile_n) || (p->band && s->tile_n != p->band)) return false;
    if (p->phase && p->phase % s->tile_n) return false;
    if (p->pair && !has_one_panel(p, s)) return false;
    if (s->tile_n != in_panels(s->tile_n) && !panels_overlap(p)) return false;
    if (result_n(p, s) < ZC_SM90_DEPTH) return false;
    const bool crowds = p->moments || p->scales || p->column_words;
    if (crowds && s->pingpong && s->tile_m * s->tile_n > CROWDED_MOST) return false;
    if (s->parts > 1 && (p->scales || !shares(p, s))) return false;
    if (s->tile_m == ZC_SM90_TALL && (p->column_words || p->stepwise || p->moments)) return false;
    int stages = zc_sm90_stages(s->tile_m, b_lines(p, s), smem_of(p, s, 0));
    if (stages < STAGES_LEAST) return false;
    *out = (zc_candidate){.config = {[ZC_SM90_TILE_M] = s->tile_m,
                                     [ZC_SM90_TILE_N] = s->tile_n,
                                     [ZC_SM90_STAGES_SET] = stages,
                                     [ZC_SM90_CLUSTER] = s->cluster,
                                     [ZC_SM90_PINGPONG] = s->pingpong,
                                     [ZC_SM90_RASTER] = raster_of(p, s),
                                     [ZC_SM90_FUSED_TILE] = p->fused_tile,
                                     [ZC_SM90_PARTS] = s->parts,
                                     [ZC_SM90_CROSSED] = is_crossed(p, s)},
                          .threads = (uint32_t)(groups_of(p, s) + 1) * 128,
                          .smem = smem_of(p, s, stages),
                          .cluster = (uint32_t)(s->cluster * s->parts),
                          .us = cost(p, s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d%s%s%s", s->tile_m, s->tile_n,
                s->cluster > 1 ? " in pairs" : "", s->pingpong ? " in turn" : "",
                s->parts > 1 ? " in parts" : "");
    return true;
}

double zc_sm90_us(const zc_sm90_problem *p)
{
    return zc_candidates_us(candidate_of, p, ZC_COUNTOF(shapes));
}

zc_status zc_gen_sm90(zc_gen *g, const zc_sm90_problem *p)
{
    problem with = *p;
    bool measures = g->candidate || g->regardless;
    with.parts = p->parts || measures; /* of products of 16 bits: not measured yet */
    with.uneven = p->gated || measures;
    zc_gen_tensor_cores(g, "wgmma", zc_gen_in_type(g, 0));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &with, ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    int64_t columns = g->config[ZC_SM90_TILE_N];
    zc_gen_define(g, "WHOLE", "%d", p->n % (p->gated ? columns / 2 : columns) == 0);
    if (p->gated) zc_gen_define(g, "GATED", "1");
    if (g->config[ZC_SM90_CROSSED])
        zc_gen_define(g, "PRODUCT_N", "%d", zc_sm90_crossed_rows(g->config));
    if (!p->stepwise) return ZC_OK;
    zc_gen_define(g, "STEPWISE", "1");
    zc_gen_define(g, "ODD_STEPS", "%d", (int)(p->steps % 2));
    zc_gen_define(g, "PRODUCT_N", "%d", stepwise_columns((int)columns));
    return ZC_OK;
}

/* ---- the specialisation ---- */

static problem problem_of(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    bool free = !form->norm && zc_sm90_in_pieces(s->n) && !zc_gen_moments_skip(g);
    int64_t bits = (int64_t)zc_dtype_bits(zc_gen_in_type(g, form->a));
    return (problem){.m = s->m_high == INT64_MAX ? ZC_MM_FAR : s->m_high,
                     .n = s->n,
                     .steps = zc_ceil_div(s->k, ZC_SM90_LINE * 8 / bits),
                     .items = zc_gen_sm90_items(g, form),
                     .sm_count = g->sm_count,
                     .across = !form->b_along_k,
                     .fused_tile = free ? zc_gen_epilogue_tile(g, 16) : -1,
                     .piece = zc_sm90_piece(s->n, zc_gen_out_type(g, 0)),
                     .norm = form->norm,
                     .gated = form->gate != 0,
                     .parts = bits == 32, /* of 16 bits other families serve few tiles */
                     .moments = g->step->op == ZC_OP_LinearMoments};
}

double zc_gen_gemm_sm90_us(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    problem p = problem_of(g, form, s);
    return zc_sm90_us(&p);
}

zc_status zc_gen_sm90_product(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    if (form->norm) ZC_TRY(zc_gen_sm90_whole_rows(g, s));
    if (g->declined[0]) return ZC_OK;
    problem p = problem_of(g, form, s);
    if (p.gated && p.piece) return zc_gen_decline(g, "a gate of results that threads store");
    if (p.piece && zc_gen_moments_beside_a(g))
        return zc_gen_decline(g, "moments of a result that threads store");
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    if (!zc_sm90_sends(p.n, zc_gen_out_type(g, 0), g->config))
        zc_gen_define(g, "PIECE", "%d", p.piece);
    zc_gen_row_moments(g, s);
    ZC_TRY(zc_gen_matmul_spec(g, form));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

zc_status zc_gen_gemm_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_sm90_form(g, &form, &s));
    if (!g->declined[0]) ZC_TRY(zc_gen_sm90_tall(g, &s));
    return g->declined[0] ? ZC_OK : zc_gen_sm90_product(g, &form, &s);
}

/* ---- the launch ---- */

struct zc_gemm_order zc_sm90_order(int64_t down, int64_t across, int64_t lines)
{
    return (struct zc_gemm_order){.down = (int)down,
                                  .across = (int)across,
                                  .by_item = zc_divisor_of(down * across),
                                  .by_group = zc_divisor_of(lines * across),
                                  .by_rest = zc_divisor_of(down % lines)};
}

static bool is_gated(const zc_launch *l)
{
    return l->op == ZC_OP_GatedLinear ||
           (l->op == ZC_OP_PackedLinear && *ZC_ATTRS(l, PackedLinear)->activation);
}

zc_status zc_sm90_grid(zc_launch *l, struct zc_gemm_sm90_params *p, zc_dim3 *grid)
{
    const int64_t *config = l->kernel->config;
    int64_t columns = config[ZC_SM90_TILE_N] / (is_gated(l) ? 2 : 1);
    int64_t cluster = config[ZC_SM90_CLUSTER], parts = config[ZC_SM90_PARTS];
    int64_t down = zc_ceil_div(p->g.m, config[ZC_SM90_TILE_M] * cluster),
            across = zc_ceil_div(p->g.n, columns);
    int64_t most = l->sm_count / cluster, tiles;
    if (p->g.m > INT32_MAX || !zc_mul_i64(down, across, &tiles) ||
        !zc_mul_i64(tiles, p->items, &tiles) || tiles > INT32_MAX / parts)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)p->g.m, (long long)p->g.n);
    p->order = zc_sm90_order(down, across, config[ZC_SM90_RASTER]);
    int64_t clusters = tiles < most || parts > 1 ? tiles : most;
    *grid = (zc_dim3){(uint32_t)((clusters ? clusters : 1) * cluster * parts), 1, 1};
    return ZC_OK;
}

zc_status zc_launch_sm90(zc_launch *l, struct zc_gemm_sm90_params *p)
{
    const int64_t *config = l->kernel->config;
    int rows = (int)config[ZC_SM90_TILE_M], tile = (int)config[ZC_SM90_FUSED_TILE];
    const void *like_y = tile >= 0 ? p->g.fused.in[tile] : p->moments.skip;
    const int64_t pitch = tile >= 0 ? p->g.fused.pitch[tile] : p->g.n;
    zc_dim3 grid;
    ZC_TRY(zc_sm90_grid(l, p, &grid));
    if (like_y) ZC_TRY(zc_sm90_like_y(l, p, like_y, ZC_U16, pitch, rows, &p->tile));
    return zc_launch_configured(l, grid, p, sizeof *p);
}

/* Of B, which the blocks of a cluster share, or which are two matrices. */
static int lines_at_once(const zc_matmul_form *form, const int64_t *config)
{
    int cluster = (int)config[ZC_SM90_CLUSTER];
    int copies = form->gate && cluster < 2 ? 2 : cluster;
    return (form->b_along_k ? (int)config[ZC_SM90_TILE_N] : ZC_SM90_DEPTH) / copies;
}

zc_status zc_launch_gemm_sm90(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_sm90_operands(l, &form, &mm, &p.g));
    if (mm.batch == 0) return ZC_OK;
    const int64_t *config = l->kernel->config;
    if (mm.batch_rank > 1 || mm.batch > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld items)",
                       (long long)mm.batch);
    if (form.norm) ZC_TRY(zc_matmul_partial_sums(l, &mm, 1, sizeof(float), &p.g));
    int lines = lines_at_once(&form, config);
    ZC_TRY(zc_sm90_maps(l, &form, &mm, (int)config[ZC_SM90_TILE_M], lines, 0, &p));
    if (form.gate) {
        p.second_c = zc_launch_in(l, form.gate_c);
        ZC_TRY(zc_sm90_b_map(l, &form, form.gate, lines, 0, &p, &p.second_b));
    }
    ZC_TRY(zc_sm90_y_map(l, &p));
    zc_launch_row_moments(l, &p.moments);
    ZC_TRY(zc_launch_sm90(l, &p));
    return form.norm ? zc_matmul_launch_norm(l, &p.g) : ZC_OK;
}
