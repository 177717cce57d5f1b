/* Compiled where cuda.h is found: each function declared here must be what CUDA declares. */
#include <cuda.h>
#include <nvrtc.h>

#define HC_CUDA_OWN_TYPES
typedef CUcontext hc_context_t;
typedef CUstream hc_stream_t;
typedef CUevent hc_event_t;
typedef CUmodule hc_module_t;
typedef CUfunction hc_function_t;
typedef CUgraph hc_graph_t;
typedef CUgraphNode hc_node_t;
typedef CUgraphExec hc_exec_t;
typedef nvrtcProgram hc_program_t;
typedef CUtensorMap hc_tensor_map_t;
typedef CUlaunchConfig hc_launch_config;
typedef CUDA_KERNEL_NODE_PARAMS hc_kernel_params;
typedef CUgraphExecUpdateResultInfo hc_update_info;
typedef CUgraphEdgeData hc_edge_data;
#include "cuda_functions.h"

extern int zc_hostcuda_check_functions;
int zc_hostcuda_check_functions;
