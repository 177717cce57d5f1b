/* Results against the expected ones. */
#ifndef ZC_CLI_COMPARE_H
#define ZC_CLI_COMPARE_H

#include "base/diag.h"
#include "op/tensor.h"

/* As ONNX's own tests. */
#define CLI_RTOL 1e-3
#define CLI_ATOL 1e-7

/* ZC_ERR_ACCURACY, with how many elements of `name` differ and the worst of them, or that the types
 * do. An element may be off by atol + rtol * |want|; NaN is equal to NaN. */
zc_status cli_compare(const char *name, const zc_tensor *got, const zc_tensor *want, double rtol,
                      double atol, zc_diag *diag);

#endif
