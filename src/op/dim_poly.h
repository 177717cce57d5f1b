/* The normal form of symbolic integers, and what dim.c and its parts share. Internal to src/op. */
#ifndef ZC_OP_DIM_POLY_H
#define ZC_OP_DIM_POLY_H

#include "op/dim.h"

/* Expressions beyond these sizes stay correct but are kept as one opaque atom. */
#define ZC_POLY_TERMS   64
#define ZC_POLY_FACTORS 12

/* coef * product of atoms. An atom is a reference (1 + index) to a node; factors are sorted. */
typedef struct zc_term {
    int64_t coef;
    uint32_t n;
    uint32_t atoms[ZC_POLY_FACTORS];
} zc_term;

/* A sum of terms with distinct factors and nonzero coefficients, sorted by zc_term_order. */
typedef struct zc_poly {
    size_t n;
    zc_term terms[ZC_POLY_TERMS];
} zc_poly;

/* The functions that return bool fail when a limit is exceeded or a coefficient overflows; *out is
 * then not to be used. */
void zc_poly_of(const zc_dims *t, zc_dim d, zc_poly *out);
zc_dim zc_poly_dim(zc_dims *t, const zc_poly *p);
/* dst += scale * src. dst and src are different objects. */
bool zc_poly_add_scaled(zc_poly *dst, const zc_poly *src, const zc_term *scale);
bool zc_poly_mul(const zc_poly *a, const zc_poly *b, zc_poly *out);
/* Leading terms first: higher degree, then smaller atoms. Products keep the order. */
int zc_term_order(const zc_term *a, const zc_term *b);
/* a / b when coefficient and factors divide exactly. */
bool zc_term_div(const zc_term *a, const zc_term *b, zc_term *out);
/* quotient with a == quotient * b; false when b does not divide a. */
bool zc_poly_div(const zc_poly *a, const zc_poly *b, zc_poly *quotient);
/* a == quotient * divisor + rest, where the rest's terms cannot be divided by the divisor; a
 * constant rest under a positive constant divisor lies within [0, divisor). */
bool zc_poly_split(const zc_poly *a, const zc_term *divisor, zc_poly *quotient, zc_poly *rest);
/* Greatest common divisor of all coefficients (of non-constant terms only, on request) and c. */
uint64_t zc_poly_content(const zc_poly *p, bool skip_constant, int64_t c);

/* Bounds when all symbols are >= 0. lo == INT64_MIN and hi == INT64_MAX mean none; lo is never
 * INT64_MAX and hi never INT64_MIN. */
typedef struct zc_range {
    int64_t lo, hi;
} zc_range;
zc_range zc_range_of(const zc_dims *t, zc_dim d);
zc_range zc_range_apply(zc_dim_kind kind, zc_range a, zc_range b);
zc_range zc_range_poly(const zc_dims *t, const zc_poly *p);

/* The hash-consed node, without any simplification. */
zc_dim zc_dims_intern(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b);
/* A symbol by name (n bytes). */
zc_dim zc_dims_symbol(zc_dims *t, const char *name, size_t n, bool is_input);
/* True when *out is the result already: of constants, or without a table that works. */
bool zc_dims_settled(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b, zc_dim *out);
/* The operation on numbers; false on overflow or division by zero. */
bool zc_dim_apply(zc_dim_kind kind, int64_t x, int64_t y, int64_t *out);

#endif
