/* The layout that DLPack 1.x fixes (https://github.com/dmlc/dlpack, Apache-2.0), as far as zc needs
 * it. Debian's libdlpack-dev is older than version 1. */
#ifndef ZC_RUNTIME_DLPACK_ABI_H
#define ZC_RUNTIME_DLPACK_ABI_H

#include <stdint.h>

enum { ZC_DL_MAJOR = 1, ZC_DL_MINOR = 0 };

enum { ZC_DL_CPU = 1, ZC_DL_CUDA = 2, ZC_DL_CUDA_HOST = 3, ZC_DL_CUDA_MANAGED = 13 };

enum { ZC_DL_SUBBYTE_PADDED = 1 << 2 }; /* in flags */

typedef struct zc_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} zc_dl_tensor;

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* may be NULL */
    uint64_t flags;
    zc_dl_tensor tensor;
};

/* Element types: name, code, bits. */
#define ZC_DL_TYPES(X)                                                                             \
    X(I8, 0, 8)                                                                                    \
    X(I16, 0, 16)                                                                                  \
    X(I32, 0, 32)                                                                                  \
    X(I64, 0, 64)                                                                                  \
    X(I4, 0, 4)                                                                                    \
    X(I2, 0, 2)                                                                                    \
    X(U8, 1, 8)                                                                                    \
    X(U16, 1, 16)                                                                                  \
    X(U32, 1, 32)                                                                                  \
    X(U64, 1, 64)                                                                                  \
    X(U4, 1, 4)                                                                                    \
    X(U2, 1, 2)                                                                                    \
    X(F16, 2, 16)                                                                                  \
    X(F32, 2, 32)                                                                                  \
    X(F64, 2, 64)                                                                                  \
    X(BF16, 4, 16)                                                                                 \
    X(C64, 5, 64)                                                                                  \
    X(C128, 5, 128)                                                                                \
    X(BOOL, 6, 8)                                                                                  \
    X(F8E4M3FN, 10, 8)                                                                             \
    X(F8E4M3FNUZ, 11, 8)                                                                           \
    X(F8E5M2, 12, 8)                                                                               \
    X(F8E5M2FNUZ, 13, 8)                                                                           \
    X(F8E8M0, 14, 8)                                                                               \
    X(F4E2M1, 17, 4)

#endif
