/* The device vocabulary of zc's kernels: everything beyond plain C++ that a template may use.
 *
 * This file is the CUDA version, compiled by NVRTC without any CUDA header. A host version of the
 * same names (tests/hostcuda/ptx.cuh) gives them the same meaning on a CPU; the two must agree.
 * Warp functions are executed by all threads of the warp together, zc_sync by all of the block.
 */
#ifndef ZC_PTX_CUH
#define ZC_PTX_CUH

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

#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#define ZC_INLINE static __device__ __forceinline__
#define ZC_WARP   0xffffffffu

/* unsigned char *name: the block's dynamic shared memory, 128-byte aligned. */
#define ZC_DYNAMIC_SMEM(name)                                                                      \
    extern __shared__ __align__(128) unsigned char zc_dynamic_smem[];                              \
    unsigned char *name = zc_dynamic_smem

/* ---- Barriers and fences ---- */

ZC_INLINE void zc_sync()
{
    __syncthreads();
}

ZC_INLINE void zc_sync_warp()
{
    __syncwarp();
}

/* Orders this thread's memory accesses for the whole device. */
ZC_INLINE void zc_fence()
{
    __threadfence();
}

/* ---- Exchange within a warp; a value from a lane that does not exist is undefined ---- */

#define ZC_SHFL(T)                                                                                 \
    ZC_INLINE T zc_shfl_xor(T v, int mask)                                                         \
    {                                                                                              \
        return __shfl_xor_sync(ZC_WARP, v, mask);                                                  \
    }                                                                                              \
    ZC_INLINE T zc_shfl_down(T v, u32 d)                                                           \
    {                                                                                              \
        return __shfl_down_sync(ZC_WARP, v, d);                                                    \
    }                                                                                              \
    ZC_INLINE T zc_shfl(T v, int lane)                                                             \
    {                                                                                              \
        return __shfl_sync(ZC_WARP, v, lane);                                                      \
    }
ZC_SHFL(u32)
ZC_SHFL(i32)
ZC_SHFL(f32)
ZC_SHFL(u64)
ZC_SHFL(i64)
ZC_SHFL(f64)
#undef ZC_SHFL

ZC_INLINE u32 zc_ballot(bool v)
{
    return __ballot_sync(ZC_WARP, v);
}

ZC_INLINE bool zc_any(bool v)
{
    return __any_sync(ZC_WARP, v) != 0;
}

/* ---- Atomics: each returns the value before ---- */

#define ZC_ATOMIC(name, builtin, T)                                                                \
    ZC_INLINE T name(T *p, T v)                                                                    \
    {                                                                                              \
        return builtin(p, v);                                                                      \
    }
ZC_ATOMIC(zc_atomic_add, atomicAdd, f32)
ZC_ATOMIC(zc_atomic_add, atomicAdd, f64)
ZC_ATOMIC(zc_atomic_add, atomicAdd, i32)
ZC_ATOMIC(zc_atomic_add, atomicAdd, u32)
ZC_ATOMIC(zc_atomic_add, atomicAdd, u64)
ZC_ATOMIC(zc_atomic_max, atomicMax, i32)
ZC_ATOMIC(zc_atomic_max, atomicMax, u32)
ZC_ATOMIC(zc_atomic_max, atomicMax, i64)
ZC_ATOMIC(zc_atomic_max, atomicMax, u64)
ZC_ATOMIC(zc_atomic_min, atomicMin, i32)
ZC_ATOMIC(zc_atomic_min, atomicMin, u32)
ZC_ATOMIC(zc_atomic_min, atomicMin, i64)
ZC_ATOMIC(zc_atomic_min, atomicMin, u64)
#undef ZC_ATOMIC

ZC_INLINE i64 zc_atomic_add(i64 *p, i64 v)
{
    return (i64)atomicAdd((u64 *)p, (u64)v);
}

#define ZC_ATOMIC_CAS(T)                                                                           \
    ZC_INLINE T zc_atomic_cas(T *p, T expected, T desired)                                         \
    {                                                                                              \
        return atomicCAS(p, expected, desired);                                                    \
    }
