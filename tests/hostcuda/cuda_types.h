/* The types and constants of the CUDA driver and NVRTC that the fake ones need, as CUDA 13 defines
 * them (check_types.c compares). Enumerations are plain unsigned here. */
#ifndef ZC_HOSTCUDA_CUDA_TYPES_H
#define ZC_HOSTCUDA_CUDA_TYPES_H

#include <stddef.h>

#define HC_RESULTS(X)                                                                              \
    X(CUDA_SUCCESS, 0, "no error")                                                                 \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                             \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                       \
    X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                                         \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                             \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                    \
    X(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                             \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                   \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for the device")            \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304, "operating system call failed")                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                   \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                         \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                               \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                 \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")          \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                    \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717, "operation not supported on this address space")      \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                 \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "not permitted when a stream is capturing")      \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "an error during capture made it invalid")       \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "two captures would be merged")                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not begun in this stream")            \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "a forked stream was not joined")                   \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "a dependency would cross the capture's boundary") \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, "implicit dependency of the legacy stream")         \
    X(CUDA_ERROR_CAPTURED_EVENT, 907, "event was last recorded in a capturing stream")             \
    X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graph update's constraints are violated")    \
    X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, "invalid cluster size")                                \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

#define HC_NVRTC_RESULTS(X)                                                                        \
    X(NVRTC_SUCCESS, 0)                                                                            \
    X(NVRTC_ERROR_OUT_OF_MEMORY, 1)                                                                \
    X(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2)                                                     \
    X(NVRTC_ERROR_INVALID_INPUT, 3)                                                                \
    X(NVRTC_ERROR_INVALID_PROGRAM, 4)                                                              \
    X(NVRTC_ERROR_INVALID_OPTION, 5)                                                               \
    X(NVRTC_ERROR_COMPILATION, 6)                                                                  \
    X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7)                                                    \
    X(NVRTC_ERROR_INTERNAL_ERROR, 11)

#define HC_MULTIPROCESSORS 4

/* Name, value, and what the fake device answers; entries with 0 depend on its compute capability
 * or memory. */
#define HC_DEVICE_ATTRIBUTES(X)                                                                    \
    X(MAX_THREADS_PER_BLOCK, 1, 1024)                                                              \
    X(MAX_BLOCK_DIM_X, 2, 1024)                                                                    \
    X(MAX_BLOCK_DIM_Y, 3, 1024)                                                                    \
    X(MAX_BLOCK_DIM_Z, 4, 64)                                                                      \
    X(MAX_GRID_DIM_X, 5, 2147483647)                                                               \
    X(MAX_GRID_DIM_Y, 6, 65535)                                                                    \
    X(MAX_GRID_DIM_Z, 7, 65535)                                                                    \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8, 49152)                                                       \
    X(TOTAL_CONSTANT_MEMORY, 9, 65536)                                                             \
    X(WARP_SIZE, 10, 32)                                                                           \
    X(MAX_REGISTERS_PER_BLOCK, 12, 65536)                                                          \
    X(CLOCK_RATE, 13, 1980000)                                                                     \
    X(TEXTURE_ALIGNMENT, 14, 512)                                                                  \
    X(MULTIPROCESSOR_COUNT, 16, HC_MULTIPROCESSORS)                                                \
    X(KERNEL_EXEC_TIMEOUT, 17, 0)                                                                  \
    X(INTEGRATED, 18, 0)                                                                           \
    X(CAN_MAP_HOST_MEMORY, 19, 1)                                                                  \
    X(COMPUTE_MODE, 20, 0)                                                                         \
    X(CONCURRENT_KERNELS, 31, 1)                                                                   \
    X(ECC_ENABLED, 32, 0)                                                                          \
    X(MEMORY_CLOCK_RATE, 36, 2619000)                                                              \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37, 5120)                                                           \
    X(L2_CACHE_SIZE, 38, 52428800)                                                                 \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 39, 2048)                                                    \
    X(ASYNC_ENGINE_COUNT, 40, 3)                                                                   \
    X(UNIFIED_ADDRESSING, 41, 1)                                                                   \
    X(COMPUTE_CAPABILITY_MAJOR, 75, 0)                                                             \
    X(COMPUTE_CAPABILITY_MINOR, 76, 0)                                                             \
    X(STREAM_PRIORITIES_SUPPORTED, 78, 1)                                                          \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81, 0)                                                 \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82, 65536)                                                 \
    X(MANAGED_MEMORY, 83, 1)                                                                       \
    X(COOPERATIVE_LAUNCH, 95, 1)                                                                   \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97, 0)                                                    \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106, 32)                                                      \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111, 1024)                                                 \
    X(MEMORY_POOLS_SUPPORTED, 115, 0)                                                              \
    X(CLUSTER_LAUNCH, 120, 0)

