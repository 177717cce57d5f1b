/* What the index operations share: checked indices and an order over all element types. */
#ifndef ZC_CPU_INDEX_H
#define ZC_CPU_INDEX_H

#include "cpu/copy.h"

/* The index at position i of t, which must lie in [-limit, limit), brought to [0, limit). */
zc_status zc_index_read(zc_kctx *k, const zc_tensor *t, int64_t i, int64_t limit, int64_t *out);
/* All indices of t so, in scratch memory. */
zc_status zc_index_read_all(zc_kctx *k, const zc_tensor *t, int64_t limit, int64_t **out);
/* Tuples of indices, n = t's last dimension, into axes [axis, axis+n) of `data`: each one's offset
 * in units of the slice that it addresses, in scratch memory. The leading `axis` dimensions of t
 * are those of data. */
zc_status zc_index_tuples(zc_kctx *k, const zc_tensor *t, const zc_tensor *data, int axis,
                          int64_t **out);

/* A tensor seen along one axis: element (o, i, j) is at (o*length + i)*inner + j. */
typedef struct zc_axis_view {
    int64_t outer, length, inner;
} zc_axis_view;
static inline zc_axis_view zc_axis_view_of(const zc_tensor *t, int axis)
{
    return (zc_axis_view){.outer = zc_dims_span(t->dims, 0, axis),
                          .length = t->dims[axis],
                          .inner = zc_dims_span(t->dims, axis + 1, t->rank)};
}

/* Element i as an integer whose order is the elements' order: all NaN equal and above the rest,
 * -0 equal to 0. Not for complex types. */
uint64_t zc_order_key(const zc_tensor *t, int64_t i);
#define ZC_ORDER_NAN UINT64_MAX

#endif
