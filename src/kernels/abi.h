/* What this zc expects of sources in a plan (tools/abi.c). */
#ifndef ZC_KERNELS_ABI_H
#define ZC_KERNELS_ABI_H

#include <stdint.h>

typedef struct zc_source_hash {
    const char *name;
    uint64_t hash;
} zc_source_hash;

/* By template, the layout of its parameters: the headers of templates/abi that it includes, without
 * comments and spaces. By source, its bytes (FNV-1a). Each ended by one without a name. */
extern const zc_source_hash zc_template_abis[], zc_source_hashes[];

#endif
