/* Keys of random operations: from the attribute `seed`, or from the node's name, so that nodes
 * without a seed differ and yet every run gives the same numbers. Every device computes the same
 * numbers from a key. */
#ifndef ZC_OP_RANDOM_H
#define ZC_OP_RANDOM_H

#include <stdint.h>

/* Key of a seed's bits: the finaliser of SplitMix64, so that near seeds give unrelated keys. */
static inline uint64_t zc_seed_key(uint64_t seed)
{
    uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Key of a node without a seed; NULL counts as "". */
static inline uint64_t zc_name_key(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *s = name ? name : ""; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return zc_seed_key(h);
}

#endif
