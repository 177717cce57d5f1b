/* What the tests of the fake driver share: a device with a context, compiling, launching. */
#ifndef ZC_HOSTCUDA_FIXTURE_H
#define ZC_HOSTCUDA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda_functions.h"

#define assert_ok(call) assert_int_equal((call), HC_CUDA_SUCCESS)

/* cmocka's set-up and tear-down: a fresh driver with a current context. */
int device_up(void **state);
int device_down(void **state);
/* Everything again after the environment changed; the context is current. */
void device_again(void);
void unset_all(void);

/* Compiles with the fake NVRTC for sm_90 and loads. */
hc_module_t load_source(const char *source);
hc_function_t function_of(hc_module_t module, const char *name);
/* The NVRTC result; *log is to be freed. */
hc_result compile_source(const char *source, const char *arch, char **image, char **log);

hc_ptr device_bytes(const void *bytes, size_t n);
hc_result launch(hc_function_t f, unsigned grid, unsigned block, unsigned smem, void **params);

/* Random numbers, the same in each run of a test. */
uint32_t draw(void);
/* A multiple of 1/8 in [-2, 2): exact in every float type used. */
float draw_float(void);

#endif
