/* Every function the fake driver and the fake NVRTC export. */
#ifndef ZC_HOSTCUDA_CUDA_FUNCTIONS_H
#define ZC_HOSTCUDA_CUDA_FUNCTIONS_H

#include <stdint.h>

#include "cuda_types.h"

#define HC_API __attribute__((visibility("default")))

HC_API hc_result cuInit(unsigned flags);
HC_API hc_result cuDriverGetVersion(int *version);
HC_API hc_result cuGetErrorName(hc_result error, const char **text);
HC_API hc_result cuGetErrorString(hc_result error, const char **text);
HC_API hc_result cuDeviceGetCount(int *count);
HC_API hc_result cuDeviceGet(hc_device *device, int ordinal);
HC_API hc_result cuDeviceGetName(char *name, int len, hc_device dev);
HC_API hc_result cuDeviceGetPCIBusId(char *name, int len, hc_device dev);
HC_API hc_result cuDeviceGetAttribute(int *value, unsigned attribute, hc_device dev);
HC_API hc_result cuDeviceTotalMem_v2(size_t *bytes, hc_device dev);
HC_API hc_result cuDevicePrimaryCtxRetain(hc_context_t *ctx, hc_device dev);
HC_API hc_result cuDevicePrimaryCtxRelease_v2(hc_device dev);
HC_API hc_result cuCtxPushCurrent_v2(hc_context_t ctx);
HC_API hc_result cuCtxPopCurrent_v2(hc_context_t *ctx);
HC_API hc_result cuCtxGetCurrent(hc_context_t *ctx);
HC_API hc_result cuCtxSynchronize(void);

HC_API hc_result cuMemGetInfo_v2(size_t *available, size_t *total);
HC_API hc_result cuMemAlloc_v2(hc_ptr *p, size_t size);
HC_API hc_result cuMemFree_v2(hc_ptr p);
HC_API hc_result cuMemHostAlloc(void **p, size_t size, unsigned flags);
HC_API hc_result cuMemFreeHost(void *p);
HC_API hc_result cuPointerGetAttribute(void *data, unsigned attribute, hc_ptr p);
HC_API hc_result cuMemcpyHtoD_v2(hc_ptr dst, const void *src, size_t n);
HC_API hc_result cuMemcpyDtoH_v2(void *dst, hc_ptr src, size_t n);
HC_API hc_result cuMemcpyHtoDAsync_v2(hc_ptr dst, const void *src, size_t n, hc_stream_t stream);
HC_API hc_result cuMemcpyDtoHAsync_v2(void *dst, hc_ptr src, size_t n, hc_stream_t stream);
HC_API hc_result cuMemcpyDtoDAsync_v2(hc_ptr dst, hc_ptr src, size_t n, hc_stream_t stream);
HC_API hc_result cuMemsetD8Async(hc_ptr dst, unsigned char value, size_t n, hc_stream_t stream);
HC_API hc_result cuMemsetD32Async(hc_ptr dst, unsigned value, size_t n, hc_stream_t stream);

HC_API hc_result cuStreamCreate(hc_stream_t *stream, unsigned flags);
HC_API hc_result cuStreamDestroy_v2(hc_stream_t stream);
HC_API hc_result cuStreamSynchronize(hc_stream_t stream);
HC_API hc_result cuStreamQuery(hc_stream_t stream);
HC_API hc_result cuStreamWaitEvent(hc_stream_t stream, hc_event_t event, unsigned flags);
HC_API hc_result cuStreamBeginCapture_v2(hc_stream_t stream, unsigned mode);
HC_API hc_result cuStreamEndCapture(hc_stream_t stream, hc_graph_t *graph);
HC_API hc_result cuStreamIsCapturing(hc_stream_t stream, unsigned *status);
HC_API hc_result cuStreamGetCaptureInfo_v2(hc_stream_t stream, unsigned *status, uint64_t *id,
                                           hc_graph_t *graph, const hc_node_t **deps,
                                           size_t *dep_count);
HC_API hc_result cuStreamGetCaptureInfo_v3(hc_stream_t stream, unsigned *status, uint64_t *id,
                                           hc_graph_t *graph, const hc_node_t **deps,
                                           const hc_edge_data **edges, size_t *dep_count);
HC_API hc_result cuEventCreate(hc_event_t *event, unsigned flags);
HC_API hc_result cuEventRecord(hc_event_t event, hc_stream_t stream);
HC_API hc_result cuEventSynchronize(hc_event_t event);
HC_API hc_result cuEventElapsedTime(float *ms, hc_event_t start, hc_event_t end);
HC_API hc_result cuEventElapsedTime_v2(float *ms, hc_event_t start, hc_event_t end);
HC_API hc_result cuEventDestroy_v2(hc_event_t event);

