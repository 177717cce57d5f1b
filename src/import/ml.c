#include "import/ml.h"

#include "base/number.h"

/* ---- attributes ---- */

bool zc_ml_tensor_reals(zc_imp *im, zc_inode *n, const char *name, zc_reals *out)
{
    zc_vid v = 0;
    *out = (zc_reals){0};
    const Onnx__AttributeProto *a =
        zc_imp_take(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    if (!a) return false;
    im->status = zc_imp_tensor(im, a->t, NULL, n->name, &v);
    const zc_tensor *t = im->status == ZC_OK ? zc_val(im->g, v)->data : NULL;
    if (im->status != ZC_OK) return false;
    if (!t || (!t->data && zc_tensor_numel(t)) || t->rank > 1 ||
        zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX || zc_dtype_bits(t->dtype) < 8) {
        zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                    "attribute '" ZC_NAME "' is no vector of numbers in the model", name);
        return false;
    }
    *out = (zc_reals){.n = zc_tensor_numel(t), .wide = t->dtype == ZC_F64, .tensor = t};
    return true;
}

/* "NAME_as_tensor" */
static const char *tensor_name(zc_imp *im, zc_inode *n, const char *name)
{
    const size_t len = strlen(name) + sizeof "_as_tensor";
    char *text = zc_arena_alloc(n->arena, len, 1);
    if (text) zc_snprintf(text, len, "%s_as_tensor", name);
    if (!text) zc_imp_nomem(im, "names");
    return text;
}

bool zc_ml_reals(zc_imp *im, zc_inode *n, const char *name, zc_reals *out)
{
    zc_floats list;
    *out = (zc_reals){0};
    if (zc_imp_take_floats(im, n, name, &list) && list.n) {
        *out = (zc_reals){.n = list.n, .list = list.v};
        return true;
    }
    const char *tensor = tensor_name(im, n, name);
    return tensor && zc_ml_tensor_reals(im, n, tensor, out);
}

double zc_ml_real(const zc_reals *r, int64_t i)
{
    return r->tensor ? zc_load_f64(r->tensor->dtype, r->tensor->data, i) : (double)r->list[i];
}

zc_vid zc_ml_real_const(zc_imp *im, zc_inode *n, const zc_reals *r, zc_dtype dtype)
{
    double *values = zc_arena_alloc(n->arena, (size_t)r->n, sizeof *values); /* or floats */
    if (!values) {
        zc_imp_nomem(im, "an attribute");
        return 0;
    }
    for (int64_t i = 0; i < r->n; i++) zc_store_f64(dtype, values, i, zc_ml_real(r, i));
    zc_tensor t = {.dtype = dtype, .rank = 1, .dims = {r->n}, .data = values};
    return zc_imp_const(im, NULL, &t);
}

void zc_ml_drop(zc_imp *im, zc_inode *n, const char *name)
{
    zc_floats unused;
    const char *tensor = tensor_name(im, n, name);
    zc_imp_take_floats(im, n, name, &unused);
    if (tensor) zc_imp_take(im, n, tensor, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
}

/* ---- rows ---- */

zc_vid zc_ml_rows(zc_imp *im, zc_inode *n, zc_vid x)
{
    static const int64_t one_row[] = {1, -1};
    const int rank = zc_imp_rank(im, x);
    if (rank == 2 || im->status != ZC_OK) return x;
    if (rank == 1) return zc_imp_reshape(im, n, x, one_row, 2);
    zc_imp_fail(im, n, rank < 0 ? ZC_ERR_UNSUPPORTED : ZC_ERR_MODEL,
                "%s: input 0 has a wrong rank (got %d, need 1 or 2)", n->op_type, rank);
    return 0;
}

zc_vid zc_ml_linear(zc_imp *im, zc_inode *n, zc_vid x, const zc_reals *coefficients,
                    const zc_reals *intercepts, int64_t classes)
{
    const zc_type *t = &zc_val(im->g, x)->type;
    const zc_dim features = t->dims[1];
    if (classes < 1 || coefficients->n % classes || !coefficients->n ||
        (intercepts->n && intercepts->n != classes) ||
        (zc_dim_is_const(features) && features.k != coefficients->n / classes)) {
        zc_imp_fail(im, n, ZC_ERR_MODEL,
                    "%s: %lld coefficients and %lld intercepts do not fit %lld classes of the "
                    "input's features",
                    n->op_type, (long long)coefficients->n, (long long)intercepts->n,
                    (long long)classes);
        return 0;
    }
    const int64_t shape[] = {classes, -1};
    zc_vid in[3] = {x};
    in[1] = zc_imp_reshape(im, n, zc_ml_real_const(im, n, coefficients, t->dtype), shape, 2);
    in[2] = intercepts->n ? zc_ml_real_const(im, n, intercepts, t->dtype) : 0;
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gemm, in[2] ? 3 : 2, in, 1);
    ZC_IMP_SET(im, Gemm, id, transB, 1);
    return zc_imp_done(im, n, id);
}

/* ---- transforms ---- */

zc_vid zc_ml_expr(zc_imp *im, zc_inode *n, int nin, const zc_vid *in, const char *text)
{
    return zc_imp_done(im, n, zc_imp_expr(im, n, nin, in, text));
}

zc_vid zc_ml_over_last(zc_imp *im, zc_inode *n, zc_op op, zc_vid y)
{
    static const int64_t last = -1;
    return zc_imp_op2(im, n, op, y, zc_imp_ints(im, &last, 1, 1));
}

