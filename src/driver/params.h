/* What a caller of the compiler gives, checked before anything is done. */
#ifndef ZC_DRIVER_PARAMS_H
#define ZC_DRIVER_PARAMS_H

#include "op/dtype.h"
#include "zc/zc.h"

/* Of any version of the struct, or of none (given NULL: all is left out): what this version knows,
 * its lists and names seen to be there. */
zc_status zc_params_take(const zc_compile_params *given, zc_compile_params *out, zc_diag *diag);

/* zc_compile_params.precision. */
typedef struct zc_precision_choice {
    bool is_auto;    /* parts have types of their own, which have to be found */
    zc_dtype narrow; /* what f32 becomes, as the passes take it; ZC_NONE: it stays */
    bool tf32;       /* f32 stays, products on a GPU round their factors */
} zc_precision_choice;
zc_status zc_precision_parse(const char *name, zc_precision_choice *out, zc_diag *diag);

#endif
