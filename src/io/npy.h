/* NumPy .npy files, versions 1 to 3. */
#ifndef ZC_IO_NPY_H
#define ZC_IO_NPY_H

#include "base/file.h"
#include "base/mem.h"
#include "op/tensor.h"

/* Reads an array of any type that NumPy and zc share: bool, i8..i64, u8..u64, f16..f64, c64, c128.
 * Big-endian and Fortran-ordered arrays are brought to zc's form. out->data is from malloc, the
 * caller's, and NULL when there are no elements. */
zc_status zc_npy_read(const char *path, zc_tensor *out, zc_diag *diag);
/* The same from a file's bytes. */
zc_status zc_npy_parse(const uint8_t *data, size_t len, zc_tensor *out, zc_diag *diag);

/* Has NumPy this element type? */
bool zc_npy_has(zc_dtype dtype);

/* Writes a version 1 file. ZC_ERR_UNSUPPORTED, and nothing written, for types that NumPy lacks. */
zc_status zc_npy_write(zc_writer *writer, const zc_tensor *tensor, zc_diag *diag);
/* The file up to the elements, which the caller frees. */
zc_status zc_npy_header(const zc_tensor *tensor, zc_buf *out, zc_diag *diag);
zc_status zc_npy_save(const char *path, const zc_tensor *tensor, zc_diag *diag);

#endif
