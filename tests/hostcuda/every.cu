/* A kernel that uses everything that ptx.cuh offers: it must compile with both versions. */
#include "zc/ptx.cuh"

__constant__ f32 table[4] = {1, 2, 3, 4};

extern "C" __global__ void __launch_bounds__(128, 2)
    every(u32 *u, f32 *f, f64 *d, i32 *i, u64 *ul, i64 *l, u16 *h)
{
    ZC_DYNAMIC_SMEM(smem);
    __shared__ __align__(16) u32 fixed[32];
    const u32 t = threadIdx.x;
    fixed[t % 32] = t;
    zc_sync();
    zc_sync_warp();
    zc_fence();
    u[0] = zc_shfl_xor(u[t], 1) + zc_shfl_down(u[t], 2) + zc_shfl(u[t], 3) + fixed[t % 32];
    i[0] = zc_shfl_xor(i[t], 1) + zc_shfl_down(i[t], 2) + zc_shfl(i[t], 3);
    f[0] = zc_shfl_xor(f[t], 1) + zc_shfl_down(f[t], 2) + zc_shfl(f[t], 3) + table[t % 4];
    d[0] = zc_shfl_xor(d[t], 1) + zc_shfl_down(d[t], 2) + zc_shfl(d[t], 3);
    ul[0] = zc_shfl_xor(ul[t], 1) + zc_shfl_down(ul[t], 2) + zc_shfl(ul[t], 3);
    l[0] = zc_shfl_xor(l[t], 1) + zc_shfl_down(l[t], 2) + zc_shfl(l[t], 3);
    u[1] = zc_ballot(t & 1) + zc_any(t == 3);

    zc_atomic_add(f, 1.0f), zc_atomic_add(d, 1.0), zc_atomic_add(i, 1), zc_atomic_add(u, 1u);
    zc_atomic_add(ul, 1ull), zc_atomic_add(l, 1ll);
    zc_atomic_max(i, 1), zc_atomic_max(u, 1u), zc_atomic_max(ul, 1ull), zc_atomic_max(l, 1ll);
    zc_atomic_min(i, 1), zc_atomic_min(u, 1u), zc_atomic_min(ul, 1ull), zc_atomic_min(l, 1ll);
    zc_atomic_cas(u, 1u, 2u), zc_atomic_cas(ul, 1ull, 2ull), zc_atomic_cas(h, (u16)1, (u16)2), zc_take_turn(u, 1u);

    u[2] = zc_bits(f[1]) + (u32)(zc_popc(u[3]) + zc_clz(u[4]) + zc_popc64(ul[1]) + zc_clz64(ul[2]));
    ul[3] = zc_bits64(d[1]) + zc_mulhi64(ul[4], ul[5]);
    f[2] = zc_float(u[5]) + zc_f16_to_f32(h[1]) + zc_bf16_to_f32(h[2]);
    d[2] = zc_double(ul[6]);
    h[3] = zc_f32_to_f16(f[3]), h[4] = zc_f32_to_bf16(f[4]);
    u[12] = zc_f32_to_tf32(f[10]) + zc_f32x2_to_f16x2(f[9], f[10]) + zc_f32x2_to_bf16x2(f[9], f[10]);
    u[13] = zc_larger_f16x2(u[14], u[15]) + zc_larger_bf16x2(u[16], u[17]);
    u[14] = zc_within_f16x2(zc_smaller_f16x2(u[14], u[13]), u[15], u[16]) & zc_numbers_f16x2(zc_exp2_f16x2(u[17]));
    f[11] = zc_exp2_approx(f[10]) + zc_div_approx(f[10], f[9]) + zc_sqrt_approx(f[9]) + zc_rsqrt_approx(f[9]) + zc_reciprocal_approx(f[9]);
    h[5] = zc_f64_to_f16(d[3]), h[6] = zc_f64_to_bf16(d[4]);
    i[1] = zc_dp4a(i[2], i[3], i[4]) + zc_dp4a_us(u[6], i[5], i[6]) + zc_dp4a_su(i[7], u[7], i[8]);
    u[8] = zc_dp4a_uu(u[9], u[10], u[11]);
    i[3] = zc_dp2a_low_su(i[4], u[9], i[5]) + zc_dp2a_high_su(i[6], u[9], i[7]);
    u[9] = zc_dp2a_low_uu(u[10], u[11], u[12]) + zc_dp2a_high_uu(u[13], u[11], u[14]);
    u[10] = zc_saturated_s16x2(i[2], i[3]) + zc_saturated_u16x2(i[4], i[5]);
    h[7] = zc_saturated_s8x2(i[2], i[3]) + zc_saturated_u8x2(i[4], i[5]);
    d[5] = zc_product64(d[1], d[2]) + zc_product32(f[1], f[2]);

    f32 c[4] = {f[5], f[6], f[7], f[8]};
    i32 ci[4] = {i[9], i[10], i[11], i[12]};
    u32 a[4], b[2];
    *zc_aligned<u64>(u) = 1;
    zc_cp_async16(smem + 16 * t, u, true);
    zc_cp_async_commit();
    ZC_CP_ASYNC_WAIT(1);
    zc_cp_async_wait(0);
    zc_grid_wait();
    zc_ldmatrix_x4(a, smem + 16 * t);
    zc_ldmatrix_x2(b, smem + 16 * t);
    zc_mma_m16n8k16_f16(c, a, b);
    zc_mma_m16n8k16_bf16(c, a, b);
    zc_mma_m16n8k8_tf32(c, a, b);
    zc_mma_sparse_m16n8k32_f16<0>(c, a, a, 0x44444444);
    zc_mma_sparse_m16n8k32_bf16<1>(c, a, a, 0xeeeeeeee);
    zc_ldmatrix_x4_trans(a, smem + 16 * t);
    zc_ldmatrix_x2_trans(b, smem + 16 * t);
    zc_mma_m16n8k32_s8(ci, a, b);
    zc_mma_m16n8k32_s8u8(ci, a, b);
    zc_mma_m16n8k32_u8s8(ci, a, b);
    zc_mma_m16n8k32_u8u8(ci, a, b);
    zc_grid_launch();
    f[9] = c[0] + c[1] + c[2] + c[3] + (f32)(ci[0] + ci[1] + ci[2] + ci[3]);

#define ONE(x, s)                                                                                  \
    acos##s(x) + acosh##s(x) + asin##s(x) + asinh##s(x) + atan##s(x) + atanh##s(x) + cbrt##s(x) +  \
        ceil##s(x) + cos##s(x) + cosh##s(x) + erf##s(x) + erfc##s(x) + exp##s(x) + exp2##s(x) +    \
        expm1##s(x) + fabs##s(x) + floor##s(x) + lgamma##s(x) + log##s(x) + log10##s(x) +          \
        log1p##s(x) + log2##s(x) + nearbyint##s(x) + rint##s(x) + round##s(x) + rsqrt##s(x) +      \
        sin##s(x) + sinh##s(x) + sqrt##s(x) + tan##s(x) + tanh##s(x) + tgamma##s(x) + trunc##s(x)
#define TWO(x, y, s)                                                                               \
    atan2##s(x, y) + copysign##s(x, y) + fdim##s(x, y) + fmax##s(x, y) + fmin##s(x, y) +           \
        fmod##s(x, y) + hypot##s(x, y) + pow##s(x, y) + remainder##s(x, y) + fma##s(x, y, x) +     \
        ldexp##s(x, 3)
    f[10] = ONE(f[11], f) + TWO(f[12], f[13], f);
    d[5] = ONE(d[6], ) + TWO(d[7], d[8], );
    u[12] = isnan(f[14]) + isinf(f[14]) + isfinite(f[14]) + signbit(f[14]) + isnan(d[9]) +
            isinf(d[9]) + isfinite(d[9]) + signbit(d[9]) + blockIdx.x + gridDim.y + blockDim.z;
}
