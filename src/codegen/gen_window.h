/* Sliding windows in specialisation headers: what the generators of convolutions and poolings
 * share. */
#ifndef ZC_CODEGEN_GEN_WINDOW_H
#define ZC_CODEGEN_GEN_WINDOW_H

#include "codegen/gen.h"
#include "cuda/window.h"

/* Does the kernel take windows over this many axes, with these attributes? Else declines. */
bool zc_gen_window_fits(zc_gen *g, const zc_window_attrs *a, int axes);

/* Dimensions of the window's axes; those that are not constant become parameters. */
typedef struct zc_gen_window_dims {
    int axes;
    zc_dim in[ZC_WINDOW_DIMS], out[ZC_WINDOW_DIMS], kernel[ZC_WINDOW_DIMS];
    const int64_t *begin; /* padding at the beginning, -1 not known; NULL: as the attributes say */
} zc_gen_window_dims;
/* Writes the Z_IN0 ... that zc/window.cuh needs. */
void zc_gen_window(zc_gen *g, const zc_window_attrs *a, const zc_gen_window_dims *d);

/* Can elements of this type be loaded, stored, and summed up? */
static inline bool zc_gen_sums_type(zc_dtype t)
{
    return t == ZC_F32 || t == ZC_F16 || t == ZC_BF16 || t == ZC_F64;
}

#endif
