/* Stages of compiling that tools use one by one. */
#ifndef ZC_DRIVER_COMPILE_H
#define ZC_DRIVER_COMPILE_H

#include "driver/explain.h"
#include "driver/model.h"

/* Compiles a graph as it stands, without passes, for params' targets and by the measurements that
 * params say. */
zc_status zc_compile_graph(const zc_graph *g, const zc_compile_params *params, void **out,
                           size_t *out_len, zc_diag *diag);

/* Compiles a model to bytes, which zc_free frees. Without a place for the plan (out NULL) none is
 * made, and weights whose files are absent are no error. params may be NULL; explain, which tells
 * what was done, too, and the caller frees it also after a failure. */
zc_status zc_compile_model(const zc_model_source *model, const zc_compile_params *params,
                           void **out, size_t *out_len, zc_explain *explain, zc_diag *diag);
/* The same to a file, as zc_compile_file. */
zc_status zc_compile_model_to_file(const zc_model_source *model, const char *plan_path,
                                   const zc_compile_params *params, zc_explain *explain,
                                   zc_diag *diag);

/* All the way, with weights, but no plan is kept: for measuring. */
zc_status zc_compile_nothing(const zc_model_source *model, const zc_compile_params *params,
                             zc_explain *explain, zc_diag *diag);

#endif
