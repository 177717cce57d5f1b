/* Convolutions of each channel by itself, f16 and bf16, channels last. */
#include <math.h>
#include <string.h>

#include "abi/conv.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/window.h"

enum { EACH, RUN, GROUPS, ACROSS, DOWN, REPEAT };
const char *const zc_config_conv_depth[] = {"each", "run",    "groups", "across",
                                            "down", "repeat", NULL};

enum {
    PIECE = 8,       /* channels whose weights are read at once */
    CHUNK = 64,      /* channels of a block, at most */
    BLOCK = 256,     /* its threads, at most */
    TAPS_MOST = 128, /* whose weights lie in shared memory */
    AT_ONCE = 8,     /* taps of a line whose weights a thread holds, but where there are not many
                        more */
    SPAN_MOST = 32,  /* pixels that a run sees of them */
    DEPTH_COUNT = 11
};

/* ---- the specialisation ---- */

typedef struct depth_problem {
    int64_t channels, lines, across; /* of the result: lines of all images; pixels of one */
    int64_t rows, down;              /* lines of taps; lines of a plane */
    int64_t taps, held, step, gap;   /* across; held: at once */
    int sm_count;
} depth_problem;

typedef struct depth {
    int64_t each, run, groups, across, down, repeat, span;
} depth;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Threads along the channels: they share a block's weights, in whole pieces. */
static int64_t groups_of(int64_t channels, int64_t each)
{
    int64_t n = channels / each, groups = CHUNK / each;
    while (groups > 1 && (n % groups || groups * each % PIECE)) groups--;
    return groups * each % PIECE ? 0 : groups;
}

/* The number-th way; groups 0: it does not fit. */
static depth depth_of(const depth_problem *p, int number)
{
    static const int64_t each[DEPTH_COUNT] = {8, 8, 8, 4, 4, 4, 4, 2, 2, 2, 2},
                         run[DEPTH_COUNT] = {1, 2, 4, 1, 2, 4, 7, 1, 2, 4, 7};
    depth d = {.each = each[number], .run = run[number], .repeat = 1};
    d.span = (d.run - 1) * p->step + (p->held - 1) * p->gap + 1;
    if (d.span > SPAN_MOST || p->channels % d.each) return d;
    d.groups = groups_of(p->channels, d.each);
    if (!d.groups) return d;
    d.across = least(zc_ceil_div(p->across, d.run), BLOCK / d.groups);
    d.down = least(BLOCK / (d.groups * d.across), p->down);
    int64_t tiles = p->channels / (d.groups * d.each) * zc_ceil_div(p->across, d.across * d.run);
    while (d.repeat < 4 && d.down * d.repeat * 2 <= p->down &&
           tiles * zc_ceil_div(p->lines, d.down * d.repeat * 2) >= 8 * p->sm_count)
        d.repeat *= 2;
    return d;
}

/* Microseconds: instructions of a thread by the warps that share a scheduler; two of them, or more,
 * hide each other's waiting. */
static double depth_us(const depth_problem *p, const depth *d)
{
    const double clock = 1650, start = 1500, store = 60, schedulers = 4;
    double each = (double)d->each, span = (double)d->span, taps = (double)p->taps;
    double reads = span * (double)zc_ceil_div(p->taps, p->held);
    double line = reads * (each + 3) + taps * (double)d->run * each + taps * each / 4;
    double one = (double)p->rows * line + store;
    double threads =
        (double)p->lines * (double)zc_ceil_div(p->across, d->run) * ((double)p->channels / each);
    double warps = threads / 32 / (schedulers * p->sm_count);
    return (start + one * (warps < 2 ? 2 : warps)) / clock;
}

static bool depth_candidate(const void *of, int number, zc_candidate *out)
{
    const depth_problem *p = of;
    depth d = depth_of(p, number);
    if (!d.groups) return false;
    *out = (zc_candidate){.config = {[EACH] = d.each,
                                     [RUN] = d.run,
                                     [GROUPS] = d.groups,
                                     [ACROSS] = d.across,
                                     [DOWN] = d.down,
                                     [REPEAT] = d.repeat},
                          .threads = (uint32_t)(d.groups * d.across * d.down),
                          .cluster = 1,
                          .us = depth_us(p, &d)};
    zc_snprintf(out->name, sizeof out->name, "%d channels x %d pixels", (int)d.each, (int)d.run);
    return true;
}

static const char *not_these(const zc_gen *g, const zc_attrs_ConvNhwc *at)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    const zc_pvalue *w = zc_gen_in(g, 1);
    if (zc_gen_in_type(g, 1) != dtype || (bias != ZC_NONE && bias != dtype))
        return "weights or bias of another type";
    if (!at->taps_first || !zc_gen_static(w)) return "weights whose shape only a run knows";
    int64_t taps = 1;
    for (int d = 1; d + 1 < w->rank; d++)
        if (w->dims[d].k > TAPS_MOST || (taps *= w->dims[d].k) > TAPS_MOST) return "large windows";
    if (w->dims[w->rank - 1].k != 1 || at->group != w->dims[0].k) return "no channel by itself";
    if (at->group % PIECE) return "channels that are no multiple of 8";
    if (*at->activation || zc_gen_in_type(g, 3) != ZC_NONE) return "an activation of its own";
    return NULL;
}

