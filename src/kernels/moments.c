#include <string.h>

#include "abi/moments.h"
#include "kernels/gen.h"
#include "kernels/groups.h"

/* ---- the specialisation ---- */

/* Z_<name>: the product of dims [from, to), or (p.<name>) when it is not certain. */
static void put_span(zc_gen *g, const char *name, const zc_pvalue *x, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(n, x->dims[d].k, &n) || n == 0) {
            zc_gen_define(g, name, "(p.%s)", name);
            return;
        }
    zc_gen_define(g, name, "%lldLL", (long long)n);
}

static void put_channels(zc_gen *g, const zc_pvalue *x)
{
    zc_op op = g->step->op;
    bool last = op == ZC_OP_MsGroupNorm && ZC_ATTRS(g, MsGroupNorm)->channels_last;
    int axis = last ? x->rank - 1 : 1, none = x->rank;
    bool any = op != ZC_OP_MeanVarianceNormalization && x->rank > 1;
    put_span(g, "CHANNELS", x, any ? axis : none, any ? axis + 1 : none);
    if (op == ZC_OP_MeanVarianceNormalization || last)
        zc_gen_define(g, "INNER", "1LL");
    else
        put_span(g, "INNER", x, x->rank > 1 ? 2 : 1, x->rank);
}

static bool any_double(const zc_gen *g)
{
    for (int i = 0; i < zc_op_own_inputs(g->info, (int)g->step->nin); i++)
        if (zc_gen_in_type(g, i) == ZC_F64) return true;
    return false;
}

zc_status zc_gen_moments(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_op op = g->step->op;
    bool plain = op == ZC_OP_MeanVarianceNormalization, batch = op == ZC_OP_BatchNormalization;
    for (int i = 0; i < (int)g->step->nin; i++)
        if (!zc_gen_plain_type(zc_gen_in_type(g, i)))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(zc_gen_in_type(g, i)));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "X", x->dtype);
    zc_gen_define(g, "ACC", "%s", any_double(g) ? "f64" : "f32");
    if (!plain) zc_gen_type(g, "S", zc_gen_in_type(g, 1));
    if (batch) zc_gen_type(g, "STAT", zc_gen_in_type(g, 3));
    put_channels(g, x);
    if (plain) zc_gen_define(g, "PLAIN", "1");
    if (batch)
        zc_gen_define(g, ZC_ATTRS(g, BatchNormalization)->training_mode ? "RUNNING" : "GIVEN", "1");
    if (op == ZC_OP_MsGroupNorm && ZC_ATTRS(g, MsGroupNorm)->activation)
        zc_gen_define(g, "SILU", "1");
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

enum { BLOCK = ZC_GROUP_BLOCK, SMEM = ZC_GROUP_BLOCK * ZC_MOMENTS_STATE };

static void *wanted(const zc_launch *l, int i)
{
    return i < l->nout && l->out[i].dtype != ZC_NONE ? l->out[i].data : NULL;
}

/* Product of dims[from..), or 0 where it overflows, which only a tensor without elements can. */
static int64_t tail(const zc_tensor *t, int from)
{
    int64_t n = zc_dims_span(t->dims, from, t->rank);
    return n < 0 ? 0 : n;
}

/* Statistics of the elements of `view`, x under another shape, over its axes in mask; then the
 * result. */
static zc_status normalise(zc_launch *l, struct zc_moments_params *p, const zc_tensor *view,
                           const bool *mask)
{
    zc_groups_of(view, mask, &p->g);
    zc_dim3 grid = zc_groups_plan(l, &p->g, p->x, zc_dtype_bits(view->dtype) / 8, true);
    p->splits = grid.y;
    if (grid.y == 1) return zc_launch_kernel(l, 0, grid, BLOCK, SMEM, p, sizeof *p);
    ZC_TRY(zc_launch_scratch(l, (size_t)p->g.outputs * grid.y * ZC_MOMENTS_STATE, &p->states));
    ZC_TRY(zc_launch_kernel(l, 1, grid, BLOCK, SMEM, p, sizeof *p));
    return zc_launch_kernel(l, 2, grid, BLOCK, SMEM, p, sizeof *p);
}

static zc_status by_groups(zc_launch *l, struct zc_moments_params *p, int64_t groups, bool last)
{
    const zc_tensor *x = &l->in[0];
    int64_t channels = x->dims[last ? x->rank - 1 : 1], all = zc_tensor_numel(x);
    if (groups == 0) groups = channels;
    if (all == 0) return ZC_OK;
    if (channels % groups)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "groups do not divide the channels (got %lld and %lld)", (long long)groups,
                       (long long)channels);
    int64_t width = channels / groups, plane = all / x->dims[0] / channels;
    zc_tensor view = {.dtype = x->dtype, .rank = 4};
    const int64_t dims[2][4] = {{x->dims[0], groups, width, plane},
                                {x->dims[0], plane, groups, width}};
    const bool masks[2][ZC_MAX_RANK] = {{false, false, true, true}, {false, true, false, true}};
    memcpy(view.dims, dims[last], sizeof dims[last]);
    p->CHANNELS = channels;
    p->INNER = last ? 1 : plane;
    return normalise(l, p, &view, masks[last]);
}

