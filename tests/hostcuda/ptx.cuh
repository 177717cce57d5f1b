/* The host version of templates/zc/ptx.cuh: the same names, run on a CPU by the fake driver.
 *
 * All threads are fibers of one host thread, so plain memory accesses are atomic and an opaque
 * call is the only place where another thread can run. Kept free of other headers: every
 * test kernel compiles it. */
#ifndef ZC_PTX_CUH
#define ZC_PTX_CUH

#include "abi.h"

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

static zc_host_state zc_host;
static const zc_host_api *zc_host_call;

/* __global__ and __launch_bounds__ stay: the fake compiler finds the kernels by them and takes them
 * away. */
#define __device__
#define __host__
#define __constant__    static
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
/* One section, which the driver fills anew for each block and exchanges between those that run at
 * the same time. "used" keeps the compiler from believing that nobody else writes a function's own
 * variable. */
#define __shared__ static __attribute__((section("zc_shared"), used))

/* CUDA's own name for it, in kernels of users. */
#define __syncthreads() zc_sync()

#define threadIdx (zc_host.tid)
#define blockIdx  (zc_host.bid)
#define blockDim  (zc_host.bdim)
#define gridDim   (zc_host.gdim)

#define ZC_INLINE static inline
#define ZC_DYNAMIC_SMEM(name) unsigned char *name = zc_host.smem

/* ---- Barriers and fences ---- */

ZC_INLINE void zc_sync(int line = __builtin_LINE())
{
    zc_host_call->sync(line);
}

ZC_INLINE void zc_sync_warp(int line = __builtin_LINE())
{
    zc_host_call->exchange(ZC_HOST_SYNC_WARP, line, &line, 0);
}

/* A look at memory that changed nothing: after many of them others go on. */
ZC_INLINE void zc_host_in_vain()
{
    if (zc_host.patience-- == 0) zc_host_call->yield();
}

ZC_INLINE void zc_fence()
{
    asm volatile("" ::: "memory");
    zc_host_in_vain();
}

/* ---- Exchange within a warp ---- */

template <typename T> ZC_INLINE T zc_host_shfl(T v, u32 from, int line)
{
    const zc_host_lanes *lanes = zc_host_call->exchange(ZC_HOST_SHFL, line, &v, sizeof v);
    T r;
    __builtin_memcpy(&r, lanes->slot[from], sizeof r);
    return r;
}

#define ZC_SHFL(T)                                                                                 \
    ZC_INLINE T zc_shfl_xor(T v, int mask, int line = __builtin_LINE())                            \
    {                                                                                              \
        return zc_host_shfl(v, (zc_host.lane ^ (u32)mask) & 31u, line);                            \
    }                                                                                              \
    ZC_INLINE T zc_shfl_down(T v, u32 d, int line = __builtin_LINE())                              \
    {                                                                                              \
        u32 from = zc_host.lane + (d & 31u);                                                       \
        return zc_host_shfl(v, from < 32u ? from : zc_host.lane, line);                            \
    }                                                                                              \
    ZC_INLINE T zc_shfl(T v, int lane, int line = __builtin_LINE())                                \
    {                                                                                              \
        return zc_host_shfl(v, (u32)lane & 31u, line);                                             \
    }
ZC_SHFL(u32)
ZC_SHFL(i32)
ZC_SHFL(f32)
ZC_SHFL(u64)
ZC_SHFL(i64)
ZC_SHFL(f64)
#undef ZC_SHFL

ZC_INLINE u32 zc_ballot(bool v, int line = __builtin_LINE())
{
    u8 mine = v ? 1 : 0;
    const zc_host_lanes *lanes = zc_host_call->exchange(ZC_HOST_BALLOT, line, &mine, 1);
    u32 r = 0;
    for (u32 l = 0; l < 32u; l++)
        if (lanes->slot[l][0] == 1) r |= 1u << l;
    return r;
}

ZC_INLINE bool zc_any(bool v, int line = __builtin_LINE())
{
    return zc_ballot(v, line) != 0;
}

