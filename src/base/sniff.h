/* Recognising a file that was given in place of another, from its first bytes. */
#ifndef ZC_BASE_SNIFF_H
#define ZC_BASE_SNIFF_H

#include <stdbool.h>

#include "base/diag.h"

/* Bytes from the beginning of a file that are worth showing to zc_sniff. */
#define ZC_SNIFF_BYTES 512

typedef struct zc_file_kind {
    const char *name; /* with its article: "a PNG image" */
    const char *hint; /* what to do with such a file, or NULL */
    bool certain;     /* false: a guess, for use only after the expected format failed */
} zc_file_kind;

/* NULL when the bytes look like nothing known. */
const zc_file_kind *zc_sniff(const uint8_t *head, size_t len);

/* Records that the file is of that kind and not `wanted` ("an ONNX model"): ZC_ERR_FORMAT. */
zc_status zc_fail_kind(zc_diag *diag, const zc_file_kind *kind, const char *wanted);

#endif
