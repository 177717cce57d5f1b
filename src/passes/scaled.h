/* Products and convolutions of e4m3 (ScaledLinear, ScaledConv) out of those of f32: which may be,
 * and how factors are scaled.
 *
 * Scales are powers of two: dividing by them rounds nothing, and how many digits a float keeps does
 * not depend on them. Each column of the weights has its own, the other factor one for all. */
#ifndef ZC_PASSES_SCALED_H
#define ZC_PASSES_SCALED_H

#include "ir/graph.h"

/* A product of x and a matrix of constant weights, plus a row; or a convolution, whose weights are
 * rows. */
typedef struct zc_scalable {
    zc_vid x, w, bias;   /* bias 0: none */
    bool along_k;        /* w's rows are N */
    double alpha;        /* of the product */
    const float *limits; /* of each column's magnitudes; NULL: the greatest */
} zc_scalable;

/* Constant weights as a matrix: a column for each channel of the result. */
typedef struct zc_weights {
    const float *x;
    int64_t columns, depth;
    bool along_k;
} zc_weights;

zc_weights zc_weights_of(const zc_graph *g, const zc_scalable *s);
/* Where column c has weight k. */
static inline int64_t zc_weight_at(const zc_weights *w, int64_t c, int64_t k)
{
    return w->along_k ? c * w->depth + k : k * w->columns + c;
}

/* The magnitude that codes of column c reach. */
double zc_column_limit(const zc_scalable *s, const zc_weights *w, int64_t c);

/* Is node n a product by a matrix, plus a row or nothing? */
bool zc_product_of(const zc_graph *g, const zc_node *n, zc_scalable *out);
/* Is node n a convolution of constant weights, of any number of groups? Of one? */
bool zc_convolution_of(const zc_graph *g, const zc_node *n, zc_scalable *out);
bool zc_whole_convolution_of(const zc_graph *g, const zc_node *n, zc_scalable *out);
/* Has a convolution of e4m3 by these weights a kernel on Hopper? */
bool zc_scaled_conv_fits(const zc_tensor *w);
/* Is node n a product of f32, whose sizes are certain, or a convolution for which there is a kernel
 * of e4m3 on Hopper? */
bool zc_scalable_of(const zc_graph *g, const zc_node *n, zc_scalable *out);
/* The least power of two by which a magnitude has to be divided to be in e4m3's range. */
double zc_scale_for(double magnitude);

/* Node n becomes a ScaledLinear or ScaledConv of x, which has been divided by `scale`. false: no
 * memory. */
bool zc_scaled_become(zc_graph *g, zc_nid n, const zc_scalable *s, zc_vid x, double scale);
/* A node, in no block yet, that divides x by the scale and makes e4m3 of it. 0: no memory. */
zc_nid zc_scaled_factor(zc_graph *g, zc_vid x, double scale);

/* What these make of both factors, in f32: the node that rounds x (0: no memory), and the weights,
 * malloc'd (false: no memory). */
zc_nid zc_scaled_rounding(zc_graph *g, zc_vid x, double scale);
bool zc_scaled_weights(const zc_graph *g, const zc_scalable *s, zc_tensor *out);

/* Node n becomes a ScaledLinear of x and w, N x K, of e4m3; bias 0: none. false: no memory. */
bool zc_scaled_linear(zc_graph *g, zc_nid n, zc_vid x, zc_vid w, zc_vid scale, zc_vid bias);
/* A Conv becomes a ScaledConv. false: no memory. */
bool zc_scaled_conv(zc_graph *g, zc_nid n, zc_vid x, zc_vid w, zc_vid scale, zc_vid bias);

#endif