/* ---- Atomics ---- */

/* Integers wrap: U is the unsigned type that adds. */
#define ZC_ATOMIC_ADD(T, U)                                                                        \
    ZC_INLINE T zc_atomic_add(T *p, T v)                                                           \
    {                                                                                              \
        T old = *p;                                                                                \
        *p = (T)((U)old + (U)v);                                                                   \
        if (v == 0) zc_host_in_vain();                                                             \
        return old;                                                                                \
    }
ZC_ATOMIC_ADD(f32, f32)
ZC_ATOMIC_ADD(f64, f64)
ZC_ATOMIC_ADD(i32, u32)
ZC_ATOMIC_ADD(u32, u32)
ZC_ATOMIC_ADD(i64, u64)
ZC_ATOMIC_ADD(u64, u64)
#undef ZC_ATOMIC_ADD

#define ZC_ATOMIC_MINMAX(T)                                                                        \
    ZC_INLINE T zc_atomic_max(T *p, T v)                                                           \
    {                                                                                              \
        T old = *p;                                                                                \
        if (v > old)                                                                               \
            *p = v;                                                                                \
        else                                                                                       \
            zc_host_in_vain();                                                                     \
        return old;                                                                                \
    }                                                                                              \
    ZC_INLINE T zc_atomic_min(T *p, T v)                                                           \
    {                                                                                              \
        T old = *p;                                                                                \
        if (v < old)                                                                               \
            *p = v;                                                                                \
        else                                                                                       \
            zc_host_in_vain();                                                                     \
        return old;                                                                                \
    }
ZC_ATOMIC_MINMAX(i32)
ZC_ATOMIC_MINMAX(u32)
ZC_ATOMIC_MINMAX(i64)
ZC_ATOMIC_MINMAX(u64)
#undef ZC_ATOMIC_MINMAX

#define ZC_ATOMIC_CAS(T)                                                                           \
    ZC_INLINE T zc_atomic_cas(T *p, T expected, T desired)                                         \
    {                                                                                              \
        T old = *p;                                                                                \
        if (old == expected)                                                                       \
            *p = desired;                                                                          \
        else                                                                                       \
            zc_host_in_vain();                                                                     \
        return old;                                                                                \
    }
ZC_ATOMIC_CAS(u16)
ZC_ATOMIC_CAS(u32)
ZC_ATOMIC_CAS(u64)
#undef ZC_ATOMIC_CAS

ZC_INLINE u32 zc_take_turn(u32 *p, u32 last)
{
    u32 old = *p;
    *p = old >= last ? 0 : old + 1;
    return old;
}

/* ---- When something is, for profiles ---- */

ZC_INLINE u64 zc_clock_ns()
{
    return zc_host_call->clock_ns();
}

ZC_INLINE void zc_stamp_least(u64 *p, u64 v)
{
    zc_atomic_min(p, v);
}

/* ---- Bits ---- */

template <typename To, typename From> ZC_INLINE To zc_host_bit_cast(From v)
{
    static_assert(sizeof(To) == sizeof(From), "bit casts keep the size");
    To r;
    __builtin_memcpy(&r, &v, sizeof r);
    return r;
}

ZC_INLINE u32 zc_bits(f32 v)
{
    return zc_host_bit_cast<u32>(v);
}

ZC_INLINE f32 zc_float(u32 v)
{
    return zc_host_bit_cast<f32>(v);
}

ZC_INLINE u64 zc_bits64(f64 v)
{
    return zc_host_bit_cast<u64>(v);
}

ZC_INLINE f64 zc_double(u64 v)
{
    return zc_host_bit_cast<f64>(v);
}

ZC_INLINE f64 zc_product64(f64 a, f64 b)
{
    return a * b;
}

ZC_INLINE f32 zc_product32(f32 a, f32 b)
{
    return a * b;
}

