/* Constant weights as codes of 4 or 8 bits (int4, w8, fp4), with a scale, and maybe a zero point,
 * for each group of neighbours along the summed axis: what DequantizeLinear by blocks makes floats
 * of.
 *
 * Of each group the range is cut where the codes' numbers are least off, by their squares. */
#ifndef ZC_PASSES_CODES_H
#define ZC_PASSES_CODES_H

#include "passes/scaled.h"

typedef struct zc_code_form {
    int bits;
    int64_t group;  /* weights that share a scale; of a column, all where no usual number divides */
    bool has_zeros; /* codes without a sign, of which a zero point is subtracted */
    bool is_float;  /* e2m1, by powers of two: MXFP4 where the group is 32 */
} zc_code_form;

/* Is node n a product or a convolution of one group, of f32 and constant weights in f16's range? */
bool zc_codable_of(const zc_graph *g, const zc_node *n, zc_scalable *out);
/* Are its codes read as they are on Hopper? */
bool zc_codable_packs(const zc_graph *g, const zc_scalable *s);
/* The best of the forms of so many bits, whose groups are of so many weights (0: of any number): a
 * bit more a weight is worth a quarter of the squared error. Judged by up to 64 columns. false: no
 * memory. */
bool zc_code_form_of(const zc_graph *g, const zc_scalable *s, int bits, int64_t group,
                     zc_code_form *out);
/* That of e2m1, which has no choice. */
zc_code_form zc_code_form_of_floats(const zc_graph *g, const zc_scalable *s);

/* The weights as constants: floats, and what they are of (of products alone; else 0). */
typedef struct zc_coded {
    zc_vid floats, codes, scales, zeros; /* zeros 0: none */
} zc_coded;

/* false: no memory. */
bool zc_code_weights(zc_graph *g, const zc_scalable *s, const zc_code_form *form, zc_coded *out);
/* The floats alone, malloc'd. */
bool zc_code_floats(const zc_graph *g, const zc_scalable *s, const zc_code_form *form,
                    zc_tensor *out);
/* The DequantizeLinear, in no block yet, that makes f16 of a product's codes. 0: no memory. */
zc_nid zc_dequantised_codes(zc_graph *g, const zc_scalable *s, const zc_code_form *form,
                            const zc_coded *c);

#endif
