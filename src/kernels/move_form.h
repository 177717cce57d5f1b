/* Copies between strided views, and what operations that move elements share. */
#ifndef ZC_KERNELS_MOVE_FORM_H
#define ZC_KERNELS_MOVE_FORM_H

#include "abi/move.h"
#include "kernels/launch.h"

/* For every index over dims: the element at sum(index * to) of the result becomes the one at
 * sum(index * from) of the source. Axes that run on in both are one; no element is written twice.
 */
typedef struct zc_move {
    int rank;
    bool empty;
    int64_t dims[ZC_MOVE_AXES], to[ZC_MOVE_AXES], from[ZC_MOVE_AXES];
    const void *scale, *zero; /* of elements that are quantised */
} zc_move;

/* Adds an axis inside the ones there are; at most ZC_MOVE_AXES. */
void zc_move_axis(zc_move *m, int64_t dim, int64_t to, int64_t from);
/* Issues it, with entry points of move.cu; elements of `size` bytes. */
zc_status zc_move_run(zc_launch *l, const zc_move *m, int64_t size, void *to, const void *from);

/* All of input 0 as output 0, whose elements have another type, by kernels that cast (Z_CASTS). */
zc_status zc_move_cast(zc_launch *l, const zc_move *m);

/* Is one of its operands or results a whole that holds the others along an axis? */
static inline bool zc_moves_parts(zc_op op)
{
    return op == ZC_OP_Concat || op == ZC_OP_Split || op == ZC_OP_Slice;
}

/* Parts of `whole` along an axis, one behind the other, which agree with it elsewhere: copied to it
 * or from it, up to ZC_PARTS_MOST by a launch. */
typedef struct zc_parts {
    const zc_tensor *whole;
    int axis;
    bool joins;    /* to it */
    int64_t at;    /* behind the parts so far */
    int64_t first; /* index of part 0 */
    int64_t pitch; /* of the whole: along the axis, from one row to the next */
    int n;
    void *data[ZC_PARTS_MOST];
    int64_t length[ZC_PARTS_MOST], pitches[ZC_PARTS_MOST];
} zc_parts;
/* data NULL: not wanted. A part that lies where the whole has it is not copied. */
zc_status zc_parts_add(zc_launch *l, zc_parts *p, void *data, int64_t length, int64_t pitch);
/* Copies those that were not yet copied. */
zc_status zc_parts_run(zc_launch *l, zc_parts *p);

/* Index (0 to 4) of the largest unit of 1 to 16 bytes that divides all `n` byte counts and
 * addresses. */
int zc_move_unit(int n, const uint64_t *bytes);

/* Bytes of an element of at least 8 bits. */
static inline int64_t zc_move_size(const zc_tensor *t)
{
    return zc_dtype_bits(t->dtype) / 8;
}

/* Index of the unit that zc_gen_unit chose. */
int zc_move_chosen(const zc_launch *l);

/* Row-major strides in elements. */
void zc_move_strides(const zc_tensor *t, int64_t strides[ZC_MAX_RANK]);
/* Is t's shape the one given? Symbolic mismatches show only when shapes are concrete. */
zc_status zc_move_check(zc_launch *l, const zc_tensor *t, int rank, const int64_t *dims,
                        const char *what);
zc_status zc_move_check_length(zc_launch *l, int64_t got, int64_t need, const char *what);

/* A grid for kernels that take `total` items in a grid-stride loop of 256 threads a block. */
zc_dim3 zc_move_grid(const zc_launch *l, int64_t total);

/* An error in run-time values. */
#define zc_launch_fail(l, ...) zc_fail((l)->diag, ZC_ERR_INPUT, (l)->subject, __VA_ARGS__)

#endif
