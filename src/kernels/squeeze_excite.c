/* SqueezeExcite of f16 and bf16: a cluster an image on Hopper, a block elsewhere. */
#include <string.h>

#include "abi/squeeze_excite.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/launch.h"

enum { SLICES, PARTS, HELD };
const char *const zc_config_squeeze_excite[] = {"slices", "parts", "held", NULL};

enum {
    BLOCK = 512,
    EACH = 8,          /* channels of a thread */
    NARROW = 4 * EACH, /* of a slice, at least: two sectors of memory */
    WIDE = BLOCK * EACH,
    CLUSTER = 8,
    HELD_MOST = 16, /* pixels that a thread keeps, */
    HELD_OPEN = 8,  /* and where only a run knows how many there are */
    SHARED_MOST = 48 * 1024,
    PIXELS_MOST = INT32_MAX - BLOCK * HELD_MOST, /* of an image: what threads count up to */
    SHAPES = 4 * 4
};

typedef struct problem {
    int64_t images, channels, hidden;
    int64_t pixels; /* of an image; -1: only a run knows */
    int sm_count;
    bool clusters;
} problem;

/* ---- the choice ---- */

static int64_t lines_of(int64_t slice)
{
    return BLOCK / (slice / EACH);
}

/* As squeeze_excite.cu lays it out. */
static int64_t shared_of(const problem *p, int64_t slice, int64_t blocks)
{
    int64_t groups = slice < BLOCK ? BLOCK / slice : 1;
    return 4 * ((lines_of(slice) + groups + 1) * slice + blocks * (p->hidden + 3) + p->hidden + 4);
}

/* Microseconds: a block's pixels come and go at 48 bytes a cycle, with its rows of both matrices.
 */
static double us_of(const problem *p, int64_t slice, int64_t slices, int64_t parts)
{
    enum { USUAL = 28 * 28 };
    const double rate = 79e3, fixed = 2, exchange = 0.7;
    int64_t pixels = zc_ceil_div(p->pixels < 0 ? USUAL : p->pixels, parts);
    double bytes = (double)(slice * 2) * ((double)pixels + (double)p->hidden) * 2;
    double waves = (double)zc_ceil_div(p->images * slices * parts, p->sm_count);
    return waves * (fixed + bytes / rate) + (slices * parts > 1 ? exchange : 0);
}

/* Number `number`: so many slices and parts, powers of two. */
static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    int64_t slices = 1 << number % 4, parts = 1 << number / 4, blocks = slices * parts;
    int64_t slice = p->channels / slices;
    if (blocks > CLUSTER || (blocks > 1 && !p->clusters)) return false;
    if (p->channels % (slices * EACH) || (slices > 1 && slice < NARROW)) return false;
    if (slice > WIDE || shared_of(p, slice, blocks) > SHARED_MOST) return false;
    int64_t each = zc_ceil_div(zc_ceil_div(p->pixels, parts), lines_of(slice));
    *out = (zc_candidate){.config = {[SLICES] = slices,
                                     [PARTS] = parts,
                                     [HELD] = p->pixels <= 0     ? HELD_OPEN
                                              : each < HELD_MOST ? each
                                                                 : HELD_MOST},
                          .threads = BLOCK,
                          .cluster = (uint32_t)blocks,
                          .us = us_of(p, slice, slices, parts)};
    zc_snprintf(out->name, sizeof out->name, "%d channels, %d parts", (int)slice, (int)parts);
    return true;
}

/* ---- the specialisation ---- */

static const char *not_these(const zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, ZC_IN_SqueezeExcite_w1);
    for (int i = 1; i <= ZC_IN_SqueezeExcite_bias2; i++)
        if (zc_gen_in_type(g, i) != ZC_NONE && zc_gen_in_type(g, i) != x->dtype)
            return "weights or biases of another type";
    if (!zc_gen_static(w) || w->dims[0].k <= 0 || w->dims[1].k <= 0)
        return "weights whose shape only a run knows";
    return w->dims[1].k % EACH ? "channels that are no multiple of 8" : NULL;
}

