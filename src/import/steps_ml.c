/* ai.onnx.ml, all but decision trees: compositions of operations. */
#include <math.h>

#include "import/ml.h"
#include "import/steps.h"

/* What floats become: f64 stays, all else is computed as f32. */
static zc_vid as_float(zc_imp *im, zc_inode *n, zc_vid x)
{
    return zc_imp_cast(im, n, x, zc_imp_dtype(im, x) == ZC_F64 ? ZC_F64 : ZC_F32);
}

/* ---- features ---- */

/* Features by index from the last axis; of a vector, one row of them. */
zc_status zc_step_array_feature_extractor(zc_imp *im, zc_inode *n)
{
    static const int64_t flat = -1, row[] = {1, -1};
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    zc_vid x = n->in[0];
    if (zc_imp_rank(im, x) == 1) x = zc_imp_reshape(im, n, x, row, 2);
    zc_vid in[] = {x, zc_imp_reshape(im, n, n->in[1], &flat, 1)};
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gather, 2, in, 1);
    ZC_IMP_SET(im, Gather, id, axis, -1);
    return zc_imp_finish(im, n, id);
}

/* x as rows of `width` numbers: what is more is left out, what is less filled up with zeros. */
static zc_vid feature_rows(zc_imp *im, zc_inode *n, zc_vid x, int64_t width)
{
    const int64_t pads[] = {0, 0, 0, width}, from = 0;
    if (zc_imp_rank(im, x) == 1)
        x = zc_ml_rows(im, n, x);
    else
        x = zc_imp_op1(im, n, ZC_OP_Flatten, x);
    x = zc_imp_cast(im, n, x, ZC_F32);
    if (im->status != ZC_OK || zc_dim_is(zc_val(im->g, x)->type.dims[1], width)) return x;
    x = zc_imp_op2(im, n, ZC_OP_Pad, x, zc_imp_ints(im, pads, 4, 1));
    return zc_imp_slice(im, n, x, zc_imp_ints(im, &from, 1, 1), zc_imp_ints(im, &width, 1, 1), 1);
}

zc_status zc_step_feature_vectorizer(zc_imp *im, zc_inode *n)
{
    zc_ints widths = {0};
    (void)zc_imp_take_ints(im, n, "inputdimensions", &widths);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, ZC_VARIADIC));
    ZC_TRY(zc_imp_need_all(im, n, 0));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (widths.n != n->nin)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "inputdimensions has a wrong length (got %d, need %d, one an input)",
                           widths.n, n->nin);
    for (int i = 0; i < n->nin; i++) {
        if (widths.v[i] < 1 || widths.v[i] > INT32_MAX)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "inputdimensions[%d] out of range (got %lld, need [1, %d])", i,
                               (long long)widths.v[i], INT32_MAX);
        n->in[i] = feature_rows(im, n, n->in[i], widths.v[i]);
    }
    zc_nid id = zc_imp_node(im, n, ZC_OP_Concat, n->nin, n->in, 1);
    ZC_IMP_SET(im, Concat, id, axis, 1);
    return zc_imp_finish(im, n, id);
}

zc_status zc_step_binarizer(zc_imp *im, zc_inode *n)
{
    const double threshold = zc_imp_take_float(im, n, "threshold", 0);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    const zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    /* f64 holds all of i32 and f32; beyond 2^53 it rounds towards the threshold at worst. */
    if (dtype == ZC_I64 && fabs(threshold) >= 0x1p53)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "threshold %g for i64 (need less than 2^53)",
                           threshold);
    zc_vid in[] = {zc_imp_cast(im, n, n->in[0], ZC_F64), zc_imp_scalar(im, ZC_F64, threshold)};
    return zc_ml_finish(im, n, zc_imp_op2(im, n, ZC_OP_Greater, in[0], in[1]), dtype);
}