#define ZC_SATURATED_PAIR(T, LEAST, MOST)                                                          \
    ZC_INLINE u16 zc_saturated_##T##x2(i32 a, i32 b)                                               \
    {                                                                                              \
        const i32 low = a < LEAST ? LEAST : a > MOST ? MOST : a;                                   \
        const i32 high = b < LEAST ? LEAST : b > MOST ? MOST : b;                                  \
        return (u16)((low & 0xFF) | (high & 0xFF) << 8);                                           \
    }
ZC_SATURATED_PAIR(s8, -128, 127)
ZC_SATURATED_PAIR(u8, 0, 255)
#undef ZC_SATURATED_PAIR
#define ZC_SATURATED_HALVES(T, LEAST, MOST)                                                        \
    ZC_INLINE u32 zc_saturated_##T##x2(i32 a, i32 b)                                               \
    {                                                                                              \
        const i32 low = a < LEAST ? LEAST : a > MOST ? MOST : a;                                   \
        const i32 high = b < LEAST ? LEAST : b > MOST ? MOST : b;                                  \
        return ((u32)low & 0xFFFF) | (u32)high << 16;                                              \
    }
ZC_SATURATED_HALVES(s16, -32768, 32767)
ZC_SATURATED_HALVES(u16, 0, 65535)
#undef ZC_SATURATED_HALVES
ZC_INLINE u32 zc_kept(u32 v)
{
    return v;
}
ZC_INLINE u32 zc_packed(u32 v)
{
    return v;
}
ZC_INLINE u32 zc_saturated_below(i32 v, u32 high)
{
    return (u32)(v < 0 ? 0 : v > 255 ? 255 : v) | high << 16;
}

ZC_INLINE int zc_popc(u32 v)
{
    return __builtin_popcount(v);
}

ZC_INLINE int zc_popc64(u64 v)
{
    return __builtin_popcountll(v);
}

ZC_INLINE int zc_clz(u32 v)
{
    return v ? __builtin_clz(v) : 32;
}

ZC_INLINE int zc_clz64(u64 v)
{
    return v ? __builtin_clzll(v) : 64;
}

ZC_INLINE u64 zc_mulhi64(u64 a, u64 b)
{
    return (u64)(((unsigned __int128)a * b) >> 64);
}

/* ---- f16 and bf16 ---- */

ZC_INLINE f32 zc_f16_to_f32(u16 v)
{
    u32 sign = (u32)(v & 0x8000u) << 16, magnitude = v & 0x7fffu;
    if (magnitude > 0x7c00u) return zc_float(0x7fffffffu);
    if (magnitude == 0x7c00u) return zc_float(sign | 0x7f800000u);
    /* The exponent field moved to its place is 112 too low; the product is exact, subnormals too. */
    return zc_float(sign | zc_bits(zc_float(magnitude << 13) * 0x1p112f));
}

ZC_INLINE u16 zc_f32_to_f16(f32 v)
{
    u32 sign = zc_bits(v) >> 16 & 0x8000u, magnitude = zc_bits(v) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);
    /* Below 2^-14 the sum's last bit is 2^-24, the step of the subnormals: the adder rounds. */
    if (magnitude < 0x38800000u)
        return (u16)(sign | (zc_bits(zc_float(magnitude) + 0.5f) - zc_bits(0.5f)));
    u32 odd = magnitude >> 13 & 1u;
    return (u16)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

ZC_INLINE f32 zc_bf16_to_f32(u16 v)
{
    return zc_float((u32)v << 16);
}

