/* Attention of f16 and bf16 on Hopper for few keys (attention_few_sm90.cu): how many warpgroups
 * share them, by a model of cost. */
#include "base/number.h"
#include "kernels/attention_sm90.h"
#include "kernels/candidates.h"

enum { GROUPS, KEYS, COLUMNS };
const char *const zc_config_attention_few_sm90[] = {"groups", "keys", "columns", NULL};

enum {
    LINE = ZC_ATTENTION_SM90_LINE,
    ROWS = ZC_ATTENTION_SM90_ROWS,
    GROUPS_MOST = 8,
    GROUPS_LEAN = 4, /* more have registers for the scores of KEYS_LEAN keys alone */
    KEYS_LEAN = 48,
    KEYS_MOST = 512,
    KEYS_STEP = 16, /* of the second product's summed axis */
    SHAPES = 8      /* 16 to 128 keys of a warpgroup */
};

/* ---- the choice ---- */

typedef zc_attention_sm90_problem problem;

typedef struct shape {
    int64_t groups, keys;
} shape;

static uint32_t smem_of(const problem *p, const shape *s)
{
    int64_t q_panels = zc_ceil_div(p->d, ZC_ATTENTION_SM90_WIDTH);
    int64_t v_panels = zc_ceil_div(p->dv, ZC_ATTENTION_SM90_WIDTH);
    int64_t all = s->groups * s->keys, pitch = zc_ceil_div(p->dv, 16) * 16 + 8;
    int64_t first = q_panels * (ROWS + all) * LINE, sums = s->groups * ROWS * pitch * 4;
    int64_t held = zc_ceil_div(first > sums ? first : sums, 1024) * 1024;
    return (uint32_t)(held + v_panels * all * LINE + s->groups * ROWS * 8 + all * 4 +
                      (1 + 2 * s->groups) * 8);
}

/* Microseconds, as measured on an H200 (bench/NOTES.md). Each warpgroup, each of its keys and, with
 * heads of 64, each of all keys adds to a block's time; blocks that share a multiprocessor take as
 * long as one after the other. */
static double cost(const problem *p, const shape *s)
{
    const double fixed = 1.3, begin = -0.7, group = 0.5, own = 0.015, key = 0.005;
    double all = (double)(s->groups * s->keys), sizes = (double)(p->d + p->dv) / 128;
    double block = begin + group * (double)s->groups + own * (double)s->keys + key * all * sizes;
    double tiles = (double)(zc_ceil_div(p->queries, ROWS) * p->items);
    double each = tiles / p->sm_count;
    return fixed + (each > 1 ? each : 1) * block;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    shape s = {.keys = (number + 1) * KEYS_STEP};
    s.groups = zc_ceil_div(p->keys, s.keys);
    if (s.groups > GROUPS_MOST || (s.groups > GROUPS_LEAN && s.keys > KEYS_LEAN) ||
        smem_of(p, &s) > ZC_ATTENTION_SM90_SMEM)
        return false;
    *out = (zc_candidate){
        .config = {[GROUPS] = s.groups, [KEYS] = s.keys, [COLUMNS] = zc_ceil_div(p->dv, 16) * 16},
        .threads = (uint32_t)s.groups * 128,
        .smem = smem_of(p, &s),
        .cluster = 1,
        .us = cost(p, &s)};
    zc_snprintf(out->name, sizeof out->name, "%d groups of %d keys", (int)s.groups, (int)s.keys);
    return true;
}

/* ---- the specialisation ---- */

zc_status zc_gen_attention_few_sm90(zc_gen *g)
{
    zc_attention_shape s;
    problem p;
    ZC_TRY(zc_gen_attention_sm90_problem(g, &s, &p));
    if (g->declined[0]) return ZC_OK;
    if (p.keys < 1 || p.keys > KEYS_MOST)
        return zc_gen_decline(g, "keys that are not certain to be 1 to %d", KEYS_MOST);
    zc_gen_tensor_cores(g, "wgmma", s.type);
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, SHAPES));
    if (g->declined[0]) return ZC_OK;
    double looped = zc_attention_sm90_us(&p);
    if (!g->candidate && !g->regardless && looped < g->us)
        return zc_gen_decline(g, "keys by steps are faster (%.1f us, not %.1f)", looped, g->us);
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

zc_status zc_launch_attention_few_sm90(zc_launch *l)
{
    struct zc_attention_sm90_params p;
    int64_t tiles;
    ZC_TRY(zc_attention_sm90_params(l, ROWS, l->kernel->config[KEYS], &p, &tiles));
    if (!tiles) return ZC_OK;
    return zc_launch_configured(l, (zc_dim3){(uint32_t)tiles, 1, 1}, &p, sizeof p);
}
