/* Convolutions of each channel by itself, channels last: of f16 and bf16, and of bytes. */
#include <math.h>
#include <string.h>

#include "abi/conv.h"
#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/matmul.h"
#include "kernels/window.h"
#include "op/nhwc.h"

enum { EACH, RUN, GROUPS, ACROSS, DOWN, REPEAT };
#define CONFIG "each", "run", "groups", "across", "down", "repeat", NULL
const char *const zc_config_conv_depth[] = {CONFIG};
const char *const zc_config_conv_depth_quant[] = {CONFIG};

enum {
    PIECE = 8,  /* channels whose weights are read at once */
    CHUNK = 64, /* channels of a block, at most; of bytes */
    CHUNK_BYTES = 256,
    BLOCK = 256,     /* its threads, at most */
    TAPS_MOST = 128, /* whose weights lie in shared memory */
    AT_ONCE = 8,     /* taps of a line whose weights a thread holds, but where there are not many
                        more */
    SPAN_MOST = 32,  /* pixels that a run sees of them */
    DEPTH_COUNT = 11,
    WORD = 4,         /* bytes: channels of a thread, taps of a dot product */
    WORDS_MOST = 128, /* of taps of each channel and window that a thread keeps */
    BYTES_COUNT = 12
};

/* ---- the specialisation ---- */

typedef struct depth_problem {
    int64_t channels, lines, across; /* of the result: lines of all images; pixels of one */
    int64_t rows, down;              /* lines of taps; lines of a plane */
    int64_t taps, held, step, gap;   /* across; held: at once */
    int64_t slides; /* lines from a window to the one below it, where they share lines; 0: none */
    int sm_count;
} depth_problem;

typedef struct depth {
    int64_t each, run, groups, across, down, repeat, span;
} depth;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Threads along the channels: they share a block's weights, in whole pieces of channels. */
static int64_t groups_of(int64_t channels, int64_t each, int64_t piece, int64_t most)
{
    int64_t n = channels / each, groups = most / each;
    while (groups > 1 && (n % groups || groups * each % piece)) groups--;
    return groups * each % piece ? 0 : groups;
}

static void put_block(const depth_problem *p, depth *d)
{
    const int64_t runs = zc_ceil_div(p->across, d->run);
    d->across = zc_ceil_div(runs, zc_ceil_div(runs, BLOCK / d->groups));
    d->down = least(BLOCK / (d->groups * d->across), zc_ceil_div(p->down, d->repeat));
}

