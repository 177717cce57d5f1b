/* A model as the compiler gets it: its graph and its hash. */
#ifndef ZC_DRIVER_MODEL_H
#define ZC_DRIVER_MODEL_H

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

/* The first stage: the imported graph, before any pass. custom: operations of users, beside ONNX's;
 * may be NULL. weightless: constants are without bytes where the model's external file is absent.
 */
zc_status zc_model_import(const zc_model_source *model, const zc_compile_params *params,
                          const zc_custom_set *custom, bool weightless, zc_graph **out,
                          zc_diag *diag);

#endif
