/* Stages of compiling that tools use one by one. */
#ifndef ZC_DRIVER_COMPILE_H
#define ZC_DRIVER_COMPILE_H

#include "driver/explain.h"
#include "import/import.h"
#include "zc/zc.h"

/* A model: a file, or bytes when path is NULL. */
typedef struct zc_model_source {
    const char *path;
    const char *name; /* of bytes, in messages; may be NULL */
    const void *bytes;
    size_t len;
} zc_model_source;

/* The SHA-256 of the model's bytes, as plans keep it. */
zc_status zc_model_hash(const zc_model_source *model, uint8_t out[32], zc_diag *diag);

/* The first stage: the imported graph, before any pass. */
zc_status zc_compile_import(const zc_model_source *model, const zc_compile_params *params,
                            zc_graph **out, zc_diag *diag);

/* The same with constants without bytes where the model's external file is absent: for looking
 * only. */
zc_status zc_compile_import_weightless(const zc_model_source *model,
                                       const zc_compile_params *params, zc_graph **out,
                                       zc_diag *diag);

/* zc_compile_params.precision. */
typedef struct zc_precision_choice {
    bool is_auto;    /* parts have types of their own, which have to be found */
    zc_dtype narrow; /* what f32 becomes, as the passes take it; ZC_NONE: it stays */
    bool tf32;       /* f32 stays, products on a GPU round their factors */
} zc_precision_choice;
zc_status zc_precision_parse(const char *name, zc_precision_choice *out, zc_diag *diag);

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
