#include <string.h>

#include "abi/einsum.h"
#include "kernels/collapse.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/einsum.h"

/* ---- the specialisation ---- */

/* Labels that are summed. */
static int count_inner(const zc_einsum *e)
{
    bool seen[ZC_EINSUM_LABELS] = {false};
    int n = 0;
    for (int d = 0; d < e->out.n; d++) seen[e->out.label[d]] = true;
    for (int i = 0; i < e->nin; i++) {
        for (int d = 0; d < e->in[i].n; d++) {
            bool *s = &seen[e->in[i].label[d]];
            n += !*s;
            *s = true;
        }
    }
    return n;
}

zc_status zc_gen_einsum(zc_gen *g)
{
    int ranks[ZC_EINSUM_INPUTS], nin = (int)g->step->nin;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    zc_einsum e;
    if (nin > ZC_EINSUM_INPUTS) return zc_gen_decline(g, "more than %d operands", ZC_EINSUM_INPUTS);
    if (!zc_kernel_type(dtype)) return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    for (int i = 0; i < nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, i);
        if (!v || v->rank < 0) return zc_gen_decline(g, "rank known only when run");
        ranks[i] = v->rank;
    }
    ZC_TRY(zc_einsum_parse(ZC_ATTRS(g, Einsum)->equation, nin, ranks, &e, g->step->name, g->diag));
    if (count_inner(&e) > ZC_EINSUM_LOOPS)
        return zc_gen_decline(g, "sum over more than %d labels", ZC_EINSUM_LOOPS);
    bool is_float = zc_dtype_is_float(dtype), wide = zc_dtype_bits(dtype) == 64;
    zc_gen_type(g, "T", dtype);
    zc_gen_define(g, "ACC", "%s%d", is_float ? "f" : "u", wide ? 64 : 32);
    zc_gen_define(g, "NIN", "%d", nin);
    return ZC_OK;
}

/* ---- the launch ---- */

/* The loops of an equation: the result's labels, then the summed ones. */
typedef struct loops {
    int n, outer;
    int64_t size[2 * ZC_EINSUM_LOOPS];
    int64_t stride[ZC_EINSUM_INPUTS][2 * ZC_EINSUM_LOOPS];
} loops;

/* Loop of each label, -1 without; false: too many. */
static bool order_labels(const zc_einsum *e, int loop_of[ZC_EINSUM_LABELS], loops *l)
{
    for (int i = 0; i < ZC_EINSUM_LABELS; i++) loop_of[i] = -1;
    for (int d = 0; d < e->out.n; d++) loop_of[e->out.label[d]] = l->n++;
    l->outer = l->n;
    for (int i = 0; i < e->nin; i++) {
        for (int d = 0; d < e->in[i].n; d++) {
            int *loop = &loop_of[e->in[i].label[d]];
            if (*loop < 0 && l->n - l->outer == ZC_EINSUM_LOOPS) return false;
            if (*loop < 0) *loop = l->n++;
        }
    }
    return true;
}

/* Largest size of each label over the operands; a 1 broadcasts. */
static void size_labels(const zc_launch *k, const zc_einsum *e, const int *loop_of, loops *l)
{
    for (int i = 0; i < l->n; i++) l->size[i] = 1;
    for (int i = 0; i < e->nin; i++) {
        for (int d = 0; d < e->in[i].n; d++) {
            int64_t *size = &l->size[loop_of[e->in[i].label[d]]];
            if (*size == 1) *size = k->in[i].dims[d];
        }
    }
}

/* A repeated label adds strides up: a diagonal. */
static zc_status add_strides(zc_launch *k, const zc_einsum_term *t, int i, const int *loop_of,
                             loops *l)
{
    uint64_t step = 1; /* wraps only when the operand is empty */
    for (int d = t->n - 1; d >= 0; d--) {
        int loop = loop_of[t->label[d]];
        int64_t dim = k->in[i].dims[d];
        if (dim == l->size[loop])
            l->stride[i][loop] += (int64_t)step;
        else if (dim != 1)
            return zc_fail(k->diag, ZC_ERR_INPUT, k->subject,
                           "axes of one label differ (got %lld and %lld)", (long long)dim,
                           (long long)l->size[loop]);
        step *= (uint64_t)dim;
    }
    return ZC_OK;
}

