/* Parameters of interpolate.cu. */
#ifndef ZC_ABI_INTERPOLATE_H
#define ZC_ABI_INTERPOLATE_H

#include "abi/epilogue.h"

enum { ZC_RESIZE_AXES = 3 };

/* Entry 0: taps and weights of every position of one axis. */
struct zc_resize_table {
    long long *first; /* of each position; ZC_RESIZE_OUTSIDE: the position is extrapolated */
    void *weights;    /* taps of each position, of the type of sums; not for nearest neighbours */
    long long in, out;
    int taps, pad;
    double scale, roi[2];
};

/* Other entries: in[outer][in0][keep0][in1][keep1][in2][inner] to the same with out; axes that are
 * not there have size 1 and no table. */
struct zc_resize_pass {
    const void *from;
    void *to;
    long long total; /* elements of the result */
    long long in[ZC_RESIZE_AXES], out[ZC_RESIZE_AXES];
    long long keep[ZC_RESIZE_AXES]; /* keep[2]: inner */
    long long from_pitch, to_pitch; /* from one inner to the next; keep[2], where they are not of a
                                       larger tensor */
    const long long *first[ZC_RESIZE_AXES];
    const void *weights[ZC_RESIZE_AXES];
    int taps[ZC_RESIZE_AXES], pad;
    struct zc_fused_params fused;
};

#endif
