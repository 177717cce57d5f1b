#include "abi/moments.h"

#include <string.h>

#include "cuda/groups.h"

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
