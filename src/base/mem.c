#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define ARENA_BLOCK ((size_t)16 * 1024)
#define ARENA_ALIGN _Alignof(max_align_t)

bool zc_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool zc_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool zc_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool zc_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* n*size, at least 1 so that no allocator call asks for nothing, and small enough that pointer
 * differences inside the object cannot overflow. */
static bool alloc_size(size_t n, size_t size, size_t *out)
{
    if (!zc_mul_size(n, size, out) || *out > PTRDIFF_MAX) return false;
    if (*out == 0) *out = 1;
    return true;
}

void *zc_calloc(size_t n, size_t size)
{
    size_t bytes;
    return alloc_size(n, size, &bytes) ? calloc(1, bytes) : NULL;
}

void *zc_realloc(void *p, size_t n, size_t size)
{
    size_t bytes;
    return alloc_size(n, size, &bytes) ? realloc(p, bytes) : NULL;
}

struct zc_arena_block {
    struct zc_arena_block *next;
    size_t used, cap;
    max_align_t data[];
};

void zc_arena_init(zc_arena *arena, size_t budget)
{
    *arena = (zc_arena){.budget = budget};
}

static void free_blocks(struct zc_arena_block *b)
{
    while (b) {
        struct zc_arena_block *next = b->next;
        free(b);
        b = next;
    }
}

void zc_arena_fini(zc_arena *arena)
{
    free_blocks(arena->blocks);
    free_blocks(arena->spare);
    arena->blocks = arena->spare = NULL;
    arena->used = arena->held = 0;
}

void zc_arena_reset(zc_arena *arena)
{
    while (arena->blocks) {
        struct zc_arena_block *b = arena->blocks;
        arena->blocks = b->next;
        memset(b->data, 0, b->used);
        b->used = 0;
        b->next = arena->spare;
        arena->spare = b;
    }
    arena->used = 0;
}

/* The smallest spare block that is large enough: so the same requests find the same blocks. */
static struct zc_arena_block *take_spare(zc_arena *arena, size_t cap)
{
    struct zc_arena_block **best = NULL;
    for (struct zc_arena_block **at = &arena->spare; *at; at = &(*at)->next)
        if ((*at)->cap >= cap && (!best || (*at)->cap < (*best)->cap)) best = at;
    if (!best) return NULL;
    struct zc_arena_block *b = *best;
    *best = b->next;
    b->next = NULL;
    return b;
}

static struct zc_arena_block *new_block(zc_arena *arena, size_t cap)
{
    size_t total;
    if (!zc_add_size(sizeof(struct zc_arena_block), cap, &total)) return NULL;
    struct zc_arena_block *b = zc_calloc(1, total);
    if (!b) return NULL;
    b->cap = cap;
    arena->held += total;
    return b;
}

/* A block for one large object goes second in the list, so that the space left in the current
 * block stays in use. */
static struct zc_arena_block *arena_block(zc_arena *arena, size_t bytes)
{
    const bool large = bytes > ARENA_BLOCK / 4;
    const size_t cap = large ? bytes : ARENA_BLOCK;
    struct zc_arena_block *b = take_spare(arena, cap);
    if (!b) b = new_block(arena, cap);
    if (!b) return NULL;
    if (large && arena->blocks) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
    } else {
        b->next = arena->blocks;
        arena->blocks = b;
    }
    return b;
}

void *zc_arena_alloc(zc_arena *arena, size_t n, size_t size)
{
    size_t bytes, used;
    if (!alloc_size(n, size, &bytes)) return NULL;
    bytes = zc_align_up(bytes, ARENA_ALIGN);
    if (!zc_add_size(arena->used, bytes, &used)) return NULL;
    if (arena->budget && used > arena->budget) return NULL;
    struct zc_arena_block *b = arena->blocks;
    if (!b || bytes > b->cap - b->used) b = arena_block(arena, bytes);
    if (!b) return NULL;
    void *p = (char *)b->data + b->used;
    b->used += bytes;
    arena->used = used;
    return p;
}

char *zc_arena_strndup(zc_arena *arena, const char *s, size_t n)
{
    size_t bytes;
    if (!zc_add_size(n, 1, &bytes)) return NULL;
    char *p = zc_arena_alloc(arena, bytes, 1);
    if (p && n) memcpy(p, s, n);
    return p;
}

char *zc_arena_strdup(zc_arena *arena, const char *s)
{
    return zc_arena_strndup(arena, s, strlen(s));
}

void *zc_arena_dup(zc_arena *arena, const void *p, size_t n, size_t size)
{
    void *copy = zc_arena_alloc(arena, n, size);
    if (copy && n && size) memcpy(copy, p, n * size);
    return copy;
}

void zc_buf_fini(zc_buf *buf)
{
    free(buf->data);
    *buf = (zc_buf){0};
}

/* Makes room for n more bytes and the NUL that follows. */
static bool buf_room(zc_buf *buf, size_t n)
{
    if (buf->failed) return false;
    size_t need;
    void *data = buf->data;
    if (!zc_add_size(buf->len, n, &need) || !zc_add_size(need, 1, &need) ||
        !zc_vec_reserve(&data, &buf->cap, need, 1)) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    return true;
}

void zc_buf_append(zc_buf *buf, const void *p, size_t n)
{
    if (!buf_room(buf, n)) return;
    if (n) memcpy(buf->data + buf->len, p, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void zc_buf_puts(zc_buf *buf, const char *s)
{
    zc_buf_append(buf, s, strlen(s));
}

void zc_buf_printf(zc_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = zc_vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) buf->failed = true;
    if (n < 0 || !buf_room(buf, (size_t)n)) return;
    va_start(args, fmt);
    zc_vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)n;
}

/* Length of the well-formed, printable UTF-8 character at s (no control character, shortest form,
 * no surrogate, at most U+10FFFF), or 0. */
static size_t printable_length(const unsigned char *s, size_t n)
{
    const unsigned char c = s[0];
    if (c < 0x80) return c >= 0x20 && c != 0x7F;
    const size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c < 0xC2 || c > 0xF4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    const unsigned char d = s[1];
    if (c == 0xC2 && d < 0xA0) return 0; /* C1 control */
    if ((c == 0xE0 && d < 0xA0) || (c == 0xF0 && d < 0x90)) return 0;
    if ((c == 0xED && d > 0x9F) || (c == 0xF4 && d > 0x8F)) return 0;
    return len;
}

void zc_buf_escape(zc_buf *buf, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !buf->failed;) {
        const size_t len = printable_length((const unsigned char *)s + i, n - i);
        if (len) {
            zc_buf_append(buf, s + i, len);
            i += len;
        } else {
            zc_buf_printf(buf, "\\x%02X", (unsigned char)s[i++]);
        }
    }
}

size_t zc_buf_grow(zc_buf *buf, size_t n)
{
    const size_t off = buf->len;
    if (!buf_room(buf, n)) return off;
    memset(buf->data + off, 0, n + 1);
    buf->len += n;
    return off;
}

bool zc_vec_reserve(void **data, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return true;
    size_t grown = *cap < 8 ? 8 : *cap;
    while (grown < need)
        if (!zc_mul_size(grown, 2, &grown)) return false;
    /* The caller's object is some T *, not a void *: copy its bytes instead of aliasing it. */
    void *p;
    memcpy(&p, (void *)data, sizeof p);
    p = zc_realloc(p, grown, size);
    if (!p) return false;
    memcpy((void *)data, &p, sizeof p);
    *cap = grown;
    return true;
}
