/* Functions of one or two bytes whose result is a byte, as chains between quantised tensors are:
 * what they give is known once all results are. */
#ifndef ZC_CPU_BYTE_MAP_H
#define ZC_CPU_BYTE_MAP_H

#include <stddef.h>

#include "op/affine.h"

typedef struct zc_byte_map zc_byte_map;

/* Results of n operands x, and y where there are two. */
typedef void (*zc_byte_fn)(void *arg, const uint8_t *x, const uint8_t *y, int64_t n, uint8_t *to);

/* All operands that there are: 256, or pairs of them. */
static inline int64_t zc_byte_map_all(int operands)
{
    return operands == 2 ? INT64_C(1) << 16 : 1 << 8;
}

/* `fn` as a sum of products near `line`, where there is one with its results for all operands, else
 * as a table. A NULL line: a table. Freed by free(); NULL: no memory. */
zc_byte_map *zc_byte_map_new(int operands, zc_byte_fn fn, void *arg, const zc_affine_line *line,
                             bool result_signed);
size_t zc_byte_map_bytes(const zc_byte_map *m);

/* y is read where there are two operands; `to` may be one of them. Any thread. */
void zc_byte_map_run(const zc_byte_map *m, const uint8_t *x, const uint8_t *y, int64_t n,
                     uint8_t *to);

#endif
