/* QLinearConvChain on Hopper (conv_chain_quant_sm90.cu): what is in shared memory, and what it is
 * held to take. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/conv_rim.h"
#include "op/nhwc.h"

/* The numbers of the configuration: lines of 128 bytes of each of the first's weights that there is
 * room for, and panels of a warpgroup. */
enum { STAGES, PANELS };
const char *const zc_config_conv_chain_quant_sm90[] = {"stages", "panels", NULL};

enum {
    GROUPS = 4, /* warpgroups that multiply */
    THREADS = (GROUPS + 1) * 128,
    DEEP = 32,  /* bytes of a product's step */
    BLOCK = 64, /* channels */
    TAPS = 9,
    STAGES_LEAST = 2,
    PANELS_LEAST = 2,
    PANELS_MOST = 3,
    COLUMN = 16 /* bytes of a column's factors, at most */
};

/* Boxes of all images; channels of x, of what the first convolution gives, and of the result. */
typedef struct problem {
    int64_t boxes, depth, hidden, columns;
    int sm_count;
} problem;

/* ---- the choice ---- */

/* Lines of 128 bytes of each of the first's weights. */
static int64_t lines_of(const problem *p)
{
    return zc_ceil_div(TAPS * p->depth, ZC_SM90_LINE);
}

/* Of the first's weights a line, of the second's all. */
static int64_t first_bytes(const problem *p)
{
    return p->hidden * ZC_SM90_LINE;
}

static int64_t second_bytes(const problem *p)
{
    return p->columns * p->hidden;
}

/* All but the first's weights. */
static int64_t smem_of(const problem *p, int panels)
{
    enum { BARRIERS = 512 };
    return second_bytes(p) +
           GROUPS * (ZC_RIM_ROOM + panels * ZC_SM90_PANEL + ZC_RIM_ROWS * p->hidden) +
           (p->columns + p->hidden) * COLUMN + BARRIERS;
}

/* Lines that there is room for beside so many panels. Wide sums leave no registers for code that
 * has all of them at once. */
static int64_t stages_of(const problem *p, int panels)
{
    enum { NARROW = 64 };
    const int64_t fit = (ZC_SM90_SMEM - smem_of(p, panels)) / first_bytes(p),
                  all = lines_of(p) - (p->hidden > NARROW);
    return fit < 0 ? 0 : fit < all ? fit : all;
}

/* More panels than the least where the first's weights stay beside them. */
static int panels_of(const problem *p)
{
    int panels = PANELS_MOST;
    while (panels > PANELS_LEAST && stages_of(p, panels) < lines_of(p)) panels--;
    return panels;
}

/* Microseconds beyond what a launch takes anyhow, by the rates of gemm_sm90.c and conv_rim.c, and
 * of results by those that both of ResNet-50's took on an H200 (24.7 us at 56 x 56, 23.0 at 28 x
 * 28). What a multiprocessor's warpgroups do at once is hidden
 * behind the longest of it, but for their first products; a warpgroup by itself makes a quarter of
 * the results that all make. */
static double us_of(const problem *p)
{
    const double clock = 1650, per_cycle = 4096 * 0.8, finish = 7.5, l2 = 35, fill = 1000;
    const double rows = ZC_RIM_ROWS, hidden = (double)p->hidden, columns = (double)p->columns;
    const double first = rows * hidden * TAPS * (double)p->depth / per_cycle;
    const double second = rows * columns * hidden / per_cycle;
    const double results = rows * (columns + hidden) / finish;
    const double each = (double)zc_ceil_div(p->boxes, p->sm_count); /* of a multiprocessor */
    const double turns = ceil(each / GROUPS), weights = (double)(lines_of(p) * first_bytes(p));
    const bool stays = stages_of(p, panels_of(p)) == lines_of(p);
    const double begin = first * fmin(each, GROUPS);
    const double copies = each * (ZC_RIM_BYTES + rows * columns) + (stays ? 0 : turns * weights);
    const double products = each * (first + second) - begin;
    const double alone = turns * (first + second + GROUPS * results) - first;
    const double rest = fmax(fmax(products, each * results), fmax(copies / l2, alone));
    const double once = (double)second_bytes(p) + (stays ? weights : 0);
    return (fill + once / l2 + begin + rest) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    const int panels = panels_of(p);
    const int64_t stages = stages_of(p, panels);
    (void)number;
    if (stages < STAGES_LEAST) return false;
    *out = (zc_candidate){.config = {[STAGES] = stages, [PANELS] = panels},
                          .threads = THREADS,
                          .smem = (uint32_t)(smem_of(p, panels) + stages * first_bytes(p)),
                          .cluster = 1,
                          .us = us_of(p)};
    zc_snprintf(out->name, sizeof out->name, "%d stages, %d panels", (int)stages, panels);
    return true;
}