/* Other constants, by their name in cuda.h. */
#define HC_CONSTANTS(X)                                                                            \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                  \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                      \
    X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                                                       \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                       \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                               \
    X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                            \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                                         \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                          \
    X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)                                       \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                                             \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                         \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                                      \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                                                        \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                          \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                      \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                   \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                         \
    X(CU_MEMORYTYPE_HOST, 1)                                                                       \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                                     \
    X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                            \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                      \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                           \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                            \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                          \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                                     \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                  \
    X(CU_GRAPH_NODE_TYPE_KERNEL, 0)                                                                \
    X(CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                                                \
    X(CU_GRAPH_NODE_TYPE_MEMSET, 2)                                                                \
    X(CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)                                                             \
    X(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)                                              \
    X(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3)                                             \
    X(CU_LAUNCH_ATTRIBUTE_IGNORE, 0)                                                               \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                                          \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                                    \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                    \
    X(CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)                                                             \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                          \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                                                          \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                                         \
    X(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 11)                                                        \
    X(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 13)                                                    \
    X(CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 15)                                                   \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                                            \
    X(CU_TENSOR_MAP_SWIZZLE_NONE, 0)                                                               \
    X(CU_TENSOR_MAP_SWIZZLE_32B, 1)                                                                \
    X(CU_TENSOR_MAP_SWIZZLE_64B, 2)                                                                \
    X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                               \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                                                       \
    X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)

enum {
#define X(name, value) HC_##name = value,
    HC_NVRTC_RESULTS(X) HC_CONSTANTS(X)
#undef X
#define X(name, value, text) HC_##name = value,
        HC_RESULTS(X)
#undef X
#define X(name, value, answer) HC_ATTR_##name = value,
            HC_DEVICE_ATTRIBUTES(X)
#undef X
};

typedef unsigned hc_result;
typedef int hc_device;
typedef unsigned long long hc_ptr;

typedef struct hc_launch_attribute {
    unsigned id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
        struct {
            unsigned x, y, z;
        } cluster;
        int programmatic;
    } value;
} hc_launch_attribute;

/* Handles, and the structures that hold them. check_functions.c puts CUDA's own in their place. */
#ifndef HC_CUDA_OWN_TYPES
typedef struct hc_context *hc_context_t;
typedef struct hc_stream *hc_stream_t;
typedef struct hc_event *hc_event_t;
typedef struct hc_module *hc_module_t;
typedef struct hc_function *hc_function_t;
typedef struct hc_graph *hc_graph_t;
typedef struct hc_node *hc_node_t;
typedef struct hc_exec *hc_exec_t;
typedef struct hc_program *hc_program_t;
typedef struct hc_tensor_map hc_tensor_map_t;

typedef struct hc_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned smem;
    hc_stream_t stream;
    hc_launch_attribute *attrs;
    unsigned attr_count;
} hc_launch_config;

typedef struct hc_kernel_params {
    hc_function_t func;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned smem;
    void **params;
    void **extra;
    void *kern;
    hc_context_t ctx;
} hc_kernel_params;

typedef struct hc_update_info {
    unsigned result;
    hc_node_t error_node, error_from_node;
} hc_update_info;

typedef void hc_edge_data;
#endif

#endif
