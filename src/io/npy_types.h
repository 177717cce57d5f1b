/* What reading and writing .npy files share. */
#ifndef ZC_IO_NPY_TYPES_H
#define ZC_IO_NPY_TYPES_H

#include <stdbool.h>

#include "op/dtype.h"

#define ZC_NPY_MAGIC     "\x93NUMPY"
#define ZC_NPY_MAGIC_LEN 6

/* The type that NumPy's descr ("<f4") names, or ZC_NONE; *swap: its elements are big-endian. */
zc_dtype zc_npy_dtype(const char *descr, bool *swap);
/* The descr of a type, or NULL when NumPy has no such type. */
const char *zc_npy_descr(zc_dtype dtype);

#endif
