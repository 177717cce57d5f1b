/* What the steps for ai.onnx.ml share: lists of reals, class labels, transforms of scores. */
#ifndef ZC_IMPORT_ML_H
#define ZC_IMPORT_ML_H

#include "import/importer.h"

/* Numbers of an attribute that is a list of floats or a tensor. */
typedef struct zc_reals {
    int64_t n;
    bool wide; /* f64 */
    const float *list;
    const zc_tensor *tensor; /* or NULL */
} zc_reals;

/* Takes attribute `name`, or `name`_as_tensor; n is 0 without either. */
bool zc_ml_reals(zc_imp *im, zc_inode *n, const char *name, zc_reals *out);
/* Takes the tensor `name`. */
bool zc_ml_tensor_reals(zc_imp *im, zc_inode *n, const char *name, zc_reals *out);
double zc_ml_real(const zc_reals *r, int64_t i);
/* As a vector. */
zc_vid zc_ml_real_const(zc_imp *im, zc_inode *n, const zc_reals *r, zc_dtype dtype);
/* Takes an attribute that changes no result away, in either form. */
void zc_ml_drop(zc_imp *im, zc_inode *n, const char *name);

/* x of rank 1 or 2 as rows [N, F]; fails when the rank is another or not known. */
zc_vid zc_ml_rows(zc_imp *im, zc_inode *n, zc_vid x);

/* Nodes of the importer's: a scalar expression of `in`; op of x and its last axis. */
zc_vid zc_ml_expr(zc_imp *im, zc_inode *n, int nin, const zc_vid *in, const char *text);
zc_vid zc_ml_over_last(zc_imp *im, zc_inode *n, zc_op op, zc_vid x);
/* Scores changed as post_transform says. */
zc_vid zc_ml_transform(zc_imp *im, zc_inode *n, zc_vid y, const char *post_transform);
/* x[N, F] times the coefficients [C, F], and the intercepts [C], if any: [N, C]. */
zc_vid zc_ml_linear(zc_imp *im, zc_inode *n, zc_vid x, const zc_reals *coefficients,
                    const zc_reals *intercepts, int64_t classes);
/* The node's only output is y in that type. */
zc_status zc_ml_finish(zc_imp *im, zc_inode *n, zc_vid y, zc_dtype dtype);

/* ---- classes ---- */

typedef struct zc_ml_labels {
    int n;
    const int64_t *ints; /* of strings: their indices */
} zc_ml_labels;

/* From the attributes classlabels_strings and classlabels_int64s or _ints. Strings become their
 * indices, which a warning says. */
zc_status zc_ml_take_labels(zc_imp *im, zc_inode *n, zc_ml_labels *out);
/* Outputs label and scores from the scores y[N, C] of classes. */
zc_status zc_ml_finish_classes(zc_imp *im, zc_inode *n, zc_vid y, const zc_ml_labels *labels,
                               const char *post_transform);
/* The same with scores of their own; the label is that of the most votes[N, C]. */
zc_status zc_ml_finish_voted(zc_imp *im, zc_inode *n, zc_vid votes, zc_vid y,
                             const zc_ml_labels *labels, const char *post_transform);
/* The same from y[N, 1], the score of the second of two classes, which is the label where it is
 * above the threshold, 0 or 0.5. The first one's score is 1 - y (complement) or -y. */
zc_status zc_ml_finish_binary(zc_imp *im, zc_inode *n, zc_vid y, const zc_ml_labels *labels,
                              const char *post_transform, double threshold, bool complement);

#endif
