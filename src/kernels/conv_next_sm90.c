/* QLinearConvNext on Hopper (conv_next_quant_sm90.cu): what is in shared memory, and what it is
 * held to take. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "kernels/candidates.h"
#include "kernels/choose.h"
#include "kernels/conv_cost.h"
#include "kernels/conv_patches.h"

/* The number of the configuration: panels of a warpgroup. */
enum { PANELS };
const char *const zc_config_conv_next_quant_sm90[] = {"panels", NULL};

enum {
    GROUPS = 3, /* warpgroups */
    THREADS = GROUPS * 128,
    ROWS = 64,        /* of a tile */
    PIECE = 16,       /* channels that the copy engine can address */
    DEEP = 32,        /* bytes of a product's step */
    COLUMN = 16,      /* bytes of a column's factors, at most */
    PANELS_LEAST = 2, /* powers of two */
    PANELS_MOST = 4
};

/* Pixels of all images; channels of x, and of both results. */
typedef struct problem {
    int64_t pixels, depth, columns, next;
    int sm_count;
} problem;

/* ---- the choice ---- */

/* Panels of the first result. */
static int64_t panels_of(const problem *p)
{
    return p->columns / ZC_SM90_LINE;
}

/* Weights of both that belong to one. */
static int64_t weights_of(const problem *p)
{
    return (ZC_SM90_LINE + p->next) * ZC_SM90_LINE;
}

static int64_t smem_of(const problem *p, int64_t panels)
{
    enum { BARRIERS = 512 };
    return panels_of(p) * weights_of(p) + GROUPS * (1 + panels) * ZC_SM90_PANEL +
           (p->columns + p->next) * COLUMN + BARRIERS;
}

/* Microseconds beyond what a launch takes anyhow, as conv_chain_sm90.c counts them: of a
 * multiprocessor's work the longest, which for a warpgroup alone is all of it, and what is in front
 * of the first results. */
static double us_of(const problem *p)
{
    const double clock = 1650, per_cycle = 4096 * 0.8, finish = 7.5, l2 = 35, fill = 1000;
    const double columns = (double)p->columns, next = (double)p->next;
    const double depth = (double)(zc_ceil_div(p->depth, DEEP) * DEEP);
    const double products = ROWS * columns * (depth + next) / per_cycle;
    const double results = ROWS * (columns + next) / finish;
    const double weights = (double)weights_of(p);
    const double each = (double)zc_ceil_div(zc_ceil_div(p->pixels, ROWS), p->sm_count);
    const double alone = ceil(each / GROUPS) * (products + GROUPS * results);
    const double copies = (double)panels_of(p) * weights + each * ROWS * (ZC_SM90_LINE + columns);
    const double begin = fill + (weights + ZC_SM90_PANEL) / l2;
    return (begin + fmax(fmax(each * fmax(products, results), alone), copies / l2)) / clock;
}

static bool candidate_of(const void *of, int number, zc_candidate *out)
{
    const problem *p = of;
    int panels = PANELS_MOST;
    (void)number;
    while (panels >= PANELS_LEAST && smem_of(p, panels) > ZC_SM90_SMEM) panels /= 2;
    if (panels < PANELS_LEAST) return false;
    *out = (zc_candidate){.config = {[PANELS] = panels},
                          .threads = THREADS,
                          .smem = (uint32_t)smem_of(p, panels),
                          .cluster = 1,
                          .us = us_of(p)};
    zc_snprintf(out->name, sizeof out->name, "%d panels", panels);
    return true;
}

/* Do channels lie in panels as the template has them? */
static bool channels_fit(const problem *p)
{
    return p->depth > 0 && p->depth <= ZC_SM90_LINE && p->depth % PIECE == 0 && p->columns > 0 &&
           p->columns % ZC_SM90_LINE == 0 &&
           (p->next == ZC_SM90_LINE || p->next == ZC_SM90_LINE / 2);
}

