/* Products of f16 and bf16 on Hopper (gemm_sm90.cu): which of its configurations, by a model of
 * their cost. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/gemm_sm90.h"

const char *const zc_config_gemm_sm90[] = {ZC_SM90_CONFIG};

/* ---- the choice ---- */

typedef struct shape {
    int tile_m, tile_n, cluster, pingpong;
} shape;

static const shape shapes[] = {
    {128, 256, 1, 0}, {128, 256, 2, 0}, {256, 128, 1, 0}, {256, 128, 2, 0},
    {128, 192, 1, 0}, {128, 192, 2, 0}, {128, 128, 1, 1}, {128, 128, 2, 1},
    {128, 128, 1, 0}, {128, 64, 1, 0},  {256, 64, 1, 0},  {128, 64, 1, 1},
};

typedef zc_sm90_problem problem;

static uint32_t smem_of(const problem *p, const shape *s, int stages)
{
    int results = p->norm ? 0 : ZC_SM90_RESULTS;
    return (uint32_t)(stages * ((s->tile_m + s->tile_n) * ZC_SM90_LINE + 16) + results);
}

int zc_gemm_sm90_stages(int tile_m, int tile_n, uint32_t other)
{
    int stage = (tile_m + tile_n) * ZC_SM90_LINE + 16, fit = (int)(ZC_SM90_SMEM - other) / stage;
    return fit < ZC_SM90_STAGES ? fit : ZC_SM90_STAGES;
}

/* Microseconds, from what a multiprocessor does in a cycle: 2048 products of 16-bit factors, of
 * which four fifths are reached, and 48 bytes from the L2 cache. A tile's first stages arrive after
 * some 1000 cycles, and its results take a cycle for each 24 elements unless other products run
 * meanwhile. */
