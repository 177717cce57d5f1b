/* Results against the expected ones. */
#ifndef ZC_CLI_COMPARE_H
#define ZC_CLI_COMPARE_H

#include "base/diag.h"
#include "base/mem.h"
#include "op/differ.h"

/* As ONNX's own tests. */
#define CLI_RTOL 1e-3
#define CLI_ATOL 1e-7

/* Appends where the element of that number is: "[1,0,7]". */
void cli_put_index(const zc_tensor *t, int64_t element, zc_buf *out);

/* ZC_ERR_ACCURACY, with how many elements of `name` differ and the worst of them, or that the types
 * do. */
zc_status cli_compare(const char *name, const zc_tensor *got, const zc_tensor *want, double rtol,
                      double atol, zc_diag *diag);

#endif