HC_API hc_result cuModuleLoadData(hc_module_t *module, const void *image);
HC_API hc_result cuModuleUnload(hc_module_t module);
HC_API hc_result cuModuleGetFunction(hc_function_t *function, hc_module_t module, const char *name);
HC_API hc_result cuFuncSetAttribute(hc_function_t function, unsigned attribute, int value);
HC_API hc_result cuFuncGetAttribute(int *value, unsigned attribute, hc_function_t function);
HC_API hc_result cuLaunchKernelEx(const hc_launch_config *config, hc_function_t f, void **params,
                                  void **extra);
HC_API hc_result cuLaunchKernel(hc_function_t f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,
                                hc_stream_t stream, void **params, void **extra);
HC_API hc_result cuOccupancyMaxActiveClusters(int *count, hc_function_t f,
                                              const hc_launch_config *config);

HC_API hc_result cuTensorMapEncodeTiled(hc_tensor_map_t *map, unsigned type, uint32_t rank,
                                        void *address, const uint64_t *dims,
                                        const uint64_t *strides, const uint32_t *box,
                                        const uint32_t *steps, unsigned interleave,
                                        unsigned swizzle, unsigned promotion, unsigned fill);
HC_API hc_result cuTensorMapEncodeIm2col(hc_tensor_map_t *map, unsigned type, uint32_t rank,
                                         void *address, const uint64_t *dims,
                                         const uint64_t *strides, const int *lower,
                                         const int *upper, uint32_t channels, uint32_t pixels,
                                         const uint32_t *steps, unsigned interleave,
                                         unsigned swizzle, unsigned promotion, unsigned fill);

HC_API hc_result cuGraphInstantiateWithFlags(hc_exec_t *exec, hc_graph_t graph,
                                             unsigned long long flags);
HC_API hc_result cuGraphLaunch(hc_exec_t exec, hc_stream_t stream);
HC_API hc_result cuGraphUpload(hc_exec_t exec, hc_stream_t stream);
HC_API hc_result cuGraphExecDestroy(hc_exec_t exec);
HC_API hc_result cuGraphDestroy(hc_graph_t graph);
HC_API hc_result cuGraphExecUpdate_v2(hc_exec_t exec, hc_graph_t graph, hc_update_info *info);
HC_API hc_result cuGraphGetNodes(hc_graph_t graph, hc_node_t *nodes, size_t *count);
HC_API hc_result cuGraphNodeGetType(hc_node_t node, unsigned *type);
HC_API hc_result cuGraphKernelNodeGetParams_v2(hc_node_t node, hc_kernel_params *params);
HC_API hc_result cuGraphExecKernelNodeSetParams_v2(hc_exec_t exec, hc_node_t node,
                                                   const hc_kernel_params *params);

HC_API hc_result nvrtcVersion(int *major, int *minor);
HC_API const char *nvrtcGetErrorString(hc_result result);
HC_API hc_result nvrtcGetNumSupportedArchs(int *count);
HC_API hc_result nvrtcGetSupportedArchs(int *archs);
HC_API hc_result nvrtcCreateProgram(hc_program_t *program, const char *source, const char *name,
                                    int header_count, const char *const *headers,
                                    const char *const *include_names);
HC_API hc_result nvrtcDestroyProgram(hc_program_t *program);
HC_API hc_result nvrtcCompileProgram(hc_program_t program, int option_count,
                                     const char *const *options);
HC_API hc_result nvrtcGetProgramLogSize(hc_program_t program, size_t *size);
HC_API hc_result nvrtcGetProgramLog(hc_program_t program, char *log);
HC_API hc_result nvrtcGetCUBINSize(hc_program_t program, size_t *size);
HC_API hc_result nvrtcGetCUBIN(hc_program_t program, char *cubin);
HC_API hc_result nvrtcGetPTXSize(hc_program_t program, size_t *size);
HC_API hc_result nvrtcGetPTX(hc_program_t program, char *ptx);

#ifndef HC_CUDA_OWN_TYPES
/* For tests in one process: forgets everything and reads the environment again. */
HC_API void zc_hostcuda_reset(void);
/* Since then. */
typedef struct hc_counts {
    unsigned long calls; /* that a fault named "*" counts */
    char failed[48];     /* the call that failed last because of ZC_HOSTCUDA_FAIL; "": none */
    size_t live;         /* objects and allocations */
    size_t device_bytes;
} hc_counts;
HC_API void zc_hostcuda_counts(hc_counts *out);
#endif

#endif