ZC_ATOMIC_CAS(u16)
ZC_ATOMIC_CAS(u32)
ZC_ATOMIC_CAS(u64)
#undef ZC_ATOMIC_CAS

/* *p becomes *p + 1, or 0 again behind `last`; returns the value before. What this thread, and those
 * it has met, did before is seen by whoever sees the new value. */
ZC_INLINE u32 zc_take_turn(u32 *p, u32 last)
{
    u32 r;
    asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(r)
                 : "l"(__cvta_generic_to_global(p)), "r"(last)
                 : "memory");
    return r;
}

/* ---- When something is, for profiles ---- */

/* Nanoseconds of the device's clock, the same for all of it. */
ZC_INLINE u64 zc_clock_ns()
{
    u64 r;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r));
    return r;
}

/* *p becomes v where v is less. Before zc_grid_wait, too: no kernel reads *p. */
ZC_INLINE void zc_stamp_least(u64 *p, u64 v)
{
    asm volatile("// zc: stamp\n\tred.global.min.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
                 "l"(v)
                 : "memory");
}

/* ---- Bits ---- */

ZC_INLINE u32 zc_bits(f32 v)
{
    return __float_as_uint(v);
}

ZC_INLINE f32 zc_float(u32 v)
{
    return __uint_as_float(v);
}

ZC_INLINE u64 zc_bits64(f64 v)
{
    return (u64)__double_as_longlong(v);
}

ZC_INLINE f64 zc_double(u64 v)
{
    return __longlong_as_double((i64)v);
}

/* Products, rounded for themselves: never one step with an addition. */
ZC_INLINE f64 zc_product64(f64 a, f64 b)
{
    return __dmul_rn(a, b);
}

ZC_INLINE f32 zc_product32(f32 a, f32 b)
{
    return __fmul_rn(a, b);
}

/* Two bytes, the first one in the low half: a and b, saturated. */
#define ZC_SATURATED_PAIR(T)                                                                       \
    ZC_INLINE u16 zc_saturated_##T##x2(i32 a, i32 b)                                               \
    {                                                                                              \
        u32 r;                                                                                     \
        asm("cvt.pack.sat." #T ".s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(b), "r"(a), "r"(0));     \
        return (u16)r;                                                                             \
    }
ZC_SATURATED_PAIR(s8)
ZC_SATURATED_PAIR(u8)
#undef ZC_SATURATED_PAIR
#define ZC_SATURATED_HALVES(T)                                                                     \
    ZC_INLINE u32 zc_saturated_##T##x2(i32 a, i32 b)                                               \
    {                                                                                              \
        u32 r;                                                                                     \
        asm("cvt.pack.sat." #T ".s32 %0, %1, %2;" : "=r"(r) : "r"(b), "r"(a));                     \
        return r;                                                                                  \
    }
ZC_SATURATED_HALVES(s16)
ZC_SATURATED_HALVES(u16)
#undef ZC_SATURATED_HALVES
/* v in a register, which the compiler would make anew at each use if it knew that blocks have one
 * axis. */
ZC_INLINE u32 zc_kept(u32 v)
{
    return v + threadIdx.z;
}
/* v, of which nothing is known: what is made of it is made here, not where v came from, nor once in
 * front of a loop. */
ZC_INLINE u32 zc_packed(u32 v)
{
    asm volatile("" : "+r"(v));
    return v;
}
/* v saturated to u8 in the low half, the low half of `high` in the other. */
ZC_INLINE u32 zc_saturated_below(i32 v, u32 high)
{
    u32 r;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(0), "r"(v), "r"(high));
    return r;
}

ZC_INLINE int zc_popc(u32 v)
{
    return __popc(v);
}

ZC_INLINE int zc_popc64(u64 v)
{
    return __popcll(v);
}

/* Leading zeros; 32 (64) for 0. */
ZC_INLINE int zc_clz(u32 v)
{
    return __clz((i32)v);
}

ZC_INLINE int zc_clz64(u64 v)
{
    return __clzll((i64)v);
}

ZC_INLINE u64 zc_mulhi64(u64 a, u64 b)
{
    return __umul64hi(a, b);
}

/* ---- f16 and bf16, held in u16: to nearest, ties to even; NaN becomes 0x7fff ---- */

ZC_INLINE f32 zc_f16_to_f32(u16 v)
{
    f32 r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
    return r;
}

ZC_INLINE u16 zc_f32_to_f16(f32 v)
{
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}

ZC_INLINE u16 zc_f64_to_f16(f64 v)
{
    u16 r;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r) : "d"(v));
    return r;
}

