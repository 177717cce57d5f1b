/* cuBLASLt: its functions and numbers, which tests/cuda/abi_libraries.c compares with its headers.
 */
#ifndef ZC_BENCH_KERNELS_CUBLASLT_API_H
#define ZC_BENCH_KERNELS_CUBLASLT_API_H

#include "bench.h"

enum {
    LT_R_32F = 0,
    LT_R_16F = 2,
    LT_R_8I = 3,
    LT_R_32I = 10,
    LT_R_16BF = 14,
    LT_R_8F_E4M3 = 28,
    LT_COMPUTE_32F = 68,
    LT_COMPUTE_32I = 72,
    LT_OP_N = 0,
    LT_OP_T = 1,
    LT_DESC_TRANSA = 3,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_DESC_FAST_ACCUM = 25,
    LT_PREFERENCE_WORKSPACE = 1,
    LT_EPILOGUE_DEFAULT = 1,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_GELU = 32
};

typedef struct lt_algorithm {
    uint64_t data[8];
} lt_algorithm;

typedef struct lt_found {
    lt_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_found;

struct kb_cublaslt {
    void *library, *handle;
#define LT(field, symbol, result, params) result(*field) params;
#include "cublaslt.def"
#undef LT
};

#endif
