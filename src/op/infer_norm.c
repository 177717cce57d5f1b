/* Types and shapes of normalisations. */
#include "op/infer_common.h"

/* ---- element types ---- */

/* All inputs and outputs of one float type. */
zc_status zc_dt_norm(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    for (int i = 1; i < f->nin; i++) ZC_TRY(zc_infer_need_alike(f, 0, i));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

/* The type of saved statistics. */
static zc_status check_stash(zc_infer *f, zc_dtype stash)
{
    if (zc_dtype_is_float(stash) && zc_dtype_bits(stash) >= 16) return ZC_OK;
    return zc_infer_fail(f, "stash_type must be f64, f32, f16 or bf16 (got %s)",
                         zc_dtype_name(stash));
}

zc_status zc_dt_batch_norm(zc_infer *f)
{
    for (int i = 0; i < 5; i++) ZC_TRY(zc_infer_need_float(f, i));
    ZC_TRY(zc_infer_need_alike(f, 1, 2));
    ZC_TRY(zc_infer_need_alike(f, 3, 4));
    ZC_TRY(zc_infer_set_dtype(f, f->in[3].type.dtype));
    zc_infer_out_dtype(f, 0, f->in[0].type.dtype);
    return ZC_OK;
}

zc_status zc_dt_layer_norm(zc_infer *f)
{
    zc_dtype stash = ZC_ATTRS(f, LayerNormalization)->stash_type;
    ZC_TRY(check_stash(f, stash));
    ZC_TRY(zc_dt_norm(f));
    zc_infer_out_dtype(f, 1, stash);
    zc_infer_out_dtype(f, 2, stash);
    return ZC_OK;
}

/* The result has the type of the scale. */
zc_status zc_dt_rms_norm(zc_infer *f)
{
    zc_dtype stash = ZC_ATTRS(f, RMSNormalization)->stash_type;
    ZC_TRY(check_stash(f, stash));
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(zc_infer_need_float(f, 1));
    zc_infer_out_dtype(f, 0, f->in[1].type.dtype);
    zc_infer_out_dtype(f, 1, stash);
    return ZC_OK;
}

zc_status zc_dt_skip_norm(zc_infer *f)
{
    ZC_TRY(zc_dt_norm(f));
    zc_infer_out_dtype(f, 1, ZC_F32);
    zc_infer_out_dtype(f, 2, ZC_F32);
    return ZC_OK;
}

zc_status zc_dt_embed_norm(zc_infer *f)
{
    static const struct {
        int input;
        const char *name;
    } need[] = {{2, "word embedding"}, {3, "position embedding"}, {5, "gamma"}, {6, "beta"}};
    for (size_t i = 0; i < ZC_COUNTOF(need); i++) {
        if (!zc_in_present(f, need[i].input))
            return zc_infer_fail(f, "input %d, the %s, is missing", need[i].input, need[i].name);
        ZC_TRY(zc_infer_need_float(f, need[i].input));
        ZC_TRY(zc_infer_need_alike(f, 2, need[i].input));
    }
    ZC_TRY(zc_infer_need_alike(f, 2, 4));
    ZC_TRY(zc_infer_need_int(f, 0, "word ids"));
    ZC_TRY(zc_infer_need_int(f, 1, "segment ids"));
    ZC_TRY(zc_infer_need_int(f, 7, "mask"));
    ZC_TRY(zc_infer_need_int(f, 8, "position ids"));
    ZC_TRY(zc_infer_set_dtype(f, f->in[2].type.dtype));
    zc_infer_out_dtype(f, 1, f->in[0].type.dtype);
    return ZC_OK;
}

/* gamma and beta may be wider than x. */
zc_status zc_dt_ms_group_norm(zc_infer *f)
{
    for (int i = 0; i < 3; i++) ZC_TRY(zc_infer_need_float(f, i));
    ZC_TRY(zc_infer_need_alike(f, 1, 2));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

/* ---- along one axis ---- */

static zc_status along(zc_infer *f, int64_t axis)
{
    int at;
    ZC_TRY(zc_infer_axis(f, axis, zc_in(f, 0)->rank, &at));
    return zc_infer_same0(f);
}

zc_status zc_infer_softmax(zc_infer *f)
{
    bool log = f->op == ZC_OP_LogSoftmax;
    return along(f, log ? ZC_ATTRS(f, LogSoftmax)->axis : ZC_ATTRS(f, Softmax)->axis);
}

zc_status zc_infer_lp_norm(zc_infer *f)
{
    const zc_attrs_LpNormalization *a = ZC_ATTRS(f, LpNormalization);
    if (a->p != 1 && a->p != 2)
        return zc_infer_fail(f, "p must be 1 or 2 (got %lld)", (long long)a->p);
    return along(f, a->axis);
}

zc_status zc_infer_mean_variance_norm(zc_infer *f)
{
    static const int64_t usual[] = {0, 2, 3};
    const zc_attrs_MeanVarianceNormalization *a = ZC_ATTRS(f, MeanVarianceNormalization);
    bool given = ZC_ATTR_GIVEN(MeanVarianceNormalization, a, axes);
    bool mask[ZC_MAX_RANK];
    ZC_TRY(zc_infer_axes(f, given ? a->axes.v : usual, given ? a->axes.n : 3, zc_in(f, 0)->rank,
                         mask));
    return zc_infer_same0(f);
}

/* ---- by channel ---- */

/* Input i is a vector with one element a channel. */
static zc_status per_channel(zc_infer *f, int i, zc_dim channels, const char *what)
{
    ZC_TRY(zc_infer_need_rank(f, i, 1, 1));
    return zc_infer_same(f, zc_in(f, i)->dims[0], channels, what);
}

zc_status zc_infer_batch_norm(zc_infer *f)
{
    const zc_attrs_BatchNormalization *a = ZC_ATTRS(f, BatchNormalization);
    const zc_type *x = zc_in(f, 0);
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    zc_dim channels = x->rank > 1 ? x->dims[1] : zc_dim_const(1);
    for (int i = 1; i < 5; i++)
        ZC_TRY(per_channel(f, i, channels, "channels and the length of a channel parameter"));
    if (a->training_mode != 0 && a->training_mode != 1)
        return zc_infer_fail(f, "training_mode must be 0 or 1 (got %lld)",
                             (long long)a->training_mode);
    zc_infer_copy(f, 0, 0);
    zc_infer_copy(f, 1, 3);
    zc_infer_copy(f, 2, 4);
    return ZC_OK;
}

zc_status zc_infer_instance_norm(zc_infer *f)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    zc_dim channels = zc_in(f, 0)->dims[1];
    ZC_TRY(per_channel(f, 1, channels, "channels and the length of the scale"));
    ZC_TRY(per_channel(f, 2, channels, "channels and the length of the bias"));
    return zc_infer_same0(f);
}

static zc_status check_groups(zc_infer *f, const char *name, int64_t groups, zc_dim channels)
{
    if (groups < 1)
        return zc_infer_fail(f, "%s out of range (got %lld, need at least 1)", name,
                             (long long)groups);
    if (zc_dim_is_const(channels) && channels.k % groups != 0) {
        return zc_infer_fail(f, "%s does not divide the channels (got %lld and %lld)", name,
                             (long long)groups, (long long)channels.k);
    }
    return ZC_OK;
}

zc_status zc_infer_group_norm(zc_infer *f)
{
    const zc_attrs_GroupNormalization *a = ZC_ATTRS(f, GroupNormalization);
    ZC_TRY(check_stash(f, a->stash_type));
    ZC_TRY(zc_infer_instance_norm(f));
    return check_groups(f, "num_groups", a->num_groups, zc_in(f, 0)->dims[1]);
}

zc_status zc_infer_ms_group_norm(zc_infer *f)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(f, MsGroupNorm);
    const zc_type *x = zc_in(f, 0);
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    zc_dim channels = x->dims[a->channels_last ? x->rank - 1 : 1];
    ZC_TRY(per_channel(f, 1, channels, "channels and the length of gamma"));
    ZC_TRY(per_channel(f, 2, channels, "channels and the length of beta"));
    if (a->activation != 0 && a->activation != 1)
        return zc_infer_fail(f, "activation must be 0 or 1 (got %lld)", (long long)a->activation);
    ZC_TRY(check_groups(f, "groups", a->groups, channels));
    return zc_infer_same0(f);
}