ZC_INLINE f32 zc_bf16_to_f32(u16 v)
{
    return zc_float((u32)v << 16);
}

ZC_INLINE u16 zc_f32_to_bf16(f32 v)
{
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}

/* Truncated to f32 with the lost bits kept as a sticky last bit: the second rounding is the only
 * one that counts. */
ZC_INLINE u16 zc_f64_to_bf16(f64 v)
{
    f32 f = __double2float_rz(v);
    return zc_f32_to_bf16((f64)f == v || v != v ? f : zc_float(zc_bits(f) | 1u));
}

/* Two of them, the first in the low half. */
ZC_INLINE u32 zc_f32x2_to_f16x2(f32 low, f32 high)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

ZC_INLINE u32 zc_f32x2_to_bf16x2(f32 low, f32 high)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* Byte i of the result is byte (selector >> 4 * i) % 8 of a, 0 to 3, and b, 4 to 7. */
ZC_INLINE u32 zc_permute(u32 a, u32 b, u32 selector)
{
    return __byte_perm(a, b, selector);
}
/* The same, but a byte that is chosen by its number and 8 is eight times its highest bit. */
ZC_INLINE u32 zc_permute_signs(u32 a, u32 b, u32 selector)
{
    u32 r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
    return r;
}

/* a * b + c of two pairs, rounded once. */
#define ZC_FMA_PAIR(name, type)                                                                    \
    ZC_INLINE u32 name(u32 a, u32 b, u32 c)                                                        \
    {                                                                                              \
        u32 r;                                                                                     \
        asm("fma.rn." type " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                 \
        return r;                                                                                  \
    }
ZC_FMA_PAIR(zc_fma_f16x2, "f16x2")
ZC_FMA_PAIR(zc_fma_bf16x2, "bf16x2")
#undef ZC_FMA_PAIR

/* The larger or smaller ones of two numbers or pairs, NaN where one is. */
#define ZC_BEYOND(name, which, type, T, c)                                                         \
    ZC_INLINE T name(T a, T b)                                                                     \
    {                                                                                              \
        T r;                                                                                       \
        asm(which ".NaN." type " %0, %1, %2;" : "=" c(r) : c(a), c(b));                            \
        return r;                                                                                  \
    }
ZC_BEYOND(zc_larger_f16x2, "max", "f16x2", u32, "r")
ZC_BEYOND(zc_larger_bf16x2, "max", "bf16x2", u32, "r")
ZC_BEYOND(zc_larger_f32, "max", "f32", f32, "f")
ZC_BEYOND(zc_smaller_f16x2, "min", "f16x2", u32, "r")
#undef ZC_BEYOND

/* Each of a pair within the limits of the same half, which are no NaN: NaN becomes the least. */
ZC_INLINE u32 zc_within_f16x2(u32 x, u32 least, u32 most)
{
    u32 r;
    asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(least));
    asm("min.f16x2 %0, %1, %2;" : "=r"(r) : "r"(r), "r"(most));
    return r;
}

/* All bits of a half that is a number, none of one that is NaN. */
ZC_INLINE u32 zc_numbers_f16x2(u32 x)
{
    u32 r;
    asm("set.eq.u32.f16x2 %0, %1, %1;" : "=r"(r) : "r"(x));
    return r;
}

/* x, or what is beyond -most and most the nearer of them; NaN stays. */
ZC_INLINE f32 zc_within(f32 x, f32 most)
{
    f32 r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(-most));
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(r), "f"(most));
    return r;
}