/* Softmax of what is not 0; what is stays so. */
static zc_vid softmax_zero(zc_imp *im, zc_inode *n, zc_vid y)
{
    zc_vid in[] = {y, zc_ml_over_last(im, n, ZC_OP_ReduceMax, y)};
    zc_vid e = zc_ml_expr(im, n, 2, in, "abs(x0) > 1e-7 ? exp(x0 - x1) : 0");
    zc_vid parts[] = {e, zc_ml_over_last(im, n, ZC_OP_ReduceSum, e)};
    return zc_ml_expr(im, n, 2, parts, "x0 / x1");
}

zc_vid zc_ml_transform(zc_imp *im, zc_inode *n, zc_vid y, const char *post_transform)
{
    if (im->status != ZC_OK || strcmp(post_transform, "NONE") == 0) return y;
    if (strcmp(post_transform, "LOGISTIC") == 0) return zc_imp_op1(im, n, ZC_OP_Sigmoid, y);
    if (strcmp(post_transform, "SOFTMAX") == 0) return zc_imp_op1(im, n, ZC_OP_Softmax, y);
    if (strcmp(post_transform, "SOFTMAX_ZERO") == 0) return softmax_zero(im, n, y);
    bool known = strcmp(post_transform, "PROBIT") == 0;
    zc_imp_fail(im, n, known ? ZC_ERR_UNSUPPORTED : ZC_ERR_MODEL,
                "post_transform (got " ZC_NAME ", need NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO)",
                post_transform);
    return 0;
}

zc_status zc_ml_finish(zc_imp *im, zc_inode *n, zc_vid y, zc_dtype dtype)
{
    y = zc_imp_cast(im, n, y, dtype);
    ZC_TRY(im->status);
    return zc_imp_finish_value(im, n, y);
}

/* ---- classes ---- */

zc_status zc_ml_take_labels(zc_imp *im, zc_inode *n, zc_ml_labels *out)
{
    zc_ints ints = {0}, old = {0};
    const Onnx__AttributeProto *strings =
        zc_imp_take(im, n, "classlabels_strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    zc_imp_take_ints(im, n, "classlabels_int64s", &ints);
    zc_imp_take_ints(im, n, "classlabels_ints", &old);
    ZC_TRY(im->status);
    if (old.n) ints = old;
    *out = (zc_ml_labels){.n = ints.n, .ints = ints.v};
    if (ints.n) return ZC_OK;
    const size_t count = strings ? strings->n_strings : 0;
    if (!count || count > INT32_MAX)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s has no class labels", n->op_type);
    int64_t *own = zc_arena_alloc(n->arena, count, sizeof *own);
    if (!own) return zc_imp_nomem(im, "labels");
    for (size_t i = 0; i < count; i++) own[i] = (int64_t)i;
    *out = (zc_ml_labels){.n = (int)count, .ints = own};
    zc_warn(im->diag, n->name,
            "its labels are strings: the label is the index into classlabels_strings (0 is '%.*s')",
            (int)(strings->strings[0].len < 64 ? strings->strings[0].len : 64),
            (const char *)strings->strings[0].data);
    return ZC_OK;
}

/* Outputs 0 and 1, either of which may not be wanted. */
static zc_status finish_both(zc_imp *im, zc_inode *n, zc_vid index, const zc_ml_labels *labels,
                             zc_vid scores)
{
    zc_vid in[] = {zc_imp_ints(im, labels->ints, labels->n, 1), index};
    zc_vid label = zc_imp_op2(im, n, ZC_OP_Gather, in[0], in[1]);
    scores = zc_imp_cast(im, n, scores, ZC_F32);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (n->nout > 2)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s has too many outputs (got %d, need 2)",
                           n->op_type, n->nout);
    if (*n->out[0]) ZC_TRY(zc_imp_bind(im, n, 0, label));
    if (n->nout > 1 && *n->out[1]) ZC_TRY(zc_imp_bind(im, n, 1, scores));
    n->done = true;
    return im->status;
}

zc_status zc_ml_finish_classes(zc_imp *im, zc_inode *n, zc_vid y, const zc_ml_labels *labels,
                               const char *post_transform)
{
    return zc_ml_finish_voted(im, n, y, y, labels, post_transform);
}

zc_status zc_ml_finish_voted(zc_imp *im, zc_inode *n, zc_vid votes, zc_vid y,
                             const zc_ml_labels *labels, const char *post_transform)
{
    zc_nid best = zc_imp_node(im, n, ZC_OP_ArgMax, 1, &votes, 1);
    ZC_IMP_SET(im, ArgMax, best, axis, 1);
    ZC_IMP_SET(im, ArgMax, best, keepdims, 0);
    zc_vid index = zc_imp_done(im, n, best);
    return finish_both(im, n, index, labels, zc_ml_transform(im, n, y, post_transform));
}

zc_status zc_ml_finish_binary(zc_imp *im, zc_inode *n, zc_vid y, const zc_ml_labels *labels,
                              const char *post_transform, double threshold, bool complement)
{
    static const int64_t column = 1;
    const bool logistic = strcmp(post_transform, "LOGISTIC") == 0;
    zc_vid yes = zc_ml_expr(im, n, 1, &y, threshold > 0 ? "x0 > 0.5" : "x0 > 0");
    zc_vid index = zc_imp_cast(
        im, n, zc_imp_op2(im, n, ZC_OP_Squeeze, yes, zc_imp_ints(im, &column, 1, 1)), ZC_I64);
    zc_vid pair[] = {zc_ml_expr(im, n, 1, &y, complement && !logistic ? "1 - x0" : "-x0"), y};
    zc_nid both = zc_imp_node(im, n, ZC_OP_Concat, 2, pair, 1);
    ZC_IMP_SET(im, Concat, both, axis, 1);
    zc_vid scores = zc_imp_done(im, n, both);
    if (logistic) scores = zc_imp_op1(im, n, ZC_OP_Sigmoid, scores);
    return finish_both(im, n, index, labels, scores);
}