/* ---- over the last axes ---- */

/* Input i broadcasts to input 0 without changing its shape. */
static zc_status broadcasts_to_x(zc_infer *f, int i, const char *what)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_type *x = zc_in(f, 0), *t = zc_in(f, i);
    bool fits = t->rank <= x->rank;
    for (int d = 1; fits && d <= t->rank; d++) {
        zc_dim have = t->dims[t->rank - d], need = x->dims[x->rank - d];
        fits = zc_dim_is(have, 1) || !zc_dim_is_const(have) || !zc_dim_is_const(need) ||
               have.k == need.k;
    }
    if (fits) return ZC_OK;
    return zc_infer_fail(f, "%s does not broadcast to the input (got %s and %s)", what,
                         zc_infer_dims_text(f, t->rank, t->dims),
                         zc_infer_dims_text(f, x->rank, x->dims));
}

/* Output i is a statistic: input 0's shape with ones from axis on. */
static zc_status set_statistic(zc_infer *f, int i, int axis)
{
    const zc_type *x = zc_in(f, 0);
    zc_dim dims[ZC_MAX_RANK];
    for (int d = 0; d < x->rank; d++) dims[d] = d < axis ? x->dims[d] : zc_dim_const(1);
    return zc_infer_set(f, i, x->rank, dims);
}

