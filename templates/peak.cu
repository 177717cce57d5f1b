// How fast a multiprocessor multiplies and adds: no step's kernel, what zc profile compares steps with. Every thread repeats
// products of operands that are in shared memory or registers before it begins, random ones, as the power that a GPU has
// for them depends on their bits.
//
// spec.h: Z_KEEP, Z_SET: an operand's words are random bits of Z_KEEP, and Z_SET; Z_THREADS. One of
// Z_WGMMA: with Z_PRODUCT (ZC_WGMMA or ZC_WGMMA_ALONG of zc/wgmma.cuh with its arguments) and Z_SUM, the sums' type;
// Z_MMA:   with Z_PRODUCT (zc_mma_...) and Z_SUM;
// neither: f32 on the ordinary cores.
// The numbers of products in a round stand in src/tune/gpu_peaks.c, too.
#include "zc/device.cuh"
#include "abi/peak.h"
#include "spec.h"

ZC_DEV u32 zc_operand(u32 word) {
    word = (word ^ word >> 16) * 0x7feb352du;
    word = (word ^ word >> 15) * 0x846ca68bu;
    return ((word ^ word >> 16) & Z_KEEP) | Z_SET;
}

ZC_DEV void zc_keep(const zc_peak_params &p, f32 sum) { p.sums[zc_thread()] = sum; }

#if defined Z_WGMMA
#include "zc/hopper.cuh"

// Stages of two warpgroups' rows of A and of B's columns, 128 bytes each; four products along them.
enum { STAGES = 4, COLUMNS = 256, LINE = 128, A_BYTES = 2 * 64 * LINE, STAGE = A_BYTES + COLUMNS * LINE };
Z_PRODUCT

ZC_KERNEL_OF(0, Z_THREADS)(const __grid_constant__ zc_peak_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_begin();
    for (int i = (int)threadIdx.x; i < STAGES * STAGE / 4; i += Z_THREADS) ((u32 *)smem)[i] = zc_operand((u32)i);
    zc_async_fence();
    zc_sync();
    const u32 b = zc_smem_address(smem) + A_BYTES, a = b - A_BYTES + (u32)zc_warpgroup() * 64 * LINE;
    Z_SUM d[COLUMNS / 2]; // begins anew each round: sums that only grew would lose low bits, and with them the power
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) d[i] = 0;
    for (int round = 0; round < p.rounds; round++) {
        zc_wgmma_fence();
#pragma unroll
        for (int i = 0; i < STAGES * 4; i++) {
            const u32 at = (u32)(i / 4 * STAGE + i % 4 * 32);
            zc_peak_product(d, zc_wgmma_along(a, at), zc_wgmma_along(b, at), i > 0);
        }
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
    }
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) sum += (f32)d[i];
    zc_keep(p, sum);
}

#elif defined Z_MMA

ZC_KERNEL_OF(0, Z_THREADS)(const __grid_constant__ zc_peak_params p) {
    zc_begin();
    u32 a[4][4], b[2][2];
    Z_SUM d[8][4] = {};
#pragma unroll
    for (int i = 0; i < 20; i++) {
        const u32 word = zc_operand((u32)(zc_thread() * 20 + i));
        if (i < 16) a[i / 4][i % 4] = word;
        else b[i / 2 % 2][i % 2] = word;
    }
    for (int round = 0; round < p.rounds; round++)
#pragma unroll
        for (int i = 0; i < 32; i++) Z_PRODUCT(d[i % 8], a[i % 4], b[i / 4 % 2]);
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) sum += (f32)d[i / 4][i % 4];
    zc_keep(p, sum);
}

#else

ZC_KERNEL_OF(0, Z_THREADS)(const __grid_constant__ zc_peak_params p) {
    zc_begin();
    f32 a[4], b[4], d[16] = {};
#pragma unroll
    for (int i = 0; i < 8; i++) (i < 4 ? a : b)[i % 4] = zc_float(zc_operand((u32)(zc_thread() * 8 + i)));
    for (int round = 0; round < p.rounds; round++)
#pragma unroll
        for (int i = 0; i < 64; i++) d[i % 16] = fmaf(a[i % 4], b[i / 4 % 4], d[i % 16]);
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += d[i];
    zc_keep(p, sum);
}
#endif
