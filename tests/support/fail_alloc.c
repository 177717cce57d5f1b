#include "support/fail_alloc.h"

#include <stddef.h>

static long countdown; /* 0: off */
static int happened;

void fail_alloc_at(long n)
{
    countdown = n;
    happened = 0;
}

int fail_alloc_happened(void)
{
    return happened;
}

static int fails(void)
{
    if (countdown == 0 || --countdown > 0) return 0;
    happened = 1;
    return 1;
}

/* The linker gives these names. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}
