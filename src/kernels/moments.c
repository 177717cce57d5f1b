#include <string.h>

#include "abi/moments.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/groups.h"

/* ---- the specialisation ---- */

const char *const zc_config_moments[] = {ZC_GROUPS_CONFIG, NULL};

/* x as the kernels see it, the axes that are reduced, and its channels: an element's is its offset
 * / inner % channels. */
typedef struct form {
    int rank;
    zc_dim dims[ZC_MAX_RANK], channels, inner;
    bool mask[ZC_MAX_RANK];
} form;

/* The product of dims [from, to); one that is not certain stands for it where it is not. */
static zc_dim span(const zc_dim *dims, int from, int to)
{
    zc_dim n = zc_dim_const(1);
    for (int d = from; d < to; d++) {
        if (!zc_dim_is_const(dims[d])) return dims[d];
        if (!zc_mul_i64(n.k, dims[d].k, &n.k)) n.k = 0; /* only without elements */
    }
    return n;
}

/* Groups of channels: 0 of them, each channel is one. */
static void form_of_groups(int rank, const zc_dim *dims, int64_t groups, bool last, form *f)
{
    zc_dim channels = dims[last ? rank - 1 : 1], width = zc_dim_const(1), many = channels;
    zc_dim plane = last ? span(dims, 1, rank - 1) : span(dims, 2, rank);
    if (groups) {
        many = zc_dim_const(groups);
        width = zc_dim_is_const(channels) ? zc_dim_const(channels.k / groups) : channels;
    }
    *f = last ? (form){.rank = 4,
                       .dims = {dims[0], plane, many, width},
                       .mask = {false, true, false, true},
                       .inner = zc_dim_const(1)}
              : (form){.rank = 4,
                       .dims = {dims[0], many, width, plane},
                       .mask = {false, false, true, true},
                       .inner = plane};
    f->channels = channels;
}

static void form_of_axes(const zc_attrs_MeanVarianceNormalization *a, int rank, const zc_dim *dims,
                         form *f)
{
    static const int64_t usual[] = {0, 2, 3};
    bool given = ZC_ATTR_GIVEN(MeanVarianceNormalization, a, axes);
    const int64_t *axes = given ? a->axes.v : usual;
    *f = (form){.rank = rank, .channels = zc_dim_const(1), .inner = zc_dim_const(1)};
    for (int d = 0; d < rank; d++) f->dims[d] = dims[d];
    for (int i = 0; i < (given ? a->axes.n : 3); i++) f->mask[zc_launch_axis(axes[i], rank)] = true;
}

static void form_of(zc_op op, const void *attrs, int rank, const zc_dim *dims, form *f)
{
    const zc_attrs_MsGroupNorm *ms = attrs;
    switch (op) {
    case ZC_OP_MeanVarianceNormalization:
        form_of_axes(attrs, rank, dims, f);
        break;
    case ZC_OP_BatchNormalization:
        *f = (form){.rank = 3,
                    .mask = {true, false, true},
                    .channels = rank > 1 ? dims[1] : zc_dim_const(1),
                    .inner = span(dims, rank > 1 ? 2 : 1, rank)};
        f->dims[0] = dims[0];
        f->dims[1] = f->channels;
        f->dims[2] = f->inner;
        break;
    case ZC_OP_MsGroupNorm:
        form_of_groups(rank, dims, ms->groups, ms->channels_last != 0, f);
        break;
    case ZC_OP_GroupNormalization:
        form_of_groups(rank, dims, ((const zc_attrs_GroupNormalization *)attrs)->num_groups, false,
                       f);
        break;
    default:
        form_of_groups(rank, dims, 0, false, f);
        break;
    }
}

static bool divides(int64_t by, zc_dim n)
{
    return zc_dim_is_const(n) && n.k % by == 0;
}

/* How threads share the elements, and the channels of those that one takes at once. */
static void choose(zc_gen *g, const zc_pvalue *x, bool given)
{
    form f;
    unsigned bytes = zc_dtype_bits(x->dtype) / 8;
    int64_t *vec = &g->config[ZC_GROUPS_VECTOR];
    form_of(g->step->op, g->attrs, x->rank, x->dims, &f);
    g->smem = given ? 0 : ZC_GROUP_BLOCK * ZC_MOMENTS_STATE;
    if (!given) {
        zc_gen_groups(g, f.rank, f.dims, f.mask, bytes, true);
    } else {
        g->threads = ZC_GROUP_BLOCK;
        *vec = divides(16 / bytes, f.inner) ? 16 / bytes : 1;
    }
    bool same = *vec > 1 && divides(*vec, f.inner);
    bool next = *vec > 1 && zc_dim_is(f.inner, 1) && divides(*vec, f.channels);
    zc_gen_define(g, "RUN", "%s",
                  same   ? "ZC_MOMENTS_SAME"
                  : next ? "ZC_MOMENTS_NEXT"
                         : "ZC_MOMENTS_EACH");
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
        if (!zc_kernel_type(zc_gen_in_type(g, i)))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(zc_gen_in_type(g, i)));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    bool given = batch && !ZC_ATTRS(g, BatchNormalization)->training_mode;
    zc_gen_type(g, "X", x->dtype);
    zc_gen_define(g, "ACC", "%s", any_double(g) ? "f64" : "f32");
    if (!plain) zc_gen_type(g, "S", zc_gen_in_type(g, 1));
    if (batch) zc_gen_type(g, "STAT", zc_gen_in_type(g, 3));
    if (plain) zc_gen_define(g, "PLAIN", "1");
    if (batch) zc_gen_define(g, given ? "GIVEN" : "RUNNING", "1");
    choose(g, x, given);
    if (op == ZC_OP_MsGroupNorm && ZC_ATTRS(g, MsGroupNorm)->activation)
        zc_gen_define(g, "SILU", "1");
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

