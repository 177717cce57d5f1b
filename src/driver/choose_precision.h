/* Precision "auto": the search of src/precision, with errors measured by runs on the CPU. */
#ifndef ZC_DRIVER_CHOOSE_PRECISION_H
#define ZC_DRIVER_CHOOSE_PRECISION_H

#include "driver/target.h"
#include "driver/thresholds.h"
#include "driver/variant.h"
#include "passes/mixed.h"
#include "zc/zc.h"

typedef struct zc_choose_precision_params {
    const zc_compile_params *p;
    const zc_targets *targets;
    /* A plan for the CPU (out NULL: none is made), whose parts have mixed's types; of the model
     * without passes when mixed is NULL. */
    zc_status (*compile)(void *user, zc_mixed *mixed, zc_variant *out, zc_diag *diag);
    void *user;
    zc_calibration *calibration; /* of int8 and fp8, for as long as what is chosen; may be NULL */
    zc_buf *told;                /* gets the report; may be NULL */
} zc_choose_precision_params;

typedef struct zc_chosen_precision {
    zc_mixed mixed;
    const char **lines; /* the report, which goes into the plan */
    uint32_t line_count;
    zc_arena arena;
    bool is_begun;
} zc_chosen_precision;

/* Zeroed by the caller, who frees *out, also after a failure. */
zc_status zc_choose_precision(const zc_choose_precision_params *params, zc_chosen_precision *out,
                              zc_diag *diag);
void zc_chosen_precision_fini(zc_chosen_precision *c);

#endif
