/* A check of generated code that no test run can replace. */
#ifndef ZC_CUDA_PTX_CHECK_H
#define ZC_CUDA_PTX_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Kernels may be launched before the one in front of them is done (programmatic dependent launch).
 * That is right only when each waits for it (griddepcontrol.wait) before it touches memory that
 * others share. Looks at every entry of the PTX text; false: `entry` gets the name of the first one
 * that reads or writes such memory earlier, or that never waits. Text without entries passes. */
bool zc_ptx_waits(const char *ptx, char *entry, size_t n);

#endif
