/* Old forms of layers. */
#include "import/steps.h"

/* ---- BatchNormalization ---- */

/* Models are run, not trained: whatever is_test said, the running statistics are used. */
zc_status zc_step_batch_norm_is_test(zc_imp *im, zc_inode *n)
{
    zc_imp_take_int(im, n, "is_test", 0);
    return im->status;
}

/* spatial=0: statistics of every element of a sample rather than of every channel. */
zc_status zc_step_batch_norm_spatial(zc_imp *im, zc_inode *n)
{
    if (zc_imp_take_int(im, n, "spatial", 1)) return im->status;
    ZC_TRY(zc_imp_need_inputs(im, n, 5, 5));
    double epsilon = zc_imp_take_float(im, n, "epsilon", 1e-5f);
    zc_imp_take_float(im, n, "momentum", 0);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    ZC_TRY(zc_step_batch_norm_outputs(im, n));
    zc_vid var = zc_imp_op2(im, n, ZC_OP_Add, n->in[4],
                            zc_imp_scalar(im, zc_imp_dtype(im, n->in[4]), epsilon));
    zc_vid in[] = {n->in[0], n->in[1], n->in[2], n->in[3], var};
    return zc_imp_finish(im, n, zc_imp_expr(im, n, 5, in, "(x0 - x3) / sqrt(x4) * x1 + x2"));
}

/* Outputs 1 to 4 existed in training only. Old exporters name them even when nothing uses them. */
zc_status zc_step_batch_norm_outputs(zc_imp *im, zc_inode *n)
{
    for (int i = 1; i < n->nout; i++)
        if (*n->out[i]) zc_scope_own(im->scope, n->out[i])->state = ZC_NAME_DROPPED;
    n->nout = n->nout ? 1 : 0;
    if (n->nout && !*n->out[0]) n->done = true;
    return im->status;
}

/* ---- Dropout ---- */

/* The data as they are, and the mask by itself, which few read: before opset 10 it had the data's
 * type. */
static zc_status masked(zc_imp *im, zc_inode *n)
{
    zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    zc_vid y = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Identity, 1, n->in, 1));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Dropout, 1, n->in, 2);
    (void)zc_imp_done(im, n, id);
    ZC_TRY(im->status);
    zc_vid mask = zc_node_at(im->g, id)->out[1];
    if (n->version < 10) mask = zc_imp_cast(im, n, mask, dtype);
    ZC_TRY(im->status);
    const zc_vid values[] = {y, mask};
    for (int i = 0; i < 2; i++) {
        if (*n->out[i]) ZC_TRY(zc_imp_bind(im, n, i, values[i]));
    }
    n->done = true;
    return ZC_OK;
}

/* ratio was an attribute and, before 7, is_test said whether to drop at all. Nothing is dropped
 * outside of training. */
zc_status zc_step_dropout(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_imp_take_float(im, n, "ratio", 0.5);
    if (n->version < 7) zc_imp_take_int(im, n, "is_test", 0);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return n->nout == 2 && n->nin < 3 ? masked(im, n) : ZC_OK;
}

/* ---- Softmax and its like before opset 13 ---- */

/* The axis that the operator works on when that is one axis alone; -1 when it is several. */
static int one_axis(const zc_type *t, int axis)
{
    for (int i = axis + 1; i < t->rank; i++)
        if (!zc_dim_is(t->dims[i], 1)) return -1;
    return axis < t->rank ? axis : -1;
}

/* All axes from `axis` on, by default 1, were one. */
zc_status zc_step_softmax_2d(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    int64_t axis = zc_imp_take_int(im, n, "axis", 1);
    ZC_TRY(im->status);
    const zc_vid x = n->in[0];
    const zc_type type = zc_val(im->g, x)->type;
    if (type.rank >= 0 && (axis < -type.rank || axis > type.rank))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "axis out of range (got %lld, need [%d, %d])",
                           (long long)axis, -type.rank, type.rank);
    if (type.rank >= 0 && axis < 0) axis += type.rank;
    int one = type.rank >= 0 ? one_axis(&type, (int)axis) : -1;
    zc_imp_set_int(im, n, "axis", one);
    if (one >= 0) return im->status;
    zc_vid shape = zc_imp_op1(im, n, ZC_OP_Shape, x);
    zc_nid flat = zc_imp_node(im, n, ZC_OP_Flatten, 1, &x, 1);
    ZC_IMP_SET(im, Flatten, flat, axis, axis);
    n->in[0] = zc_imp_done(im, n, flat);
    zc_vid y = zc_imp_done(im, n, zc_imp_plain(im, n));
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Reshape, 2, (zc_vid[]){y, shape});
}

