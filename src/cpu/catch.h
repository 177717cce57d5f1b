/* The border to C++ (catch.cpp). */
#ifndef ZC_CPU_CATCH_H
#define ZC_CPU_CATCH_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum zc_caught { ZC_CAUGHT_NOTHING, ZC_CAUGHT_NOMEM, ZC_CAUGHT_OTHER } zc_caught;

/* Calls fn(arg), and says what it threw. */
zc_caught zc_catch(void (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