/* Do channels lie in lines as the template has them? */
static bool channels_fit(const problem *p)
{
    return p->depth > 0 && p->depth <= ZC_SM90_LINE && p->depth % DEEP == 0 &&
           (p->hidden == BLOCK || p->hidden == 2 * BLOCK) && p->columns > 0 &&
           p->columns % ZC_SM90_LINE == 0;
}

double zc_conv_chain_quant_us(const zc_conv_work *first, const zc_conv_work *second)
{
    const int64_t dims[] = {first->images, first->sides[0], first->sides[1]};
    const zc_tensor w = {.rank = 4, .dims = {first->out, first->kernel[0], first->kernel[1]}};
    const bool rim = first->axes == 2 && zc_conv_has_rim(&first->window, &w);
    const problem p = {.boxes = rim ? zc_rim_boxes(dims) : 0,
                       .depth = first->in,
                       .hidden = first->out,
                       .columns = second->out,
                       .sm_count = zc_usual_processors(90)};
    return p.boxes && channels_fit(&p) ? zc_candidates_us(candidate_of, &p, 1) : INFINITY;
}

int64_t zc_conv_chain_depth(const zc_conv_work *first)
{
    const problem p = {.depth = first->in};
    return lines_of(&p) * ZC_SM90_LINE;
}

/* ---- the specialisation ---- */

/* Why it is none of these chains; NULL: it is one. */
static const char *not_these(const zc_gen *g, const zc_quant_roles *a, const zc_quant_roles *b)
{
    if (!zc_gen_static(zc_gen_in(g, a->in[ZC_GQ_B])) ||
        !zc_gen_static(zc_gen_in(g, b->in[ZC_GQ_B])) || !zc_gen_static(zc_gen_out(g, 0)))
        return "sides or weights that only a run knows";
    return zc_gen_conv_not_two(g, a, b);
}

/* The sum of bytes behind it, where there is one; may decline other work. */
static zc_status put_sum(zc_gen *g, int y_zero)
{
    const char *text = zc_op_epilogue(g->info, g->attrs);
    const int first = zc_op_epilogue_first(g->info, g->attrs);
    if (!text) return ZC_OK;
    if ((int)g->step->nin != first + 1 || zc_gen_epilogue_tile(g, 8) != 0)
        return zc_gen_decline(g, "work on its result that is no sum of bytes");
    return zc_gen_sum_of_bytes(g, text, y_zero, first);
}

static void put_sizes(zc_gen *g, const problem *p, const zc_quant_roles *a, const zc_quant_roles *b)
{
    zc_gen_sm90_factors(g, zc_gen_in_type(g, a->in[ZC_GQ_A]), zc_gen_in_type(g, a->in[ZC_GQ_B]));
    zc_gen_define(g, "DEPTH", "%d", (int)p->depth);
    zc_gen_define(g, "HIDDEN", "%d", (int)p->hidden);
    zc_gen_define(g, "COLUMNS", "%d", (int)p->columns);
    if (zc_gen_in(g, a->in[ZC_GQ_B])->kind == ZC_P_CONST &&
        zc_gen_in(g, b->in[ZC_GQ_B])->kind == ZC_P_CONST)
        zc_gen_define(g, "B_CONSTANT", "1");
}

