/* Calls of oneDNN: on the calling thread alone, through the gate, and without its exceptions. */
#ifndef ZC_CPU_DNNL_H
#define ZC_CPU_DNNL_H

#include <dnnl.h>

#include "cpu/kernel.h"

typedef enum zc_dnnl_use {
    ZC_DNNL_NONE,
    ZC_DNNL_PRODUCT,
    ZC_DNNL_CREATE, /* a convolution */
    ZC_DNNL_REORDER,
    ZC_DNNL_RUN, /* a convolution */
    ZC_DNNL_USES
} zc_dnnl_use;

/* fn(arg) calls oneDNN, and may be left from within each of these calls. ZC_ERR_UNSUPPORTED: oneDNN
 * refused; ZC_ERR_CANCELLED: the process is exiting. */
zc_status zc_dnnl_call(zc_dnnl_use use, dnnl_status_t (*fn)(void *arg), void *arg);
/* Makes the calling thread, a worker of zc's, one whose calls take no memory for OpenMP's settings.
 */
zc_status zc_dnnl_prepare_worker(void);
/* Generates the code of products, which takes tens of milliseconds, unless it is there. */
zc_status zc_dnnl_prepare_products(void);
/* Says in the step's name what a failed call was for. */
zc_status zc_dnnl_report(const zc_kctx *k, zc_status status, const char *what);

#endif
