/* Ranges for NVIDIA's tools (NVTX): Nsight shows what is issued within one under its name. Nothing
 * without such a tool. Of each thread, one within the other. */
#ifndef ZC_RUNTIME_NVTX_H
#define ZC_RUNTIME_NVTX_H

void zc_nvtx_push(const char *name);
void zc_nvtx_pop(void);

#endif
