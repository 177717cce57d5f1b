/* Memory: overflow-checked sizes, arenas, growable buffers. */
#ifndef ZC_BASE_MEM_H
#define ZC_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zc/status.h"

#define ZC_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

/* Checked arithmetic: false, with *out untouched, when the result does not fit. */
bool zc_mul_size(size_t a, size_t b, size_t *out);
bool zc_add_size(size_t a, size_t b, size_t *out);
bool zc_mul_i64(int64_t a, int64_t b, int64_t *out);
bool zc_add_i64(int64_t a, int64_t b, int64_t *out);

/* THE range check: does [off, off+len) lie within [0, size)? Never overflows. */
static inline bool zc_range_ok(uint64_t off, uint64_t len, uint64_t size)
{
    return len <= size && off <= size - len;
}

/* Rounds up to a power of two; the caller has made sure that it fits. */
static inline size_t zc_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* n elements of size bytes, zeroed, or NULL when that overflows or memory is exhausted. A product
 * of 0 gives a valid pointer. Freed with free(). */
void *zc_calloc(size_t n, size_t size);
/* As realloc(p, n*size), or NULL (p stays valid). */
void *zc_realloc(void *p, size_t n, size_t size);

/* Arena: objects that live and die together. Not thread-safe. */
typedef struct zc_arena {
    struct zc_arena_block *blocks, *spare;
    size_t used;   /* bytes handed out */
    size_t held;   /* bytes of all blocks */
    size_t budget; /* most bytes it may hand out; 0 means no limit */
} zc_arena;

void zc_arena_init(zc_arena *arena, size_t budget);
void zc_arena_fini(zc_arena *arena);
/* Forgets all objects but keeps the blocks: the same requests again allocate nothing. */
void zc_arena_reset(zc_arena *arena);
/* n*size zeroed bytes aligned for any type, or NULL. */
void *zc_arena_alloc(zc_arena *arena, size_t n, size_t size);
/* A NUL-terminated copy of n bytes / of a string, or NULL. */
char *zc_arena_strndup(zc_arena *arena, const char *s, size_t n);
char *zc_arena_strdup(zc_arena *arena, const char *s);
void *zc_arena_dup(zc_arena *arena, const void *p, size_t n, size_t size);

/* Growable byte buffer. A failed append sets `failed` and is otherwise ignored, so that callers may
 * append many times and check once. data is NUL-terminated whenever it is not NULL. */
typedef struct zc_buf {
    char *data;
    size_t len, cap;
    bool failed;
} zc_buf;

void zc_buf_fini(zc_buf *buf);
void zc_buf_append(zc_buf *buf, const void *p, size_t n);
void zc_buf_puts(zc_buf *buf, const char *s);
void zc_buf_printf(zc_buf *buf, const char *fmt, ...) ZC_PRINTF(2, 3);
/* Appends with control characters and bytes that are not UTF-8 as \xNN. */
void zc_buf_escape(zc_buf *buf, const char *s, size_t n);
/* Grows by n zeroed bytes and returns their offset. */
size_t zc_buf_grow(zc_buf *buf, size_t n);

/* Growable array: ensures room for `need` elements, doubling. Returns false when memory is
 * exhausted (the array is unchanged). Use through ZC_VEC_PUSH. */
bool zc_vec_reserve(void **data, size_t *cap, size_t need, size_t size);

#define ZC_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *data;                                                                                   \
        size_t len, cap;                                                                           \
    }
/* True when pushed. */
#define ZC_VEC_PUSH(v, value)                                                                      \
    (zc_vec_reserve((void **)&(v)->data, &(v)->cap, (v)->len + 1, sizeof *(v)->data)               \
         ? ((v)->data[(v)->len++] = (value), true)                                                 \
         : false)
#define ZC_VEC_FINI(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

#endif
