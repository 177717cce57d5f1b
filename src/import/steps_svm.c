/* ai.onnx.ml: support vector machines. */
#include "import/ml.h"
#include "import/steps.h"

/* What classifiers and regressors share. */
typedef struct svm {
    zc_reals vectors, coefficients, rho;
    const char *kernel, *transform;
    double gamma, coef0, degree;
} svm;

static zc_status take_svm(zc_imp *im, zc_inode *n, svm *s)
{
    zc_reals params;
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    s->kernel = zc_imp_take_str(im, n, "kernel_type", "LINEAR");
    s->transform = zc_imp_take_str(im, n, "post_transform", "NONE");
    zc_ml_reals(im, n, "kernel_params", &params);
    zc_ml_reals(im, n, "support_vectors", &s->vectors);
    zc_ml_reals(im, n, "coefficients", &s->coefficients);
    zc_ml_reals(im, n, "rho", &s->rho);
    ZC_TRY(im->status);
    if (params.n && params.n != 3)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute 'kernel_params' has a wrong length (got %lld, need 3)",
                           (long long)params.n);
    if (!s->rho.n) return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs attribute 'rho'", n->op_type);
    s->gamma = params.n ? zc_ml_real(&params, 0) : 0;
    s->coef0 = params.n ? zc_ml_real(&params, 1) : 0;
    s->degree = params.n ? zc_ml_real(&params, 2) : 0;
    return ZC_OK;
}

/* The squares of the rows' lengths: [rows, 1]. */
static zc_vid squares(zc_imp *im, zc_inode *n, zc_vid x)
{
    static const int64_t last = -1;
    return zc_imp_op2(im, n, ZC_OP_ReduceSumSquare, x, zc_imp_ints(im, &last, 1, 1));
}

/* exp(-gamma |x - v|^2), the square as |x|^2 + |v|^2 - 2 x.v: of f64, as much is cancelled. */
static zc_vid rbf(zc_imp *im, zc_inode *n, const svm *s, zc_vid x, zc_vid v, zc_vid product)
{
    const zc_vid in[] = {squares(im, n, x), zc_imp_op1(im, n, ZC_OP_Transpose, squares(im, n, v)),
                         product, zc_imp_scalar(im, ZC_F64, -s->gamma)};
    return zc_ml_expr(im, n, 4, in, "exp(x3 * max(x0 + x1 - 2 * x2, 0))");
}

/* The kernel of x[N, F] and each of `count` support vectors: f64[N, count]. */
static zc_vid apply_kernel(zc_imp *im, zc_inode *n, const svm *s, int64_t count, zc_vid x)
{
    x = zc_imp_cast(im, n, x, ZC_F64);
    zc_vid product = zc_ml_linear(im, n, x, &s->vectors, &(zc_reals){0}, count);
    if (im->status != ZC_OK || strcmp(s->kernel, "LINEAR") == 0) return product;
    if (strcmp(s->kernel, "RBF") == 0) {
        const int64_t shape[] = {count, -1};
        zc_vid v = zc_imp_reshape(im, n, zc_ml_real_const(im, n, &s->vectors, ZC_F64), shape, 2);
        return rbf(im, n, s, x, v, product);
    }
    const bool poly = strcmp(s->kernel, "POLY") == 0;
    if (!poly && strcmp(s->kernel, "SIGMOID") != 0) {
        zc_imp_fail(im, n, ZC_ERR_MODEL,
                    "no such kernel_type (got " ZC_NAME ", need LINEAR, POLY, RBF or SIGMOID)",
                    s->kernel);
        return 0;
    }
    const zc_vid in[] = {product, zc_imp_scalar(im, ZC_F64, s->gamma),
                         zc_imp_scalar(im, ZC_F64, s->coef0), zc_imp_scalar(im, ZC_F64, s->degree)};
    return zc_ml_expr(im, n, 4, in, poly ? "pow(x1 * x0 + x2, x3)" : "tanh(x1 * x0 + x2) + 0 * x3");
}

/* ---- SVMRegressor ---- */

zc_status zc_step_svm_regressor(zc_imp *im, zc_inode *n)
{
    svm s;
    const int64_t supports = zc_imp_take_int(im, n, "n_supports", 0);
    const bool one_class = zc_imp_take_int(im, n, "one_class", 0) != 0;
    ZC_TRY(take_svm(im, n, &s));
    zc_vid x = zc_ml_rows(im, n, n->in[0]);
    ZC_TRY(im->status);
    if (s.rho.n > 1) s.rho.n = 1;
    x = supports > 0 ? apply_kernel(im, n, &s, supports, x) : zc_imp_cast(im, n, x, ZC_F64);
    ZC_TRY(im->status);
    zc_vid y = zc_ml_linear(im, n, x, &s.coefficients, &s.rho, 1);
    if (one_class) y = zc_ml_expr(im, n, 1, &y, "f64(x0 > 0) * 2 - 1");
    return zc_ml_finish(im, n, zc_ml_transform(im, n, y, s.transform), ZC_F32);
}

/* ---- SVMClassifier ---- */

/* A vector for each class against each other one, as the columns of a matrix. */
typedef struct pairs {
    int64_t supports, count;
    double *weights; /* [count, supports]: what a pair's score takes of each kernel */
    double *votes;   /* [classes, count]: what a pair's first class gets, the second -1 */
} pairs;