/* One number for all features, or one for each. */
static zc_status check_count(zc_imp *im, zc_inode *n, const char *name, int64_t count, zc_vid x)
{
    const zc_type *t = &zc_val(im->g, x)->type;
    if (t->rank < 1)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "%s needs an input of known rank, at least 1",
                           n->op_type);
    const zc_dim features = t->dims[t->rank - 1];
    if (count == 1 || !zc_dim_is_const(features) || features.k == count) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_MODEL,
                       "attribute '%s' has a wrong length (got %lld, need 1 or %lld)", name,
                       (long long)count, (long long)features.k);
}

zc_status zc_step_scaler(zc_imp *im, zc_inode *n)
{
    zc_reals offset, scale;
    zc_ml_reals(im, n, "offset", &offset);
    zc_ml_reals(im, n, "scale", &scale);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_vid x = as_float(im, n, n->in[0]);
    ZC_TRY(im->status);
    const zc_dtype dtype = zc_imp_dtype(im, x);
    if (offset.n) ZC_TRY(check_count(im, n, "offset", offset.n, x));
    if (offset.n) x = zc_imp_op2(im, n, ZC_OP_Sub, x, zc_ml_real_const(im, n, &offset, dtype));
    if (scale.n) ZC_TRY(check_count(im, n, "scale", scale.n, n->in[0]));
    if (scale.n) x = zc_imp_op2(im, n, ZC_OP_Mul, x, zc_ml_real_const(im, n, &scale, dtype));
    return zc_ml_finish(im, n, x, ZC_F32);
}

/* A row whose norm is 0 stays. */
zc_status zc_step_normalizer(zc_imp *im, zc_inode *n)
{
    static const struct {
        const char *name;
        zc_op op;
    } norms[] = {{"MAX", ZC_OP_ReduceMax}, {"L1", ZC_OP_ReduceL1}, {"L2", ZC_OP_ReduceL2}};
    const char *norm = zc_imp_take_str(im, n, "norm", "MAX");
    zc_op op = ZC_OP_NONE;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    for (size_t i = 0; i < ZC_COUNTOF(norms); i++)
        if (strcmp(norm, norms[i].name) == 0) op = norms[i].op;
    if (op == ZC_OP_NONE)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "no such norm (got " ZC_NAME ", need MAX, L1 or L2)", norm);
    zc_vid x = as_float(im, n, n->in[0]);
    zc_vid in[] = {x, zc_ml_over_last(im, n, op, x)};
    return zc_ml_finish(im, n, zc_ml_expr(im, n, 2, in, "x1 == 0 ? x0 : x0 / x1"), ZC_F32);
}

/* ---- Imputer: what equals one value becomes another ---- */

zc_status zc_step_imputer(zc_imp *im, zc_inode *n)
{
    zc_ints ints = {0};
    zc_reals floats;
    zc_ml_reals(im, n, "imputed_value_floats", &floats);
    zc_imp_take_ints(im, n, "imputed_value_int64s", &ints);
    const double old_float = zc_imp_take_float(im, n, "replaced_value_float", 0);
    const int64_t old_int = zc_imp_take_int(im, n, "replaced_value_int64", 0);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    const zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    const bool is_float = zc_dtype_is_float(dtype);
    const int64_t count = is_float ? floats.n : ints.n;
    if (!count)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "Imputer has no values for %s",
                           zc_dtype_name(dtype));
    ZC_TRY(check_count(im, n, "imputed_value", count, n->in[0]));
    zc_vid old = zc_imp_scalar(im, dtype, old_float), new;
    if (is_float) {
        new = zc_ml_real_const(im, n, &floats, dtype);
    } else {
        old = zc_imp_cast(im, n, zc_imp_ints(im, &old_int, 1, 1), dtype);
        new = zc_imp_cast(im, n, zc_imp_ints(im, ints.v, ints.n, 1), dtype);
    }
    zc_vid x = n->in[0];
    zc_vid hit = is_float && isnan(old_float) ? zc_imp_op1(im, n, ZC_OP_IsNaN, x)
                                              : zc_imp_op2(im, n, ZC_OP_Equal, x, old);
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Where, 3, (zc_vid[]){hit, new, x});
}

