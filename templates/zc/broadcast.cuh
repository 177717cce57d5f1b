// Operands that broadcast to one shape: where their elements lie.
//
// A shape is a struct with rank(), dim(d) and stride(operand, d), over collapsed axes, outermost first: made of a
// specialisation's constants, or of the parameters rank, dims and strides.
#pragma once
#include "zc/device.cuh"

#define ZC_STATIC_SHAPE(NAME, RANK, DIMS, STRIDES)                                                                     \
    struct NAME {                                                                                                      \
        template <class P> static ZC_MEMBER NAME of(const P &) { return {}; }                                          \
        ZC_MEMBER int rank() const { return RANK; }                                                                    \
        ZC_MEMBER i64 dim(int d) const {                                                                               \
            constexpr i64 dims[] = DIMS;                                                                               \
            return dims[d];                                                                                            \
        }                                                                                                              \
        ZC_MEMBER i64 stride(int i, int d) const {                                                                     \
            constexpr i64 strides[][RANK] = STRIDES;                                                                   \
            return strides[i][d];                                                                                      \
        }                                                                                                              \
    };
// Constants, but for strides over lines of the last axis of operands that may have a pitch (bits of PITCHED).
#define ZC_PITCHED_SHAPE(NAME, RANK, DIMS, STRIDES, P, PITCHED)                                                        \
    struct NAME {                                                                                                      \
        const P &p;                                                                                                    \
        static ZC_MEMBER NAME of(const P &p) { return {p}; }                                                           \
        ZC_MEMBER int rank() const { return RANK; }                                                                    \
        ZC_MEMBER i64 dim(int d) const {                                                                               \
            constexpr i64 dims[] = DIMS;                                                                               \
            return dims[d];                                                                                            \
        }                                                                                                              \
        ZC_MEMBER i64 stride(int i, int d) const {                                                                     \
            constexpr i64 strides[][RANK] = STRIDES;                                                                   \
            return d + 1 < RANK && (PITCHED) >> i & 1 ? p.strides[i][d] : strides[i][d];                               \
        }                                                                                                              \
    };
#define ZC_PARAM_SHAPE(NAME, P)                                                                                        \
    struct NAME {                                                                                                      \
        const P &p;                                                                                                    \
        static ZC_MEMBER NAME of(const P &p) { return {p}; }                                                           \
        ZC_MEMBER int rank() const { return p.rank; }                                                                  \
        ZC_MEMBER i64 dim(int d) const { return p.dims[d]; }                                                           \
        ZC_MEMBER i64 stride(int i, int d) const { return p.strides[i][d]; }                                           \
    };

// Division of 64 bits takes several times as long as of 32.
ZC_DEV u32 zc_quotient(u32 n, u32 by) { return n / by; }
ZC_DEV u64 zc_quotient(u64 n, u64 by) { return (n | by) >> 32 ? n / by : (u64)((u32)n / (u32)by); }
ZC_DEV i64 zc_quotient(i64 n, i64 by) { return (i64)zc_quotient((u64)n, (u64)by); }

template <int N, class INDEX> struct zc_offsets {
    INDEX of[N > 0 ? N : 1];
};
// Where N operands have what belongs to element `at` of the shape.
template <int N, class INDEX, class S> ZC_DEV zc_offsets<N, INDEX> zc_offsets_at(const S &shape, INDEX at) {
    zc_offsets<N, INDEX> off;
#pragma unroll
    for (int i = 0; i < N; i++) off.of[i] = 0;
#pragma unroll
    for (int d = shape.rank() - 1; d >= 0; d--) {
        const INDEX size = (INDEX)shape.dim(d), outer = d ? zc_quotient(at, size) : 0, along = at - outer * size;
#pragma unroll
        for (int i = 0; i < N; i++) off.of[i] += along * (INDEX)shape.stride(i, d);
        at = outer;
    }
    return off;
}