/* The number-th way; groups 0: it does not fit. */
static depth depth_of(const depth_problem *p, int number)
{
    static const int64_t each[DEPTH_COUNT] = {8, 8, 8, 4, 4, 4, 4, 2, 2, 2, 2},
                         run[DEPTH_COUNT] = {1, 2, 4, 1, 2, 4, 7, 1, 2, 4, 7};
    depth d = {.each = each[number], .run = run[number], .repeat = 1};
    d.span = (d.run - 1) * p->step + (p->held - 1) * p->gap + 1;
    if (d.span > SPAN_MOST || p->channels % d.each) return d;
    d.groups = groups_of(p->channels, d.each, PIECE, CHUNK);
    if (!d.groups) return d;
    put_block(p, &d);
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

static void put_candidate(const depth *d, double us, zc_candidate *out)
{
    *out = (zc_candidate){.config = {[EACH] = d->each,
                                     [RUN] = d->run,
                                     [GROUPS] = d->groups,
                                     [ACROSS] = d->across,
                                     [DOWN] = d->down,
                                     [REPEAT] = d->repeat},
                          .threads = (uint32_t)(d->groups * d->across * d->down),
                          .cluster = 1,
                          .us = us};
}

static bool depth_candidate(const void *of, int number, zc_candidate *out)
{
    const depth_problem *p = of;
    depth d = depth_of(p, number);
    if (!d.groups) return false;
    put_candidate(&d, depth_us(p, &d), out);
    zc_snprintf(out->name, sizeof out->name, "%d channels x %d pixels", (int)d.each, (int)d.run);
    return true;
}

/* ---- of bytes ---- */

/* Dot products of a line of a window's taps. */
static int64_t words_of(const depth_problem *p)
{
    return zc_ceil_div(p->taps, WORD);
}

/* As depth_of; repeat: lines of a thread. */
static depth bytes_of(const depth_problem *p, int number)
{
    static const int64_t run[BYTES_COUNT] = {4, 4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1},
                         lines[BYTES_COUNT] = {4, 8, 2, 1, 4, 8, 2, 1, 4, 8, 2, 1};
    depth d = {.each = WORD, .run = run[number], .repeat = lines[number]};
    d.span = (d.run - 1) * p->step + (p->taps - 1) * p->gap + 1;
    if (d.span > SPAN_MOST || d.run * words_of(p) * WORD * p->rows > WORDS_MOST) return d;
    d.groups = groups_of(p->channels, d.each, WORD, CHUNK_BYTES);
    put_block(p, &d);
    return d;
}

/* Instructions of a thread, of which dot products are issued every other cycle. */
static double bytes_work(const depth_problem *p, const depth *d)
{
    const double read = 5, turn = 8, result = 6; /* of a pixel, a word of four channels, a byte */
    const double words = (double)words_of(p), run = (double)d->run, own = (double)d->repeat;
    const double rows = (double)p->rows;
    const double lines = p->slides > 0 ? rows + (own - 1) * (double)p->slides : rows * own;
    return lines * ((double)d->span * read + run * words * turn) +
           own * run * WORD * (words * rows * 2 + result);
}

/* Microseconds: a block makes its factors, then each instruction takes its turn and about as long
 * again; to a tenth of what an H200 took, but for single pixels or lines (bench/NOTES.md). */
static double bytes_us(const depth_problem *p, const depth *d)
{
    const double clock = 1650, start = 1500, begin = 350, waits = 1.8, schedulers = 4, alone = 1.5;
    const int64_t tiles =
        p->channels / (d->groups * WORD) * zc_ceil_div(p->across, d->across * d->run) *
        zc_ceil_div(p->lines * zc_ceil_div(p->down, d->down * d->repeat), p->down);
    const double block = (double)(d->groups * d->across * d->down) / 32 / schedulers;
    const double warps = block * fmax((double)tiles / p->sm_count, 1);
    return (start + (begin + waits * bytes_work(p, d)) * fmax(warps, alone)) / clock;
}

static bool bytes_candidate(const void *of, int number, zc_candidate *out)
{
    const depth_problem *p = of;
    depth d = bytes_of(p, number);
    if (!d.groups) return false;
    put_candidate(&d, bytes_us(p, &d), out);
    zc_snprintf(out->name, sizeof out->name, "%d pixels, %d lines", (int)d.run, (int)d.repeat);
    return true;
}

/* ---- the step ---- */

/* Of windows over so many axes, of as many groups, channels in pieces; NULL: they fit. */
static const char *no_windows(const zc_pvalue *w, int64_t group, int64_t piece)
{
    if (!zc_gen_static(w)) return "weights whose shape only a run knows";
    int64_t taps = 1;
    for (int d = 1; d + 1 < w->rank; d++)
        if (w->dims[d].k > TAPS_MOST || (taps *= w->dims[d].k) > TAPS_MOST) return "large windows";
    if (w->dims[w->rank - 1].k != 1 || group != w->dims[0].k) return "no channel by itself";
    return group % piece ? "channels that are no whole pieces" : NULL;
}

static const char *not_these(const zc_gen *g, const zc_attrs_ConvNhwc *at)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, 2);
    if (zc_gen_in_type(g, 1) != dtype || (bias != ZC_NONE && bias != dtype))
        return "weights or bias of another type";
    if (!at->taps_first) return "weights whose taps do not lie side by side";
    if (*at->activation || zc_gen_in_type(g, 3) != ZC_NONE) return "an activation of its own";
    return no_windows(zc_gen_in(g, 1), at->group, PIECE);
}

