/* Children that go on using the library. Include cmocka.h and what it needs before. */
#ifndef ZC_TESTS_FORKS_H
#define ZC_TESTS_FORKS_H

/* AddressSanitizer before GCC 14 takes none of its allocator's locks for a fork: a child may wait
 * for one that a thread held which it does not have. ThreadSanitizer starts no threads there. */
static inline void need_forks(void)
{
#if (defined __SANITIZE_ADDRESS__ && __GNUC__ < 14) || defined __SANITIZE_THREAD__
    print_message("this compiler's sanitizer does not survive forks beside threads\n");
    skip();
#endif
}

#endif