static zc_status check_vectors(zc_launch *l, int last, int64_t channels)
{
    for (int i = 1; i <= last; i++) {
        int64_t n = zc_tensor_numel(&l->in[i]);
        if (n != channels)
            return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                           "a channel parameter's length (got %lld, need %lld)", (long long)n,
                           (long long)channels);
    }
    return ZC_OK;
}

/* Outside training the running statistics stay what they are. */
static zc_status pass_statistics(zc_launch *l)
{
    for (int i = 1; i < l->nout; i++) {
        size_t bytes;
        void *to = wanted(l, i);
        if (to && zc_tensor_bytes(&l->in[i + 2], &bytes) && bytes)
            ZC_TRY(zc_launch_copy(l, to, l->in[i + 2].data, bytes));
    }
    return ZC_OK;
}

static zc_status batch(zc_launch *l, struct zc_moments_params *p)
{
    const zc_attrs_BatchNormalization *a = ZC_ATTRS(l, BatchNormalization);
    const zc_tensor *x = &l->in[0];
    const bool mask[ZC_MAX_RANK] = {true, false, true};
    zc_tensor view = {.dtype = x->dtype, .rank = 3, .dims = {x->dims[0]}};
    view.dims[1] = p->CHANNELS = x->rank > 1 ? x->dims[1] : 1;
    view.dims[2] = p->INNER = tail(x, x->rank > 1 ? 2 : 1);
    ZC_TRY(check_vectors(l, 4, p->CHANNELS));
    p->mean = l->in[3].data;
    p->var = l->in[4].data;
    p->eps = a->epsilon;
    p->momentum = a->momentum;
    if (a->training_mode) {
        p->mean_out = wanted(l, 1);
        p->var_out = wanted(l, 2);
        return normalise(l, p, &view, mask);
    }
    ZC_TRY(pass_statistics(l));
    p->total = zc_tensor_numel(x);
    zc_dim3 grid = {zc_launch_blocks(p->total, 4 * BLOCK, 16 * l->sm_count), 1, 1};
    return p->y ? zc_launch_kernel(l, 3, grid, BLOCK, 0, p, sizeof *p) : ZC_OK;
}

static zc_status over_axes(zc_launch *l, struct zc_moments_params *p)
{
    static const int64_t usual[] = {0, 2, 3};
    const zc_attrs_MeanVarianceNormalization *a = ZC_ATTRS(l, MeanVarianceNormalization);
    bool given = ZC_ATTR_GIVEN(MeanVarianceNormalization, a, axes), mask[ZC_MAX_RANK] = {false};
    const int64_t *axes = given ? a->axes.v : usual;
    for (int i = 0; i < (given ? a->axes.n : 3); i++)
        mask[zc_launch_axis(axes[i], l->in[0].rank)] = true;
    p->CHANNELS = p->INNER = 1;
    return zc_tensor_numel(&l->in[0]) ? normalise(l, p, &l->in[0], mask) : ZC_OK;
}

zc_status zc_launch_moments(zc_launch *l)
{
    struct zc_moments_params p;
    zc_op op = l->op;
    memset(&p, 0, sizeof p);
    p.x = l->in[0].data;
    p.y = wanted(l, 0);
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (op == ZC_OP_MeanVarianceNormalization) return over_axes(l, &p);
    p.scale = l->in[1].data;
    p.bias = l->in[2].data;
    if (op == ZC_OP_BatchNormalization) return batch(l, &p);
    if (op == ZC_OP_MsGroupNorm) {
        const zc_attrs_MsGroupNorm *a = ZC_ATTRS(l, MsGroupNorm);
        const zc_tensor *x = &l->in[0];
        p.eps = a->epsilon;
        ZC_TRY(check_vectors(l, 2, x->dims[a->channels_last ? x->rank - 1 : 1]));
        return by_groups(l, &p, a->groups, a->channels_last != 0);
    }
    bool instance = op == ZC_OP_InstanceNormalization;
    p.eps = instance ? ZC_ATTRS(l, InstanceNormalization)->epsilon
                     : ZC_ATTRS(l, GroupNormalization)->epsilon;
    ZC_TRY(check_vectors(l, 2, l->in[0].dims[1]));
    return by_groups(l, &p, instance ? 0 : ZC_ATTRS(l, GroupNormalization)->num_groups, false);
}