ZC_INLINE u16 zc_f32_to_bf16(f32 v)
{
    u32 bits = zc_bits(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Truncated to f32, the lost bits kept as a sticky last bit: rounding once more is then exact. */
ZC_INLINE f32 zc_host_round_to_odd(f64 v)
{
    f32 f = (f32)v;
    if (v != v || (f64)f == v) return f;
    u32 bits = zc_bits(f);
    if ((v < 0 ? -(f64)f > -v : (f64)f > v)) bits--;
    return zc_float(bits | 1u);
}

ZC_INLINE u16 zc_f64_to_f16(f64 v)
{
    return zc_f32_to_f16(zc_host_round_to_odd(v));
}

ZC_INLINE u16 zc_f64_to_bf16(f64 v)
{
    return zc_f32_to_bf16(zc_host_round_to_odd(v));
}

ZC_INLINE u32 zc_f32x2_to_f16x2(f32 low, f32 high)
{
    return (u32)zc_f32_to_f16(low) | (u32)zc_f32_to_f16(high) << 16;
}

ZC_INLINE u32 zc_f32x2_to_bf16x2(f32 low, f32 high)
{
    return (u32)zc_f32_to_bf16(low) | (u32)zc_f32_to_bf16(high) << 16;
}

ZC_INLINE u32 zc_permute(u32 a, u32 b, u32 selector)
{
    const u64 bytes = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(bytes >> (selector >> 4 * i) % 8 * 8 & 255) << 8 * i;
    return r;
}

ZC_INLINE u32 zc_permute_signs(u32 a, u32 b, u32 selector)
{
    const u32 chosen = zc_permute(a, b, selector);
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        const u32 byte = chosen >> 8 * i & 255;
        r |= (selector >> 4 * i & 8 ? byte >> 7 ? 255u : 0u : byte) << 8 * i;
    }
    return r;
}

ZC_INLINE u32 zc_fma_f16x2(u32 a, u32 b, u32 c)
{
    u16 r[2];
    for (int i = 0; i < 2; i++)
        r[i] = zc_f64_to_f16((f64)zc_f16_to_f32((u16)(a >> 16 * i)) *
                                 zc_f16_to_f32((u16)(b >> 16 * i)) +
                             zc_f16_to_f32((u16)(c >> 16 * i)));
    return r[0] | (u32)r[1] << 16;
}

ZC_INLINE u32 zc_fma_bf16x2(u32 a, u32 b, u32 c)
{
    u16 r[2];
    for (int i = 0; i < 2; i++)
        r[i] = zc_f64_to_bf16((f64)zc_bf16_to_f32((u16)(a >> 16 * i)) *
                                  zc_bf16_to_f32((u16)(b >> 16 * i)) +
                              zc_bf16_to_f32((u16)(c >> 16 * i)));
    return r[0] | (u32)r[1] << 16;
}

/* 0 is larger than -0. */
ZC_INLINE f32 zc_larger_f32(f32 a, f32 b)
{
    if (a != a || b != b) return zc_float(0x7fffffffu);
    return a > b || (a == b && !(zc_bits(a) >> 31)) ? a : b;
}

ZC_INLINE u32 zc_larger_f16x2(u32 a, u32 b)
{
    return zc_f32x2_to_f16x2(zc_larger_f32(zc_f16_to_f32((u16)a), zc_f16_to_f32((u16)b)),
                             zc_larger_f32(zc_f16_to_f32(a >> 16), zc_f16_to_f32(b >> 16)));
}

ZC_INLINE u32 zc_larger_bf16x2(u32 a, u32 b)
{
    return zc_f32x2_to_bf16x2(zc_larger_f32(zc_bf16_to_f32((u16)a), zc_bf16_to_f32((u16)b)),
                              zc_larger_f32(zc_bf16_to_f32(a >> 16), zc_bf16_to_f32(b >> 16)));
}

ZC_INLINE u32 zc_smaller_f16x2(u32 a, u32 b)
{
    return zc_larger_f16x2(a ^ 0x80008000u, b ^ 0x80008000u) ^ 0x80008000u;
}

ZC_INLINE u32 zc_within_f16x2(u32 x, u32 least, u32 most)
{
    f32 r[2];
    for (int i = 0; i < 2; i++) {
        const f32 v = zc_f16_to_f32((u16)(x >> 16 * i)), low = zc_f16_to_f32((u16)(least >> 16 * i));
        const f32 high = zc_f16_to_f32((u16)(most >> 16 * i));
        r[i] = v > high ? high : v >= low ? v : low;
    }
    return zc_f32x2_to_f16x2(r[0], r[1]);
}

ZC_INLINE u32 zc_numbers_f16x2(u32 x)
{
    const f32 low = zc_f16_to_f32((u16)x), high = zc_f16_to_f32((u16)(x >> 16));
    return (low == low ? 0xffffu : 0u) | (high == high ? 0xffff0000u : 0u);
}

ZC_INLINE f32 zc_within(f32 x, f32 most)
{
    return x < -most ? -most : x > most ? most : x;
}

ZC_INLINE u32 zc_f32_to_tf32(f32 v)
{
    u32 bits = zc_bits(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
    return (bits + 0x1000u) & ~0x1fffu;
}

/* ---- Products of four bytes ---- */

template <typename A, typename B> ZC_INLINE u32 zc_host_dp4a(u32 a, u32 b, u32 c)
{
    for (int i = 0; i < 32; i += 8) c += (u32)((i32)(A)(a >> i) * (i32)(B)(b >> i));
    return c;
}

ZC_INLINE i32 zc_dp4a(i32 a, i32 b, i32 c)
{
    return (i32)zc_host_dp4a<i8, i8>((u32)a, (u32)b, (u32)c);
}

ZC_INLINE i32 zc_dp4a_us(u32 a, i32 b, i32 c)
{
    return (i32)zc_host_dp4a<u8, i8>(a, (u32)b, (u32)c);
}

ZC_INLINE i32 zc_dp4a_su(i32 a, u32 b, i32 c)
{
    return (i32)zc_host_dp4a<i8, u8>((u32)a, b, (u32)c);
}

ZC_INLINE u32 zc_dp4a_uu(u32 a, u32 b, u32 c)
{
    return zc_host_dp4a<u8, u8>(a, b, c);
}

template <typename A> ZC_INLINE u32 zc_host_dp2a(u32 a, u32 b, u32 c)
{
    return c + (u32)((i32)(A)a * (i32)(u8)b) + (u32)((i32)(A)(a >> 16) * (i32)(u8)(b >> 8));
}

ZC_INLINE i32 zc_dp2a_low_su(i32 a, u32 b, i32 c)
{
    return (i32)zc_host_dp2a<i16>((u32)a, b, (u32)c);
}

ZC_INLINE i32 zc_dp2a_high_su(i32 a, u32 b, i32 c)
{
    return (i32)zc_host_dp2a<i16>((u32)a, b >> 16, (u32)c);
}

ZC_INLINE u32 zc_dp2a_low_uu(u32 a, u32 b, u32 c)
{
    return zc_host_dp2a<u16>(a, b, c);
}

ZC_INLINE u32 zc_dp2a_high_uu(u32 a, u32 b, u32 c)
{
    return zc_host_dp2a<u16>(a, b >> 16, c);
}

/* ---- Matrix products of a warp, matrices from shared memory ---- */

ZC_INLINE u32 zc_smem_address(const void *smem, int line = __builtin_LINE())
{
    return zc_host_call->smem_address(smem, line);
}

#define ZC_MMA(name, kind, D)                                                                      \
    ZC_INLINE void name(D d[4], const u32 a[4], const u32 b[2], int line = __builtin_LINE())       \
    {                                                                                              \
        zc_host_call->mma(kind, line, d, a, b);                                                    \
    }
ZC_MMA(zc_mma_m16n8k16_f16, ZC_HOST_MMA_F16, f32)
ZC_MMA(zc_mma_m16n8k16_bf16, ZC_HOST_MMA_BF16, f32)
ZC_MMA(zc_mma_m16n8k8_tf32, ZC_HOST_MMA_TF32, f32)
ZC_MMA(zc_mma_m16n8k32_s8, ZC_HOST_MMA_S8, i32)
ZC_MMA(zc_mma_m16n8k32_s8u8, ZC_HOST_MMA_S8U8, i32)
ZC_MMA(zc_mma_m16n8k32_u8s8, ZC_HOST_MMA_U8S8, i32)
ZC_MMA(zc_mma_m16n8k32_u8u8, ZC_HOST_MMA_U8U8, i32)
#undef ZC_MMA

#define ZC_MMA_NEW(name, kind)                                                                     \
    ZC_INLINE void name(f32 d[4], const u32 a[4], const u32 b[2], int line = __builtin_LINE())     \
    {                                                                                              \
        d[0] = d[1] = d[2] = d[3] = 0;                                                             \
        zc_host_call->mma(kind, line, d, a, b);                                                    \
    }
ZC_MMA_NEW(zc_mma_new_m16n8k16_f16, ZC_HOST_MMA_F16)
ZC_MMA_NEW(zc_mma_new_m16n8k16_bf16, ZC_HOST_MMA_BF16)
#undef ZC_MMA_NEW

#define ZC_MMA_SPARSE(name, kind)                                                                  \
    template <int SECOND>                                                                          \
    ZC_INLINE void name(f32 d[4], const u32 a[4], const u32 b[4], u32 places,                      \
                        int line = __builtin_LINE())                                               \
    {                                                                                              \
        static_assert(SECOND == 0 || SECOND == 1, "the first two lanes or the others");            \
        zc_host_call->mma_sparse(kind, line, d, a, b, places, SECOND);                             \
    }
ZC_MMA_SPARSE(zc_mma_sparse_m16n8k32_f16, ZC_HOST_MMA_F16)
ZC_MMA_SPARSE(zc_mma_sparse_m16n8k32_bf16, ZC_HOST_MMA_BF16)
#undef ZC_MMA_SPARSE

#define ZC_LDMATRIX(name, kind)                                                                    \
    ZC_INLINE void name(u32 *r, const void *smem_row, int line = __builtin_LINE())                 \
    {                                                                                              \
        zc_host_call->ldmatrix(kind, line, r, smem_row);                                           \
    }
ZC_LDMATRIX(zc_ldmatrix_x4, ZC_HOST_LDMATRIX_X4)
ZC_LDMATRIX(zc_ldmatrix_x4_trans, ZC_HOST_LDMATRIX_X4_TRANS)
ZC_LDMATRIX(zc_ldmatrix_x2, ZC_HOST_LDMATRIX_X2)
ZC_LDMATRIX(zc_ldmatrix_x2_trans, ZC_HOST_LDMATRIX_X2_TRANS)
#undef ZC_LDMATRIX

template <class T> ZC_INLINE T *zc_aligned(void *p, int line = __builtin_LINE())
{
    zc_host_call->aligned(line, p, sizeof(T));
    return (T *)p;
}

/* ---- Background copies: done only when waited for, so that a missing wait is seen ---- */

ZC_INLINE void zc_cp_async16(void *smem, const void *global, bool some, int line = __builtin_LINE())
{
    zc_host_call->cp_async(line, smem, global, some ? 16 : 0, 16);
}

ZC_INLINE void zc_cp_async_commit()
{
    zc_host_call->cp_async_commit();
}

ZC_INLINE void zc_cp_async_wait(int n)
{
    zc_host_call->cp_async_wait(n);
}
#define ZC_CP_ASYNC_WAIT(n) zc_cp_async_wait(n)

ZC_INLINE void zc_grid_wait()
{
    zc_host_call->grid_wait();
}

ZC_INLINE void zc_constant_load16(void *to, const void *global)
{
    __builtin_memcpy(to, global, 16);
}
template <class T> ZC_INLINE T zc_constant_element(const T *global)
{
    return *global;
}

ZC_INLINE void zc_grid_launch()
{
}

/* ---- Elementary functions ---- */

#define ZC_MATH1(X)                                                                                \
    X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cbrt) X(ceil) X(cos) X(cosh) X(erf)       \
    X(erfc) X(exp) X(exp2) X(expm1) X(fabs) X(floor) X(lgamma) X(log) X(log10) X(log1p) X(log2)    \
    X(nearbyint) X(rint) X(round) X(sin) X(sinh) X(sqrt) X(tan) X(tanh) X(tgamma) X(trunc)
#define ZC_MATH2(X) X(atan2) X(copysign) X(fdim) X(fmax) X(fmin) X(fmod) X(hypot) X(pow) X(remainder)
#define ZC_DECLARE1(name)                                                                          \
    f64 name(f64);                                                                                 \
    f32 name##f(f32);
#define ZC_DECLARE2(name)                                                                          \
    f64 name(f64, f64);                                                                            \
    f32 name##f(f32, f32);
extern "C" {
ZC_MATH1(ZC_DECLARE1)
ZC_MATH2(ZC_DECLARE2)
f64 fma(f64, f64, f64);
f32 fmaf(f32, f32, f32);
f64 ldexp(f64, int);
f32 ldexpf(f32, int);
}
#undef ZC_MATH1
#undef ZC_MATH2
#undef ZC_DECLARE1
#undef ZC_DECLARE2

ZC_INLINE f32 rsqrtf(f32 v)
{
    return 1.0f / sqrtf(v);
}

ZC_INLINE f64 rsqrt(f64 v)
{
    return 1.0 / sqrt(v);
}

ZC_INLINE f32 zc_exp2_approx(f32 v)
{
    const f32 r = exp2f(v);
    return r < 1.17549435e-38f ? 0.0f : r;
}

ZC_INLINE u32 zc_exp2_f16x2(u32 v)
{
    return zc_f32x2_to_f16x2(exp2f(zc_f16_to_f32((u16)v)), exp2f(zc_f16_to_f32((u16)(v >> 16))));
}

ZC_INLINE f32 zc_reciprocal_approx(f32 v)
{
    const f32 r = 1.0f / (fabsf(v) < 1.17549435e-38f ? copysignf(0.0f, v) : v);
    return fabsf(r) < 1.17549435e-38f ? copysignf(0.0f, r) : r;
}

ZC_INLINE f32 zc_div_approx(f32 a, f32 b)
{
    return a / b;
}

ZC_INLINE f32 zc_sqrt_approx(f32 v)
{
    return sqrtf(v);
}

ZC_INLINE f32 zc_rsqrt_approx(f32 v)
{
    return 1.0f / sqrtf(v);
}

#define ZC_CLASSIFY(name)                                                                          \
    ZC_INLINE bool name(f32 v)                                                                     \
    {                                                                                              \
        return __builtin_##name(v);                                                                \
    }                                                                                              \
    ZC_INLINE bool name(f64 v)                                                                     \
    {                                                                                              \
        return __builtin_##name(v);                                                                \
    }
ZC_CLASSIFY(isnan)
ZC_CLASSIFY(isinf)
ZC_CLASSIFY(isfinite)
ZC_CLASSIFY(signbit)
#undef ZC_CLASSIFY

/* ---- Registration: the fake compiler ends each source with a table of its kernels ---- */

template <auto F, typename... A> struct zc_host_invoke {
    zc_host_invoke(A &...a)
    {
        F(a...);
    }
};

template <auto F> struct zc_host_entry;
template <typename... A, void (*F)(A...)> struct zc_host_entry<F> {
    static void run(void **params)
    {
        int i = 0;
        (void)i, (void)params;
        zc_host_invoke<F, A...>{*static_cast<A *>(params[i++])...}; /* braces: left to right */
    }
    static constexpr unsigned sizes[] = {sizeof(A)..., 0};
    static constexpr zc_host_kernel of(const char *name, unsigned max_threads)
    {
        return {name, run, sizes, sizeof...(A), max_threads};
    }
};

extern "C" unsigned char __start_zc_shared[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_zc_shared[] __attribute__((weak, visibility("hidden")));

ZC_INLINE const zc_host_module *zc_host_describe(const zc_host_api *api,
                                                 const zc_host_kernel *kernels, unsigned count)
{
    static zc_host_module m;
    zc_host_call = api;
    m = {ZC_HOST_ABI_VERSION, __CUDA_ARCH__ / 10,  &zc_host, kernels, count,
         __start_zc_shared,   __stop_zc_shared};
    return &m;
}

#endif
