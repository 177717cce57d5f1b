/* Old forms of operators that move data or make it. */
#include "import/steps.h"

/* Attribute `name` becomes input i, a vector; false when the node has none. */
static bool ints_to_input(zc_imp *im, zc_inode *n, const char *name, int i)
{
    zc_ints list;
    if (!zc_imp_take_ints(im, n, name, &list)) return false;
    zc_imp_set_in(im, n, i, zc_imp_ints(im, list.v, list.n, 1));
    return true;
}

zc_status zc_step_axes_to_input(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ints_to_input(im, n, "axes", 1);
    return im->status;
}

zc_status zc_step_all_outputs(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    return im->status;
}

zc_status zc_step_concat_axis(zc_imp *im, zc_inode *n)
{
    if (!zc_imp_has_attr(n, "axis")) zc_imp_set_int(im, n, "axis", 1);
    return im->status;
}

static zc_status need_attr(zc_imp *im, const zc_inode *n, bool given, const char *name)
{
    if (given || im->status != ZC_OK) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs attribute '%s' at opset %lld", n->op_type,
                       name, (long long)n->version);
}

zc_status zc_step_reshape_attribute(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    return need_attr(im, n, ints_to_input(im, n, "shape", 1), "shape");
}

/* ---- Pad ---- */

zc_status zc_step_pad_paddings(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    return need_attr(im, n, ints_to_input(im, n, "paddings", 1), "paddings");
}

zc_status zc_step_pad_attributes(zc_imp *im, zc_inode *n)
{
    if (n->version >= 2) {
        ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
        ZC_TRY(need_attr(im, n, ints_to_input(im, n, "pads", 1), "pads"));
    }
    double value = zc_imp_take_float(im, n, "value", 0);
    if (value != 0) zc_imp_set_in(im, n, 2, zc_imp_scalar(im, zc_imp_dtype(im, n->in[0]), value));
    return im->status;
}

/* ---- Slice, Split, Tile, TopK ---- */

zc_status zc_step_slice_attributes(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(need_attr(im, n, ints_to_input(im, n, "starts", 1), "starts"));
    ZC_TRY(need_attr(im, n, ints_to_input(im, n, "ends", 2), "ends"));
    ints_to_input(im, n, "axes", 3);
    return im->status;
}

zc_status zc_step_split_attribute(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, n->version < 2 ? 2 : 1));
    ints_to_input(im, n, "split", 1);
    return im->status;
}

zc_status zc_step_split_count(zc_imp *im, zc_inode *n)
{
    zc_imp_all_outputs(n);
    if (!zc_imp_in(n, 1)) zc_imp_set_int(im, n, "num_outputs", n->nout);
    return im->status;
}

/* Tile-1 repeated along one axis; both numbers were inputs. */
zc_status zc_step_tile_one_axis(zc_imp *im, zc_inode *n)
{
    zc_ints tiles, axis;
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    int rank = zc_imp_need_rank(im, n, n->in[0], "its input");
    ZC_TRY(im->status);
    if (!zc_imp_known_ints(im, n, n->in[1], &tiles) || !zc_imp_known_ints(im, n, n->in[2], &axis))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "Tile before opset 6 needs constant tiles and axis");
    if (tiles.n != 1 || axis.n != 1 || axis.v[0] < 0 || axis.v[0] >= rank)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "Tile: axis out of range (got %lld, need [0, %d])",
                           axis.n == 1 ? (long long)axis.v[0] : -1LL, rank - 1);
    int64_t repeats[ZC_MAX_RANK];
    for (int i = 0; i < rank; i++) repeats[i] = i == axis.v[0] ? tiles.v[0] : 1;
    n->nin = 1;
    zc_imp_set_in(im, n, 1, zc_imp_ints(im, repeats, rank, 1));
    return im->status;
}

zc_status zc_step_topk_attribute(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(need_attr(im, n, zc_imp_has_attr(n, "k"), "k"));
    int64_t k = zc_imp_take_int(im, n, "k", 0);
    zc_imp_set_in(im, n, 1, zc_imp_ints(im, &k, 1, 1));
    return im->status;
}

/* ---- Constant ---- */

static zc_status finish_tensor(zc_imp *im, zc_inode *n, zc_tensor t)
{
    zc_vid v = zc_imp_const(im, zc_imp_out_name(im, n), &t);
    return im->status == ZC_OK ? zc_imp_finish_as(im, n, v) : im->status;
}

static zc_status constant_list(zc_imp *im, zc_inode *n, const char *name)
{
    zc_ints ints = {0};
    zc_floats floats = {0};
    uint64_t none = 0;
    zc_tensor t = {.rank = 1};
    if (strcmp(name, "value_ints") == 0) {
        zc_imp_take_ints(im, n, name, &ints);
        t = (zc_tensor){
            .dtype = ZC_I64, .rank = 1, .dims = {ints.n}, .data = (void *)(uintptr_t)ints.v};
    } else {
        zc_imp_take_floats(im, n, name, &floats);
        t = (zc_tensor){
            .dtype = ZC_F32, .rank = 1, .dims = {floats.n}, .data = (void *)(uintptr_t)floats.v};
    }
    if (!t.data) t.data = &none;
    return im->status == ZC_OK ? finish_tensor(im, n, t) : im->status;
}

static zc_status constant_number(zc_imp *im, zc_inode *n, const char *name)
{
    int64_t i = 0;
    float f = 0;
    if (strcmp(name, "value_int") == 0) {
        i = zc_imp_take_int(im, n, name, 0);
        return im->status == ZC_OK ? finish_tensor(im, n, (zc_tensor){.dtype = ZC_I64, .data = &i})
                                   : im->status;
    }
    f = (float)zc_imp_take_float(im, n, name, 0);
    return im->status == ZC_OK ? finish_tensor(im, n, (zc_tensor){.dtype = ZC_F32, .data = &f})
                               : im->status;
}

static zc_status constant_tensor(zc_imp *im, zc_inode *n, bool sparse)
{
    const char *name = zc_imp_out_name(im, n);
    const Onnx__AttributeProto *a =
        sparse ? zc_imp_take(im, n, "sparse_value",
                             ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR)
               : zc_imp_take(im, n, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    zc_vid v = 0;
    ZC_TRY(im->status);
    ZC_TRY(sparse ? zc_imp_sparse(im, a->sparse_tensor, name, n->name, &v)
                  : zc_imp_tensor(im, a->t, name, n->name, &v));
    return zc_imp_finish_as(im, n, v);
}

zc_status zc_step_constant(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 0, 0));
    if (n->nattrs != 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "Constant needs one value (got %d attributes)",
                           n->nattrs);
    const char *name = n->attr_names[0];
    if (strcmp(name, "value") == 0 || strcmp(name, "sparse_value") == 0)
        return constant_tensor(im, n, *name == 's');
    if (strcmp(name, "value_int") == 0 || strcmp(name, "value_float") == 0)
        return constant_number(im, n, name);
    if (strcmp(name, "value_ints") == 0 || strcmp(name, "value_floats") == 0)
        return constant_list(im, n, name);
    if (strcmp(name, "value_string") == 0 || strcmp(name, "value_strings") == 0)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "strings are not supported");
    return zc_imp_no_more_attrs(im, n);
}