static zc_status issue(zc_launch *l, int entry, zc_dim3 grid, const struct zc_moments_params *p)
{
    return zc_launch_kernel(l, entry, grid, l->kernel->threads, l->kernel->smem, p, sizeof *p);
}

/* Statistics, then the result. */
static zc_status normalise(zc_launch *l, struct zc_moments_params *p, const form *f)
{
    zc_tensor view = {.dtype = l->in[0].dtype, .rank = f->rank};
    for (int d = 0; d < f->rank; d++) view.dims[d] = f->dims[d].k;
    if (zc_tensor_numel(&l->in[0]) == 0) return ZC_OK;
    zc_groups_of(&view, f->mask, &p->g);
    zc_dim3 grid = zc_groups_plan(l, &p->g, zc_dtype_bits(view.dtype) / 8);
    p->splits = grid.y;
    if (grid.y == 1 && l->kernel->config[ZC_GROUPS_SPLIT] != 2) return issue(l, 0, grid, p);
    ZC_TRY(zc_launch_scratch(l, (size_t)p->g.outputs * grid.y * ZC_MOMENTS_STATE, &p->states));
    ZC_TRY(issue(l, 1, grid, p));
    return issue(l, 2, grid, p);
}

static zc_status check_groups(zc_launch *l, int64_t groups, int64_t channels)
{
    if (!groups || channels % groups == 0 || zc_tensor_numel(&l->in[0]) == 0) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                   "groups do not divide the channels (got %lld and %lld)", (long long)groups,
                   (long long)channels);
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
        void *to = zc_launch_out(l, i);
        if (to && zc_tensor_bytes(&l->in[i + 2], &bytes) && bytes)
            ZC_TRY(zc_launch_copy(l, to, l->in[i + 2].data, bytes));
    }
    return ZC_OK;
}

static zc_status batch(zc_launch *l, struct zc_moments_params *p, const form *f)
{
    const zc_attrs_BatchNormalization *a = ZC_ATTRS(l, BatchNormalization);
    p->mean = l->in[3].data;
    p->var = l->in[4].data;
    p->eps = a->epsilon;
    p->momentum = a->momentum;
    if (a->training_mode) {
        p->mean_out = zc_launch_out(l, 1);
        p->var_out = zc_launch_out(l, 2);
        return normalise(l, p, f);
    }
    ZC_TRY(pass_statistics(l));
    p->total = zc_tensor_numel(&l->in[0]);
    int64_t vec = l->kernel->config[ZC_GROUPS_VECTOR];
    zc_dim3 grid = {zc_launch_blocks(p->total / vec, 2 * ZC_GROUP_BLOCK, 16 * l->sm_count), 1, 1};
    return p->y ? issue(l, 3, grid, p) : ZC_OK;
}

zc_status zc_launch_moments(zc_launch *l)
{
    struct zc_moments_params p;
    zc_dim dims[ZC_MAX_RANK];
    form f;
    const zc_tensor *x = &l->in[0];
    for (int d = 0; d < x->rank; d++) dims[d] = zc_dim_const(x->dims[d]);
    form_of(l->op, l->attrs, x->rank, dims, &f);
    memset(&p, 0, sizeof p);
    p.x = x->data;
    p.y = zc_launch_out(l, 0);
    p.channels = zc_divisor_of(f.channels.k);
    p.inner = zc_divisor_of(f.inner.k);
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (l->op == ZC_OP_MeanVarianceNormalization) return normalise(l, &p, &f);
    p.scale = l->in[1].data;
    p.bias = l->in[2].data;
    ZC_TRY(check_vectors(l, l->op == ZC_OP_BatchNormalization ? 4 : 2, f.channels.k));
    switch (l->op) {
    case ZC_OP_BatchNormalization:
        return batch(l, &p, &f);
    case ZC_OP_MsGroupNorm:
        p.eps = ZC_ATTRS(l, MsGroupNorm)->epsilon;
        ZC_TRY(check_groups(l, ZC_ATTRS(l, MsGroupNorm)->groups, f.channels.k));
        break;
    case ZC_OP_GroupNormalization:
        p.eps = ZC_ATTRS(l, GroupNormalization)->epsilon;
        ZC_TRY(check_groups(l, ZC_ATTRS(l, GroupNormalization)->num_groups, f.channels.k));
        break;
    default:
        p.eps = ZC_ATTRS(l, InstanceNormalization)->epsilon;
        break;
    }
    return normalise(l, &p, &f);
}
