/* ONNX bytes to a graph. */
#ifndef ZC_IMPORT_IMPORT_H
#define ZC_IMPORT_IMPORT_H

#include "ir/graph.h"
#include "op/custom.h"

/* Overrides for symbolic dimensions and whole input shapes (--dim, --shape). */
typedef struct zc_dim_override {
    const char *name; /* dim_param */
    int64_t value;
} zc_dim_override;

typedef struct zc_shape_override {
    const char *input;
    int rank;
    int64_t dims[ZC_MAX_RANK];
} zc_shape_override;

typedef struct zc_import_params {
    const char *data_root; /* directory for external data; NULL: the model's own */
    const zc_dim_override *dims;
    int ndims;
    const zc_shape_override *shapes;
    int nshapes;
    uint64_t max_memory; /* budget in bytes for everything imported; 0: 64 GiB */
    const zc_custom_set
        *custom;     /* operators of the caller's, which outlive the graph; may be NULL */
    bool strict;     /* refuse a model that declares a type which contradicts the inferred one */
    bool weightless; /* keep absent external data as constants without bytes (zc fill, inspect) */
} zc_import_params;

/* Reads, checks and imports; everything supported is brought to the newest opset's meaning, every
 * type and shape inferred. All unsupported parts are reported together. params may be NULL.
 *
 * An input of the model that has an initialiser is that constant and no input of the graph. Types
 * that the model declares for outputs and other values are held against the inferred ones, never
 * taken over: the first that contradicts is a warning (an entry of diag with the status ZC_OK).
 * Training information and quantisation annotations are ignored. From bytes, external data is read
 * only beneath data_root. */
zc_status zc_import_file(const char *path, const zc_import_params *params, zc_graph **out,
                         zc_diag *diag);
zc_status zc_import_bytes(const void *data, size_t len, const zc_import_params *params,
                          zc_graph **out, zc_diag *diag);

#endif
