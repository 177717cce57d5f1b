/* What the copy engine has to know of a tensor in device memory (CUtensorMap): made by
 * zc_launch_tensor_map, opaque to kernels. It lies in a kernel's parameter struct. */
#ifndef ZC_ABI_TENSOR_MAP_H
#define ZC_ABI_TENSOR_MAP_H

typedef struct zc_tensor_map {
#ifdef __cplusplus
    alignas(64)
#else
    _Alignas(64)
#endif
        unsigned char opaque[128];
} zc_tensor_map;

#endif