/* ---- categories ---- */

/* x[...] against keys[K] one by one: bool[..., K]. NaN is found among floats. */
static zc_vid match(zc_imp *im, zc_inode *n, zc_vid x, zc_vid keys)
{
    zc_vid in[] = {zc_ml_over_last(im, n, ZC_OP_Unsqueeze, x), keys};
    if (!zc_dtype_is_float(zc_imp_dtype(im, keys)))
        return zc_imp_op2(im, n, ZC_OP_Equal, in[0], in[1]);
    return zc_ml_expr(im, n, 2, in, "x0 == x1 || (isnan(x0) && isnan(x1))");
}

/* Floats are looked up as whole numbers. A category that is not listed gives zeros. */
zc_status zc_step_one_hot_encoder(zc_imp *im, zc_inode *n)
{
    zc_ints cats;
    zc_imp_take_ints(im, n, "cats_int64s", &cats);
    zc_imp_take_int(im, n, "zeros", 1);
    if (zc_imp_has_attr(n, "cats_strings"))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "OneHotEncoder: strings are not supported");
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_vid x = zc_imp_cast(im, n, n->in[0], ZC_I64);
    zc_vid hot = match(im, n, x, zc_imp_ints(im, cats.v, cats.n, 1));
    return zc_ml_finish(im, n, hot, ZC_F32);
}

/* One side of LabelEncoder's map: attributes NAME_int64s, NAME_floats or NAME_tensor. 0: none. */
static zc_vid take_side(zc_imp *im, zc_inode *n, const char *ints_name, const char *floats_name,
                        const char *tensor_name)
{
    zc_ints ints;
    zc_reals reals;
    if (zc_imp_take_ints(im, n, ints_name, &ints)) return zc_imp_ints(im, ints.v, ints.n, 1);
    if (zc_ml_reals(im, n, floats_name, &reals)) return zc_ml_real_const(im, n, &reals, ZC_F32);
    const Onnx__AttributeProto *a =
        zc_imp_take(im, n, tensor_name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    zc_vid v = 0;
    if (a) im->status = zc_imp_tensor(im, a->t, NULL, n->name, &v);
    return v;
}

/* What a key that is not listed becomes. */
static zc_vid take_default(zc_imp *im, zc_inode *n, zc_dtype dtype)
{
    const int64_t i = zc_imp_take_int(im, n, "default_int64", -1);
    const double f = zc_imp_take_float(im, n, "default_float", -0.0);
    const Onnx__AttributeProto *a =
        zc_imp_take(im, n, "default_tensor", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    zc_imp_take_str(im, n, "default_string", "");
    zc_vid v = 0;
    static const int64_t one = 1;
    if (a && im->status == ZC_OK) im->status = zc_imp_tensor(im, a->t, NULL, n->name, &v);
    if (v) return zc_imp_reshape(im, n, v, &one, 1);
    v = zc_dtype_is_float(dtype) ? zc_imp_scalar(im, dtype, f)
                                 : zc_imp_cast(im, n, zc_imp_ints(im, &i, 1, 1), dtype);
    return zc_imp_reshape(im, n, v, &one, 1);
}

static zc_vid concat(zc_imp *im, zc_inode *n, zc_vid a, zc_vid b, int64_t axis)
{
    zc_nid id = zc_imp_node(im, n, ZC_OP_Concat, 2, (zc_vid[]){a, b}, 1);
    ZC_IMP_SET(im, Concat, id, axis, axis);
    return zc_imp_done(im, n, id);
}

/* Of the matches and one more that is always there, the first is taken from the values and the
 * default. */
zc_status zc_step_label_encoder(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_vid keys = take_side(im, n, "keys_int64s", "keys_floats", "keys_tensor");
    zc_vid values = take_side(im, n, "values_int64s", "values_floats", "values_tensor");
    ZC_TRY(im->status);
    if (!keys || !values)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "LabelEncoder: only numbers become numbers (strings are not supported)");
    const zc_type *k = &zc_val(im->g, keys)->type, *v = &zc_val(im->g, values)->type;
    if (k->rank != 1 || v->rank != 1 || k->dims[0].k != v->dims[0].k)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "LabelEncoder: keys and values must be vectors of one length");
    zc_vid x = n->in[0];
    if (zc_imp_dtype(im, x) != k->dtype)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "LabelEncoder: keys have another type (got %s, need %s)",
                           zc_dtype_name(k->dtype), zc_dtype_name(zc_imp_dtype(im, x)));
    zc_vid hits = zc_imp_cast(im, n, match(im, n, x, keys), ZC_U8);
    zc_vid last = zc_ml_over_last(im, n, ZC_OP_Unsqueeze,
                                  zc_ml_expr(im, n, 1, &x, "u8(x0 == x0 || x0 != x0)"));
    zc_nid first =
        zc_imp_node(im, n, ZC_OP_ArgMax, 1, (zc_vid[]){concat(im, n, hits, last, -1)}, 1);
    ZC_IMP_SET(im, ArgMax, first, axis, -1);
    ZC_IMP_SET(im, ArgMax, first, keepdims, 0);
    zc_vid at = zc_imp_done(im, n, first);
    zc_vid all = concat(im, n, values, take_default(im, n, zc_imp_dtype(im, values)), 0);
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Gather, 2, (zc_vid[]){all, at});
}

