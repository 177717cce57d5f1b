/* NumPy's .npz files: zip archives of .npy files. */
#ifndef ZC_MEDIA_NPZ_H
#define ZC_MEDIA_NPZ_H

#include "media/zip.h"
#include "op/tensor.h"

/* The entry NAME.npy or NAME; zip->entries.len when there is none. */
size_t zc_npz_find(const zc_zip *zip, const char *name);
/* An entry as a tensor, whose data the caller frees. */
zc_status zc_npz_read(const zc_zip *zip, size_t i, zc_tensor *out, zc_diag *diag);
/* Adds NAME.npy. */
zc_status zc_npz_add(zc_zip_writer *w, const char *name, const zc_tensor *t, zc_diag *diag);

#endif
