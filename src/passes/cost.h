/* What steps cost beside their arithmetic: the one place where fusions are weighed. */
#ifndef ZC_PASSES_COST_H
#define ZC_PASSES_COST_H

#include "ir/graph.h"
#include "kernels/conv_cost.h"

enum {
    ZC_COST_LAUNCH = 4 << 20, /* bytes that memory moves while a GPU starts a step */
    ZC_COST_DIM = 64          /* what a dimension counts that is not known */
};

/* Bytes of a tensor of this type. Saturates. */
int64_t zc_cost_bytes(const zc_type *t);
/* The same of values that a group reads, each once; a constant of one element is free. */
int64_t zc_cost_reads(const zc_graph *g, const zc_vid *values, int n);
/* Bytes saved when a step of pointwise work, from these values to v, becomes part of a step that
 * reads v's elements `times` times and now reads the values as often. Negative: it costs. */
int64_t zc_cost_prologue(const zc_graph *g, const zc_vid *values, int n, zc_vid v, int times);
/* What a convolution channels last does, whose input w are weights, taps first; false: a size is
 * not certain. */
bool zc_cost_conv(const zc_graph *g, const zc_node *n, int w, zc_conv_work *work);
/* A launch, microseconds. */
double zc_cost_launch_us(void);
/* A launch that moves the elements of a tensor of this type, microseconds. */
double zc_cost_move_us(const zc_type *t);

#endif
