/* One piece of work: a launch, a copy or a fill; run, copied, freed. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static void fill(const hc_work *w)
{
    void *dst = (void *)w->dst;
    if (w->width == 1) {
        memset(dst, (int)w->value, w->n);
        return;
    }
    for (size_t i = 0; i < w->n; i++) memcpy((char *)dst + i * 4, &w->value, 4);
}

hc_result hc_work_run(const hc_work *w)
{
    if (w->type == HC_CU_GRAPH_NODE_TYPE_KERNEL) {
        hc_result r = hc_check_launch(&w->launch);
        return r == HC_CUDA_SUCCESS ? hc_run_grid(&w->launch) : r;
    }
    hc_result r = hc_check_copy(w);
    if (r != HC_CUDA_SUCCESS) return r;
    if (w->type == HC_CU_GRAPH_NODE_TYPE_MEMSET)
        fill(w);
    else
        memmove((void *)w->dst, (const void *)w->src, w->n);
    return HC_CUDA_SUCCESS;
}

#define PARAM_ALIGN 64 /* of a tensor map */

static size_t aligned(size_t n)
{
    return (n + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
}

/* The parameters' pointers, then their bytes. */
static void **copy_params(const zc_host_kernel *k, void **params)
{
    size_t bytes = aligned(k->count * sizeof(void *));
    for (unsigned i = 0; i < k->count; i++) bytes += aligned(k->sizes[i]);
    void **copy = NULL;
    if (posix_memalign((void **)&copy, PARAM_ALIGN, bytes + PARAM_ALIGN) != 0) return NULL;
    char *at = (char *)copy + aligned(k->count * sizeof(void *));
    for (unsigned i = 0; i < k->count; i++) {
        copy[i] = at;
        memcpy(at, params[i], k->sizes[i]);
        at += aligned(k->sizes[i]);
    }
    return copy;
}

bool hc_work_copy(hc_work *to, const hc_work *from)
{
    *to = *from;
    if (from->type != HC_CU_GRAPH_NODE_TYPE_KERNEL) return true;
    to->launch.params = NULL;
    if (!hc_is(HC_FUNCTION, from->launch.function)) return false; /* its module is gone */
    to->launch.params = copy_params(from->launch.function->kernel, from->launch.params);
    return to->launch.params != NULL;
}

void hc_work_free(hc_work *w)
{
    if (w->type == HC_CU_GRAPH_NODE_TYPE_KERNEL) free(w->launch.params);
    w->launch.params = NULL;
}
