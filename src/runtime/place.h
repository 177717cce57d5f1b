/* Memory planning: buffers with lifetimes to offsets in one arena. */
#ifndef ZC_RUNTIME_PLACE_H
#define ZC_RUNTIME_PLACE_H

#include "base/allocator.h"

typedef struct zc_placement {
    size_t bytes;        /* in */
    int32_t first, last; /* in: steps during which it is live, both included */
    size_t offset;       /* out: multiple of ZC_TENSOR_ALIGN */
    uint32_t id;         /* the caller's; kept */
} zc_placement;

/* Sorts items largest first and gives each the lowest offset that is free during its life. Returns
 * the arena's size; false on overflow. Deterministic. */
bool zc_place(zc_placement *items, size_t n, size_t *arena_bytes);

/* The largest sum of bytes, each rounded up to ZC_TENSOR_ALIGN, that are live during one step: no
 * arena can be smaller. Sizes must not overflow: after zc_place. */
size_t zc_place_least(const zc_placement *items, size_t n);

#endif
