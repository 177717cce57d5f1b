/* Attention of f16 and bf16 on Hopper (attention_sm90.cu): which of its configurations, by a model
 * of their cost. */
#include <string.h>

#include "abi/attention_sm90.h"
#include "base/number.h"
#include "kernels/attention_sm90.h"
#include "kernels/candidates.h"
#include "kernels/divisor.h"

enum { WARPGROUPS, KEYS, STAGES, COLUMNS, AHEAD, SHARE };
const char *const zc_config_attention_sm90[] = {"warpgroups", "keys",  "stages", "columns",
                                                "ahead",      "share", NULL};

enum {
    LINE = ZC_ATTENTION_SM90_LINE,
    PIECE = 16, /* bytes that the copy engine can address */
    WIDTH = ZC_ATTENTION_SM90_WIDTH,
    ROWS = ZC_ATTENTION_SM90_ROWS,
    STAGES_MOST = 4,
    KEYS_STEP = 16,  /* of the second product's summed axis */
    EVEN_MOST = 208, /* keys of a step, with two warpgroups' registers */
    SIZE_MOST = 128, /* of a head: sums and scores of more do not fit into registers */
    MANY_MOST = 64,  /* the same of three warpgroups or four */
    FAR = 2048,      /* queries that stand for a range without an end */
    ITEMS = 96       /* heads of all of the batch, where they are not certain */
};

/* ---- the choice ---- */

typedef struct shape {
    int warpgroups, keys; /* of a step; 0: as few steps of the same size as there can be */
    bool ahead, share;
    bool tuned; /* the tuner's alone: no model was seen to gain by it */
} shape;

static const shape shapes[] = {
    {.warpgroups = 2, .keys = 128},
    {.warpgroups = 1, .keys = 128},
    {.warpgroups = 2, .keys = 128, .ahead = true},
    {.warpgroups = 1, .keys = 128, .ahead = true},
    {.warpgroups = 2, .keys = 128, .ahead = true, .share = true, .tuned = true},
    {.warpgroups = 3, .keys = 128, .ahead = true},
    {.warpgroups = 4, .keys = 64, .ahead = true},
    {.warpgroups = 2, .ahead = true, .tuned = true},
    {.warpgroups = 1, .ahead = true},
};

static int rows_of(const shape *s)
{
    return (s->share ? 1 : s->warpgroups) * ROWS;
}

typedef zc_attention_sm90_problem problem;

static int64_t even_keys(int64_t keys)
{
    int64_t steps = zc_ceil_div(keys, EVEN_MOST);
    return zc_ceil_div(zc_ceil_div(keys, steps), KEYS_STEP) * KEYS_STEP;
}

static uint32_t smem_of(const problem *p, const shape *s, int stages)
{
    int64_t q_panels = zc_ceil_div(p->d, WIDTH), panels = q_panels + zc_ceil_div(p->dv, WIDTH);
    int64_t tile = (panels + (s->ahead ? q_panels : 0)) * rows_of(s) * LINE;
    int64_t stage = panels * s->keys * LINE;
    int64_t sums = s->share ? (zc_ceil_div(p->dv, 16) * 8 + 4) * 128 * 4 : 0;
    int64_t kept = p->kept ? 2 * (s->keys * 4 + 16) : 0;
    return (uint32_t)(tile + sums + stages * (stage + 4 * 8 + kept) + (s->ahead ? 4 : 2) * 8);
}

/* Microseconds, with as many keys as queries, as measured on an H200 (bench/NOTES.md). A
 * multiprocessor does 3072 products of 16-bit factors in a cycle and, with the rest of a softmax, 9
 * exponentials, 13 by three warpgroups, 12 by four with steps of 64 keys; one warpgroup waits for
 * the one and then the other, more overlap them. What a tile takes besides goes with its rows; with
 * operands ahead, a third of it is guessed. */
