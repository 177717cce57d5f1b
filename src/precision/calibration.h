/* Ranges of a model's tensors: histograms of activations, gathered run by run and added up without
 * loss, and thresholds of weights by channel.
 *
 * As text: the line "# zc calibration 1", then lines with tabs between their fields:
 *
 *   model, the model's SHA-256, how many runs, the method
 *   activation, name, how many elements are finite and how many infinite (masks have such), least,
 * greatest, threshold, the histogram
 *   weight, name, axis of the channels, a threshold for each
 *
 * activations and then weights, each in the order of their names' bytes. A histogram is a list of
 * BIN:COUNT, ascending: a bin is the first 13 bits of an element as f32 (sign, exponent and 4 bits
 * behind the binary point), so that all files have the same bins. In names, control characters and
 * bytes that are not UTF-8 are \xNN. */
#ifndef ZC_PRECISION_CALIBRATION_H
#define ZC_PRECISION_CALIBRATION_H

#include "base/mem.h"
#include "op/tensor.h"

/* How the threshold of a symmetric 8-bit type follows from a histogram: name, meaning. */
#define ZC_CALIBRATION_METHODS(X)                                                                  \
    X(minmax, "the greatest magnitude")                                                            \
    X(percentile, "what 99.99% of the magnitudes are within")                                      \
    X(entropy, "where the clipped distribution says most of the true one")                         \
    X(mse, "the least mean square error")
typedef enum zc_calibration_method {
#define X(name, meaning) ZC_CALIBRATION_##name,
    ZC_CALIBRATION_METHODS(X)
#undef X
        ZC_CALIBRATION_METHOD_COUNT
} zc_calibration_method;
const char *zc_calibration_method_name(zc_calibration_method m);
/* ZC_CALIBRATION_METHOD_COUNT: there is no such method. */
zc_calibration_method zc_calibration_method_find(const char *name);

enum { ZC_CALIBRATION_BINS = 1 << 13 };

typedef struct zc_histogram_bin {
    uint32_t bin;
    uint64_t count; /* more than 0 */
} zc_histogram_bin;

typedef ZC_VEC(zc_histogram_bin) zc_histogram;

typedef struct zc_activation {
    const char *name;
    uint64_t count, infinite; /* elements that are finite, and that are not */
    float least, greatest;    /* of the finite ones; 0 without any */
    zc_histogram bins;
} zc_activation;

typedef struct zc_channels {
    const char *name;
    int axis;
    size_t count;
    const float *thresholds;
} zc_channels;

typedef struct zc_calibration {
    zc_arena arena; /* of names and thresholds */
    char model[65]; /* SHA-256 as text; empty: none yet */
    uint64_t runs;
    zc_calibration_method method;      /* of what is printed, and of weights */
    ZC_VEC(zc_activation) activations; /* by name */
    ZC_VEC(zc_channels) weights;       /* by name */
} zc_calibration;

void zc_calibration_init(zc_calibration *c);
void zc_calibration_fini(zc_calibration *c);

/* Adds a tensor of floats (another type is passed over) that a run computed. NaN is an
 * error. */
zc_status zc_calibration_add(zc_calibration *c, const char *name, const zc_tensor *t,
                             zc_diag *diag);
/* Takes the thresholds of an f32 weight's channels; a name that is known already is passed over. */
zc_status zc_calibration_add_weight(zc_calibration *c, const char *name, const zc_tensor *t,
                                    int axis, zc_diag *diag);
/* The threshold of each channel of an f32 weight, by the method. */
zc_status zc_channel_thresholds(const char *name, const zc_tensor *t, int axis,
                                zc_calibration_method m, float *out, zc_diag *diag);
/* What is known of the tensor and of the weight of that name, as the model has it; NULL: nothing.
 */
zc_status zc_calibration_find(const zc_calibration *c, const char *name,
                              const zc_activation **activation, const zc_channels **weight,
                              zc_diag *diag);
/* Adds what another one holds: of the same model, with the same tensors. The method is c's; the
 * first one gives it. */
zc_status zc_calibration_merge(zc_calibration *c, const zc_calibration *from, zc_diag *diag);

/* Of a symmetric 8-bit type; 0 where there are only zeros. */
float zc_histogram_threshold(const zc_histogram *h, float greatest, zc_calibration_method m);

/* c is empty. `name` is the file's, for errors. */
zc_status zc_calibration_parse(zc_calibration *c, const char *text, size_t len, const char *name,
                               zc_diag *diag);
zc_status zc_calibration_read(zc_calibration *c, const char *path, zc_diag *diag);
zc_status zc_calibration_print(const zc_calibration *c, zc_buf *out, zc_diag *diag);
/* The file appears complete or not at all; an existing one stays as it is on failure. */
zc_status zc_calibration_write(const zc_calibration *c, const char *path, zc_diag *diag);

#endif
