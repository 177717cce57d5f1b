/* Zip archives: the part of them that NumPy's .npz files and their like need (stored and deflated
 * entries below 4 GiB, no encryption, one volume). */
#ifndef ZC_MEDIA_ZIP_H
#define ZC_MEDIA_ZIP_H

#include <stdbool.h>

#include "base/file.h"
#include "base/mem.h"

typedef struct zc_zip_entry {
    char *name;
    uint32_t at; /* of its local header */
    uint32_t packed, size, crc;
    unsigned method;
} zc_zip_entry;

typedef struct zc_zip {
    const uint8_t *data; /* the caller's */
    size_t len;
    ZC_VEC(zc_zip_entry) entries;
} zc_zip;

bool zc_zip_is(const uint8_t *data, size_t len);
/* Reads the archive's directory; data must stay. The caller closes *out, also after a failure. */
zc_status zc_zip_open(const uint8_t *data, size_t len, zc_zip *out, zc_diag *diag);
void zc_zip_close(zc_zip *zip);
/* An entry's content in new memory, checked against its checksum. An entry that says that it holds
 * more than deflate can make of its bytes is refused before memory is taken. */
zc_status zc_zip_read(const zc_zip *zip, size_t i, uint8_t **out, size_t *len, zc_diag *diag);

/* Writes an archive of stored entries. */
typedef struct zc_zip_writer {
    zc_writer *file;
    zc_buf directory;
    uint64_t at;
    size_t entries;
} zc_zip_writer;
/* The entry's content in two pieces. */
zc_status zc_zip_add(zc_zip_writer *w, const char *name, const void *head, size_t head_len,
                     const void *body, size_t body_len, zc_diag *diag);
zc_status zc_zip_end(zc_zip_writer *w, zc_diag *diag);

#endif
