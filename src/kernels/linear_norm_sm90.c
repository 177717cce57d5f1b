/* Products of f16 and bf16 whose rows are normalised, on Hopper (linear_norm_sm90.cu): how many
 * blocks of a cluster share a row, by a model of their cost. */
#include <string.h>

#include "abi/linear_norm_sm90.h"
#include "base/number.h"
#include "kernels/gemm_sm90.h"

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

/* Microseconds, fitted to an H200: nothing runs under a tile's end, when rows are joined across
 * blocks. Clusters lie within parts of the device, which leaves a sixteenth of it idle. */
static double cost(int64_t m, int64_t n, int64_t k, int width, int sm_count)
{
    const double clock = 1650, per_cycle = 2048, wait = 60, fill = 1000, join = 6000, finish = 12;
    int cluster = cluster_of(n, width), at_once = sm_count * 15 / 16 / cluster;
    int64_t waves = zc_ceil_div(zc_ceil_div(m, ROWS), at_once > 1 ? at_once : 1);
    double area = (double)ROWS * width, step = area * ZC_SM90_DEPTH / per_cycle + wait;
    double tile = (double)zc_ceil_div(k, ZC_SM90_DEPTH) * step + join + area / finish;
    return ((double)waves * tile + fill) / clock;
}

/* What a product and a pass over its sums take: 4 bytes written and read for each. */
static double separate(int64_t m, int64_t n, int64_t k, int sm_count)
{
    const double launch = 4, bytes_per_us = 3e6;
    return zc_gemm_sm90_us(m, n, k, sm_count) + launch + (double)m * (double)n * 12 / bytes_per_us;
}

typedef struct choice {
    int width;
    double us;
} choice;

/* By cost, the best first; how many there are. */
static int choices_of(int64_t m, const zc_matmul_sizes *s, int sm_count,
                      choice out[ZC_COUNTOF(widths)])
{
    int n = 0;
    for (size_t i = 0; i < ZC_COUNTOF(widths); i++) {
        if (!cluster_of(s->n, widths[i])) continue;
        choice c = {widths[i], cost(m, s->n, s->k, widths[i], sm_count)};
        int at = n++;
        for (; at && c.us < out[at - 1].us; at--) out[at] = out[at - 1];
        out[at] = c;
    }
    return n;
}

/* ---- the specialisation ---- */

static void put_config(zc_gen *g, const zc_matmul_sizes *s, int width)
{
    int cluster = cluster_of(s->n, width);
    g->config[TILE_M] = ROWS;
    g->config[TILE_N] = width;
    g->config[STAGES] = zc_gemm_sm90_stages(ROWS, width, other_smem(width, cluster));
    g->config[CLUSTER] = cluster;
    g->config[SKIP] = zc_gen_in(g, ZC_IN_LinearNorm_skip) != NULL;
    g->config[SHIFT] = zc_gen_in(g, ZC_IN_LinearNorm_beta) != NULL;
    g->config[SUM] = zc_gen_out_type(g, 1) != ZC_NONE;
    g->threads = ZC_SM90_THREADS;
    g->smem = (uint32_t)g->config[STAGES] * ((ROWS + (uint32_t)width) * ZC_SM90_LINE + 16) +
              other_smem(width, cluster);
    g->cluster = (uint32_t)cluster;
}

zc_status zc_gen_linear_norm_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    choice best[ZC_COUNTOF(widths)];
    ZC_TRY(zc_gen_gemm_sm90_tall(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    int64_t m = s.m_high == INT64_MAX ? ZC_MM_FAR : s.m_high;
    int n = choices_of(m, &s, g->sm_count, best);
    if (n == 0)
        return zc_gen_decline(g, "rows longer than a cluster's blocks have (got %lld, need %d)",
                              (long long)s.n, CLUSTER_MOST * widths[0]);
    double apart = separate(m, s.n, s.k, g->sm_count);
    if (g->candidate > (int)ZC_COUNTOF(widths) || g->refused >= n ||
        (g->candidate && !cluster_of(s.n, widths[g->candidate - 1])))
        return zc_gen_decline(g, "no such candidate");
    if (!g->candidate && best[g->refused].us > apart)
        return zc_gen_decline(g, "a product and a pass over it are faster (%.1f us, not %.1f)",
                              apart, best[g->refused].us);
    g->configurations = g->candidate ? 1 : n;
    put_config(g, &s, g->candidate ? widths[g->candidate - 1] : best[g->refused].width);
    zc_snprintf(g->why, sizeof g->why, "wgmma: %dx%d, %d to a row %.1f us; apart %.1f us", ROWS,
                best[0].width, cluster_of(s.n, best[0].width), best[0].us, apart);
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
    ZC_TRY(zc_gemm_sm90_operands(l, &form, &mm, &p.product.g));
    if (mm.batch == 0) return ZC_OK;
    if (mm.m > INT32_MAX - ROWS)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many rows (got %lld)",
                       (long long)mm.m);
    int b_rows = form.b_along_k ? (int)config[TILE_N] : ZC_SM90_DEPTH;
    ZC_TRY(zc_gemm_sm90_maps(l, &form, &mm, ROWS, b_rows, &p.product));
    const struct zc_gemm_norm *norm = &p.product.g.norm;
    if (config[SKIP]) ZC_TRY(zc_gemm_sm90_like_y(l, &p.product, norm->skip, ROWS, &p.product.tile));
    if (config[SUM]) ZC_TRY(zc_gemm_sm90_like_y(l, &p.product, norm->sum, 64, &p.sum));
    ZC_TRY(zc_launch_clusters(l, &clusters));
    int64_t tiles = zc_ceil_div(mm.m, ROWS);
    zc_dim3 grid = {(uint32_t)((tiles < clusters ? tiles : clusters) * config[CLUSTER]), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
