/* cuTensorMapEncode...: what CUDA documents of the arguments is checked; packed types, interleaved
 * layouts, wide swizzle atoms and NaN fill are not supported. */
#include <string.h>

#include "state.h"
#include "tensor_map.h"

typedef struct hc_tensor {
    unsigned type, rank;
    uint64_t address;
    const uint64_t *dims, *strides;
    const uint32_t *steps;
    unsigned interleave, swizzle, promotion, fill;
} hc_tensor;

/* 0 for types that are none or not supported. */
static unsigned element_size(unsigned type)
{
    static const unsigned char sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < sizeof sizes ? sizes[type] : 0;
}

static bool is_supported(const hc_tensor *t)
{
    return hc_gpu.cc >= 90 &&
           (t->type < HC_CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B ||
            t->type > HC_CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) &&
           t->interleave == HC_CU_TENSOR_MAP_INTERLEAVE_NONE &&
           t->swizzle <= HC_CU_TENSOR_MAP_SWIZZLE_128B &&
           t->fill == HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
}

static bool is_tensor(const hc_tensor *t)
{
    if (!element_size(t->type) || t->rank == 0 || t->rank > HC_TENSOR_RANK) return false;
    if (!t->dims || !t->steps || (t->rank > 1 && !t->strides) || t->address % 16) return false;
    if (t->promotion > HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B) return false;
    for (unsigned i = 0; i < t->rank; i++)
        if (t->dims[i] == 0 || t->dims[i] > (uint64_t)1 << 32 || t->steps[i] == 0 ||
            t->steps[i] > 8)
            return false;
    for (unsigned i = 0; i + 1 < t->rank; i++)
        if (t->strides[i] % 16 || t->strides[i] >= (uint64_t)1 << 40) return false;
    return true;
}

static hc_result begin_map(hc_tensor_map *m, const void *to, const hc_tensor *t)
{
    if (!to || (uintptr_t)to % HC_TENSOR_MAP_ALIGN) return HC_CUDA_ERROR_INVALID_VALUE;
    if (!is_supported(t)) return HC_CUDA_ERROR_NOT_SUPPORTED;
    if (!is_tensor(t)) return HC_CUDA_ERROR_INVALID_VALUE;
    *m = (hc_tensor_map){.magic = HC_TENSOR_MAP_MAGIC,
                         .rank = (uint8_t)t->rank,
                         .element = (uint8_t)element_size(t->type),
                         .swizzle = (uint8_t)(t->swizzle ? 16u << t->swizzle : 0),
                         .tf32 = t->type == HC_CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                         .address = t->address};
    for (unsigned i = 0; i < t->rank; i++) {
        m->last[i] = (uint32_t)(t->dims[i] - 1);
        m->step[i] = (uint8_t)(i ? t->steps[i] : 1);
        if (i) m->stride[i - 1] = t->strides[i - 1];
    }
    return HC_CUDA_SUCCESS;
}

/* Whether the inner side of a box fits. */
static bool is_width(const hc_tensor_map *m, unsigned elements)
{
    unsigned bytes = elements * m->element;
    return elements && elements <= 256 && bytes % 16 == 0 && (!m->swizzle || bytes <= m->swizzle);
}

static void give_map(void *to, const hc_tensor_map *m)
{
    memset(to, 0, 128);
    memcpy(to, m, sizeof *m);
}

static hc_result tiled(void *to, const hc_tensor *t, const uint32_t *box)
{
    hc_tensor_map m;
    hc_result r = begin_map(&m, to, t);
    if (r != HC_CUDA_SUCCESS) return r;
    if (!box || !is_width(&m, box[0])) return HC_CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < t->rank; i++) {
        if (box[i] == 0 || box[i] > 256) return HC_CUDA_ERROR_INVALID_VALUE;
        m.box[i] = (uint16_t)box[i];
    }
    give_map(to, &m);
    return HC_CUDA_SUCCESS;
}

hc_result cuTensorMapEncodeTiled(hc_tensor_map_t *map, unsigned type, uint32_t rank, void *address,
                                 const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                 const uint32_t *steps, unsigned interleave, unsigned swizzle,
                                 unsigned promotion, unsigned fill)
{
    hc_tensor t = {type,       rank,    (uintptr_t)address, dims, strides, steps,
                   interleave, swizzle, promotion,          fill};
    HC_CALL(HC_NEEDS_CONTEXT, tiled(map, &t, box));
}

/* Corners in -2^(bits - 1) ... 2^(bits - 1) - 1: 16, 8, 5 bits for 1, 2, 3 sides. */
static bool is_corner(const int *corner, unsigned sides)
{
    int limit = sides == 1 ? 32768 : sides == 2 ? 128 : 16;
    for (unsigned i = 0; i < sides; i++)
        if (corner[i] < -limit || corner[i] >= limit) return false;
    return true;
}

static hc_result im2col(void *to, const hc_tensor *t, const int *lower, const int *upper,
                        unsigned channels, unsigned pixels)
{
    hc_tensor_map m;
    hc_result r = begin_map(&m, to, t);
    if (r != HC_CUDA_SUCCESS) return r;
    unsigned sides = t->rank - 2;
    if (t->rank < 3 || !lower || !upper || !is_corner(lower, sides) || !is_corner(upper, sides) ||
        !is_width(&m, channels) || pixels == 0 || pixels > 1024)
        return HC_CUDA_ERROR_INVALID_VALUE;
    m.im2col = 1;
    m.channels = (uint16_t)channels;
    m.pixels = (uint16_t)pixels;
    for (unsigned i = 0; i < sides; i++) {
        m.lower[i] = (int16_t)lower[i];
        m.upper[i] = (int16_t)upper[i];
        if ((int64_t)m.last[i + 1] + upper[i] - lower[i] < 0) return HC_CUDA_ERROR_INVALID_VALUE;
    }
    give_map(to, &m);
    return HC_CUDA_SUCCESS;
}

hc_result cuTensorMapEncodeIm2col(hc_tensor_map_t *map, unsigned type, uint32_t rank, void *address,
                                  const uint64_t *dims, const uint64_t *strides, const int *lower,
                                  const int *upper, uint32_t channels, uint32_t pixels,
                                  const uint32_t *steps, unsigned interleave, unsigned swizzle,
                                  unsigned promotion, unsigned fill)
{
    hc_tensor t = {type,       rank,    (uintptr_t)address, dims, strides, steps,
                   interleave, swizzle, promotion,          fill};
    HC_CALL(HC_NEEDS_CONTEXT, im2col(map, &t, lower, upper, channels, pixels));
}
