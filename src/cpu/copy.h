/* Copies between strided views: what most operations that only move elements come down to. */
#ifndef ZC_CPU_COPY_H
#define ZC_CPU_COPY_H

#include "cpu/kernel.h"

/* Room for every axis of a tensor twice: blocks and repeats split axes in two. */
#define ZC_COPY_MAX_RANK (2 * ZC_MAX_RANK)

/* For every index over dims: the element at sum(index*to) of the destination becomes the one at
 * sum(index*from) of the source. Strides are in elements; those of the source may be 0 or negative.
 * No element is written twice. */
typedef struct zc_copy {
    int rank;
    int64_t dims[ZC_COPY_MAX_RANK], to[ZC_COPY_MAX_RANK], from[ZC_COPY_MAX_RANK];
} zc_copy;

/* Adds an axis inside the ones there are; the caller keeps to ZC_COPY_MAX_RANK. */
static inline void zc_copy_axis(zc_copy *c, int64_t dim, int64_t to, int64_t from)
{
    c->dims[c->rank] = dim;
    c->to[c->rank] = to;
    c->from[c->rank] = from;
    c->rank++;
}

/* Performs it with elements of `size` bytes, on all threads. The two do not overlap. */
void zc_copy_run(zc_kctx *k, const zc_copy *c, size_t size, void *to, const void *from);

/* Copies n elements; nothing when both are the same memory. */
void zc_copy_flat(zc_kctx *k, int64_t n, size_t size, void *to, const void *from);
/* Gives n elements the bytes of one. */
void zc_copy_fill(zc_kctx *k, int64_t n, size_t size, void *to, const void *value);

/* Element i of n of the destination becomes element map[i] of the source; one thread. */
void zc_copy_gather(size_t size, int64_t n, void *to, const void *from, const int64_t *map);

/* Bytes of an element of at least 8 bits. */
static inline size_t zc_elem_size(const zc_tensor *t)
{
    return zc_dtype_bits(t->dtype) / 8;
}

/* The address of element i; data may be NULL when i is 0. */
static inline void *zc_elem_at(const zc_tensor *t, int64_t i)
{
    return i ? (char *)t->data + i * (int64_t)zc_elem_size(t) : t->data;
}

/* Is t's shape the one given? The error names t by `what`. Shape functions have checked it where it
 * was known; kernels ask again, since symbolic mismatches show only now. */
zc_status zc_check_shape(zc_kctx *k, const zc_tensor *t, int rank, const int64_t *dims,
                         const char *what);
/* The same for one length. */
zc_status zc_check_length(zc_kctx *k, int64_t got, int64_t need, const char *what);

#endif
