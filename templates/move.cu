// Copies between strided views: the unit at sum(index * to) becomes the one at sum(index * from).
//
// spec.h: Z_ELEMENT (its bytes; with Z_CASTS of the shorter of the types Z_FROM and Z_TO: an element changes its type on
// the way; Z_WIDENS: to the longer; Z_MOST: the largest number of Z_TO; with Z_QUANTISES Z_TO is a byte, and Z_SCALE the
// scale's type; Z_NEAR_SCALE: it is f32 and known to be between 2^-100 and 2^100). Entries: 0 to 4 a unit of 1 to 16 bytes a thread, 5 square tiles of elements through shared memory, where
// the axis that is contiguous in the source is not the one in the result; 6 all parts of a whole; 7 a few planes as the
// elements of their pixels, four pixels a thread.
#include "zc/index.cuh"
#include "abi/move.h"
#include "spec.h"

#ifdef Z_CASTS
#if Z_QUANTISES
// T(round(x / scale) + zero), as QuantizeLinear does it.
#if Z_NEAR_SCALE
struct conversion {
    f32 scale, high, low;
    i32 zero;
    ZC_MEMBER conversion(const zc_move_params &p)
        : scale(zc_load<Z_SCALE>(p.scale, 0)), high(1.0f / scale), low(fmaf(-high, scale, 1.0f) * high),
          zero(p.zero ? (i32)zc_load<Z_TO>(p.zero, 0) : 0) {}
    ZC_MEMBER Z_TO of(Z_FROM x) const { return (Z_TO)zx_quantised<Z_TO, false>(zc_get(x), scale, high, low, zero); }
};
#else
struct conversion {
    f32 scale, zero;
    ZC_MEMBER conversion(const zc_move_params &p)
        : scale(zc_load<Z_SCALE>(p.scale, 0)), zero(p.zero ? (f32)zc_load<Z_TO>(p.zero, 0) : 0.0f) {}
    ZC_MEMBER Z_TO of(Z_FROM x) const {
        const f32 least = (f32)ZC_LEAST_BYTE<Z_TO>, q = rintf(zc_through<Z_SCALE>(zc_get(x) / scale)) + zero;
        return (Z_TO)(i32)(q != q ? 0.0f : fminf(fmaxf(q, least), least + 255.0f));
    }
};
#endif
#else
struct conversion {
    ZC_MEMBER conversion(const zc_move_params &) {}
    ZC_MEMBER Z_TO of(Z_FROM x) const { return zc_put_finite<Z_TO>(zc_get(x), (f32)Z_MOST); }
};
#endif
// The shorter type is held on the way.
template <int B> struct moved : conversion {
    typedef Z_FROM from;
    typedef Z_TO to;
    ZC_MEMBER moved(const zc_move_params &p) : conversion(p) {}
#if Z_WIDENS
    typedef from held;
    ZC_MEMBER held in(from x) const { return x; }
    ZC_MEMBER to out(held x) const { return of(x); }
#else
    typedef to held;
    ZC_MEMBER held in(from x) const { return of(x); }
    ZC_MEMBER to out(held x) const { return x; }
#endif
};
#else
template <int B> struct moved {
    typedef zc_unit<B> from, to, held;
    ZC_MEMBER moved(const zc_move_params &) {}
    ZC_MEMBER held in(from x) const { return x; }
    ZC_MEMBER to out(held x) const { return x; }
};
#endif

template <int B> ZC_DEV void strided(const zc_move_params &p) {
    typedef moved<B> moves;
    const moves as(p);
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        i64 to = 0, from = 0;
        for (int d = p.rank - 1; d > 0; d--) {
            const i64 at = (i64)zc_split(&rest, p.dims[d]);
            to += at * p.to[d];
            from += at * p.from[d];
        }
        to += (i64)rest * p.to[0];
        from += (i64)rest * p.from[0];
        ((typename moves::to *)p.out)[to] = as.out(as.in(((const typename moves::from *)p.in)[from]));
    }
}
// Pieces of several axes may have several units; none is shorter than an element.
#define STRIDED(n)                                                                                                     \
    ZC_KERNEL(n)(const __grid_constant__ zc_move_params p) {                                                           \
        zc_begin();                                                                                                    \
        if constexpr (1 << n >= Z_ELEMENT) strided<1 << n>(p);                                                         \
    }
STRIDED(0)
STRIDED(1)
STRIDED(2)
STRIDED(3)
STRIDED(4)