static problem problem_of(zc_gen *g)
{
    static const int64_t bounds[] = {16, 33, 66};
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, ZC_IN_SqueezeExcite_w1);
    int64_t low, high, pixels = 1;
    zc_gen_size(g, x->dims, 1, bounds, ZC_COUNTOF(bounds), &low, &high);
    for (int d = 1; d + 1 < x->rank && pixels >= 0; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(pixels, x->dims[d].k, &pixels)) pixels = -1;
    return (problem){.images = high == INT64_MAX ? 2 * bounds[ZC_COUNTOF(bounds) - 1] : high,
                     .channels = w->dims[1].k,
                     .hidden = w->dims[0].k,
                     .pixels = pixels,
                     .sm_count = g->sm_count,
                     .clusters = g->arch == 90};
}

zc_status zc_gen_squeeze_excite(zc_gen *g)
{
    const zc_attrs_SqueezeExcite *a = ZC_ATTRS(g, SqueezeExcite);
    const char *why = not_these(g);
    if (why) return zc_gen_decline(g, "%s", why);
    problem p = problem_of(g);
    if (p.pixels > PIXELS_MOST) return zc_gen_decline(g, "images of too many pixels");
    ZC_TRY(zc_gen_candidates(g, "no tensor cores", candidate_of, &p, SHAPES));
    if (g->declined[0]) return ZC_OK;
    bool constant = zc_gen_in(g, ZC_IN_SqueezeExcite_w1)->kind == ZC_P_CONST &&
                    zc_gen_in(g, ZC_IN_SqueezeExcite_w2)->kind == ZC_P_CONST;
    zc_gen_type(g, "X", zc_gen_in_type(g, 0));
    zc_gen_define(g, "CHANNELS", "%d", (int)p.channels);
    zc_gen_define(g, "HIDDEN", "%d", (int)p.hidden);
    zc_gen_define(g, "PIXELS", "%d", p.pixels > 0 ? (int)p.pixels : 0);
    if (constant) zc_gen_define(g, "W_CONSTANT", "1");
    ZC_TRY(zc_gen_activation(g, "zc_activation", a->activation, a->activation_params.n,
                             a->activation_params.v, ZC_F32));
    ZC_TRY(zc_gen_activation(g, "zc_gate", a->gate, a->gate_params.n, a->gate_params.v, ZC_F32));
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_squeeze_excite(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *x = &l->in[0], *w = &l->in[ZC_IN_SqueezeExcite_w1];
    int64_t channels = x->dims[x->rank - 1], blocks = config[SLICES] * config[PARTS];
    int64_t pixels = zc_dims_span(x->dims, 1, x->rank - 1);
    struct zc_squeeze_excite_params p = {.x = x->data,
                                         .w1 = w->data,
                                         .bias1 = zc_launch_in(l, ZC_IN_SqueezeExcite_bias1),
                                         .w2 = l->in[ZC_IN_SqueezeExcite_w2].data,
                                         .bias2 = zc_launch_in(l, ZC_IN_SqueezeExcite_bias2),
                                         .y = l->out[0].data,
                                         .pixels = (int)pixels};
    if (channels != w->dims[1])
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "input and weights do not fit each other (got %lld channels, need %lld)",
                       (long long)channels, (long long)w->dims[1]);
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    if (x->dims[0] > INT32_MAX / blocks || pixels > PIXELS_MOST)
        return zc_fail(
            l->diag, ZC_ERR_LIMIT, l->subject,
            "too large for the kernel (got %lld images of %lld pixels, need at most %lld "
            "of %d)",
            (long long)x->dims[0], (long long)pixels, (long long)(INT32_MAX / blocks), PIXELS_MOST);
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    return zc_launch_configured(l, (zc_dim3){(uint32_t)(x->dims[0] * blocks), 1, 1}, &p, sizeof p);
}