static zc_status make_pairs(zc_imp *im, zc_inode *n, const svm *s, const zc_ints *per_class,
                            pairs *p)
{
    const int64_t classes = per_class->n;
    p->count = classes * (classes - 1) / 2;
    for (int c = 0; c < classes; c++) {
        if (per_class->v[c] < 0 || per_class->v[c] > s->coefficients.n)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "vectors_per_class: number of class %d out of range (got %lld)", c,
                               (long long)per_class->v[c]);
        p->supports += per_class->v[c];
    }
    if (s->coefficients.n != p->supports * (classes - 1) || s->rho.n != p->count || !p->supports)
        return zc_imp_fail(
            im, n, ZC_ERR_MODEL,
            "lengths of coefficients and rho (got %lld and %lld, need %lld and %lld)",
            (long long)s->coefficients.n, (long long)s->rho.n,
            (long long)(p->supports * (classes - 1)), (long long)p->count);
    size_t cells;
    if (!zc_mul_size((size_t)p->count, (size_t)p->supports, &cells))
        return zc_imp_nomem(im, "support vectors");
    p->weights = zc_arena_alloc(n->arena, cells, sizeof *p->weights);
    p->votes = zc_arena_alloc(n->arena, (size_t)p->count, (size_t)classes * sizeof *p->votes);
    if (!p->weights || !p->votes) return zc_imp_nomem(im, "support vectors");
    int64_t pair = 0;
    for (int64_t i = 0, at_i = 0; i < classes; at_i += per_class->v[i++]) {
        int64_t at_j = at_i + per_class->v[i];
        for (int64_t j = i + 1; j < classes; at_j += per_class->v[j++], pair++) {
            double *w = p->weights + pair * p->supports;
            for (int64_t k = at_i; k < at_i + per_class->v[i]; k++)
                w[k] = zc_ml_real(&s->coefficients, (j - 1) * p->supports + k);
            for (int64_t k = at_j; k < at_j + per_class->v[j]; k++)
                w[k] = zc_ml_real(&s->coefficients, i * p->supports + k);
            p->votes[i * p->count + pair] = 1;
            p->votes[j * p->count + pair] = -1;
        }
    }
    return ZC_OK;
}

/* x times the transpose of a matrix of constants. */
static zc_vid times(zc_imp *im, zc_inode *n, zc_vid x, const double *matrix, int64_t rows,
                    int64_t columns)
{
    zc_tensor t = {
        .dtype = ZC_F64, .rank = 2, .dims = {rows, columns}, .data = (void *)(uintptr_t)matrix};
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gemm, 2, (zc_vid[]){x, zc_imp_const(im, NULL, &t)}, 1);
    ZC_IMP_SET(im, Gemm, id, transB, 1);
    return zc_imp_done(im, n, id);
}

zc_status zc_step_svm_classifier(zc_imp *im, zc_inode *n)
{
    svm s;
    zc_ints per_class;
    zc_ml_labels labels;
    zc_reals prob_a, prob_b;
    pairs p = {0};
    zc_imp_take_ints(im, n, "vectors_per_class", &per_class);
    zc_ml_reals(im, n, "prob_a", &prob_a);
    zc_ml_reals(im, n, "prob_b", &prob_b);
    ZC_TRY(zc_ml_take_labels(im, n, &labels));
    ZC_TRY(take_svm(im, n, &s));
    zc_vid x = zc_imp_cast(im, n, zc_ml_rows(im, n, n->in[0]), ZC_F64);
    ZC_TRY(im->status);
    if (!per_class.n)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "SVMClassifier without vectors_per_class: the specification does not "
                           "say what rho is then");
    if (per_class.n != labels.n || labels.n < 2)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "vectors_per_class has a wrong length (got %d, need %d, at least 2)",
                           per_class.n, labels.n);
    ZC_TRY(make_pairs(im, n, &s, &per_class, &p));
    zc_vid y = times(im, n, apply_kernel(im, n, &s, p.supports, x), p.weights, p.count, p.supports);
    y = zc_imp_op2(im, n, ZC_OP_Add, y, zc_ml_real_const(im, n, &s.rho, ZC_F64));
    if (prob_a.n) {
        if (labels.n > 2)
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "SVMClassifier: probabilities of more than two classes, which are "
                               "found by iteration");
        if (prob_a.n != 1 || prob_b.n != 1)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "lengths of prob_a and prob_b (got %lld and %lld, need 1)",
                               (long long)prob_a.n, (long long)prob_b.n);
        const zc_vid in[] = {y, zc_ml_real_const(im, n, &prob_a, ZC_F64),
                             zc_ml_real_const(im, n, &prob_b, ZC_F64)};
        y = zc_ml_expr(im, n, 3, in, "sigmoid(-(x0 * x1 + x2))");
        static const double sides[] = {1, -1};
        zc_vid both = times(im, n, y, sides, 2, 1);
        const zc_vid ends[] = {both};
        y = zc_ml_expr(im, n, 1, ends, "x0 < 0 ? 1 + x0 : x0");
        return zc_ml_finish_classes(im, n, y, &labels, s.transform);
    }
    zc_vid won = zc_ml_expr(im, n, 1, &y, "f64(x0 > 0) * 2 - 1");
    zc_vid votes = times(im, n, won, p.votes, labels.n, p.count);
    if (labels.n == 2) y = times(im, n, y, (const double[]){-1, 1}, 2, 1);
    return zc_ml_finish_voted(im, n, votes, y, &labels, s.transform);
}
