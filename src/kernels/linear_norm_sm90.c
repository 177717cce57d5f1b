/* Products of f16 and bf16 whose rows are normalised, on Hopper (linear_norm_sm90.cu): how many
 * blocks of a cluster share a row, by a model of their cost. */
#include <string.h>

#include "abi/linear_norm_sm90.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/sm90.h"

enum { TILE_M, TILE_N, STAGES, CLUSTER, STAGING, SKIP, SHIFT, SUM };
const char *const zc_config_linear_norm_sm90[] = {
    "tile_m", "tile_n", "stages", "cluster", "staging", "skip", "shift", "sum", NULL};

enum {
    CLUSTER_MOST = 8,
    WIDEST = 384, /* of the shapes */
    STATE = 8,    /* bytes, of a row's part */
    COLUMNS = 3   /* bias, gamma, beta */
};

/* ---- the choice ---- */

/* Of a block's tile. The two warpgroups have 64 rows each, or half of the columns of 64 rows. */
typedef struct shape {
    int rows, width;
} shape;

_Static_assert((int)CLUSTER_MOST *(int)WIDEST == (int)ZC_NORM_SM90_MOST, "what passes are told");
static const shape shapes[] = {{128, WIDEST}, {128, 256}, {128, 192}, {128, 128},
                               {64, 384},     {64, 256},  {64, 128}};

static int cluster_of(int64_t n, int width)
{
    int64_t blocks = zc_ceil_div(n, width);
    return blocks <= CLUSTER_MOST ? (int)blocks : 0;
}

static int own_columns(const shape *s)
{
    return s->rows == 64 ? s->width / 2 : s->width;
}

/* Of a product, which has 256 columns at most. */
static int product_columns(const shape *s)
{
    int own = own_columns(s);
    return own > 256 ? own / 2 : own;
}

/* Beside the ring: results on their way, barriers, states of rows for odd and even tiles, and each
 * warpgroup's columns of what all rows share. */
static uint32_t other_smem(const shape *s, int cluster, int staging)
{
    int groups = s->rows / 64, parts = cluster * 2 / groups;
    int states = 2 * groups * (8 + 64 * STATE * parts);
    return (uint32_t)(2 * staging * ZC_SM90_PANEL + states + 2 * COLUMNS * own_columns(s) * 2);
}

typedef struct problem {
    int64_t m, n, k;
    bool skip, shift, sum;
    int sm_count;
} problem;

/* Microseconds, fitted to an H200: nothing runs under a tile's end, when rows are joined across
 * blocks. A step takes what its products do, what passes through shared memory (128 bytes a cycle:
 * factors come in once, and each warpgroup's products read them), or what comes from the L2 cache.
 * Clusters lie within parts of the device, which leaves a ninth of it idle where they are more than
 * pairs. */
static double cost(const problem *p, const shape *s, int cluster)
{
    const double clock = 1650, per_cycle = 2048, wait = 60, fill = 1000, join = 6000, finish = 8;
    const double shared = 128, l2 = 48;
    int blocks = cluster > 2 ? p->sm_count * 8 / 9 : p->sm_count, at_once = blocks / cluster;
    int64_t waves = zc_ceil_div(zc_ceil_div(p->m, s->rows), at_once > 1 ? at_once : 1);
    int pieces = own_columns(s) / product_columns(s);
    double area = (double)s->rows * s->width, products = area * ZC_SM90_DEPTH / per_cycle;
    double factors = (double)(s->rows + s->width) * ZC_SM90_LINE;
    double read = 2.0 * (pieces * 64 + own_columns(s)) * ZC_SM90_LINE;
    double through = (factors + read) / shared;
    double loads = ((double)s->rows / cluster + s->width) * ZC_SM90_LINE / l2;
    double step = products > through ? products : through;
    step = (step > loads ? step : loads) + wait;
    double tile = (double)zc_ceil_div(p->k, ZC_SM90_DEPTH) * step + join + area / finish;
    return ((double)waves * tile + fill) / clock;
}

static int stages_of(const shape *s, int cluster, int staging)
{
    return zc_sm90_stages(s->rows, s->width, other_smem(s, cluster, staging));
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    const shape *s = &shapes[number];
    int cluster = cluster_of(p->n, s->width), staging = 1;
    if (!cluster) return false;
    int stages = stages_of(s, cluster, staging);
    if (stages_of(s, cluster, 2) == stages) staging = 2;
    *out = (zc_candidate){.config = {[TILE_M] = s->rows,
                                     [TILE_N] = s->width,
                                     [STAGES] = stages,
                                     [CLUSTER] = cluster,
                                     [STAGING] = staging,
                                     [SKIP] = p->skip,
                                     [SHIFT] = p->shift,
                                     [SUM] = p->sum},
                          .threads = ZC_SM90_THREADS,
                          .smem = (uint32_t)(stages * ((s->rows + s->width) * ZC_SM90_LINE + 16)) +
                                  other_smem(s, cluster, staging),
                          .cluster = (uint32_t)cluster,
                          .us = cost(p, s, cluster)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d, %d to a row", s->rows, s->width, cluster);
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
    if (!cluster_of(p.n, WIDEST))
        return zc_gen_decline(g, "rows longer than a cluster's blocks have (got %lld, need %d)",
                              (long long)s.n, ZC_NORM_SM90_MOST);
    double apart = separate(&p);
    zc_gen_tensor_cores(g, "wgmma", zc_gen_plain_result(g));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, ZC_COUNTOF(shapes)));
    if (g->declined[0]) return ZC_OK;
    const shape chosen = {(int)g->config[TILE_M], (int)g->config[TILE_N]};
    zc_gen_define(g, "PRODUCT_N", "%d", product_columns(&chosen));
    zc_gen_define(g, "WHOLE", "%d", s.n % chosen.width == 0);
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
    int rows = (int)config[TILE_M];
    if (mm.m > INT32_MAX - rows)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many rows (got %lld)",
                       (long long)mm.m);
    int width = (int)config[TILE_N], along = width > 256 ? width / 2 : width;
    int b_rows = form.b_along_k ? along : ZC_SM90_DEPTH;
    ZC_TRY(zc_sm90_maps(l, &form, &mm, rows, b_rows, 0, &p.product));
    ZC_TRY(zc_sm90_like_y(l, &p.product, p.product.g.y, ZC_U16, p.product.g.n, 64, &p.product.y));
    const struct zc_gemm_norm *norm = &p.product.g.norm;
    if (config[SKIP])
        ZC_TRY(zc_sm90_like_y(l, &p.product, norm->skip, ZC_U16, p.product.g.n, rows,
                              &p.product.tile));
    if (config[SUM])
        ZC_TRY(zc_sm90_like_y(l, &p.product, norm->sum, ZC_U16, p.product.g.n, 64, &p.sum));
    ZC_TRY(zc_launch_clusters(l, &clusters));
    int64_t tiles = zc_ceil_div(mm.m, rows);
    zc_dim3 grid = {(uint32_t)((tiles < clusters ? tiles : clusters) * config[CLUSTER]), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