/* To e4m3, what is beyond its range to its largest number. */
#if __CUDA_ARCH__ >= 890
#define ZC_HAS_E4M3 1
ZC_INLINE u16 zc_f32x2_to_e4m3x2(f32 low, f32 high)
{
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    return r;
}
ZC_INLINE u16 zc_f16x2_to_e4m3x2(u32 pair)
{
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(r) : "r"(pair));
    return r;
}
ZC_INLINE f32 zc_e4m3_to_f32(u8 v)
{
    u32 pair;
    f32 r;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((u16)v));
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)pair));
    return r;
}
#endif

/* ---- 2^v, to two units in the last place; results that are subnormal become 0 ---- */

ZC_INLINE f32 zc_exp2_approx(f32 v)
{
    f32 r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

/* Of a pair of f16, subnormal results, too. */
ZC_INLINE u32 zc_exp2_f16x2(u32 v)
{
    u32 r;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(r) : "r"(v));
    return r;
}

/* ---- 1 / v to one unit in the last place; v or a result that is subnormal counts as 0 ---- */

ZC_INLINE f32 zc_reciprocal_approx(f32 v)
{
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

/* ---- a / b to two units in the last place, and square roots to one or two, without branches ---- */

ZC_INLINE f32 zc_div_approx(f32 a, f32 b)
{
    f32 r;
    asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

ZC_INLINE f32 zc_sqrt_approx(f32 v)
{
    f32 r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

ZC_INLINE f32 zc_rsqrt_approx(f32 v)
{
    f32 r;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

/* ---- tf32: an f32 with 10 binary digits behind the point, to nearest, ties away from zero ---- */

ZC_INLINE u32 zc_f32_to_tf32(f32 v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

/* ---- Products of four bytes, summed: c + sum a[i] * b[i]; us: a unsigned, b signed ---- */

#define ZC_DP4A(name, types, T, TA, TB)                                                            \
    ZC_INLINE T name(TA a, TB b, T c)                                                              \
    {                                                                                              \
        T r;                                                                                       \
        asm("dp4a." types " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                  \
        return r;                                                                                  \
    }
ZC_DP4A(zc_dp4a, "s32.s32", i32, i32, i32)
ZC_DP4A(zc_dp4a_us, "u32.s32", i32, u32, i32)
ZC_DP4A(zc_dp4a_su, "s32.u32", i32, i32, u32)
ZC_DP4A(zc_dp4a_uu, "u32.u32", u32, u32, u32)
#undef ZC_DP4A
/* ---- c + a[0] * b[i] + a[1] * b[i + 1], a of 16 bits, b unsigned bytes from i = 0 or 2 on ---- */
#define ZC_DP2A(name, types, T, TA)                                                                \
    ZC_INLINE T name(TA a, u32 b, T c)                                                             \
    {                                                                                              \
        T r;                                                                                       \
        asm("dp2a." types " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                  \
        return r;                                                                                  \
    }
ZC_DP2A(zc_dp2a_low_su, "lo.s32.u32", i32, i32)
ZC_DP2A(zc_dp2a_high_su, "hi.s32.u32", i32, i32)
ZC_DP2A(zc_dp2a_low_uu, "lo.u32.u32", u32, u32)
ZC_DP2A(zc_dp2a_high_uu, "hi.u32.u32", u32, u32)
#undef ZC_DP2A

/* ---- Matrix products of a warp: d += a * b, a row-major, b column-major ----
 *
 * With g = lane / 4 and t = lane % 4, register i of d (16 x 8) holds row g + 8 * (i / 2), column
 * 2 * t + i % 2. Each register of a holds E = 1 (tf32), 2 (f16, bf16) or 4 (bytes) neighbours of a
 * row from column E * t: register 0 in row g, 1 in row g + 8, 2 and 3 the same rows 4 * E columns
 * on. Each register of b holds E neighbours of column g from row E * t; register 1 those 4 * E rows
 * on. */

#define ZC_MMA(name, op, D, c)                                                                     \
    ZC_INLINE void name(D d[4], const u32 a[4], const u32 b[2])                                    \
    {                                                                                              \
        asm volatile("mma.sync.aligned." op                                                        \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
                     : "+" c(d[0]), "+" c(d[1]), "+" c(d[2]), "+" c(d[3])                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }
ZC_MMA(zc_mma_m16n8k16_f16, "m16n8k16.row.col.f32.f16.f16.f32", f32, "f")
ZC_MMA(zc_mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", f32, "f")
ZC_MMA(zc_mma_m16n8k8_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", f32, "f")
ZC_MMA(zc_mma_m16n8k32_s8, "m16n8k32.row.col.s32.s8.s8.s32", i32, "r")
ZC_MMA(zc_mma_m16n8k32_s8u8, "m16n8k32.row.col.s32.s8.u8.s32", i32, "r")
ZC_MMA(zc_mma_m16n8k32_u8s8, "m16n8k32.row.col.s32.u8.s8.s32", i32, "r")
ZC_MMA(zc_mma_m16n8k32_u8u8, "m16n8k32.row.col.s32.u8.u8.s32", i32, "r")
#undef ZC_MMA

/* d = a * b. */
#define ZC_MMA_NEW(name, op)                                                                       \
    ZC_INLINE void name(f32 d[4], const u32 a[4], const u32 b[2])                                  \
    {                                                                                              \
        asm volatile("mma.sync.aligned." op                                                        \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"        \
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),           \
                       "f"(0.0f));                                                                 \
    }
ZC_MMA_NEW(zc_mma_new_m16n8k16_f16, "m16n8k16.row.col.f32.f16.f16.f32")
ZC_MMA_NEW(zc_mma_new_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
#undef ZC_MMA_NEW

/* d += a * b for an a of 16 x 32 of which each four neighbours of a row have two elements that are
 * stored: these are its registers, as 16 columns of them would be. b has four registers, each eight
 * rows behind the one before. places: as op/sparse.h has them, a word of a lane; of each four lanes
 * the first two count, or with SECOND the others. */
#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 5
#define ZC_MMA_SPARSE_OF "mma.sp::ordered_metadata.sync.aligned."
#else /* the compiler does not know that places may be said to rise */
#define ZC_MMA_SPARSE_OF "mma.sp.sync.aligned."
#endif
#define ZC_MMA_SPARSE(name, op)                                                                    \
    template <int SECOND> ZC_INLINE void name(f32 d[4], const u32 a[4], const u32 b[4], u32 places) \
    {                                                                                              \
        asm volatile(ZC_MMA_SPARSE_OF op                                                           \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, " \
                     "%12, %13;"                                                                   \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),           \
                       "r"(b[2]), "r"(b[3]), "r"(places), "n"(SECOND));                            \
    }
ZC_MMA_SPARSE(zc_mma_sparse_m16n8k32_f16, "m16n8k32.row.col.f32.f16.f16.f32")
ZC_MMA_SPARSE(zc_mma_sparse_m16n8k32_bf16, "m16n8k32.row.col.f32.bf16.bf16.f32")
#undef ZC_MMA_SPARSE
#undef ZC_MMA_SPARSE_OF

/* ---- Matrices of 8 rows of 16 bytes from shared memory ----
 *
 * Lane l gives the address of row l % 8 of matrix l / 8 (16-byte aligned; x2 reads lanes 0 to 15);
 * r[m] receives of matrix m row lane / 4, the b16 elements 2 * (lane % 4) and the next; with _trans
 * column lane / 4, those rows. */

ZC_INLINE u32 zc_smem_address(const void *smem)
{
    return (u32)__cvta_generic_to_shared(smem);
}

#define ZC_LDMATRIX_X4(name, op)                                                                   \
    ZC_INLINE void name(u32 r[4], const void *smem_row)                                            \
    {                                                                                              \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" op ".shared.b16 {%0, %1, %2, %3}, [%4];"      \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                              \
                     : "r"(zc_smem_address(smem_row))                                              \
                     : "memory");                                                                  \
    }
#define ZC_LDMATRIX_X2(name, op)                                                                   \
    ZC_INLINE void name(u32 r[2], const void *smem_row)                                            \
    {                                                                                              \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" op ".shared.b16 {%0, %1}, [%2];"              \
                     : "=r"(r[0]), "=r"(r[1])                                                      \
                     : "r"(zc_smem_address(smem_row))                                              \
                     : "memory");                                                                  \
    }
ZC_LDMATRIX_X4(zc_ldmatrix_x4, "")
ZC_LDMATRIX_X4(zc_ldmatrix_x4_trans, ".trans")
ZC_LDMATRIX_X2(zc_ldmatrix_x2, "")
ZC_LDMATRIX_X2(zc_ldmatrix_x2_trans, ".trans")
#undef ZC_LDMATRIX_X4
#undef ZC_LDMATRIX_X2

/* ---- Accesses of neighbours at once ---- */

/* p, which is a multiple of T's size though the compiler cannot see it. */
template <class T> ZC_INLINE T *zc_aligned(void *p)
{
    return (T *)__builtin_assume_aligned(p, sizeof(T));
}

/* ---- Copies from global to shared memory that finish in the background ----
 *
 * 16 bytes, from global or (not some) zeros; both addresses aligned to 16. commit closes a group;
 * wait(n) returns when all but this thread's newest n groups are done, and a barrier shows the data
 * to other threads. */

ZC_INLINE void zc_cp_async16(void *smem, const void *global, bool some)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(zc_smem_address(smem)),
                 "l"(__cvta_generic_to_global(global)), "r"(some ? 16u : 0u)
                 : "memory");
}

ZC_INLINE void zc_cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> ZC_INLINE void zc_cp_async_wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#define ZC_CP_ASYNC_WAIT(n) zc_cp_async_wait_groups<(n)>()

/* For n that the compiler can see; more than 3 waits for all. */
ZC_INLINE void zc_cp_async_wait(int n)
{
    if (n == 1) ZC_CP_ASYNC_WAIT(1);
    else if (n == 2) ZC_CP_ASYNC_WAIT(2);
    else if (n == 3) ZC_CP_ASYNC_WAIT(3);
    else ZC_CP_ASYNC_WAIT(0);
}

/* ---- Overlap with the kernels before and after in the stream (from sm_90 on) ---- */

/* Returns when the kernels before have ended and their writes are seen. */
ZC_INLINE void zc_grid_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* 16 bytes of a constant of the plan, which no kernel writes: before zc_grid_wait, too. */
ZC_INLINE void zc_constant_load16(void *to, const void *global)
{
    u32 *const r = (u32 *)to;
    asm volatile("// zc: constant\n\tld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "l"(__cvta_generic_to_global(global)));
}

/* One of its elements. */
#define ZC_CONSTANT_ELEMENT(T, type, constraint)                                                   \
    ZC_INLINE T zc_constant_element(const T *global)                                               \
    {                                                                                              \
        T r;                                                                                       \
        asm volatile("// zc: constant\n\tld.global.nc." type " %0, [%1];"                          \
                     : "=" constraint(r)                                                           \
                     : "l"(__cvta_generic_to_global(global)));                                     \
        return r;                                                                                  \
    }
ZC_CONSTANT_ELEMENT(u16, "u16", "h")
ZC_CONSTANT_ELEMENT(u32, "u32", "r")
ZC_CONSTANT_ELEMENT(u64, "u64", "l")
#undef ZC_CONSTANT_ELEMENT
ZC_INLINE u8 zc_constant_element(const u8 *global) /* no register has 8 bits */
{
    u16 r;
    asm volatile("// zc: constant\n\tld.global.nc.u8 %0, [%1];" : "=h"(r) : "l"(__cvta_generic_to_global(global)));
    return (u8)r;
}

/* Lets the next kernel start before this one ends. */
ZC_INLINE void zc_grid_launch()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
