/* The disk cache of compiled kernels: one file a kernel, named by a hash of everything that decides
 * its bytes (sources, options, architecture, NVRTC's version and build). Safe between processes:
 * files appear complete and carry their own hash. The folder is ZC_CACHE_DIR, else
 * XDG_CACHE_HOME/zc, else HOME/.cache/zc; without any there is no cache. */
#ifndef ZC_CUDA_CACHE_H
#define ZC_CUDA_CACHE_H

#include "cuda/nvrtc.h"

/* Most bytes of all files, and of one. */
#define ZC_CACHE_BYTES_MAX (UINT64_C(1) << 30)

typedef struct zc_cache_key {
    char hex[65];
} zc_cache_key;

void zc_cache_make_key(const zc_rtc *rtc, const zc_pkernel *kernel, const zc_psource *sources,
                       uint32_t nsources, int arch, zc_cache_key *out);
/* The folder into buf, or NULL when there is none. */
const char *zc_cache_folder(char *buf, size_t n);
/* Appends the cached bytes to out; false when absent or damaged. */
bool zc_cache_get(const zc_cache_key *key, zc_buf *out);
/* Keeps bytes, and removes files as zc_cache_trim does until at most `most` bytes are left;
 * failures are not errors (a read-only folder only costs time). */
void zc_cache_put(const zc_cache_key *key, const void *data, size_t len, uint64_t most);

typedef struct zc_cache_stats {
    uint64_t files, bytes;
} zc_cache_stats;
zc_status zc_cache_look(zc_cache_stats *out, zc_diag *diag);
/* Removes files, the ones used longest ago first, until at most `keep` bytes are left. */
zc_status zc_cache_trim(uint64_t keep, zc_cache_stats *removed, zc_diag *diag);

#endif
