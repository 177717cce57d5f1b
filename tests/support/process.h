/* What a test of this process's growth measures. Include cmocka.h and what it needs before. */
#ifndef ZC_TESTS_PROCESS_H
#define ZC_TESTS_PROCESS_H

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static inline long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
