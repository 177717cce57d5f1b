/* What a file of `zc calibrate` says of a model's tensors: ranges of activations and of weights'
 * channels, for types of 8 bits. */
#ifndef ZC_DRIVER_THRESHOLDS_H
#define ZC_DRIVER_THRESHOLDS_H

#include "passes/mixed.h"
#include "precision/calibration.h"

/* Reads the file, which has to be of the model with this SHA-256 and to know all its tensors: g is
 * the model as it was imported. c is initialised, and the diagnostics' file the calibration's until
 * the end. */
zc_status zc_thresholds_read(zc_calibration *c, const char *path, const zc_graph *g,
                             const uint8_t sha256[32], zc_diag *diag);
/* Sets *out when the calibration knows the tensor; passes make others. */
zc_status zc_thresholds_span(const zc_calibration *c, const char *name, zc_span *out,
                             zc_diag *diag);
/* A zc_weight_limits_fn; the user is the calibration. Weights that passes have changed get theirs
 * by the same method. */
zc_weight_limits_fn zc_thresholds_limits;

#endif