// All of a thread's elements are asked for at once, without conditions, as a small tensor has few tiles and waits for one of them: in
// the place of elements that a tile lacks stand others, which nobody reads.
template <int B> ZC_DEV void transpose(const zc_move_params &p) {
    typedef moved<B> moves;
    const moves as(p);
    const int side = B <= 2 ? 64 : 32, step = 256 / side, each = side / step;
    __shared__ typename moves::held tile[side][side + 1];
    const int at = (int)threadIdx.x % side, line = (int)threadIdx.x / side;
    for (i64 t = blockIdx.x; t < p.total; t += gridDim.x) {
        u64 rest = (u64)t;
        const i64 x0 = (i64)zc_split(&rest, p.tiles[0]) * side, y0 = (i64)zc_split(&rest, p.tiles[1]) * side;
        i64 to = 0, from = 0;
        for (int d = p.rank - 1; d >= 0; d--) {
            const i64 n = (i64)zc_split(&rest, p.dims[d]);
            to += n * p.to[d];
            from += n * p.from[d];
        }
        // What the tile has of the result's last axis, and of the source's; a thread's elements are `step` lines apart.
        const int rows = p.size[1] - y0 < side ? (int)(p.size[1] - y0) : side;
        const int cols = p.size[0] - x0 < side ? (int)(p.size[0] - x0) : side;
        const int first = line < rows ? line : rows - 1, place = at < cols ? at : cols - 1;
        const typename moves::from *in = (const typename moves::from *)p.in + from + (y0 + first) * p.from_stride + x0 + place;
        typename moves::to *out = (typename moves::to *)p.out + to + (x0 + line) * p.to_stride + y0 + at;
        typename moves::from own[each];
#pragma unroll
        for (int i = 0; i < each; i++) {
            own[i] = *in;
            in += line + (i + 1) * step < rows ? step * p.from_stride : 0;
        }
#pragma unroll
        for (int i = 0; i < each; i++) tile[line + i * step][at] = as.in(own[i]);
        zc_sync();
#pragma unroll
        for (int i = 0; i < each; i++, out += step * p.to_stride)
            if (at < rows && line + i * step < cols) *out = as.out(tile[at][line + i * step]);
        zc_sync();
    }
}
ZC_KERNEL(5)(const __grid_constant__ zc_move_params p) { zc_begin(); transpose<Z_ELEMENT>(p); }

#ifndef Z_CASTS
template <int B> ZC_DEV void move_parts(const zc_parts_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 outer = (u64)i;
        const i64 in = (i64)zc_split(&outer, p.parts);
        int n = 0;
        while (in >= p.first[n + 1]) n++;
        if (!p.part[n]) continue;
        zc_unit<B> *const whole = (zc_unit<B> *)p.whole + (i64)outer * p.row + in;
        zc_unit<B> *const part = (zc_unit<B> *)p.part[n] + (i64)outer * p.part_row[n] + in - p.first[n];
        if (p.joins)
            *whole = *part;
        else
            *part = *whole;
    }
}
ZC_KERNEL(6)(const __grid_constant__ zc_parts_params p) {
    zc_begin();
    if (p.unit == 4) return move_parts<16>(p);
    if (p.unit == 3) return move_parts<8>(p);
    if constexpr (Z_ELEMENT <= 4)
        if (p.unit == 2) return move_parts<4>(p);
    if constexpr (Z_ELEMENT <= 2)
        if (p.unit == 1) return move_parts<2>(p);
    if constexpr (Z_ELEMENT <= 1) move_parts<1>(p);
}
#endif

template <int B, int N> ZC_DEV void interleave_some(const moved<B> &as, const typename moved<B>::from *in, typename moved<B>::to *out,
                                                    i64 from_stride) {
    typedef zc_vec<typename moved<B>::from, 4> read;
    typedef zc_vec<typename moved<B>::to, 4> written;
    read planes[N];
    written pixels[N];
#pragma unroll
    for (int c = 0; c < N; c++) planes[c] = *(const read *)(in + c * from_stride);
#pragma unroll
    for (int i = 0; i < N * 4; i++) pixels[i / 4].v[i % 4] = as.out(as.in(planes[i % N].v[i / N]));
#pragma unroll
    for (int c = 0; c < N; c++) ((written *)out)[c] = pixels[c];
}
template <int B> ZC_DEV void interleave(const zc_move_params &p) {
    const moved<B> as(p);
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        const i64 pixel = (i64)zc_split(&rest, p.tiles[0]) * 4;
        i64 to = pixel * p.size[1], from = pixel;
        for (int d = p.rank - 1; d >= 0; d--) {
            const i64 at = (i64)zc_split(&rest, p.dims[d]);
            to += at * p.to[d];
            from += at * p.from[d];
        }
        const typename moved<B>::from *in = (const typename moved<B>::from *)p.in + from;
        typename moved<B>::to *out = (typename moved<B>::to *)p.out + to;
        if (p.size[1] == 2) interleave_some<B, 2>(as, in, out, p.from_stride);
        else if (p.size[1] == 3) interleave_some<B, 3>(as, in, out, p.from_stride);
        else interleave_some<B, 4>(as, in, out, p.from_stride);
    }
}
ZC_KERNEL(7)(const __grid_constant__ zc_move_params p) {
    zc_begin();
    if constexpr (Z_ELEMENT <= 4) interleave<Z_ELEMENT>(p);
}