/* ---- attributes that went away or changed ---- */

/* Newer broadcasting includes the old one. */
zc_status zc_step_gemm_broadcast(zc_imp *im, zc_inode *n)
{
    zc_imp_take_int(im, n, "broadcast", 0);
    return im->status;
}

/* Which outputs a recurrent layer has is said by the outputs. */
zc_status zc_step_output_sequence(zc_imp *im, zc_inode *n)
{
    zc_imp_take_int(im, n, "output_sequence", 0);
    return im->status;
}

zc_status zc_step_dft_axis(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    int64_t axis = zc_imp_take_int(im, n, "axis", 1);
    zc_imp_set_in(im, n, 2, zc_imp_ints(im, &axis, 1, 0));
    return im->status;
}

zc_status zc_step_grid_sample_mode(zc_imp *im, zc_inode *n)
{
    const char *mode = zc_imp_take_str(im, n, "mode", "bilinear");
    if (strcmp(mode, "bilinear") == 0)
        mode = "linear";
    else if (strcmp(mode, "bicubic") == 0)
        mode = "cubic";
    zc_imp_set_str(im, n, "mode", mode);
    return im->status;
}

zc_status zc_step_roi_align_mode(zc_imp *im, zc_inode *n)
{
    zc_imp_set_str(im, n, "coordinate_transformation_mode", "output_half_pixel");
    return im->status;
}

/* ---- GroupNormalization before opset 21 ---- */

/* One number a group to one a channel: v[G] as [G,1], repeated to `shape` [G, C/G], as [C]. */
static zc_vid per_channel(zc_imp *im, zc_inode *n, zc_vid v, zc_vid shape)
{
    const int64_t one = 1, all = -1;
    zc_vid column = zc_imp_op2(im, n, ZC_OP_Unsqueeze, v, zc_imp_ints(im, &one, 1, 1));
    zc_vid table = zc_imp_op2(im, n, ZC_OP_Expand, column, shape);
    return zc_imp_reshape(im, n, table, &all, 1);
}

/* [G, C/G] of x[N, C, ...]. */
static zc_vid group_shape(zc_imp *im, zc_inode *n, zc_vid x, int64_t groups)
{
    zc_vid g = zc_imp_ints(im, &groups, 1, 1);
    zc_vid size = zc_imp_op2(im, n, ZC_OP_Div, zc_imp_sizes(im, n, x, 1, 2), g);
    zc_nid both = zc_imp_node(im, n, ZC_OP_Concat, 2, (zc_vid[]){g, size}, 1);
    ZC_IMP_SET(im, Concat, both, axis, 0);
    return zc_imp_done(im, n, both);
}

zc_status zc_step_group_norm_per_group(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    int64_t groups = zc_imp_take_int(im, n, "num_groups", 0);
    ZC_TRY(im->status);
    if (groups < 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "num_groups (got %lld, need at least 1)",
                           (long long)groups);
    zc_imp_set_int(im, n, "num_groups", groups);
    zc_vid shape = group_shape(im, n, n->in[0], groups);
    n->in[1] = per_channel(im, n, n->in[1], shape);
    n->in[2] = per_channel(im, n, n->in[2], shape);
    return im->status;
}

/* ---- Resize, Upsample ---- */

/* An input that is an empty vector was a way to leave it out. */
static void drop_empty(zc_imp *im, zc_inode *n, int i)
{
    zc_vid v = zc_imp_in(n, i);
    if (!v || zc_imp_rank(im, v) != 1 || !zc_dim_is(zc_val(im->g, v)->type.dims[0], 0)) return;
    zc_imp_set_in(im, n, i, 0);
}

