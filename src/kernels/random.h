/* Keys of random operations, see op/random.h. */
#ifndef ZC_KERNELS_RANDOM_H
#define ZC_KERNELS_RANDOM_H

#include <string.h>

#include "kernels/launch.h"
#include "op/random.h"

static inline uint64_t zc_launch_random_key(const zc_launch *l, bool seeded, uint64_t seed)
{
    return seeded ? zc_seed_key(seed) : zc_name_key(l->subject);
}

/* Of an operation whose attribute `seed` is a float. */
static inline uint64_t zc_launch_random_key_f32(const zc_launch *l, bool seeded, float seed)
{
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    return zc_launch_random_key(l, seeded, bits);
}

#define ZC_LAUNCH_RANDOM_KEY(l, NAME, a)                                                           \
    zc_launch_random_key_f32(l, ZC_ATTR_GIVEN(NAME, a, seed), (a)->seed)

#endif