static double cost(const problem *p, const shape *s)
{
    const double clock = 1650, per_cycle = 3072, fixed = 2150, own = 3500;
    const double exponentials = s->warpgroups < 3 ? 9 : s->warpgroups < 4 ? 13 : 12;
    int64_t tiles = zc_ceil_div(p->queries, rows_of(s)) * p->items;
    int64_t waves = zc_ceil_div(tiles, p->sm_count), steps = zc_ceil_div(p->queries, s->keys);
    if (s->share) steps = zc_ceil_div(steps, s->warpgroups);
    double tile = own * s->warpgroups / (s->ahead ? 3 : 1);
    double area = (double)ROWS * s->keys * s->warpgroups;
    double products = area * (double)(p->d + p->dv) / per_cycle, weights = area / exponentials;
    double step = products > weights ? products : weights;
    if (s->warpgroups == 1) step = products + weights;
    return ((double)waves * ((double)steps * (step + 150) + tile) + fixed) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    shape s = shapes[number];
    int stages = STAGES_MOST;
    if (s.tuned && !p->asked) return false;
    if (s.warpgroups > 2 && (p->d > MANY_MOST || p->dv > MANY_MOST)) return false;
    if (!s.keys && (p->biases || p->keys <= shapes[0].keys)) return false;
    if (!s.keys) s.keys = (int)even_keys(p->keys);
    while (stages && smem_of(p, &s, stages) > ZC_ATTENTION_SM90_SMEM) stages--;
    if (s.share) stages -= stages % s.warpgroups;
    if (stages < 2) return false;
    *out = (zc_candidate){.config = {[WARPGROUPS] = s.warpgroups,
                                     [KEYS] = s.keys,
                                     [STAGES] = stages,
                                     [COLUMNS] = zc_ceil_div(p->dv, 16) * 16,
                                     [AHEAD] = s.ahead,
                                     [SHARE] = s.share},
                          .threads = (uint32_t)(s.warpgroups + 1) * 128,
                          .smem = smem_of(p, &s, stages),
                          .cluster = 1,
                          .us = cost(p, &s)};
    zc_snprintf(out->name, sizeof out->name, "%dx%d%s%s", rows_of(&s), s.keys,
                s.ahead ? " ahead" : "", s.share ? ", shared" : "");
    return true;
}

/* ---- the specialisation ---- */

#define IN(input) zc_gen_in(g, ZC_IN_Attention_##input)

zc_status zc_gen_attention_sm90_problem(zc_gen *g, zc_attention_shape *s, problem *p)
{
    static const int64_t bounds[] = ZC_ATTENTION_QUERIES_BOUNDS;
    int64_t low, high;
    zc_dim batch = zc_gen_in(g, 0)->dims[0];
    ZC_TRY(zc_gen_attention_products(g, SIZE_MOST, s));
    if (g->declined[0]) return ZC_OK;
    zc_gen_size(g, &s->queries, 1, bounds, ZC_COUNTOF(bounds), &low, &high);
    if (low < ZC_ATTENTION_SM90_LEAST)
        return zc_gen_decline(g, "too few queries for tiles of Hopper's warpgroup products");
    if (s->dv * zc_dtype_bits(zc_gen_out_type(g, 0)) % (PIECE * 8))
        return zc_gen_decline(g, "results of a head that are no multiple of %d bytes", PIECE);
    *p = (problem){.d = s->d,
                   .dv = s->dv,
                   .items = ITEMS,
                   .sm_count = g->sm_count,
                   .biases = s->biases,
                   .kept = s->kept,
                   .asked = g->candidate || g->regardless};
    p->queries = high == INT64_MAX ? FAR : high;
    bool same = zc_dim_eq(s->keys, s->queries);
    p->keys = s->past ? -1 : zc_dim_is_const(s->keys) ? s->keys.k : same ? p->queries : -1;
    if (zc_dim_is_const(batch) && s->heads > 0) p->items = batch.k * s->heads;
    zc_gen_define(g, "WGMMA", "%s", s->type == ZC_F16 ? "F16" : "BF16");
    return ZC_OK;
}

double zc_attention_sm90_us(const zc_attention_sm90_problem *p)
{
    return zc_candidates_us(candidate_of, p, ZC_COUNTOF(shapes));
}

