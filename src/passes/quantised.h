/* What passes ask of quantisation in a graph. */
#ifndef ZC_PASSES_QUANTISED_H
#define ZC_PASSES_QUANTISED_H

#include "passes/query.h"

/* Bytes, their scale and their zero point. */
typedef struct zc_quantised {
    zc_nid by; /* what makes floats of them */
    zc_vid x, scale, zero;
    int64_t axis; /* of several scales; -1: one for all */
} zc_quantised;

/* Is v made of integers, with one scale or one for each index of an axis? It is f32, or, by scales
 * that are known, f16 or bf16: integers stand for these as they would if nothing was rounded to 16
 * bits. */
bool zc_dequantised(const zc_graph *g, zc_vid v, zc_quantised *out);
/* Makes it bytes of such floats, with one scale for all? */
bool zc_is_quantised(const zc_graph *g, const zc_node *n);
/* The constant of 16-bit floats as one of f32; any other value as it is. 0: no memory. */
zc_vid zc_as_f32(zc_graph *g, zc_vid v);
bool zc_is_bytes(const zc_graph *g, zc_vid v);
/* The constant v; NULL: it is none, or absent, or without data. */
const zc_tensor *zc_known(const zc_graph *g, zc_vid v);
/* Of f32: has it neither NaN nor infinity? */
bool zc_is_finite(const zc_tensor *t);
/* Scale i, where one may stand for all. */
double zc_scale_at(const zc_tensor *t, int64_t i);

/* Is each element of the node's result one of its first operand's? Quantisation keeps the order of
 * numbers, so that it may come before a maximum of them. */
bool zc_only_chooses(const zc_graph *g, const zc_node *n);

/* v, or what its elements are chosen from in the end. */
zc_vid zc_chosen_from(const zc_graph *g, zc_vid v);
/* Values that are looked at behind a Concat, whose operands may be joined, too. */
enum { ZC_JOINED_MOST = 1024 };

/* A MatMul, Gemm or Linear of what is dequantised: the first factor by one scale that is known, the
 * matrix b by one or one for each column. */
typedef struct zc_linear {
    zc_quantised a, b;
    bool turned; /* b's columns are stored as rows */
    zc_vid bias; /* 0: none */
} zc_linear;

bool zc_linear_of(const zc_graph *g, const zc_node *n, zc_linear *l);
/* The constant matrix of 8-bit elements, turned. 0: no memory. */
zc_vid zc_turned(zc_graph *g, zc_vid v);

/* Uses of the values that a graph had when they were counted. */
typedef struct zc_use_counts {
    uint32_t *of; /* the caller frees it */
    size_t values;
} zc_use_counts;

/* false: no memory. */
bool zc_count_uses(const zc_graph *g, zc_use_counts *out);
bool zc_used_once(const zc_use_counts *uses, zc_vid v);
/* Removes node n when its result was used once, by what is gone. */
void zc_drop(zc_graph *g, const zc_use_counts *uses, zc_nid n);

#endif