zc_status zc_infer_layer_norm(zc_infer *f)
{
    int axis;
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, LayerNormalization)->axis, zc_in(f, 0)->rank, &axis));
    ZC_TRY(broadcasts_to_x(f, 1, "scale"));
    ZC_TRY(broadcasts_to_x(f, 2, "bias"));
    zc_infer_copy(f, 0, 0);
    ZC_TRY(set_statistic(f, 1, axis));
    return set_statistic(f, 2, axis);
}

zc_status zc_infer_rms_norm(zc_infer *f)
{
    int axis;
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, RMSNormalization)->axis, zc_in(f, 0)->rank, &axis));
    ZC_TRY(broadcasts_to_x(f, 1, "scale"));
    zc_infer_copy(f, 0, 0);
    return set_statistic(f, 1, axis);
}

zc_status zc_infer_skip_norm(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0);
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(broadcasts_to_x(f, 1, "skip"));
    for (int i = 2; i < f->nin; i++) {
        if (zc_in_present(f, i))
            ZC_TRY(per_channel(f, i, x->dims[x->rank - 1],
                               "the last dimension and the length of gamma, beta or bias"));
    }
    zc_infer_copy(f, 0, 0);
    zc_infer_copy(f, 3, 0);
    ZC_TRY(set_statistic(f, 1, x->rank - 1));
    return set_statistic(f, 2, x->rank - 1);
}

/* Input i, where present, is a matrix with the ids' sizes; if broadcast, also one row or one
 * element for all. */
static zc_status like_ids(zc_infer *f, int i, bool broadcast, const char *what)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, i, 2, 2));
    const zc_type *ids = zc_in(f, 0), *t = zc_in(f, i);
    if (broadcast && zc_dim_is(t->dims[0], 1) && zc_dim_is(t->dims[1], 1)) return ZC_OK;
    if (!broadcast || !zc_dim_is(t->dims[0], 1))
        ZC_TRY(zc_infer_same(f, t->dims[0], ids->dims[0], what));
    return zc_infer_same(f, t->dims[1], ids->dims[1], what);
}

zc_status zc_infer_embed_norm(zc_infer *f)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 2, 2));
    ZC_TRY(like_ids(f, 1, true, "sizes of word ids and segment ids"));
    ZC_TRY(like_ids(f, 7, false, "sizes of word ids and mask"));
    ZC_TRY(like_ids(f, 8, true, "sizes of word ids and position ids"));
    if (zc_in_present(f, 1) && !zc_in_present(f, 4))
        return zc_infer_fail(f, "segment ids need a segment embedding, which is missing");
    ZC_TRY(zc_infer_need_rank(f, 2, 2, 2));
    zc_dim hidden = zc_in(f, 2)->dims[1];
    for (int i = 3; i <= 4; i++) {
        if (!zc_in_present(f, i)) continue;
        ZC_TRY(zc_infer_need_rank(f, i, 2, 2));
        ZC_TRY(zc_infer_same(f, zc_in(f, i)->dims[1], hidden, "sizes of embeddings"));
    }
    ZC_TRY(per_channel(f, 5, hidden, "the embedding size and the length of gamma"));
    ZC_TRY(per_channel(f, 6, hidden, "the embedding size and the length of beta"));
    const zc_type *ids = zc_in(f, 0);
    const zc_dim dims[] = {ids->dims[0], ids->dims[1], hidden};
    ZC_TRY(zc_infer_set(f, 0, 3, dims));
    ZC_TRY(zc_infer_set(f, 1, 1, dims));
    return zc_infer_set(f, 2, 3, dims);
}
