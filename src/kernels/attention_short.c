/* Attention of f16 and bf16 for short sequences at small batches (attention_short.cu): how many
 * warps share the keys, by a model of cost. */
#include "base/number.h"
#include "kernels/attention_form.h"
#include "kernels/candidates.h"

enum { WARPS, KEYS };
const char *const zc_config_attention_short[] = {"warps", "keys", NULL};

enum {
    ROWS = 16,
    WARPS_MOST = 16,
    KEYS_MOST = 384,    /* more warps have no registers for 32 keys each */
    KEYS_STEP = 16,     /* of the second product's summed axis */
    SHAPES = 4,         /* 16 to 64 keys of a warp */
    SIZE_MOST = 128,    /* of a head */
    SMEM_ALONE = 116736 /* of which two blocks do not fit on a multiprocessor */
};

/* ---- the choice ---- */

typedef struct problem {
    int64_t d, dv, tiles, keys; /* tiles: of all heads */
    int sm_count;
} problem;

typedef struct shape {
    int64_t warps, keys;
} shape;

/* One block a multiprocessor, where there are no more. */
static uint32_t smem_of(const problem *p, const shape *s)
{
    int64_t pitch = zc_ceil_div(p->dv, 64) * 64 + 4;
    int64_t need = s->warps * ROWS * (pitch * 4 + 8) + s->warps * s->keys * 4;
    return (uint32_t)(p->tiles <= p->sm_count && need < SMEM_ALONE ? SMEM_ALONE : need);
}

/* Microseconds. A block reads all keys and values of its head, at 48 bytes in a cycle; a warp takes
 * some 16 cycles for each of its scores, and joins what all warps have. */
static double cost(const problem *p, const shape *s)
{
    const double clock = 1650, l2 = 48, score = 16, join = 30, fixed = 3400;
    double loads = (double)(p->keys * (p->d + p->dv)) * 2 / l2;
    int64_t waves = zc_ceil_div(p->tiles, p->sm_count);
    double own = (double)(s->keys * ROWS) / 32 * score, joined = (double)s->warps * join;
    return ((double)waves * (loads + own + joined) + fixed) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    shape s = {.keys = (number + 1) * KEYS_STEP};
    s.warps = zc_ceil_div(p->keys, s.keys);
    if (s.warps > WARPS_MOST) return false;
    *out = (zc_candidate){.config = {[WARPS] = s.warps, [KEYS] = s.keys},
                          .threads = (uint32_t)s.warps * 32,
                          .smem = smem_of(p, &s),
                          .cluster = 1,
                          .us = cost(p, &s)};
    zc_snprintf(out->name, sizeof out->name, "%d warps of %d keys", (int)s.warps, (int)s.keys);
    return true;
}

/* ---- the specialisation ---- */

zc_status zc_gen_attention_short(zc_gen *g)
{
    zc_attention_shape s;
    ZC_TRY(zc_gen_attention_products(g, SIZE_MOST, &s));
    if (g->declined[0]) return ZC_OK;
    zc_dim batch = zc_gen_in(g, 0)->dims[0];
    bool certain = zc_dim_is_const(batch) && zc_dim_is_const(s.queries) && s.heads > 0;
    if (!certain || s.past || !zc_dim_is_const(s.keys) || s.keys.k < 1 || s.keys.k > KEYS_MOST)
        return zc_gen_decline(g, "sizes that are not certain, or more than %d keys", KEYS_MOST);
    problem p = {.d = s.d, .dv = s.dv, .keys = s.keys.k, .sm_count = g->sm_count};
    const int64_t all[] = {batch.k, s.heads, zc_ceil_div(s.queries.k, ROWS)};
    p.tiles = zc_numel(3, all);
    if (p.tiles < 1) return zc_gen_decline(g, "no queries, or too many");
    ZC_TRY(zc_gen_candidates(g, "mma", candidate_of, &p, SHAPES));
    return g->declined[0] ? ZC_OK : zc_gen_epilogue(g);
}

/* ---- the launch ---- */

zc_status zc_launch_attention_short(zc_launch *l)
{
    zc_attention a;
    bool some;
    ZC_TRY(zc_attention_describe(l, &a, &some));
    if (!some) return ZC_OK;
    const int64_t all[] = {a.p.batch, a.p.heads, zc_ceil_div(a.p.len.nq, ROWS)};
    int64_t tiles = zc_numel(3, all);
    if (tiles < 0 || tiles > INT32_MAX) return zc_attention_too_large(&a);
    return zc_launch_configured(l, (zc_dim3){(uint32_t)tiles, 1, 1}, &a.p, sizeof a.p);
}
