/* Products of f16 and bf16 whose rows are normalised, on Hopper (linear_norm_sm90.cu): how many
 * blocks of a cluster share a row, by a model of their cost. */
#include <string.h>

#include "abi/linear_norm_sm90.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/sm90.h"

enum { TILE_M, TILE_N, STAGES, CLUSTER, SKIP, SHIFT, SUM };
const char *const zc_config_linear_norm_sm90[] = {"tile_m", "tile_n", "stages", "cluster",
                                                  "skip",   "shift",  "sum",    NULL};

enum { ROWS = 128, CLUSTER_MOST = 8, STATE = 8 /* bytes, of a row in a block */ };

/* ---- the choice ---- */

static const int widths[] = {256, 192, 128};

static int cluster_of(int64_t n, int width)
{
    int64_t blocks = zc_ceil_div(n, width);
    return blocks <= CLUSTER_MOST ? (int)blocks : 0;
}

/* Beside the ring: results on their way, barriers, and states of rows, for odd and even tiles. */
static uint32_t other_smem(int width, int cluster)
{
    return (uint32_t)(2 * width / 64 * ZC_SM90_PANEL + 2 * 2 * 8 + 2 * ROWS * STATE * cluster);
}

typedef struct problem {
    int64_t m, n, k;
    bool skip, shift, sum;
    int sm_count;
} problem;

/* Microseconds, fitted to an H200: nothing runs under a tile's end, when rows are joined across
 * blocks. Clusters lie within parts of the device, which leaves a sixteenth of it idle. */
static double cost(const problem *p, int width, int cluster)
{
    const double clock = 1650, per_cycle = 2048, wait = 60, fill = 1000, join = 6000, finish = 12;
    int at_once = p->sm_count * 15 / 16 / cluster;
    int64_t waves = zc_ceil_div(zc_ceil_div(p->m, ROWS), at_once > 1 ? at_once : 1);
    double area = (double)ROWS * width, step = area * ZC_SM90_DEPTH / per_cycle + wait;
    double tile = (double)zc_ceil_div(p->k, ZC_SM90_DEPTH) * step + join + area / finish;
    return ((double)waves * tile + fill) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    int width = widths[number], cluster = cluster_of(p->n, width);
    if (!cluster) return false;
    uint32_t other = other_smem(width, cluster);
    int stages = zc_sm90_stages(ROWS, width, other);
    *out = (zc_candidate){.config = {[TILE_M] = ROWS,
                                     [TILE_N] = width,
                                     [STAGES] = stages,
                                     [CLUSTER] = cluster,
                                     [SKIP] = p->skip,
                                     [SHIFT] = p->shift,
                                     [SUM] = p->sum},
                          .threads = ZC_SM90_THREADS,
                          .smem = (uint32_t)(stages * ((ROWS + width) * ZC_SM90_LINE + 16)) + other,
                          .cluster = (uint32_t)cluster,
                          .us = cost(p, width, cluster)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d, %d to a row", ROWS, width, cluster);
    return true;
}

/* What a product and a pass over its sums take: 4 bytes written and read for each. */
static double separate(const problem *p)
{
    const double launch = 4, bytes_per_us = 3e6;
    const zc_sm90_problem product = {.m = p->m,
                                     .n = p->n,
                                     .steps = zc_ceil_div(p->k, ZC_SM90_DEPTH),
                                     .items = 1,
                                     .sm_count = p->sm_count};
    return zc_sm90_us(&product) + launch + (double)p->m * (double)p->n * 12 / bytes_per_us;
}

/* ---- the specialisation ---- */

zc_status zc_gen_linear_norm_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_sm90_form(g, &form, &s));
    if (!g->declined[0]) ZC_TRY(zc_gen_sm90_whole_rows(g, &s));
    if (!g->declined[0]) ZC_TRY(zc_gen_sm90_tall(g, &s));
    if (g->declined[0]) return ZC_OK;
    const problem p = {.m = s.m_high == INT64_MAX ? ZC_MM_FAR : s.m_high,
                       .n = s.n,
                       .k = s.k,
                       .skip = zc_gen_in(g, ZC_IN_LinearNorm_skip) != NULL,
                       .shift = zc_gen_in(g, ZC_IN_LinearNorm_beta) != NULL,
                       .sum = zc_gen_out_type(g, 1) != ZC_NONE,
                       .sm_count = g->sm_count};
    if (!cluster_of(p.n, widths[0]))
        return zc_gen_decline(g, "rows longer than a cluster's blocks have (got %lld, need %d)",
                              (long long)s.n, CLUSTER_MOST * widths[0]);
    double apart = separate(&p);
    zc_gen_tensor_cores(g, "wgmma", zc_gen_plain_result(g));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, ZC_COUNTOF(widths)));
    if (g->declined[0]) return ZC_OK;
    if (!g->candidate && !g->regardless && g->us > apart)
        return zc_gen_decline(g, "a product and a pass over it are faster (%.1f us, not %.1f)",
                              apart, g->us);
    size_t at = strlen(g->why);
    zc_snprintf(g->why + at, sizeof g->why - at, "; apart %.1f us", apart);
    return zc_gen_matmul_spec(g, &form);
}

/* ---- the launch ---- */

zc_status zc_launch_linear_norm_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_linear_norm_sm90_params p;
    int clusters;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_sm90_operands(l, &form, &mm, &p.product.g));
    if (mm.batch == 0) return ZC_OK;
    if (mm.m > INT32_MAX - ROWS)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many rows (got %lld)",
                       (long long)mm.m);
    int b_rows = form.b_along_k ? (int)config[TILE_N] : ZC_SM90_DEPTH;
    ZC_TRY(zc_sm90_maps(l, &form, &mm, ROWS, b_rows, &p.product));
    ZC_TRY(zc_sm90_like_y(l, &p.product, p.product.g.y, 64, &p.product.y));
    const struct zc_gemm_norm *norm = &p.product.g.norm;
    if (config[SKIP]) ZC_TRY(zc_sm90_like_y(l, &p.product, norm->skip, ROWS, &p.product.tile));
    if (config[SUM]) ZC_TRY(zc_sm90_like_y(l, &p.product, norm->sum, 64, &p.sum));
    ZC_TRY(zc_launch_clusters(l, &clusters));
    int64_t tiles = zc_ceil_div(mm.m, ROWS);
    zc_dim3 grid = {(uint32_t)((tiles < clusters ? tiles : clusters) * config[CLUSTER]), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
