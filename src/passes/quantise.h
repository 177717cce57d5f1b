/* Convolutions and products of bytes out of those of f32 (int8): which may be, and quantisations as
 * a model would have them, of which opt_bytes and opt_integers make integer steps.
 *
 * Activations are u8 of one scale, with a zero point such that 0 is exact. Weights are i8 with a
 * scale for each channel of the result, and 0 as zero point. */
#ifndef ZC_PASSES_QUANTISE_H
#define ZC_PASSES_QUANTISE_H

#include "passes/mixed.h"
#include "passes/scaled.h"

/* Is node n a convolution of one group, or of each channel by itself (bytes of other groups are
 * slow everywhere), or a product, of f32 and constant weights, whose sums of integers fit 32 bits?
 * A convolution's weights are rows (along_k), its bias is constant. */
bool zc_quantisable_of(const zc_graph *g, const zc_node *n, zc_scalable *out);

typedef struct zc_quanta {
    float scale;
    uint8_t zero;
} zc_quanta;

/* Of u8 that hold the span and 0. */
zc_quanta zc_quanta_of(const zc_span *s);
/* Why u8 cannot hold it; NULL: they can. */
const char *zc_span_fault(const zc_span *s);

/* Nodes, in no block yet, one after the other. bias 0: none that is quantised. */
typedef struct zc_quantised_pair {
    zc_nid first, second;
} zc_quantised_pair;

/* QuantizeLinear of v, and the DequantizeLinear of that, by this name. first 0: no memory. */
zc_quantised_pair zc_quantise(zc_graph *g, zc_vid v, const zc_quanta *q, const char *name);
/* DequantizeLinear of node n's weights and, of a convolution with one, of its bias (else 0), which
 * n reads from now on. first 0: no memory. */
zc_quantised_pair zc_quantise_weights(zc_graph *g, zc_nid n, const zc_scalable *s,
                                      const zc_quanta *x);

#endif
