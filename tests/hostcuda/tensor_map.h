/* A tensor map in the fake driver's own form: written by driver_tensor.c, read by copy_engine.c. */
#ifndef ZC_HOSTCUDA_TENSOR_MAP_H
#define ZC_HOSTCUDA_TENSOR_MAP_H

#include <stdint.h>

#define HC_TENSOR_MAP_MAGIC 0x7a634d50u
#define HC_TENSOR_MAP_ALIGN 64
#define HC_TENSOR_RANK      5

typedef struct hc_tensor_map {
    uint32_t magic;
    uint8_t rank, element, swizzle,
        im2col;   /* bytes of an element; bytes of the swizzle's span, 0: none */
    uint8_t tf32; /* f32 is rounded to it where it is loaded */
    uint64_t address;
    uint64_t stride[HC_TENSOR_RANK - 1]; /* in bytes, of dimension i + 1 */
    uint32_t last[HC_TENSOR_RANK];       /* the last coordinate of each dimension */
    uint16_t box[HC_TENSOR_RANK];
    uint8_t step[HC_TENSOR_RANK];
    int16_t lower[3], upper[3]; /* im2col: the box of pixels */
    uint16_t channels, pixels;
} hc_tensor_map;

_Static_assert(sizeof(hc_tensor_map) <= 128, "a tensor map is 128 bytes");

#endif
