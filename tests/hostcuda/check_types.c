/* Compiled where cuda.h is found: constants and layouts must be CUDA's. */
#include <cuda.h>
#include <nvrtc.h>
#include <stddef.h>

#include "cuda_types.h"

#define X(name, value, text) _Static_assert((int)name == (value), #name);
HC_RESULTS(X)
#undef X
#define X(name, value) _Static_assert((int)name == (value), #name);
HC_NVRTC_RESULTS(X)
HC_CONSTANTS(X)
#undef X
#define X(name, value, answer) _Static_assert((int)CU_DEVICE_ATTRIBUTE_##name == (value), #name);
HC_DEVICE_ATTRIBUTES(X)
#undef X

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_FIELD(ours, of, theirs, tf)                                                           \
    _Static_assert(offsetof(ours, of) == offsetof(theirs, tf), #theirs "." #tf)

SAME_SIZE(hc_result, CUresult);
SAME_SIZE(hc_result, nvrtcResult);
SAME_SIZE(hc_device, CUdevice);
SAME_SIZE(hc_ptr, CUdeviceptr);
SAME_SIZE(hc_launch_attribute, CUlaunchAttribute);
SAME_FIELD(hc_launch_attribute, value, CUlaunchAttribute, value);
SAME_FIELD(hc_launch_attribute, value.cluster.z, CUlaunchAttribute, value.clusterDim.z);
SAME_FIELD(hc_launch_attribute, value.programmatic, CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed);
SAME_SIZE(hc_launch_config, CUlaunchConfig);
SAME_FIELD(hc_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(hc_launch_config, smem, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(hc_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(hc_launch_config, attrs, CUlaunchConfig, attrs);
SAME_FIELD(hc_launch_config, attr_count, CUlaunchConfig, numAttrs);
SAME_SIZE(hc_kernel_params, CUDA_KERNEL_NODE_PARAMS);
SAME_FIELD(hc_kernel_params, grid_x, CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_FIELD(hc_kernel_params, block_z, CUDA_KERNEL_NODE_PARAMS, blockDimZ);
SAME_FIELD(hc_kernel_params, smem, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME_FIELD(hc_kernel_params, params, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_FIELD(hc_kernel_params, extra, CUDA_KERNEL_NODE_PARAMS, extra);
SAME_FIELD(hc_kernel_params, kern, CUDA_KERNEL_NODE_PARAMS, kern);
SAME_FIELD(hc_kernel_params, ctx, CUDA_KERNEL_NODE_PARAMS, ctx);
SAME_SIZE(hc_update_info, CUgraphExecUpdateResultInfo);
SAME_FIELD(hc_update_info, error_node, CUgraphExecUpdateResultInfo, errorNode);
SAME_FIELD(hc_update_info, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);

extern int zc_hostcuda_check_types;
int zc_hostcuda_check_types;
