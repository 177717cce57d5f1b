/* Matrices of which each four neighbours along the summed axis have two elements at most that are
 * not 0, as SparseLinear has them: the two are stored, and where in their four they stand.
 *
 * Both lie by tiles of 64 rows and 64 places of the summed axis, as Hopper's sparse products read
 * them: of a tile's stored elements pieces of eight, 64 rows of them side by side. The places of a
 * tile are 128 words, one for each thread of a warpgroup: thread t has 16 neighbours of row 16 * (t
 * / 32) + t % 32 / 4 in its low half, from 16 * (t % 4) on, and those of the row eight below in its
 * high half; four bits for each four neighbours, two for each stored element, the first one's
 * lowest. */
#ifndef ZC_OP_SPARSE_H
#define ZC_OP_SPARSE_H

#include "base/mem.h"
#include "op/tensor.h"

enum {
    ZC_SPARSE_SIDE = 64,   /* of a tile */
    ZC_SPARSE_PIECE = 8,   /* stored elements */
    ZC_SPARSE_PIECES = 4,  /* of a row of a tile */
    ZC_SPARSE_WORDS = 128, /* of places, of a tile */
    ZC_SPARSE_OF = 4,      /* neighbours, ... */
    ZC_SPARSE_KEPT = 2     /* ... of which so many are stored */
};

typedef struct zc_sparse {
    int64_t n, k;
    int64_t groups, steps; /* tiles of n and k */
} zc_sparse;

/* Is a matrix of n rows by k in whole tiles? */
static inline bool zc_sparse_fits(int64_t n, int64_t k)
{
    return n > 0 && k > 0 && n % ZC_SPARSE_SIDE == 0 && k % ZC_SPARSE_SIDE == 0;
}

/* By its stored elements; false: not of that form, or too large. */
static inline bool zc_sparse_of(const zc_tensor *w, zc_sparse *out)
{
    *out = (zc_sparse){0};
    if (w->rank != 5) return false;
    out->groups = w->dims[0];
    out->steps = w->dims[1];
    return out->groups > 0 && out->steps > 0 && w->dims[2] == ZC_SPARSE_PIECES &&
           w->dims[3] == ZC_SPARSE_SIDE && w->dims[4] == ZC_SPARSE_PIECE &&
           zc_mul_i64(out->groups, ZC_SPARSE_SIDE, &out->n) &&
           zc_mul_i64(out->steps, ZC_SPARSE_SIDE, &out->k);
}

/* Number of the tile that has row n and place k of the summed axis. */
static inline int64_t zc_sparse_tile(const zc_sparse *s, int64_t n, int64_t k)
{
    return n / ZC_SPARSE_SIDE * s->steps + k / ZC_SPARSE_SIDE;
}

/* Where the first element is that is stored of row n's four neighbours from k on; the second one
 * follows it. */
static inline int64_t zc_sparse_at(const zc_sparse *s, int64_t n, int64_t k)
{
    const int64_t stored = k % ZC_SPARSE_SIDE / ZC_SPARSE_OF * ZC_SPARSE_KEPT;
    return ((zc_sparse_tile(s, n, k) * ZC_SPARSE_PIECES + stored / ZC_SPARSE_PIECE) *
                ZC_SPARSE_SIDE +
            n % ZC_SPARSE_SIDE) *
               ZC_SPARSE_PIECE +
           stored % ZC_SPARSE_PIECE;
}

/* The word that says where they stand, and which of its bits is the first. */
static inline int64_t zc_sparse_word(const zc_sparse *s, int64_t n, int64_t k, int *shift)
{
    const int row = (int)(n % ZC_SPARSE_SIDE), at = (int)(k % ZC_SPARSE_SIDE);
    *shift = row / 8 % 2 * 16 + at % 16 / ZC_SPARSE_OF * 4;
    return zc_sparse_tile(s, n, k) * ZC_SPARSE_WORDS + row / 16 * 32 + row % 8 * 4 + at / 16;
}

#endif