/* The map from a class's name to its score is the row of scores. */
zc_status zc_step_zip_map(zc_imp *im, zc_inode *n)
{
    zc_ints unused;
    zc_imp_take_ints(im, n, "classlabels_int64s", &unused);
    zc_imp_take(im, n, "classlabels_strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_warn(im->diag, n->name, "ZipMap gives its input: a row of scores in the classes' order");
    return zc_imp_finish_value(im, n, n->in[0]);
}

/* ---- linear models ---- */

zc_status zc_step_linear_regressor(zc_imp *im, zc_inode *n)
{
    zc_reals coefficients, intercepts;
    zc_ml_reals(im, n, "coefficients", &coefficients);
    zc_ml_reals(im, n, "intercepts", &intercepts);
    const int64_t targets = zc_imp_take_int(im, n, "targets", 1);
    const char *transform = zc_imp_take_str(im, n, "post_transform", "NONE");
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_vid x = as_float(im, n, zc_ml_rows(im, n, n->in[0]));
    ZC_TRY(im->status);
    zc_vid y = zc_ml_linear(im, n, x, &coefficients, &intercepts, targets);
    return zc_ml_finish(im, n, zc_ml_transform(im, n, y, transform), ZC_F32);
}

zc_status zc_step_linear_classifier(zc_imp *im, zc_inode *n)
{
    zc_reals coefficients, intercepts;
    zc_ml_labels labels;
    zc_ml_reals(im, n, "coefficients", &coefficients);
    zc_ml_reals(im, n, "intercepts", &intercepts);
    zc_imp_take_int(im, n, "multi_class", 0);
    const char *transform = zc_imp_take_str(im, n, "post_transform", "NONE");
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(zc_ml_take_labels(im, n, &labels));
    zc_vid x = as_float(im, n, zc_ml_rows(im, n, n->in[0]));
    ZC_TRY(im->status);
    const bool binary = intercepts.n == 1 && labels.n == 2;
    zc_vid y = zc_ml_linear(im, n, x, &coefficients, &intercepts, binary ? 1 : labels.n);
    ZC_TRY(im->status);
    return binary ? zc_ml_finish_binary(im, n, y, &labels, transform, 0, true)
                  : zc_ml_finish_classes(im, n, y, &labels, transform);
}
