/* cuDNN: its functions, and how an error is told. */
#ifndef ZC_BENCH_KERNELS_CUDNN_H
#define ZC_BENCH_KERNELS_CUDNN_H

#include "bench.h"

typedef struct dnn_algorithm {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
} dnn_algorithm;

struct kb_cudnn {
    void *library, *handle;
#define DNN(field, symbol, result, params) result(*field) params;
#include "cudnn.def"
#undef DNN
};

zc_status kb_cudnn_check(const struct kb_cudnn *dnn, int code, const char *what, zc_diag *diag);

#endif
