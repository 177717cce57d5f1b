/* Attention of few queries of f16 and bf16 on Hopper (attention_step_sm90.cu): into how many parts
 * the keys go, by a model of the cost. */
#include <string.h>

#include "abi/attention_step_sm90.h"
#include "base/number.h"
#include "kernels/attention_form.h"
#include "kernels/candidates.h"

enum { QUERIES, KEYS, STAGES, PARTS };
const char *const zc_config_attention_step_sm90[] = {"queries", "keys", "stages", "parts", NULL};

enum {
    THREADS = 256,
    NEAR = 8,           /* elements in a piece of 16 bytes */
    QUERIES_MOST = 8,   /* of a key head: their sums are held in registers */
    SIZE_MOST = 256,    /* of a head */
    SMEM_MOST = 113664, /* so that two blocks share a multiprocessor */
    STAGES_MOST = 8,
    FAR = 1024, /* keys that stand for a length that is not certain */
    ITEMS = 32  /* key heads of all of the batch, where they are not certain */
};

/* ---- the choice ---- */

typedef struct problem {
    int64_t d, dv, rows, keys, items; /* rows of a key head; key heads of all of the batch */
    int sm_count;
} problem;

static int64_t smem_of(const problem *p, int keys, int64_t stages, int parts)
{
    int64_t line = (p->dv + 4) * 4, owned = zc_ceil_div(p->rows, parts);
    int64_t ring = stages * keys * (p->d + p->dv) * 2, sums = THREADS / 32 * p->rows * p->dv * 4;
    return (ring > sums ? ring : sums) + p->rows * (p->d + keys) * 4 +
           zc_ceil_div(p->rows, 4) * 16 + (p->rows + (parts - 1) * owned) * line + (stages + 1) * 8;
}

static int64_t share_of(const problem *p, int parts)
{
    return zc_ceil_div(zc_ceil_div(p->keys, parts), NEAR) * NEAR;
}

/* Microseconds: a step costs what its three meetings of all threads take, bytes come at the rate
 * of a multiprocessor's share of the memory, and each other block of the cluster sends sums. */
static double cost(const problem *p, int keys, int parts)
{
    const double meet = 0.4, exchange = 0.3, rate = 28e3; /* bytes a microsecond */
    int64_t blocks = p->items * parts, waves = zc_ceil_div(blocks, p->sm_count);
    int64_t steps = zc_ceil_div(share_of(p, parts), keys);
    double bytes = (double)(share_of(p, parts) * (p->d + p->dv) * 2);
    return (double)waves * bytes / rate + (double)steps * meet * (double)zc_ceil_div(waves, 2) +
           exchange * (parts - 1);
}

/* Candidates: how many keys a stage may have, and of how many parts a cluster. */
static const int keys_of_stage[] = {32, 64, 128, 160, 192}, parts_of[] = {1, 2, 4, 8};
enum { CANDIDATES = ZC_COUNTOF(keys_of_stage) * ZC_COUNTOF(parts_of) };

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    const int parts = parts_of[zc_candidate_digit(&number, ZC_COUNTOF(parts_of))];
    const int keys = keys_of_stage[number];
    int64_t steps = zc_ceil_div(share_of(p, parts), keys);
    int64_t stages = steps < STAGES_MOST ? steps : STAGES_MOST;
    while (stages && smem_of(p, keys, stages, parts) > SMEM_MOST) stages--;
    if (stages < 1 || (parts > 1 && p->keys <= NEAR * (parts - 1))) return false;
    *out = (zc_candidate){
        .config = {[QUERIES] = p->rows, [KEYS] = keys, [STAGES] = stages, [PARTS] = parts},
        .threads = THREADS,
        .smem = (uint32_t)smem_of(p, keys, stages, parts),
        .cluster = (uint32_t)parts,
        .us = cost(p, keys, parts)};
    zc_snprintf(out->name, sizeof out->name, "%d keys in %d parts", keys, parts);
    return true;
}

/* ---- the specialisation ---- */

#define IN(input) zc_gen_in(g, ZC_IN_Attention_##input)

static int64_t kv_heads_of(const zc_gen *g)
{
    const zc_pvalue *k = IN(k);
    return k && k->rank == 4 ? zc_gen_const_dim(k, 1) : ZC_ATTRS(g, Attention)->kv_num_heads;
}

