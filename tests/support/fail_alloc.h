/* Makes one allocation fail. The program is linked with fail_alloc.c and fail_alloc_args of
 * meson.build, which reroute the calls of zc's own code; those inside shared libraries stay. */
#ifndef ZC_TESTS_FAIL_ALLOC_H
#define ZC_TESTS_FAIL_ALLOC_H

/* The n-th allocation from now on fails, the first being 1; 0: none does. */
void fail_alloc_at(long n);
/* Whether it has happened since. */
int fail_alloc_happened(void);
/* Rerouted calls so far that allocate. */
long fail_alloc_count(void);
/* Allocations that rerouted calls made and have not freed. What a shared library allocates for zc
 * to free, or the other way round, makes it wrong. */
long fail_alloc_live(void);

#endif