static const char *not_these_bytes(const zc_gen *g, const zc_attrs_QLinearConv *at)
{
    const zc_pvalue *w = zc_gen_in(g, ZC_IN_QLinearConv_w);
    if (!at->channels_last) return "channels first";
    if (!at->taps_first) return "weights whose taps do not lie side by side";
    if (zc_conv_pools(g->step->op, g->attrs)) return "its pooling";
    if (zc_dtype_bits(zc_gen_out_type(g, 0)) != 8) return "results that are no bytes";
    if (w->rank > 4) return "three axes";
    return no_windows(w, at->group, WORD);
}

/* Of windows over so many axes; its image is not known yet. */
static depth_problem problem_of(const zc_window_attrs *a, int axes, const int64_t *kernel,
                                int sm_count)
{
    const int64_t taps = kernel[axes - 1], rows = zc_dims_span(kernel, 0, axes - 1);
    const int64_t down = axes > 1 ? zc_window_stride(a, axes - 2) : 0;
    return (depth_problem){
        .rows = rows,
        .slides = down < rows && axes > 1 && zc_window_dilation(a, axes - 2) == 1 ? down : 0,
        .taps = taps,
        .held = taps > AT_ONCE + 1 ? AT_ONCE : taps,
        .step = zc_window_stride(a, axes - 1),
        .gap = zc_window_dilation(a, axes - 1),
        .sm_count = sm_count};
}

/* Lines of the result: of the most pixels of the range that is asked for. */
static void sizes_of(zc_gen *g, const zc_window_attrs *a, int weights, depth_problem *p)
{
    static const int64_t bounds[] = {1024, 4096, 32768}; /* as conv_sm90.c's */
    enum { USUAL = 56 };
    const zc_pvalue *y = zc_gen_out(g, 0), *w = zc_gen_in(g, weights);
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

/* What either kernel is held to take of the work, its channels in pieces. */
static double work_us(const zc_conv_work *w, int64_t piece, zc_candidate_fn candidate, int count)
{
    const int axes = w->axes;
    const int64_t across = w->sides[axes - 1], pixels = zc_conv_work_pixels(w);
    if (w->in != 1 || w->out != 1 || w->groups % piece || across < 1 ||
        zc_dims_span(w->kernel, 0, axes) > TAPS_MOST)
        return INFINITY;
    depth_problem p = problem_of(&w->window, axes, w->kernel, zc_usual_processors(90));
    p.channels = w->groups;
    p.across = across;
    p.down = axes > 1 ? w->sides[axes - 2] : 1;
    p.lines = pixels / across;
    return zc_candidates_us(candidate, &p, count);
}

double zc_conv_depth_us(const zc_conv_work *w)
{
    return work_us(w, PIECE, depth_candidate, DEPTH_COUNT);
}

double zc_conv_depth_quant_us(const zc_conv_work *w)
{
    return w->axes > 2 ? INFINITY : work_us(w, WORD, bytes_candidate, BYTES_COUNT);
}

static void put_window(zc_gen *g, const zc_window_attrs *a, int weights)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, weights), *y = zc_gen_out(g, 0);
    zc_gen_window_dims d = {.axes = x->rank - 2};
    for (int i = 0; i < d.axes; i++) {
        d.in[i] = x->dims[1 + i];
        d.out[i] = y->dims[1 + i];
        d.kernel[i] = w->dims[1 + i];
    }
    zc_gen_window(g, a, &d);
}

