#include "media/npz.h"

#include <stdlib.h>
#include <string.h>

#include "io/npy.h"

#define ENDING ".npy"

size_t zc_npz_find(const zc_zip *zip, const char *name)
{
    size_t n = strlen(name), i = 0;
    for (; i < zip->entries.len; i++) {
        const char *have = zip->entries.data[i].name;
        if (strncmp(have, name, n) == 0 && (!have[n] || strcmp(have + n, ENDING) == 0)) break;
    }
    return i;
}

zc_status zc_npz_read(const zc_zip *zip, size_t i, zc_tensor *out, zc_diag *diag)
{
    uint8_t *data;
    size_t len;
    ZC_TRY(zc_zip_read(zip, i, &data, &len, diag));
    const char *before = zc_diag_lend_subject(diag, zip->entries.data[i].name);
    zc_status status = zc_npy_parse(data, len, out, diag);
    zc_diag_lend_subject(diag, before);
    free(data);
    return status;
}

zc_status zc_npz_add(zc_zip_writer *w, const char *name, const zc_tensor *t, zc_diag *diag)
{
    zc_buf head = {0}, entry = {0};
    size_t bytes = 0;
    zc_status status = zc_npy_header(t, &head, diag);
    zc_buf_printf(&entry, "%s" ENDING, name);
    if (status == ZC_OK && (entry.failed || !zc_tensor_bytes(t, &bytes)))
        status = zc_fail_nomem(diag, name, entry.len);
    if (status == ZC_OK)
        status = zc_zip_add(w, entry.data, head.data, head.len, t->data, bytes, diag);
    zc_buf_fini(&head);
    zc_buf_fini(&entry);
    return status;
}
