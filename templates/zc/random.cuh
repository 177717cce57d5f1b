// Random numbers: Philox 4x32-10, a function of a key and an element's index; src/cpu/random.h has the same numbers.
#pragma once
#include "zc/unit_root.cuh"

// The 64 random bits of elements 2 * pair and 2 * pair + 1.
ZC_DEV void zc_random_pair(u64 key, u64 pair, u64 bits[2]) {
    u32 c0 = (u32)pair, c1 = (u32)(pair >> 32), c2 = 0, c3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c3 = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    bits[0] = (u64)c1 << 32 | c0;
    bits[1] = (u64)c3 << 32 | c2;
}
// Uniform in [0, 1).
ZC_DEV f64 zc_random_unit(u64 bits) { return (f64)(bits >> 11) * (1.0 / 9007199254740992.0); }
ZC_DEV f64 zc_random_uniform(u64 key, u64 i) {
    u64 bits[2];
    zc_random_pair(key, i / 2, bits);
    return zc_random_unit(i % 2 ? bits[1] : bits[0]);
}
ZC_DEV void zc_random_uniforms(u64 key, u64 pair, f64 v[2]) {
    u64 bits[2];
    zc_random_pair(key, pair, bits);
    v[0] = zc_random_unit(bits[0]);
    v[1] = zc_random_unit(bits[1]);
}
// Normal with mean 0 and variance 1: Box and Muller's transform of both numbers.
ZC_DEV void zc_random_normals(u64 key, u64 pair, f64 v[2]) {
    u64 bits[2];
    zc_random_pair(key, pair, bits);
    const f64 radius = sqrt(-2.0 * log(1.0 - zc_random_unit(bits[0])));
    zc_unit_root((i64)(bits[1] >> 11), 1ll << 53, &v[0], &v[1]);
    v[0] *= radius;
    v[1] *= radius;
}