double zc_conv_next_quant_us(const zc_conv_work *first, const zc_conv_work *second)
{
    const problem p = {.pixels = zc_conv_work_pixels(first),
                       .depth = first->in,
                       .columns = first->out,
                       .next = second->out,
                       .sm_count = zc_usual_processors(90)};
    const bool points = zc_conv_is_product(&first->window, first->axes, first->kernel) &&
                        zc_conv_is_product(&second->window, second->axes, second->kernel);
    return points && channels_fit(&p) ? zc_candidates_us(candidate_of, &p, 1) : INFINITY;
}

/* ---- the specialisation ---- */

/* Why it is none of these steps; NULL: it is one. */
static const char *not_these(const zc_gen *g, const zc_quant_roles *a, const zc_quant_roles *b)
{
    if (!zc_gen_static(zc_gen_in(g, a->in[ZC_GQ_B])) ||
        !zc_gen_static(zc_gen_in(g, b->in[ZC_GQ_B])) || !zc_gen_static(zc_gen_out(g, 0)))
        return "sides or weights that only a run knows";
    return zc_gen_conv_not_two(g, a, b);
}

static problem problem_of(const zc_gen *g, const zc_quant_roles *a, const zc_quant_roles *b)
{
    zc_tensor w, v, y;
    zc_gen_tensor(zc_gen_in(g, a->in[ZC_GQ_B]), &w);
    zc_gen_tensor(zc_gen_in(g, b->in[ZC_GQ_B]), &v);
    zc_gen_tensor(zc_gen_out(g, 0), &y);
    return (problem){.pixels = zc_dims_span(y.dims, 0, 3),
                     .depth = w.dims[3],
                     .columns = w.dims[0],
                     .next = v.dims[0],
                     .sm_count = g->sm_count};
}

static void put_sizes(zc_gen *g, const problem *p, const zc_quant_roles *a, const zc_quant_roles *b)
{
    zc_gen_sm90_factors(g, zc_gen_in_type(g, a->in[ZC_GQ_A]), zc_gen_in_type(g, a->in[ZC_GQ_B]));
    zc_gen_define(g, "DEPTH", "%d", (int)p->depth);
    zc_gen_define(g, "COLUMNS", "%d", (int)p->columns);
    zc_gen_define(g, "NEXT_COLUMNS", "%d", (int)p->next);
    zc_gen_type(g, "NEXT", zc_gen_out_type(g, 1));
    if (zc_gen_in(g, a->in[ZC_GQ_B])->kind == ZC_P_CONST &&
        zc_gen_in(g, b->in[ZC_GQ_B])->kind == ZC_P_CONST)
        zc_gen_define(g, "B_CONSTANT", "1");
}

zc_status zc_gen_conv_next_quant_sm90(zc_gen *g)
{
    const char *sum = ZC_ATTRS(g, QLinearConvNext)->sum;
    const zc_quant_roles a = zc_quant_roles_of(g->step->op);
    zc_quant_roles b;
    zc_quant_second_of(g->step->op, &b);
    const char *why = not_these(g, &a, &b);
    if (why) return zc_gen_decline(g, "%s", why);
    const problem p = problem_of(g, &a, &b);
    const zc_sm90_problem sizes = {.n = p.columns, .steps = panels_of(&p)};
    if (!channels_fit(&p)) return zc_gen_decline(g, "channels that do not lie in panels");
    if (!zc_gen_quant_wholes(g, sizes.steps * ZC_SM90_LINE))
        return zc_gen_decline(g, "sums that do not become bytes by whole numbers");
    if (sum) ZC_TRY(zc_gen_sum_of_bytes(g, sum, a.y_zero, ZC_IN_QLinearConvNext_residual));
    if (g->declined[0]) return ZC_OK;
    zc_gen_tensor_cores(g, "wgmma", zc_gen_in_type(g, 0));
    ZC_TRY(zc_gen_candidates(g, "wgmma", candidate_of, &p, 1));
    if (g->declined[0]) return ZC_OK;
    put_sizes(g, &p, &a, &b);
    return zc_gen_quant_sm90_spec(g, &sizes);
}

