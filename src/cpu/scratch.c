#include <stdlib.h>

#include "cpu/kernel.h"

struct zc_scratch_block {
    struct zc_scratch_block *next;
    size_t cap, used;
    unsigned char *data;
};

#define BLOCK_MIN ((size_t)1 << 16)

static const zc_allocator c_library;

static const zc_allocator *allocator(const zc_scratch *s)
{
    return s->allocator ? s->allocator : &c_library;
}

static struct zc_scratch_block *block_new(const zc_scratch *s, size_t cap)
{
    struct zc_scratch_block *b = malloc(sizeof *b);
    if (!b) return NULL;
    *b = (struct zc_scratch_block){.cap = cap, .data = zc_tensor_alloc(allocator(s), cap)};
    if (!b->data) {
        free(b);
        return NULL;
    }
    return b;
}

void *zc_scratch_get(zc_scratch *s, size_t bytes)
{
    size_t need;
    if (!zc_add_size(bytes, ZC_TENSOR_ALIGN, &need)) return NULL;
    need = zc_align_up(bytes ? bytes : 1, ZC_TENSOR_ALIGN);
    struct zc_scratch_block **at = &s->blocks;
    while (*at && (*at)->cap - (*at)->used < need) at = &(*at)->next;
    if (!*at) {
        *at = block_new(s, need > BLOCK_MIN ? need : BLOCK_MIN);
        if (!*at) return NULL;
        s->held += (*at)->cap;
    }
    void *p = (*at)->data + (*at)->used;
    (*at)->used += need;
    return p;
}

void zc_scratch_reset(zc_scratch *s)
{
    for (struct zc_scratch_block *b = s->blocks; b; b = b->next) b->used = 0;
}

void zc_scratch_fini(zc_scratch *s)
{
    while (s->blocks) {
        struct zc_scratch_block *b = s->blocks;
        s->blocks = b->next;
        zc_tensor_free(allocator(s), b->data, b->cap);
        free(b);
    }
    s->held = 0;
}