static zc_status plan(zc_launch *k, loops *l)
{
    zc_einsum e;
    int ranks[ZC_EINSUM_INPUTS], loop_of[ZC_EINSUM_LABELS];
    memset(l, 0, sizeof *l);
    for (int i = 0; i < k->nin; i++) ranks[i] = k->in[i].rank;
    ZC_TRY(zc_einsum_parse(ZC_ATTRS(k, Einsum)->equation, k->nin, ranks, &e, k->subject, k->diag));
    if (!order_labels(&e, loop_of, l))
        return zc_fail(k->diag, ZC_ERR_LIMIT, k->subject,
                       "equation sums over too many labels (need at most %d)", ZC_EINSUM_LOOPS);
    size_labels(k, &e, loop_of, l);
    for (int d = 0; d < l->outer; d++) {
        if (l->size[d] != k->out[0].dims[d])
            return zc_fail(k->diag, ZC_ERR_INPUT, k->subject,
                           "output axis %d has a wrong size (got %lld, need %lld)", d,
                           (long long)k->out[0].dims[d], (long long)l->size[d]);
    }
    for (int i = 0; i < k->nin; i++) ZC_TRY(add_strides(k, &e.in[i], i, loop_of, l));
    return ZC_OK;
}

/* Loops [from, to) as sizes and strides; returns how many are left. */
static int collapse(const loops *l, int nin, int from, int to, long long *size,
                    long long (*stride)[ZC_EINSUM_LOOPS])
{
    int64_t strides[ZC_COLLAPSE_OPERANDS][ZC_MAX_RANK];
    zc_collapsed c;
    for (int i = 0; i < nin; i++)
        for (int d = from; d < to; d++) strides[i][d - from] = l->stride[i][d];
    zc_collapse(to - from, l->size + from, nin, (const int64_t(*)[ZC_MAX_RANK])strides, &c);
    for (int d = 0; d < c.rank; d++) {
        size[d] = c.dims[d];
        for (int i = 0; i < nin; i++) stride[i][d] = c.strides[i][d];
    }
    return c.rank;
}

zc_status zc_launch_einsum(zc_launch *k)
{
    struct zc_einsum_params p;
    loops l;
    memset(&p, 0, sizeof p);
    ZC_TRY(plan(k, &l));
    p.total = zc_tensor_numel(&k->out[0]);
    if (p.total == 0) return ZC_OK;
    for (int i = 0; i < k->nin; i++) p.in[i] = k->in[i].data;
    p.out = k->out[0].data;
    p.outer_rank = collapse(&l, k->nin, 0, l.outer, p.outer, p.outer_stride);
    p.inner_rank = collapse(&l, k->nin, l.outer, l.n, p.inner, p.inner_stride);
    if (p.inner_rank == 0) p.inner[p.inner_rank++] = 1;
    int64_t terms = 1;
    p.rows = 1;
    for (int d = 0; d < p.inner_rank; d++) {
        if (d < p.inner_rank - 1) p.rows *= p.inner[d];
        if (!zc_mul_i64(terms, p.inner[d], &terms)) terms = INT64_MAX;
    }
    if (terms >= ZC_EINSUM_THREADS && p.total < (int64_t)k->sm_count * ZC_EINSUM_THREADS) {
        zc_dim3 grid = {zc_launch_blocks(p.total, 1, 0), 1, 1};
        return zc_launch_kernel(k, 1, grid, ZC_EINSUM_THREADS,
                                ZC_EINSUM_THREADS / 32 * sizeof(double), &p, sizeof p);
    }
    zc_dim3 grid = {zc_launch_blocks(p.total, ZC_EINSUM_THREADS, 0), 1, 1};
    return zc_launch_kernel(k, 0, grid, ZC_EINSUM_THREADS, 0, &p, sizeof p);
}
