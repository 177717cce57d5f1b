/* Functions of bytes as sums of products. */
#ifndef ZC_OP_AFFINE_H
#define ZC_OP_AFFINE_H

#include "op/expr.h"

/* T(round(x / scale) + zero) of f32, T of 8 bits, as QuantizeLinear is written; or e4m3(x / scale).
 */
typedef struct zc_quantised {
    int x; /* a node */
    float scale;
    int zero;
} zc_quantised;

/* Is node n such a result? */
bool zc_quantised_of(const zc_expr *e, int n, zc_quantised *out);

/* rint(factor[0] * x[0] + (factor[1] * x[1] + addend)), saturated to 0 and 255, from the type's
 * least byte on; each product with its sum is rounded once to f32. */
typedef struct zc_affine {
    int x[2]; /* inputs of the expression in their order, or one of them twice */
    float factor[2], addend;
    bool whole; /* the sum of whole numbers is the same function, too: of x[0], x[1] and 1 times
                   factor[0], factor[1] and addend + 1/2, each in units of 2^-24 to the nearest,
                   without what is less than 1 */
} zc_affine;

/* Node n, of 8 bits: does it depend on one or two bytes alone, and is there such a sum with its
 * result for each of them? All are tried, so that the sum is the same function. */
bool zc_affine_of(const zc_expr *e, int n, zc_affine *out);

/* What the sum would be of real numbers, but for bounds. */
typedef struct zc_affine_line {
    int x[2];
    bool is_signed[2];
    double factor[2], addend;
} zc_affine_line;

/* Is there one? Whether it is the same function is not asked. */
bool zc_affine_line_of(const zc_expr *e, int n, zc_affine_line *out);

/* Number i of the sums that may be: factors and addend up to two digits off. */
enum { ZC_AFFINE_CANDIDATES = 125 };
zc_affine zc_affine_candidate(const zc_affine_line *l, int i);

#endif
