/* Parameters of move.cu. Strides and offsets count units of 1, 2, 4, 8 or 16 bytes, which the entry
 * point decides. */
#ifndef ZC_ABI_MOVE_H
#define ZC_ABI_MOVE_H

#include "abi/divisor.h"

enum { ZC_MOVE_AXES = 32 };

struct zc_move_params {
    const void *in;
    void *out;
    long long total; /* units; of a transpose: tiles */
    int rank, pad;   /* axes, outermost first; of a transpose: those beside the two */
    struct zc_divisor dims[ZC_MOVE_AXES];
    long long to[ZC_MOVE_AXES], from[ZC_MOVE_AXES];
    /* Transpose: axis 0 is contiguous in the source, axis 1 in the result; the other's stride. */
    long long size[2], to_stride, from_stride;
    struct zc_divisor tiles[2];
    const void *scale, *zero; /* of quantised elements; zero may be NULL */
};

/* Parts of a whole along an axis that follow each other, copied one way or the other. Of each row,
 * which is all from that axis on, part i has units [first[i], first[i + 1]), counted from the first
 * part's. */
enum { ZC_PARTS_MOST = 8 };
struct zc_parts_params {
    void *whole,
        *part[ZC_PARTS_MOST]; /* the whole from the first part on; a part NULL: not wanted */
    long long total, first[ZC_PARTS_MOST + 1];
    long long row, part_row[ZC_PARTS_MOST]; /* from one row to the next, of the whole and parts */
    struct zc_divisor parts;                /* units of a row that these parts have */
    int joins, unit;                        /* from parts to the whole; log2 of a unit's bytes */
};

#endif
