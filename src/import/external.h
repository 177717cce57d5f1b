/* External data: tensor bytes in files beside the model. All callers read through this, and all
 * files are opened by zc_file_open_beneath. Hard links are allowed: they are what deduplicating
 * stores make of models, and whoever can make one can read the file. */
#ifndef ZC_IMPORT_EXTERNAL_H
#define ZC_IMPORT_EXTERNAL_H

#include "base/diag.h"

/* The directory, files that stay open between tensors, and how much was read. Not thread-safe. */
typedef struct zc_external zc_external;

/* root: the directory beneath which all files must lie; NULL: the one of model_path. budget: most
 * bytes that may be read in all; 0 means no limit but the one for each file, which is four times
 * its size and 16 MiB. */
zc_status zc_external_create(const char *model_path, const char *root, uint64_t budget,
                             zc_external **out, zc_diag *diag);
/* Frees *ext and sets it to NULL. */
void zc_external_destroy(zc_external **ext);

/* What a tensor says of its bytes. */
typedef struct zc_external_ref {
    const char *tensor; /* its name, for messages; may be NULL */
    const char *location;
    uint64_t offset, length; /* in bytes */
    const char *checksum;    /* SHA-1 of the whole file in hexadecimal, or NULL */
} zc_external_ref;

/* Reads that range into new memory, which the caller frees; *out is NULL when length is 0. */
zc_status zc_external_read(zc_external *ext, const zc_external_ref *ref, void **out, zc_diag *diag);

#endif
