/* The disk cache of what takes long to make: compiled kernels and measured peaks, one file each,
 * named by a hash of everything that decides its bytes (of a kernel sources, options, architecture,
 * NVRTC's version and build). Safe between processes: files appear complete and carry their own
 * hash. The folder is ZC_CACHE_DIR, else XDG_CACHE_HOME/zc, else HOME/.cache/zc; without any there
 * is no cache. */
#ifndef ZC_CUDA_CACHE_H
#define ZC_CUDA_CACHE_H

#include "cuda/nvrtc.h"

/* Most bytes of all files, and of one. */
#define ZC_CACHE_BYTES_MAX (UINT64_C(1) << 30)

typedef enum zc_cache_kind { ZC_CACHE_KERNELS, ZC_CACHE_PEAKS, ZC_CACHE_KINDS } zc_cache_kind;

typedef struct zc_cache_key {
    zc_cache_kind kind;
    char hex[65];
} zc_cache_key;

/* The key of what the text alone decides. */
void zc_cache_key_of_text(zc_cache_kind kind, const char *text, zc_cache_key *out);

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
/* Files of one kind. */
zc_status zc_cache_look(zc_cache_kind kind, zc_cache_stats *out, zc_diag *diag);
/* Calls fn with the bytes of each file of one kind that is not damaged, in no order. */
zc_status zc_cache_each(zc_cache_kind kind, void (*fn)(void *user, const zc_buf *bytes), void *user,
                        zc_diag *diag);
/* Removes files of any kind, the ones used longest ago first, until at most `keep` bytes are left.
 */
zc_status zc_cache_trim(uint64_t keep, zc_cache_stats *removed, zc_diag *diag);

#endif
