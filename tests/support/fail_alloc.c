#include "support/fail_alloc.h"

#include <stdatomic.h>
#include <stddef.h>

/* Threads of a pool may allocate at once. */
static atomic_long countdown; /* 0: off */
static atomic_long live, calls;
static atomic_int happened;

void fail_alloc_at(long n)
{
    countdown = n;
    happened = 0;
}

int fail_alloc_happened(void)
{
    return happened;
}

long fail_alloc_live(void)
{
    return live;
}

long fail_alloc_count(void)
{
    return calls;
}

static int fails(void)
{
    atomic_fetch_add(&calls, 1);
    long n = atomic_load(&countdown);
    while (n > 0)
        if (atomic_compare_exchange_weak(&countdown, &n, n - 1)) break;
    if (n != 1) return 0;
    happened = 1;
    return 1;
}

static void *count(void *p)
{
    if (p) atomic_fetch_add(&live, 1);
    return p;
}

/* The linker gives these names. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    if (fails()) return NULL;
    void *moved = __real_realloc(p, size);
    return p ? moved : count(moved);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : count(__real_aligned_alloc(align, size));
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : count(__real_strdup(s));
}

void __wrap_free(void *p)
{
    if (p) atomic_fetch_sub(&live, 1);
    __real_free(p);
}