zc_status zc_gen_conv_chain_quant_sm90(zc_gen *g)
{
    const zc_quant_roles a = zc_quant_roles_of(g->step->op);
    zc_quant_roles b;
    zc_window_attrs window;
    zc_tensor w, v, y;
    int64_t group;
    zc_quant_second_of(g->step->op, &b);
    const char *why = not_these(g, &a, &b);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_gen_tensor(zc_gen_in(g, a.in[ZC_GQ_B]), &w);
    zc_gen_tensor(zc_gen_in(g, b.in[ZC_GQ_B]), &v);
    zc_gen_tensor(zc_gen_out(g, 0), &y);
    zc_window_attrs_of(g->step->op, g->attrs, &window, &group);
    if (!zc_conv_has_rim(&window, &w))
        return zc_gen_decline(g, "windows other than 3 x 3 around each pixel");
    const problem p = {.boxes = zc_rim_boxes(y.dims),
                       .depth = w.dims[3],
                       .hidden = w.dims[0],
                       .columns = v.dims[0],
                       .sm_count = g->sm_count};
    if (!channels_fit(&p)) return zc_gen_decline(g, "channels that are not in blocks of 64");
    ZC_TRY(put_sum(g, b.y_zero));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, "wgmma", zc_gen_in_type(g, 0));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, 1));
    if (g->declined[0]) return ZC_OK;
    const zc_sm90_problem sizes = {.n = p.columns, .steps = lines_of(&p)};
    put_sizes(g, &p, &a, &b);
    return zc_gen_quant_sm90_spec(g, &sizes);
}

/* ---- the launch ---- */

static zc_status check(zc_launch *l, const zc_tensor *w, const zc_tensor *v)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    char t[128], u[128];
    if (x->rank == 4 && y->rank == 4 && x->dims[3] == w->dims[3] && v->dims[3] == w->dims[0] &&
        y->dims[3] == v->dims[0] && memcmp(x->dims, y->dims, 3 * sizeof *x->dims) == 0)
        return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and result do not fit the weights (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(y, u, sizeof u));
}

static zc_status put_maps(zc_launch *l, const zc_tensor *w, struct zc_gemm_sm90_params *p)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    const int64_t n = y->dims[3], row = zc_dims_span(w->dims, 1, w->rank);
    const zc_tensor_box a =
        zc_rim_box(x->data, x->dtype, x->dims[3], zc_launch_in_pitch(l, 0), x, true);
    const zc_tensor_box to = zc_rim_box(y->data, y->dtype, n, zc_launch_out_pitch(l, 0), y, false);
    const zc_tensor_box other =
        zc_rim_box(p->g.fused.in[0], y->dtype, n, p->g.fused.pitch[0], y, false);
    zc_tensor_box b = zc_sm90_box(w->data, w->dtype, row, w->dims[0], 1, row, 0);
    zc_sm90_deal(&b, (int)w->dims[0], ZC_SM90_CROSSED_BY);
    ZC_TRY(zc_launch_tensor_map(l, &a, &p->a));
    ZC_TRY(zc_launch_tensor_map(l, &b, &p->b));
    ZC_TRY(zc_launch_tensor_map(l, &to, &p->y));
    return p->g.fused.in[0] ? zc_launch_tensor_map(l, &other, &p->tile) : ZC_OK;
}

zc_status zc_launch_conv_chain_quant_sm90(zc_launch *l)
{
    const zc_quant_roles first = zc_quant_roles_of(l->op);
    const zc_tensor *w = &l->in[first.in[ZC_GQ_B]], *y = &l->out[0];
    struct zc_gemm_quant_sm90_params p;
    zc_quant_roles second;
    memset(&p, 0, sizeof p);
    zc_quant_second_of(l->op, &second);
    ZC_TRY(check(l, w, &l->in[second.in[ZC_GQ_B]]));
    const int64_t boxes = zc_rim_boxes(y->dims);
    if (boxes == 0) return ZC_OK;
    if (boxes > INT32_MAX / ZC_RIM_ROWS)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large (got %lld boxes)",
                       (long long)boxes);
    p.product.order.down = (int)boxes;
    p.product.window.out[1] = (int)y->dims[1];
    zc_rim_sides(y->dims, &p.product);
    ZC_TRY(zc_launch_conv_quant(l, &second, &p.quant));
    ZC_TRY(zc_launch_conv_quant_second(l, &first, &p.second));
    ZC_TRY(zc_launch_epilogue(l, &p.product.g.fused));
    ZC_TRY(put_maps(l, w, &p.product));
    const zc_dim3 grid = {(uint32_t)(boxes < l->sm_count ? boxes : l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