/* ---- the launch ---- */

/* Is it so many channels of each of y's pixels? */
static bool same_pixels(const zc_tensor *t, const zc_tensor *y, int64_t channels)
{
    return t->rank == 4 && t->dims[3] == channels &&
           memcmp(t->dims, y->dims, 3 * sizeof *t->dims) == 0;
}

static zc_status check(zc_launch *l, const zc_tensor *w, const zc_tensor *v)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    const bool has = zc_launch_has(l, ZC_IN_QLinearConvNext_residual);
    char t[128], u[128];
    if (y->rank == 4 && same_pixels(x, y, w->dims[3]) && same_pixels(y, y, w->dims[0]) &&
        same_pixels(&l->out[1], y, v->dims[0]) && v->dims[3] == w->dims[0] &&
        (!has || same_pixels(&l->in[ZC_IN_QLinearConvNext_residual], y, w->dims[0])))
        return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "inputs and results do not fit the weights (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(y, u, sizeof u));
}

/* Pixels as rows, by tiles. */
static zc_status put_rows(zc_launch *l, const zc_tensor *t, int64_t pitch, zc_tensor_map *out)
{
    const zc_tensor_box b =
        zc_sm90_box(t->data, t->dtype, t->dims[3], zc_dims_span(t->dims, 0, 3), 1, pitch, 0);
    return zc_launch_tensor_map(l, &b, out);
}

/* Weights, so many lines of which are the rows of a product. */
static zc_status put_weights(zc_launch *l, const zc_tensor *w, int lines, zc_tensor_map *out)
{
    zc_tensor_box b = zc_sm90_box(w->data, w->dtype, w->dims[3], w->dims[0], 1, w->dims[3], 0);
    zc_sm90_deal(&b, lines, ZC_SM90_CROSSED_BY);
    return zc_launch_tensor_map(l, &b, out);
}

static zc_status put_maps(zc_launch *l, const zc_tensor *w, const zc_tensor *v,
                          struct zc_gemm_sm90_params *p)
{
    const int residual = ZC_IN_QLinearConvNext_residual;
    ZC_TRY(put_rows(l, &l->in[0], zc_launch_in_pitch(l, 0), &p->a));
    ZC_TRY(put_weights(l, w, ZC_SM90_LINE, &p->b));
    ZC_TRY(put_rows(l, &l->out[0], zc_launch_out_pitch(l, 0), &p->y));
    ZC_TRY(put_weights(l, v, (int)v->dims[0], &p->second_b));
    ZC_TRY(put_rows(l, &l->out[1], zc_launch_out_pitch(l, 1), &p->second_a));
    if (!zc_launch_has(l, residual)) return ZC_OK;
    return put_rows(l, &l->in[residual], zc_launch_in_pitch(l, residual), &p->tile);
}

zc_status zc_launch_conv_next_quant_sm90(zc_launch *l)
{
    const zc_quant_roles first = zc_quant_roles_of(l->op);
    zc_quant_roles second;
    zc_quant_second_of(l->op, &second);
    const zc_tensor *w = &l->in[first.in[ZC_GQ_B]], *v = &l->in[second.in[ZC_GQ_B]];
    struct zc_gemm_quant_sm90_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(check(l, w, v));
    const int64_t pixels = zc_dims_span(l->out[0].dims, 0, 3), tiles = zc_ceil_div(pixels, ROWS);
    if (tiles == 0) return ZC_OK;
    if (tiles > INT32_MAX / ROWS)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "convolution too large (got %lld pixels)",
                       (long long)pixels);
    p.product.order.down = (int)tiles;
    ZC_TRY(zc_launch_conv_quant(l, &first, &p.quant));
    ZC_TRY(zc_launch_conv_quant_second(l, &second, &p.second));
    ZC_TRY(zc_launch_epilogue(l, &p.product.g.fused));
    ZC_TRY(put_maps(l, w, v, &p.product));
    const zc_dim3 grid = {(uint32_t)(tiles < l->sm_count ? tiles : l->sm_count), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
