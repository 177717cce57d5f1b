#include "base/allocator.h"

#include <stdlib.h>

void *zc_tensor_alloc(const zc_allocator *a, size_t bytes)
{
    return a->alloc ? a->alloc(a->user, bytes, ZC_TENSOR_ALIGN)
                    : aligned_alloc(ZC_TENSOR_ALIGN, bytes);
}

void zc_tensor_free(const zc_allocator *a, void *p, size_t bytes)
{
    if (!a->alloc)
        free(p);
    else if (p)
        a->free(a->user, p, bytes);
}