/* The candidate, and what both headers have; may decline. */
static zc_status put_form(zc_gen *g, int weights, zc_candidate_fn candidate, int count,
                          depth_problem *p)
{
    zc_window_attrs a;
    int64_t group;
    zc_window_attrs_of(g->step->op, g->attrs, &a, &group);
    if (!zc_gen_window_fits(g, &a, zc_gen_in(g, 0)->rank - 2)) return ZC_OK;
    sizes_of(g, &a, weights, p);
    ZC_TRY(zc_gen_candidates(g, "no tensor cores", candidate, p, count));
    if (g->declined[0]) return ZC_OK;
    zc_gen_define(g, "channels", "%d", (int)p->channels);
    if (zc_gen_in(g, weights)->kind == ZC_P_CONST) zc_gen_define(g, "W_CONSTANT", "1");
    put_window(g, &a, weights);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

zc_status zc_gen_conv_depth(zc_gen *g)
{
    const char *why = not_these(g, ZC_ATTRS(g, ConvNhwc));
    if (why) return zc_gen_decline(g, "%s", why);
    depth_problem p;
    ZC_TRY(put_form(g, 1, depth_candidate, DEPTH_COUNT, &p));
    if (g->declined[0]) return ZC_OK;
    zc_gen_type(g, "X", zc_gen_out_type(g, 0));
    zc_gen_define(g, "HAS_BIAS", "%d", zc_gen_in_type(g, 2) != ZC_NONE);
    zc_gen_define(g, "HELD", "%d", (int)p.held);
    zc_gen_epilogue_pitches(g);
    g->pitched |= ZC_PITCHED_INPUT << 0 | ZC_PITCHED_RESULTS;
    return ZC_OK;
}

zc_status zc_gen_conv_depth_quant(zc_gen *g)
{
    const char *why = not_these_bytes(g, ZC_ATTRS(g, QLinearConv));
    if (why) return zc_gen_decline(g, "%s", why);
    depth_problem p;
    ZC_TRY(put_form(g, ZC_IN_QLinearConv_w, bytes_candidate, BYTES_COUNT, &p));
    if (g->declined[0]) return ZC_OK;
    zc_gen_small_scales(g);
    zc_gen_quant_channels(g, p.rows * p.taps);
    return ZC_OK;
}

/* ---- the launch ---- */

/* w: the weights' shape. */
static zc_status launch(zc_launch *l, const zc_tensor *w, struct zc_conv_params *p)
{
    const int64_t *config = l->kernel->config;
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
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
    ZC_TRY(zc_launch_window(l, &window, &p->window));
    ZC_TRY(zc_launch_epilogue(l, &p->fused));
    const int *out = p->window.out;
    int64_t planes = y->dims[0] * out[0];
    int64_t blocks = zc_ceil_div(out[1], config[DOWN] * config[REPEAT]) *
                     zc_ceil_div(out[2], config[ACROSS] * config[RUN]) *
                     (y->dims[last] / (config[GROUPS] * config[EACH]));
    if (blocks > INT32_MAX / planes)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large for the kernel");
    return zc_launch_configured(l, (zc_dim3){(uint32_t)(blocks * planes), 1, 1}, p, sizeof *p);
}

zc_status zc_launch_conv_depth(zc_launch *l)
{
    struct zc_conv_params p = {.x = l->in[0].data,
                               .w = l->in[1].data,
                               .bias = zc_launch_in(l, 2),
                               .y = l->out[0].data,
                               .x_pitch = (int)zc_launch_in_pitch(l, 0),
                               .y_pitch = (int)zc_launch_out_pitch(l, 0)};
    return launch(l, &l->in[1], &p);
}

zc_status zc_launch_conv_depth_quant(zc_launch *l)
{
    const zc_tensor *in = l->in, *w = &in[ZC_IN_QLinearConv_w];
    struct zc_conv_params p = {.x = in[0].data,
                               .w = w->data,
                               .bias = zc_launch_in(l, ZC_IN_QLinearConv_bias),
                               .x_zero = in[ZC_IN_QLinearConv_x_zero].data,
                               .w_zero = in[ZC_IN_QLinearConv_w_zero].data,
                               .x_scale = in[ZC_IN_QLinearConv_x_scale].data,
                               .w_scale = in[ZC_IN_QLinearConv_w_scale].data,
                               .y_scale = in[ZC_IN_QLinearConv_y_scale].data,
                               .y_zero = in[ZC_IN_QLinearConv_y_zero].data,
                               .y = l->out[0].data};
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_zero, w->dims[0], &p.w_zero_step));
    ZC_TRY(zc_launch_step(l, ZC_IN_QLinearConv_w_scale, w->dims[0], &p.w_scale_step));
    return launch(l, w, &p);
}
