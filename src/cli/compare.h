/* Results against the expected ones. */
#ifndef ZC_CLI_COMPARE_H
#define ZC_CLI_COMPARE_H

#include "base/diag.h"
#include "base/mem.h"
#include "op/tensor.h"

/* As ONNX's own tests. */
#define CLI_RTOL 1e-3
#define CLI_ATOL 1e-7

/* How one tensor differs from another. Whole numbers and truth values count by their difference,
 * parts of complex numbers one by one. */
typedef struct cli_difference {
    bool is_other_type; /* or another shape: nothing else is known */
    int64_t n, wrong;   /* elements, and how many of them are not close */
    double absolute;    /* the greatest difference; INFINITY where one of the two is not finite */
    double greatest;    /* finite element of what is needed */
    int64_t at;         /* the worst element: of those that are wrong, if there are any */
    double got, need;   /* its values */
} cli_difference;

/* An element may be off by atol + rtol * |need|; NaN is equal to NaN. */
cli_difference cli_differ(const zc_tensor *got, const zc_tensor *need, double rtol, double atol);
/* Appends where the element of that number is: "[1,0,7]". */
void cli_put_index(const zc_tensor *t, int64_t element, zc_buf *out);

/* ZC_ERR_ACCURACY, with how many elements of `name` differ and the worst of them, or that the types
 * do. */
zc_status cli_compare(const char *name, const zc_tensor *got, const zc_tensor *want, double rtol,
                      double atol, zc_diag *diag);

#endif
