/* The concrete arithmetic of Slice, shared by its shape function and its kernel. */
#ifndef ZC_OP_SLICE_H
#define ZC_OP_SLICE_H

#include <stdint.h>

/* Elements that start:end:step takes from an axis of length dim: the first one's index and how many
 * there are. Negative bounds count from the end, then both are clamped. step is not 0. */
static inline void zc_slice_span(int64_t dim, int64_t start, int64_t end, int64_t step,
                                 int64_t *first, int64_t *count)
{
    int64_t top = step > 0 ? dim : dim - 1; /* the largest useful start and end */
    int64_t least_end = step > 0 ? 0 : -1;
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    start = start > top ? top : start < 0 ? 0 : start;
    end = end > top ? top : end < least_end ? least_end : end;
    uint64_t distance = 0, stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (dim > 0 && step > 0 && start < end) distance = (uint64_t)end - (uint64_t)start;
    if (dim > 0 && step < 0 && start > end) distance = (uint64_t)start - (uint64_t)end;
    *first = start;
    *count = distance ? (int64_t)((distance - 1) / stride) + 1 : 0;
}

#endif