/* Of windows over so many axes; its image is not known yet. */
static depth_problem problem_of(const zc_window_attrs *a, int axes, const int64_t *kernel,
                                int sm_count)
{
    const int64_t taps = kernel[axes - 1];
    return (depth_problem){.rows = zc_dims_span(kernel, 0, axes - 1),
                           .taps = taps,
                           .held = taps > AT_ONCE + 1 ? AT_ONCE : taps,
                           .step = zc_window_stride(a, axes - 1),
                           .gap = zc_window_dilation(a, axes - 1),
                           .sm_count = sm_count};
}

/* Lines of the result: of the most pixels of the range that is asked for. */
static void sizes_of(zc_gen *g, const zc_window_attrs *a, depth_problem *p)
{
    static const int64_t bounds[] = {1024, 4096, 32768}; /* as conv_sm90.c's */
    enum { USUAL = 56 };
    const zc_pvalue *y = zc_gen_out(g, 0), *w = zc_gen_in(g, 1);
    const int axes = y->rank - 2;
    const int64_t across = zc_gen_const_dim(y, axes);
    int64_t low, high, kernel[ZC_WINDOW_DIMS];
    int64_t down = axes > 1 ? zc_gen_const_dim(y, axes - 1) : 1;
    for (int d = 0; d < axes; d++) kernel[d] = w->dims[1 + d].k;
    zc_gen_size(g, y->dims, y->rank - 1, bounds, ZC_COUNTOF(bounds), &low, &high);
    *p = problem_of(a, axes, kernel, g->sm_count);
    p->channels = w->dims[0].k;
    p->across = across > 0 ? across : USUAL;
    p->down = down > 0 ? down : USUAL;
    if (high == INT64_MAX) high = 4 * bounds[ZC_COUNTOF(bounds) - 1];
    p->lines = zc_ceil_div(high, p->across);
}

double zc_conv_depth_us(const zc_conv_work *w)
{
    const int axes = w->axes;
    const int64_t across = w->sides[axes - 1], pixels = zc_conv_work_pixels(w);
    if (w->in != 1 || w->out != 1 || w->groups % PIECE || across < 1 ||
        zc_dims_span(w->kernel, 0, axes) > TAPS_MOST)
        return INFINITY;
    depth_problem p = problem_of(&w->window, axes, w->kernel, zc_usual_processors(90));
    p.channels = w->groups;
    p.across = across;
    p.down = axes > 1 ? w->sides[axes - 2] : 1;
    p.lines = pixels / across;
    return zc_candidates_us(depth_candidate, &p, DEPTH_COUNT);
}

static void put_window(zc_gen *g, const zc_window_attrs *a)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1), *y = zc_gen_out(g, 0);
    zc_gen_window_dims d = {.axes = x->rank - 2};
    for (int i = 0; i < d.axes; i++) {
        d.in[i] = x->dims[1 + i];
        d.out[i] = y->dims[1 + i];
        d.kernel[i] = w->dims[1 + i];
    }
    zc_gen_window(g, a, &d);
}

zc_status zc_gen_conv_depth(zc_gen *g)
{
    const zc_attrs_ConvNhwc *at = ZC_ATTRS(g, ConvNhwc);
    const char *why = not_these(g, at);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_window_attrs a;
    int64_t group;
    depth_problem p;
    zc_window_attrs_of(g->step->op, at, &a, &group);
    if (!zc_gen_window_fits(g, &a, zc_gen_in(g, 0)->rank - 2)) return ZC_OK;
    sizes_of(g, &a, &p);
    ZC_TRY(zc_gen_candidates(g, "no tensor cores", depth_candidate, &p, DEPTH_COUNT));
    if (g->declined[0]) return ZC_OK;
    zc_gen_type(g, "X", zc_gen_out_type(g, 0));
    zc_gen_define(g, "HAS_BIAS", "%d", zc_gen_in_type(g, 2) != ZC_NONE);
    zc_gen_define(g, "channels", "%d", (int)p.channels);
    zc_gen_define(g, "HELD", "%d", (int)p.held);
    if (zc_gen_in(g, 1)->kind == ZC_P_CONST) zc_gen_define(g, "W_CONSTANT", "1");
    put_window(g, &a);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    zc_gen_epilogue_pitches(g);
    g->pitched |= ZC_PITCHED_INPUT << 0 | ZC_PITCHED_RESULTS;
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_conv_depth(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *x = &l->in[0], *w = &l->in[1], *y = &l->out[0];
    struct zc_conv_params p = {.x = x->data,
                               .w = w->data,
                               .bias = zc_launch_in(l, 2),
                               .y = y->data,
                               .x_pitch = (int)zc_launch_in_pitch(l, 0),
                               .y_pitch = (int)zc_launch_out_pitch(l, 0)};
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    const int last = x->rank - 1, axes = x->rank - 2;
    if (axes < 1 || y->rank != x->rank || w->rank != x->rank || x->dims[last] != w->dims[0] ||
        y->dims[last] != w->dims[0])
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "input and weights do not fit each other (got %lld channels, need %lld)",
                       (long long)x->dims[last], (long long)w->dims[0]);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, axes, x->dims + 1, y->dims + 1, w->dims + 1, &window);
    ZC_TRY(zc_launch_window(l, &window, &p.window));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    const int *out = p.window.out;
    int64_t planes = y->dims[0] * out[0];
    int64_t blocks = zc_ceil_div(out[1], config[DOWN] * config[REPEAT]) *
                     zc_ceil_div(out[2], config[ACROSS] * config[RUN]) *
                     (y->dims[last] / (config[GROUPS] * config[EACH]));
    if (blocks > INT32_MAX / planes)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    return zc_launch_configured(l, (zc_dim3){(uint32_t)(blocks * planes), 1, 1}, &p, sizeof p);
}
