/* Sizes computed from operands' shapes, as postfix words: "0 size 512 cdiv" is the elements of
 * operand 0 by 512s. A user kernel's results and launch are such texts: nothing to parse deeply,
 * nothing to allocate.
 *
 *   word := integer | I D dim | I rank | I size | I shape (all dimensions) | K tune
 *           | + | - | * | / | % | cdiv | max | min | ;
 *
 * What the stack holds at the end, or at a ;, is the list of results. Operands are numbered inputs
 * first, then results; D counts from the end when negative. */
#ifndef ZC_OP_SIZES_H
#define ZC_OP_SIZES_H

#include "op/infer.h"

/* Most values on the stack. */
#define ZC_SIZES_MAX 64

typedef struct zc_sizes_env {
    zc_dims *dims; /* NULL: all shapes are concrete */
    const zc_type *types;
    int ntypes;
    zc_ints tuned; /* chosen tuning parameters */
} zc_sizes_env;

/* Writes at most `most` results and their number. Returns the text behind the list, or NULL: bad
 * text, too many, or (concrete shapes) an overflow or a division by zero. */
const char *zc_sizes_eval(const char *text, const zc_sizes_env *env, int most, zc_dim *out, int *n);

/* Tuning parameters, as "BLOCK=128,256 V=1,4": how many combinations of their values there are, 1
 * without parameters; and the values of one, by number, the last parameter's changing first. 0: the
 * number overflows; false: no such combination, or more than `most` parameters. */
size_t zc_tuning_count(const char *text);
bool zc_tuning_values(const char *text, size_t combination, int64_t *out, int most);
/* Appends "BLOCK=128 V=4" of chosen values. */
void zc_tuning_print(const char *text, zc_ints tuned, zc_buf *out);

#endif