zc_status zc_gen_attention_sm90(zc_gen *g)
{
    zc_attention_shape s;
    problem p;
    ZC_TRY(zc_gen_attention_sm90_problem(g, &s, &p));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, "wgmma", s.type);
    zc_gen_define(g, "KEPT", "%d", p.kept > 0);
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, ZC_COUNTOF(shapes)));
    return g->declined[0] ? ZC_OK : zc_gen_epilogue(g);
}

/* ---- the launch ---- */

/* `lines` positions of a head at a time. Without positions or heads any memory will do. */
static zc_status put_map(const zc_attention *a, const struct zc_attention_view *v, zc_dtype type,
                         int64_t size, int64_t length, int64_t heads, int64_t lines,
                         zc_tensor_map *out)
{
    const int64_t bytes = zc_dtype_bits(type) / 8;
    zc_tensor_box b = {.data = length ? v->data : a->p.q.data,
                       .dtype = type,
                       .rank = 4,
                       .dims = {size, length ? length : 1, heads, a->p.batch},
                       .strides = {0, v->pos * bytes, v->head * bytes, v->batch * bytes},
                       .box = {(uint32_t)(LINE / bytes), (uint32_t)lines, 1, 1},
                       .swizzled = true};
    return zc_launch_tensor_map(a->l, &b, out);
}

/* Do numbers of keys and rows have room in 31 bits, those a tile behind the last included? */
static bool fits(const zc_attention *a, int64_t group, int64_t rows, int64_t keys)
{
    const struct zc_attention_lengths *len = &a->p.len;
    int64_t room = INT32_MAX - rows - keys;
    return len->nk <= room && len->nq <= room / group && len->past <= room - len->nq;
}

static int64_t at_most(int64_t v, int64_t limit)
{
    return v < limit ? v : limit;
}

zc_status zc_attention_sm90_params(zc_launch *l, int64_t rows, int64_t keys,
                                   struct zc_attention_sm90_params *p, int64_t *tiles)
{
    enum { WARP_ROWS = 16 };
    zc_attention a;
    bool some;
    memset(p, 0, sizeof *p);
    *tiles = 0;
    ZC_TRY(zc_attention_describe(l, &a, &some));
    if (!some) return ZC_OK;
    int64_t nq = a.p.len.nq, nk = a.p.len.nk, down = zc_ceil_div(nq, rows);
    int64_t group = a.p.heads / a.p.kv_heads;
    const int64_t all[] = {a.p.batch, a.p.heads, down};
    *tiles = zc_numel(3, all);
    if (*tiles < 0 || *tiles > INT32_MAX || !fits(&a, group, rows, keys))
        return zc_attention_too_large(&a);
    ZC_TRY(put_map(&a, &a.p.q, a.type, a.d, nq, a.p.heads, rows, &p->q));
    ZC_TRY(put_map(&a, &a.p.k, a.type, a.d, nk, a.p.kv_heads, keys, &p->k));
    ZC_TRY(put_map(&a, &a.p.v, a.type, a.dv, nk, a.p.kv_heads, keys, &p->v));
    ZC_TRY(put_map(&a, &a.p.y, l->out[0].dtype, a.dv, nq, a.p.heads, WARP_ROWS, &p->y));
    p->a = a.p;
    p->a.window = at_most(a.p.window, INT32_MAX);
    for (int x = 0; x < 2; x++) p->a.bias_cols[x] = at_most(a.p.bias_cols[x], INT32_MAX);
    p->down = (int)down;
    p->items = (int)(a.p.batch * a.p.heads);
    p->by_down = zc_divisor_of(p->down);
    p->by_items = zc_divisor_of(p->items);
    p->by_heads = zc_divisor_of(a.p.heads);
    p->by_group = zc_divisor_of(group);
    return ZC_OK;
}

zc_status zc_launch_attention_sm90(zc_launch *l)
{
    struct zc_attention_sm90_params p;
    const int64_t *config = l->kernel->config;
    int64_t tiles;
    ZC_TRY(zc_attention_sm90_params(l, config[SHARE] ? ROWS : config[WARPGROUPS] * ROWS,
                                    config[KEYS], &p, &tiles));
    if (!tiles) return ZC_OK;
    zc_dim3 grid = {(uint32_t)(tiles < l->sm_count ? tiles : l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
