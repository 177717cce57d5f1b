/* Random numbers: a pool of each element type, which every tensor takes its values from, beginning
 * at a place of its own. So a value is known on the host without a copy of the tensor there, and
 * device memory is filled by the device. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "bench.h"
#include "cpu/random.h"

static const struct {
    zc_dtype dtype;
    float scale;
} kinds[KB_POOLS] = {
    [KB_F16] = {ZC_F16, 1},         [KB_BF16] = {ZC_BF16, 1},         [KB_F32] = {ZC_F32, 1},
    [KB_F16_W] = {ZC_F16, 0x1p-5f}, [KB_BF16_W] = {ZC_BF16, 0x1p-5f}, [KB_E4M3] = {ZC_F8E4M3FN, 1},
    [KB_I8] = {ZC_I8, 20},          [KB_ONES] = {ZC_F32, 0}};

zc_status kb_pools_make(kb_pools *p, zc_diag *diag)
{
    uint64_t key = zc_random_key(1);
    *p = (kb_pools){0};
    for (int k = 0; k < KB_POOLS; k++) {
        p->raw[k] = zc_calloc(kb_pool_bytes((kb_pool_kind)k), 1);
        p->value[k] = zc_calloc(KB_POOL, sizeof(float));
        if (!p->raw[k] || !p->value[k]) return zc_fail_nomem(diag, "random numbers", KB_POOL * 6);
    }
    for (int64_t i = 0; i < KB_POOL; i++) {
        /* All of them f16's numbers, so that f32 has what an image of f16 has. */
        float v = zc_f16_to_f32(zc_f32_to_f16((float)zc_random_normal(key, (uint64_t)i)));
        for (int k = 0; k < KB_POOLS; k++) {
            double value = k == KB_ONES ? 1 : (double)(v * kinds[k].scale);
            zc_store_f64(kinds[k].dtype, p->raw[k], i, value);
            p->value[k][i] = (float)zc_load_f64(kinds[k].dtype, p->raw[k], i);
        }
    }
    return ZC_OK;
}

void kb_pools_free(kb_pools *p)
{
    for (int k = 0; k < KB_POOLS; k++) {
        free(p->raw[k]);
        free(p->value[k]);
    }
    *p = (kb_pools){0};
}

size_t kb_pool_bytes(kb_pool_kind kind)
{
    return (size_t)KB_POOL * (zc_dtype_bits(kinds[kind].dtype) / 8);
}

kb_pool_kind kb_pool_of(const kb_tensor *t)
{
    if (t->ones) return KB_ONES;
    if (t->dtype == ZC_F32) return KB_F32;
    if (t->dtype == ZC_F8E4M3FN) return KB_E4M3;
    if (t->dtype == ZC_I8) return KB_I8;
    if (t->dtype == ZC_BF16) return t->weight ? KB_BF16_W : KB_BF16;
    return t->weight ? KB_F16_W : KB_F16;
}

int64_t kb_place(kb_role role, int copy)
{
    return ((int64_t)role * 1299709 + (int64_t)copy * 611953) % KB_POOL;
}

void kb_values(const kb_pools *p, const kb_tensor *t, kb_role role, int copy, void *out)
{
    const char *pool = p->raw[kb_pool_of(t)];
    size_t size = zc_dtype_bits(t->dtype) / 8;
    for (int64_t done = 0, at = kb_place(role, copy), n; done < t->count; done += n, at = 0) {
        n = t->count - done < KB_POOL - at ? t->count - done : KB_POOL - at;
        memcpy((char *)out + (size_t)done * size, pool + (size_t)at * size, (size_t)n * size);
    }
}
