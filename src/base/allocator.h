/* Memory of tensors: from the caller's allocator, or from the C library. */
#ifndef ZC_BASE_ALLOCATOR_H
#define ZC_BASE_ALLOCATOR_H

#include "base/mem.h"
#include "zc/rt.h"

/* What all such memory is aligned to. */
#define ZC_TENSOR_ALIGN ((size_t)64)

/* `bytes`, a multiple of ZC_TENSOR_ALIGN; NULL: none left. a without functions: the C library. */
void *zc_tensor_alloc(const zc_allocator *a, size_t bytes);
/* p may be NULL. */
void zc_tensor_free(const zc_allocator *a, void *p, size_t bytes);

#endif