static double cost(const problem *p, const shape *s)
{
    const double clock = 1650, per_cycle = 2048 * 0.8, l2 = 48, fill = 1000, finish = 24;
    int64_t tiles =
        zc_ceil_div(p->m, s->tile_m * s->cluster) * zc_ceil_div(p->n, s->tile_n) * p->items;
    int64_t waves = zc_ceil_div(tiles, p->sm_count / s->cluster);
    double area = (double)s->tile_m * s->tile_n;
    double products = area * ZC_SM90_DEPTH / per_cycle;
    double loads = (s->tile_m + (double)s->tile_n / s->cluster) * ZC_SM90_LINE / l2;
    double results = area / finish * (s->pingpong && waves > 1 ? 0.25 : 1);
    double step = products > loads ? products : loads;
    return ((double)waves * ((double)p->steps * step + results) + fill) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    const shape *s = &shapes[number];
    int stages = zc_gemm_sm90_stages(s->tile_m, s->tile_n, smem_of(p, s, 0));
    *out = (zc_candidate){.config = {[ZC_SM90_TILE_M] = s->tile_m,
                                     [ZC_SM90_TILE_N] = s->tile_n,
                                     [ZC_SM90_STAGES_SET] = stages,
                                     [ZC_SM90_CLUSTER] = s->cluster,
                                     [ZC_SM90_PINGPONG] = s->pingpong,
                                     [ZC_SM90_RASTER] = 8,
                                     [ZC_SM90_FUSED_TILE] = p->fused_tile},
                          .threads = ZC_SM90_THREADS,
                          .smem = smem_of(p, s, stages),
                          .cluster = (uint32_t)s->cluster,
                          .us = cost(p, s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d%s%s", s->tile_m, s->tile_n,
                s->cluster > 1 ? " in pairs" : "", s->pingpong ? " in turn" : "");
    return true;
}

double zc_sm90_us(const zc_sm90_problem *p)
{
    return zc_candidates_us(candidate_of, p, ZC_COUNTOF(shapes));
}

zc_status zc_gen_sm90(zc_gen *g, const zc_sm90_problem *p)
{
    return zc_gen_candidates(g, "wgmma", candidate_of, p, ZC_COUNTOF(shapes));
}

/* ---- the specialisation ---- */

/* Lines of 16 bytes: what the copy engine can address. */
static bool in_pieces(int64_t n)
{
    return n > 0 && n % 8 == 0;
}

/* The batch is one axis, which both operands have, or none. */
static bool same_batch(const zc_pvalue *a, const zc_pvalue *b)
{
    if (a->rank != b->rank) return false;
    for (int d = 0; d + 2 < a->rank; d++)
        if (!zc_dim_eq(a->dims[d], b->dims[d])) return false;
    return true;
}

static bool plain_form(zc_gen *g, const zc_matmul_form *f)
{
    const zc_pvalue *a = zc_gen_in(g, f->a), *b = zc_gen_in(g, f->b);
    if (f->by_axes || f->trans_a || f->trans_batch_a || f->trans_batch_b) return false;
    if (a->rank < 2 || b->rank < 2) return false;
    return f->flat || b->rank == 2 || (f->c < 0 && same_batch(a, b));
}

int64_t zc_gen_gemm_sm90_items(zc_gen *g, const zc_matmul_form *f)
{
    const zc_pvalue *a = zc_gen_in(g, f->a), *b = zc_gen_in(g, f->b);
    int64_t n = 1;
    for (int d = 0; !f->flat && b->rank > 2 && d + 2 < a->rank; d++)
        if (zc_dim_is_const(a->dims[d])) n *= a->dims[d].k;
    return n;
}

zc_status zc_gen_gemm_sm90_form(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s)
{
    zc_dtype dtype = zc_gen_out_type(g, 0);
    if (dtype != ZC_F16 && dtype != ZC_BF16)
        return zc_gen_decline(g, "no product of warpgroups of %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, form));
    if (g->declined[0]) return ZC_OK;
    if (!plain_form(g, form)) return zc_gen_decline(g, "batches or transposed rows");
    *s = zc_gen_matmul_sizes(g, form);
    if (!in_pieces(s->k) || !in_pieces(s->n))
        return zc_gen_decline(g, "rows that are not certain to be multiples of 16 bytes");
    zc_gen_define(g, "WGMMA", "%s", dtype == ZC_F16 ? "F16" : "BF16");
    if (zc_gen_in(g, form->b)->kind == ZC_P_CONST) zc_gen_define(g, "B_CONSTANT", "1");
    return ZC_OK;
}

static problem problem_of(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    return (problem){.m = s->m_high == INT64_MAX ? ZC_MM_FAR : s->m_high,
                     .n = s->n,
                     .steps = zc_ceil_div(s->k, ZC_SM90_DEPTH),
                     .items = zc_gen_gemm_sm90_items(g, form),
                     .sm_count = g->sm_count,
                     .fused_tile = form->norm ? -1 : zc_gen_epilogue_tile(g),
                     .norm = form->norm};
}

double zc_gen_gemm_sm90_us(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s)
{
    problem p = problem_of(g, form, s);
    return zc_sm90_us(&p);
}

zc_status zc_gen_gemm_sm90_tall(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s)
{
    ZC_TRY(zc_gen_gemm_sm90_form(g, form, s));
    if (!g->declined[0] && s->m_low < ZC_SM90_ROWS)
        return zc_gen_decline(g, "too few rows for tiles of Hopper's warpgroup products");
    return ZC_OK;
}

zc_status zc_gen_gemm_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_gemm_sm90_tall(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    problem p = problem_of(g, &form, &s);
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    if (!zc_gen_epilogue_cells(g))
        return zc_gen_decline(g, "pointwise work whose operands are no rows or columns");
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_gemm_sm90_operands(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                                struct zc_gemm_params *p)
{
    ZC_TRY(zc_matmul_form_launch(l, form));
    ZC_TRY(zc_matmul_of(l, form, mm));
    zc_matmul_simplify(form, mm);
    return mm->batch ? zc_matmul_params(l, form, mm, 16, p) : ZC_OK;
}

zc_tensor_box zc_sm90_box(const void *data, zc_dtype dtype, int64_t n, int64_t lines, int64_t items,
                          int64_t pitch, int64_t item)
{
    return (zc_tensor_box){.data = data,
                           .dtype = dtype,
                           .rank = 3,
                           .dims = {n, lines, items},
                           .strides = {0, pitch * 2, (items > 1 ? item : lines * pitch) * 2},
                           .box = {ZC_SM90_DEPTH, ZC_SM90_DEPTH, 1},
                           .swizzled = true};
}

zc_status zc_gemm_sm90_maps(zc_launch *l, const zc_matmul_form *f, const zc_matmul *mm, int rows,
                            int b_rows, struct zc_gemm_sm90_params *p)
{
    const struct zc_gemm_params *g = &p->g;
    zc_dtype dtype = l->out[0].dtype;
    p->items = (int)mm->batch;
    p->b_items = mm->batch > 1 && g->b_batch[0] ? p->items : 1;
    zc_tensor_box a = zc_sm90_box(g->a, dtype, g->k, g->m, p->items, g->a_ld, g->a_batch[0]);
    zc_tensor_box b =
        f->b_along_k ? zc_sm90_box(g->b, dtype, g->k, g->n, p->b_items, g->b_ld, g->b_batch[0])
                     : zc_sm90_box(g->b, dtype, g->n, g->k, p->b_items, g->b_ld, g->b_batch[0]);
    a.box[1] = (uint32_t)rows;
    b.box[1] = (uint32_t)b_rows;
    ZC_TRY(zc_launch_tensor_map(l, &a, &p->a));
    ZC_TRY(zc_launch_tensor_map(l, &b, &p->b));
    zc_tensor_box y = zc_sm90_box(g->y, dtype, g->n, g->m, p->items, g->y_ld, g->y_batch[0]);
    return zc_launch_tensor_map(l, &y, &p->y);
}

zc_status zc_gemm_sm90_like_y(zc_launch *l, const struct zc_gemm_sm90_params *p, const void *data,
                              int rows, zc_tensor_map *out)
{
    int64_t m = p->g.m, n = p->g.n;
    zc_tensor_box box = zc_sm90_box(data, l->out[0].dtype, n, m, p->items, n, m * n);
    box.box[1] = (uint32_t)rows;
    return zc_launch_tensor_map(l, &box, out);
}

zc_status zc_launch_sm90(zc_launch *l, struct zc_gemm_sm90_params *p)
{
    const int64_t *config = l->kernel->config;
    int rows = (int)config[ZC_SM90_TILE_M], tile = (int)config[ZC_SM90_FUSED_TILE];
    int64_t cluster = config[ZC_SM90_CLUSTER], most = l->sm_count / cluster, tiles;
    if (p->g.m > INT32_MAX ||
        !zc_mul_i64(zc_ceil_div(p->g.m, rows * cluster),
                    zc_ceil_div(p->g.n, config[ZC_SM90_TILE_N]), &tiles) ||
        !zc_mul_i64(tiles, p->items, &tiles) || tiles > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)p->g.m, (long long)p->g.n);
    if (tile >= 0) ZC_TRY(zc_gemm_sm90_like_y(l, p, p->g.fused.in[tile], rows, &p->tile));
    int64_t clusters = tiles < most ? tiles : most;
    zc_dim3 grid = {(uint32_t)((clusters ? clusters : 1) * cluster), 1, 1};
    return zc_launch_configured(l, grid, p, sizeof *p);
}

zc_status zc_launch_gemm_sm90(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_gemm_sm90_operands(l, &form, &mm, &p.g));
    if (mm.batch == 0) return ZC_OK;
    const int64_t *config = l->kernel->config;
    int along = form.b_along_k ? (int)config[ZC_SM90_TILE_N] : ZC_SM90_DEPTH;
    if (mm.batch_rank > 1 || mm.batch > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld items)",
                       (long long)mm.batch);
    if (form.norm) ZC_TRY(zc_matmul_partial_sums(l, &mm, 1, sizeof(float), &p.g));
    ZC_TRY(zc_gemm_sm90_maps(l, &form, &mm, (int)config[ZC_SM90_TILE_M],
                             along / (int)config[ZC_SM90_CLUSTER], &p));
    ZC_TRY(zc_launch_sm90(l, &p));
    return form.norm ? zc_matmul_launch_norm(l, &p.g) : ZC_OK;
}