zc_status zc_step_resize(zc_imp *im, zc_inode *n)
{
    for (int i = 1; i < 4; i++) drop_empty(im, n, i);
    return im->status;
}

/* Opsets 11 and 12 had one more place to sample at: half a pixel further than half_pixel's.
 * Rounding half a pixel up does the same for the one mode that exporters wrote with it. */
zc_status zc_step_resize_half_pixel_for_nn(zc_imp *im, zc_inode *n)
{
    static const char name[] = "coordinate_transformation_mode";
    const char *place = zc_imp_take_str(im, n, name, "half_pixel");
    zc_imp_set_str(im, n, name, place);
    if (strcmp(place, "tf_half_pixel_for_nn") != 0) return im->status;
    const char *mode = zc_imp_take_str(im, n, "mode", "nearest");
    const char *nearest = zc_imp_take_str(im, n, "nearest_mode", "round_prefer_floor");
    ZC_TRY(im->status);
    if (strcmp(mode, "nearest") != 0 || strcmp(nearest, "floor") != 0)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "%s is supported with modes nearest and floor only (got " ZC_NAME
                           " and " ZC_NAME ")",
                           place, mode, nearest);
    zc_imp_set_str(im, n, name, "half_pixel");
    zc_imp_set_str(im, n, "mode", mode);
    zc_imp_set_str(im, n, "nearest_mode", "round_prefer_ceil");
    return im->status;
}

static bool is_linear(const char *mode)
{
    return strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0 ||
           strcmp(mode, "trilinear") == 0;
}

/* X, scales to X, roi, scales with the sampling of those days. */
static zc_status as_resize(zc_imp *im, zc_inode *n, const char *nearest_mode)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    zc_vid scales = n->in[1];
    zc_imp_set_in(im, n, 1, 0);
    zc_imp_set_in(im, n, 2, scales);
    const char *mode = zc_imp_take_str(im, n, "mode", "nearest");
    zc_imp_set_str(im, n, "mode", is_linear(mode) ? "linear" : mode);
    zc_imp_set_str(im, n, "coordinate_transformation_mode", "asymmetric");
    zc_imp_set_str(im, n, "nearest_mode", nearest_mode);
    return im->status;
}

/* Nearest neighbours were rounded down when enlarging and up when shrinking. */
zc_status zc_step_resize_10(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    const zc_tensor *scales = zc_val(im->g, n->in[1])->data;
    int64_t count = scales && scales->data ? zc_tensor_numel(scales) : 0;
    bool shrinks = false, enlarges = false;
    for (int64_t i = 0; i < count; i++) {
        double scale = zc_load_f64(scales->dtype, scales->data, i);
        shrinks |= scale < 1;
        enlarges |= scale > 1;
    }
    if (shrinks && enlarges)
        return zc_imp_fail(
            im, n, ZC_ERR_UNSUPPORTED,
            "Resize before opset 11 with scales both below and above 1 is not supported");
    return as_resize(im, n, shrinks ? "ceil" : "floor");
}

static void scales_to_input(zc_imp *im, zc_inode *n, const float *scales, int count)
{
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {count}, .data = (void *)(uintptr_t)scales};
    zc_imp_set_in(im, n, 1, zc_imp_const(im, NULL, &t));
}

zc_status zc_step_upsample_1(zc_imp *im, zc_inode *n)
{
    float scales[4] = {1, 1, 0, 0};
    scales[2] = (float)zc_imp_take_float(im, n, "height_scale", 1);
    scales[3] = (float)zc_imp_take_float(im, n, "width_scale", 1);
    if (!zc_imp_has_attr(n, "scales")) scales_to_input(im, n, scales, 4);
    return im->status;
}

zc_status zc_step_upsample_7(zc_imp *im, zc_inode *n)
{
    zc_floats scales;
    if (zc_imp_take_floats(im, n, "scales", &scales) && scales.n)
        scales_to_input(im, n, scales.v, scales.n);
    return im->status;
}

zc_status zc_step_upsample_9(zc_imp *im, zc_inode *n)
{
    return as_resize(im, n, "floor");
}