/* All keys, as far as it is certain. */
static int64_t keys_of(const zc_gen *g, const zc_attention_shape *s)
{
    const zc_pvalue *k = IN(k), *past = IN(past_k);
    zc_dim fresh = k ? k->dims[k->rank == 4 ? 2 : 1] : s->queries;
    if (!zc_dim_is_const(fresh) || (past && !zc_dim_is_const(past->dims[2]))) return FAR;
    int64_t n = fresh.k + (past ? past->dims[2].k : 0);
    return n < 1 ? 1 : n;
}

static zc_status problem_of(zc_gen *g, const zc_attention_shape *s, problem *p)
{
    static const int64_t bounds[] = ZC_ATTENTION_QUERIES_BOUNDS;
    int64_t low, high, kv = kv_heads_of(g);
    zc_dim batch = zc_gen_in(g, 0)->dims[0];
    zc_gen_size(g, &s->queries, 1, bounds, ZC_COUNTOF(bounds), &low, &high);
    if (kv < 1 || s->heads < kv || high > QUERIES_MOST || s->heads / kv * high > QUERIES_MOST)
        return zc_gen_decline(g, "rows of a key head that are not certain to be %d at most",
                              QUERIES_MOST);
    *p = (problem){.d = s->d,
                   .dv = s->dv,
                   .rows = s->heads / kv * (high < 1 ? 1 : high),
                   .keys = keys_of(g, s),
                   .items = zc_dim_is_const(batch) ? batch.k * kv : ITEMS,
                   .sm_count = g->sm_count};
    return ZC_OK;
}

static bool is_input(const zc_pvalue *v)
{
    return v && v->kind == ZC_P_INPUT;
}

zc_status zc_gen_attention_step_sm90(zc_gen *g)
{
    zc_attention_shape s;
    problem p;
    ZC_TRY(zc_gen_attention_products(g, SIZE_MOST, &s));
    if (g->declined[0]) return ZC_OK;
    if (IN(hidden) || (IN(lengths) && !IN(total)))
        return zc_gen_decline(g, "lengths without a cache of that length");
    if (!zc_gen_out(g, 0)) return zc_gen_decline(g, "no result is wanted");
    ZC_TRY(problem_of(g, &s, &p));
    if (g->declined[0]) return ZC_OK;
    ZC_TRY(zc_gen_candidates(g, "cores", candidate_of, &p, CANDIDATES));
    if (g->declined[0]) return ZC_OK;
    if (is_input(IN(past_k)) && is_input(IN(past_v)) && !IN(lengths))
        zc_gen_define(g, "PAST_EARLY", "1");
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

static bool in_lines(const struct zc_attention_view *v, int64_t size)
{
    return v->pos == size && v->head % NEAR == 0 && v->batch % NEAR == 0 &&
           (uintptr_t)v->data % 16 == 0;
}

/* Where nothing is done to keys and values and they lie in lines, they count as past ones. */
static void take_lines(const zc_attention *a, struct zc_attention_step_sm90_params *p)
{
    struct zc_attention_rows_params *k = &p->k, *v = &p->v;
    bool ready = !k->to && !v->to && !k->behind && !k->half && !k->norm;
    if (!ready || !in_lines(&k->x, a->d) || !in_lines(&v->x, a->dv)) return;
    k->past = k->x;
    v->past = v->x;
    k->len.past = k->fresh;
    k->fresh = v->fresh = 0;
}

zc_status zc_launch_attention_step_sm90(zc_launch *l)
{
    zc_attention a;
    zc_attention_form f;
    struct zc_attention_step_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_attention_read(l, &a, &f));
    zc_attention_rows_of(&a, &f, ZC_ATTENTION_QUERIES, &p.q);
    zc_attention_rows_of(&a, &f, ZC_ATTENTION_KEYS, &p.k);
    zc_attention_rows_of(&a, &f, ZC_ATTENTION_VALUES, &p.v);
    p.a = a.p;
    p.in_place = p.k.to && p.k.to == p.k.past.data && p.v.to == p.v.past.data && f.past == f.room;
    take_lines(&a, &p);
    int64_t blocks, parts = l->kernel->config[PARTS];
    if (!zc_mul_i64(f.batch, f.kv_heads, &blocks) || blocks > INT32_MAX / parts)
        return zc_attention_too_large(&a);
    zc_dim3 grid = {(uint32_t)(blocks * parts), 1, 1};
    return zc_launch_configured(l, f.nq ? grid : (zc_dim3){0, 1, 1}, &p, sizeof p);
}
