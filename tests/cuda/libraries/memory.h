/* Results of the fake libraries: computed at the call, copied to the device by the stream, so that
 * a captured graph brings them again. */
#ifndef ZC_TESTS_CUDA_LIBRARIES_MEMORY_H
#define ZC_TESTS_CUDA_LIBRARIES_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "op/dtype.h"

#define EXPORT __attribute__((visibility("default")))

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream);

/* A library has one handle, and all results until that is destroyed. */
typedef struct results {
    void **all;
    size_t n;
} results;

static void *result_make(results *r, size_t bytes)
{
    void **all = realloc(r->all, (r->n + 1) * sizeof *all);
    if (!all) return NULL;
    r->all = all;
    return r->all[r->n++] = calloc(bytes, 1);
}

static void results_free(results *r)
{
    for (size_t i = 0; i < r->n; i++) free(r->all[i]);
    free(r->all);
    *r = (results){0};
}

/* Elements of f16, and of what else a library has. */
static inline float half_at(const void *data, int64_t i)
{
    return zc_f16_to_f32(((const uint16_t *)data)[i]);
}

static inline void half_put(void *data, int64_t i, double v)
{
    ((uint16_t *)data)[i] = zc_f32_to_f16((float)v);
}

#endif
