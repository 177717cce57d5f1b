/* The CUDA driver: its symbols once, opened with dlopen; no CUDA header is needed.
 *
 * Types and numbers are those of the driver's C interface since CUDA 12; tests/cuda/abi.c compares
 * them with cuda.h where that is installed. */
#ifndef ZC_CUDA_DRIVER_H
#define ZC_CUDA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

typedef unsigned long long zc_cu_ptr;
typedef struct zc_cu_context_opaque *zc_cu_context;
typedef struct zc_cu_stream_opaque *zc_cu_stream;
typedef struct zc_cu_event_opaque *zc_cu_event;
typedef struct zc_cu_module_opaque *zc_cu_module;
typedef struct zc_cu_function_opaque *zc_cu_function;
typedef struct zc_cu_graph_opaque *zc_cu_graph;
typedef struct zc_cu_graph_exec_opaque *zc_cu_graph_exec;
typedef struct zc_cu_node_opaque *zc_cu_node;

/* CUlaunchAttribute: an id and a value of 64 bytes. */
typedef struct zc_cu_launch_attribute {
    int id;
    char pad[4];
    union {
        int integer;
        unsigned cluster[3];
        char bytes[64];
        unsigned long long align;
    } value;
} zc_cu_launch_attribute;

typedef struct zc_cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    zc_cu_stream stream;
    zc_cu_launch_attribute *attributes;
    unsigned attribute_count;
} zc_cu_launch_config;

typedef struct zc_cu_update_info {
    int result;
    zc_cu_node error_node, error_from_node;
} zc_cu_update_info;

enum {
    ZC_CU_ERROR_VALUE = 1,
    ZC_CU_ERROR_MEMORY = 2,
    ZC_CU_ERROR_DEINITIALIZED = 4,
    ZC_CU_ERROR_NO_DEVICE = 100,
    ZC_CU_ERROR_NO_BINARY = 209,
    ZC_CU_ERROR_NOT_READY = 600,
    ZC_CU_ERROR_LAUNCH_TIMEOUT = 702,

    ZC_CU_DEVICE_SM_COUNT = 16,
    ZC_CU_DEVICE_CC_MAJOR = 75,
    ZC_CU_DEVICE_CC_MINOR = 76,
    ZC_CU_DEVICE_SMEM_OPTIN = 97,

    ZC_CU_FUNCTION_SHARED_BYTES = 1,
    ZC_CU_FUNCTION_REGISTERS = 4,
    ZC_CU_FUNCTION_LOCAL_BYTES = 3,
    ZC_CU_FUNCTION_MAX_DYNAMIC_SMEM = 8,

    ZC_CU_POINTER_MEMORY_TYPE = 2,
    ZC_CU_POINTER_ORDINAL = 9,
    ZC_CU_MEMORY_DEVICE = 2,

    ZC_CU_HOST_MAPPED = 3, /* portable, and at the same address on the device */
    ZC_CU_STREAM_NON_BLOCKING = 1,
    ZC_CU_CAPTURE_THREAD_LOCAL = 1,
    ZC_CU_LAUNCH_CLUSTER = 4,
    ZC_CU_LAUNCH_PROGRAMMATIC = 6
};

typedef struct zc_cu {
    void *library;
#define CU(field, symbol, params) int(*field) params;
#include "cuda/driver.def"
#undef CU
} zc_cu;

/* Opens the driver library (libcuda.so.1) and starts it, inside the gate of CUDA as all calls of
 * the driver but waits (base/gate.h). */
zc_status zc_cu_open(zc_cu *cu, zc_diag *diag);
void zc_cu_close(zc_cu *cu);

/* The error for a failed call: names it, and says when the device is lost. */
zc_status zc_cu_fail(const zc_cu *cu, int code, const char *what, zc_diag *diag);
/* Codes after which the process can no longer use the device. */
bool zc_cu_is_sticky(int code);

#endif
