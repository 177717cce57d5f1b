// What becomes of sums of products of bytes on Hopper: sums of rows of A and columns of B, from which zero points follow, by dot
// products of what lies in shared memory for the tensor cores; results of neighbouring columns, with fused work on them.
//
// spec.h: see zc/gemm_quant.cuh (Z_FLOAT is 0) and zc/fused.cuh; Z_STORED: the type of results behind fused work; Z_EDGES: with
// Z_ZERO_A, windows of Z_DOWN x Z_ACROSS taps, of Z_TAP_STEPS steps each, reach beyond images, where the copy engine puts zeros in
// the place of zero points; Z_WHOLES: sums become bytes by whole numbers, of scales of so many words; with Z_PAIR
// (zc/sm90_rows.cuh) there are no zero points, and the other byte of the sum is the second pair's result. A template that has the
// other operand of Z_FUSED_SUM in pairs defines ZC_GQ_SUM, one that has two products ZC_GQ_SECOND, the type of the bytes that
// zc_gq_second's become.
#pragma once
#include "zc/gemm_quant.cuh"
#include "zc/fused.cuh"
#include "abi/gemm_quant_sm90.h"

// Words of each column: its sum, or of the taps above and to the left of each corner between taps.
#ifdef Z_EDGES
constexpr bool ZC_GQ_EDGES = true;
constexpr int ZC_GQ_ACROSS = Z_ACROSS, ZC_GQ_SIDE_X = Z_ACROSS + 1, ZC_GQ_CORNERS = (Z_DOWN + 1) * ZC_GQ_SIDE_X;
constexpr int ZC_GQ_TAP_STEPS = Z_TAP_STEPS;
#else
constexpr bool ZC_GQ_EDGES = false;
constexpr int ZC_GQ_ACROSS = 1, ZC_GQ_SIDE_X = 1, ZC_GQ_CORNERS = 1;
constexpr int ZC_GQ_TAP_STEPS = 1;
#endif

// ---- columns ----

// The byte from which results count before they are saturated.
#ifdef ZC_GQ_SUM
constexpr i32 ZC_GQ_LEAST = Z_WHOLES ? ZC_LEAST_BYTE<Z_Y> : 0;
#else
constexpr i32 ZC_GQ_LEAST = 0;
#endif
// A column's part of a result; more: see zc_wide and zc_whole.
#if Z_WHOLES
typedef zc_whole_scale<Z_WHOLES> zc_gq_column;
#else
struct zc_gq_column {
    f64 scale, more;
};
#endif
// Those of a tile in shared memory, of which neighbours are read at once.
struct zc_gq_columns {
    decltype(zc_gq_column::scale) *scale;
    decltype(zc_gq_column::more) *more;

    zc_gq_columns() = default;
    ZC_MEMBER zc_gq_columns(unsigned char *memory, int count)
        : scale((decltype(scale))memory), more((decltype(more))(scale + count)) {}
    ZC_MEMBER void put(int at, const zc_gq_column &column) const {
        scale[at] = column.scale;
        more[at] = column.more;
    }
    // N neighbours from a multiple of N on, two or four.
    template <int N> ZC_MEMBER void get(int at, zc_gq_column (&out)[N]) const {
        const auto s = *(const zc_vec<decltype(zc_gq_column::scale), N> *)(scale + at);
        const auto m = *(const zc_vec<decltype(zc_gq_column::more), N> *)(more + at);
#pragma unroll
        for (int i = 0; i < N; i++) out[i] = {s.v[i], m.v[i]};
    }
};
// Of zero points, where there are any: its own, and what A's is multiplied by.
struct zc_gq_zeros {
    u32 own, turned;
};
// As it is laid down in shared memory.
struct zc_gq_made {
    zc_gq_column column;
    u32 zero;
};
ZC_DEV zc_gq_made zc_gq_make(const zc_gq_shared &shared, const zc_gq_own &own) {
#if Z_WHOLES
    const f64 scale = zc_quotient(shared.a * (f64)own.scale, shared.y, shared.reciprocal);
    return {zc_whole_scale_of<Z_WHOLES>(scale, zc_gq_bias(own), shared.zero - ZC_GQ_LEAST), (u32)own.zero};
#else
    return {{zc_gq_scale(shared, own), (f64)zc_gq_bias(own) - ZC_WIDE}, (u32)own.zero};
#endif
}

// ---- sums of lines ----

// Adds a line of 128 bytes to sum.
ZC_DEV u32 zc_gq_add_line(const unsigned char *lines, int line, u32 sum, bool is_signed) {
#pragma unroll
    for (int piece = 0; piece < 8; piece++) {
        const zc_vec<u32, 4> x = *(const zc_vec<u32, 4> *)(lines + line * 128 + (piece ^ line % 8) * 16);
#pragma unroll
        for (int i = 0; i < 4; i++) sum = zc_gq_add_bytes(x.v[i], sum, is_signed);
    }
    return sum;
}
// The corner below a tap and to its right, to which the sums of its columns go.
ZC_DEV int zc_gq_corner(int tap) {
    return (tap / ZC_GQ_ACROSS + 1) * ZC_GQ_SIDE_X + tap % ZC_GQ_ACROSS + 1;
}
// Taps of a window, from where it begins on, that lie below `end`.
ZC_DEV int zc_gq_taps_below(int end, int begin, int dilation, int taps) {
    const int n = (end - begin + dilation - 1) / dilation;
    return n < 0 ? 0 : n < taps ? n : taps;
}
// The corners of the taps on the image, above and below, and how far behind them those to the left and right: in words of sums of
// columns.
struct zc_gq_edges {
    int first, last, left, right;
};
// What a row's sums need.
struct zc_gq_row : zc_gq_edges {
    u32 zero, sum;
};

// What a tile of so many rows and columns has in shared memory beside its factors: columns, sums of A's rows, and ZC_GQ_CORNERS rows
// of sums of columns.
template <int ROWS, int COLUMNS> struct zc_gq_lines {
    static constexpr int BYTES =
        COLUMNS * (int)(sizeof(zc_gq_column) + sizeof(zc_gq_zeros)) + (ROWS + ZC_GQ_CORNERS * COLUMNS) * 4;
    zc_gq_columns columns;
    zc_gq_zeros *zeros;
    u32 *rows, *sums;

    ZC_MEMBER zc_gq_lines(unsigned char *memory)
        : columns(memory, COLUMNS), zeros((zc_gq_zeros *)(columns.more + COLUMNS)), rows((u32 *)(zeros + COLUMNS)),
          sums(rows + ROWS) {}

    // Sums of a column's taps become those of all taps above and to the left.
    static ZC_MEMBER void add_up(u32 *sums) {
        for (int corner = 0; corner < ZC_GQ_CORNERS; corner++) {
            u32 *const to = sums + corner * COLUMNS;
            const bool inside = corner >= ZC_GQ_SIDE_X && corner % ZC_GQ_SIDE_X;
            *to = inside ? *to + to[-COLUMNS] + to[-ZC_GQ_SIDE_X * COLUMNS] - to[-(ZC_GQ_SIDE_X + 1) * COLUMNS] : 0u;
        }
    }
    // By the thread that has its sums; depth: of the summed axis.
    ZC_MEMBER void lay(int column, const zc_gq_made &made, u32 depth) const {
        u32 *const own = sums + column;
        if (ZC_GQ_EDGES) add_up(own);
        columns.put(column, made.column);
        if (Z_ZERO_A || Z_ZERO_B)
            zeros[column] = {made.zero, Z_ZERO_A && !ZC_GQ_EDGES ? depth * made.zero - *own : 0u};
    }
    static ZC_MEMBER void put_edges(const zc_window_params &w, int pixel, zc_gq_edges &e) {
        const int line = pixel / w.out[2], y = line % w.out[1] * w.stride[1] - w.begin[1];
        const int x = (pixel - line * w.out[2]) * w.stride[2] - w.begin[2];
        e.first = zc_gq_taps_below(0, y, w.dilation[1], w.kernel[1]) * ZC_GQ_SIDE_X * COLUMNS;
        e.last = zc_gq_taps_below(w.in[1], y, w.dilation[1], w.kernel[1]) * ZC_GQ_SIDE_X * COLUMNS;
        e.left = zc_gq_taps_below(0, x, w.dilation[2], w.kernel[2]) * COLUMNS;
        e.right = zc_gq_taps_below(w.in[2], x, w.dilation[2], w.kernel[2]) * COLUMNS;
    }
    // What a row's zero point is multiplied by: -(w - zero) of the taps on the image; depth: of a tap.
    static ZC_MEMBER u32 turned_of(const zc_gq_edges &e, const zc_gq_zeros &zeros, u32 depth, const u32 *sums) {
        if (!ZC_GQ_EDGES) return zeros.turned;
        const u32 all = sums[e.last + e.right] - sums[e.first + e.right] - sums[e.last + e.left] + sums[e.first + e.left];
        const int taps = (e.last - e.first) / (ZC_GQ_SIDE_X * COLUMNS) * ((e.right - e.left) / COLUMNS);
        return (Z_ZERO_B ? depth * taps * zeros.own : 0u) - all;
    }
    // A sum, less what zero points are of it. sums: the column's.
    static ZC_MEMBER i32 less_zeros(i32 sum, const zc_gq_row &r, const zc_gq_zeros &zeros, u32 depth, const u32 *sums) {
        const u32 turned = Z_ZERO_A ? turned_of(r, zeros, depth, sums) : 0u;
        return (i32)((u32)sum + r.zero * turned - zeros.own * r.sum);
    }
};

// ---- results ----

// Fused work that is one sum of bytes.
#ifdef ZC_GQ_SUM
#define ZC_GQ_TYPE(i, T) typedef T zc_gq_other;
Z_FUSED_INPUTS(ZC_GQ_TYPE)
#undef ZC_GQ_TYPE
#endif

// What becomes of the sums of zc_gq_second's operands.
#ifdef ZC_GQ_SECOND
ZC_DEV zc_gq_own zc_gq_ask(const zc_gq_second &p, i64 col) {
    zc_gq_own own;
    own.scale = zc_load_factor<Z_B_SCALE>(p.b_scale, col * p.b_scale_step);
#ifdef Z_BIAS
    own.bias = zc_load_factor<i32>(p.bias, col);
#endif
    own.zero = 0;
    return own;
}
ZC_DEV zc_gq_shared zc_gq_share(const zc_gq_second &p) {
    const i32 zero = Z_ZERO_Y ? (i32)zc_load_factor<ZC_GQ_SECOND>(p.y_zero, 0) : 0;
    const f64 y = (f64)zc_load_factor<Z_Y_SCALE>(p.y_scale, 0);
    return {(f64)zc_load_factor<Z_A_SCALE>(p.a_scale, 0), y, 1 / y, zero + ZC_GQ_LEAST}; // its bytes count from 0
}
#endif

// A sum before bytes are saturated: a whole number, with Z_WHOLES 256ths of one.
ZC_DEV i32 zc_gq_number_of(i32 sum, const zc_gq_column &column, const zc_gq_shared &shared) {
#if Z_WHOLES
    return zc_whole(sum, column);
#elif defined(Z_Y_SCALE)
    return zc_gq_requantised(sum, column.more, column.scale, shared.zero);
#else
    return sum;
#endif
}
// Two of T: a vec, or bytes, which with UPPER are the upper ones of both halves, else the last two.
template <class T> ZC_DEV auto zc_gq_saturated(const i32 (&y)[2]) {
#if Z_WHOLES
    return zc_saturated_wholes(T(), y[0], y[1]);
#else
    return zc_saturated(T(), y[0], y[1]);
#endif
}
template <class T, bool UPPER> ZC_DEV zc_vec<T, 2> zc_gq_two_of(u32 two) {
    return zc_unpack<T>(UPPER ? zc_upper_bytes(two) : (u16)two);
}
template <class T, bool> ZC_DEV zc_vec<T, 2> zc_gq_two_of(const zc_vec<T, 2> &two) { return two; }
ZC_DEV u32 zc_gq_bits(u32 two) { return two; }
template <class T> ZC_DEV u32 zc_gq_bits(const zc_vec<T, 2> &two) { return *(const u16 *)&two; }
// Four bytes.
template <bool UPPER, class TWO> ZC_DEV u32 zc_gq_word(const TWO &a, const TWO &b) {
    return UPPER ? zc_upper_bytes(zc_gq_bits(a), zc_gq_bits(b)) : zc_permute(zc_gq_bits(a), zc_gq_bits(b), 0x5410);
}
// What a sum of two bytes needs of all results.
#ifndef ZC_GQ_SUM
struct zc_gq_with {};
ZC_DEV zc_gq_with zc_gq_with_of(const zc_fused_params &) { return {}; }
#elif defined(Z_FUSED_WHOLE)
typedef zc_whole_sum zc_gq_with;
ZC_DEV zc_gq_with zc_gq_with_of(const zc_fused_params &fused) {
    const zc_byte_sum sum = Z_FUSED_SUM(fused);
    return zc_whole_sum_of<Z_STORED, Z_Y, zc_gq_other>(sum);
}
ZC_DEV u32 zc_gq_sums(const i32 (&y)[2], u32 other, int first, const zc_gq_with &with) {
    const u32 own = Z_WHOLES ? zc_saturated_u16x2(y[0], y[1]) : zc_saturated_u8x2(y[0] - ZC_LEAST_BYTE<Z_Y>, y[1] - ZC_LEAST_BYTE<Z_Y>);
    const u32 both = zc_permute(own, other ^ ZC_TURNED<zc_gq_other>, (Z_WHOLES ? 0x5341 : 0x5140) + first * 0x1010);
    return zc_whole_sums<Z_STORED>(both, with);
}
#else
struct zc_gq_with {
    zc_byte_sum sum;
    u32 above; // ZC_ABOVE
};
ZC_DEV zc_gq_with zc_gq_with_of(const zc_fused_params &fused) { return {Z_FUSED_SUM(fused), zc_kept(ZC_ABOVE)}; }
ZC_DEV u32 zc_gq_sums(const i32 (&y)[2], u32 other, int first, const zc_gq_with &with) {
    const i32 whole[2] = {Z_WHOLES ? (y[0] >> 8) + ZC_GQ_LEAST : y[0], Z_WHOLES ? (y[1] >> 8) + ZC_GQ_LEAST : y[1]};
    return zc_byte_sums<Z_STORED, Z_Y, zc_gq_other>(whole, other, first, with.sum, with.above);
}
#endif
// Two neighbours, with the fused work on them: work(v), or one sum with two bytes of `other`, from the `first`th on. As of
// zc_gq_saturated.
#if defined(ZC_GQ_SUM) && defined(Z_FUSED_WHOLE)
constexpr bool ZC_GQ_UPPER = true;
#elif defined(Z_FUSED)
constexpr bool ZC_GQ_UPPER = false;
#else
constexpr bool ZC_GQ_UPPER = Z_WHOLES > 0;
#endif
typedef zc_vec<Z_STORED, 2> zc_gq_two;
template <class WORK> ZC_DEV auto zc_gq_finished(const i32 (&y)[2], u32 other, int first, const zc_gq_with &with, WORK work) {
#ifdef ZC_GQ_SUM
    return zc_gq_sums(y, other, first, with);
#elif defined(Z_FUSED)
    const auto two = zc_gq_two_of<Z_Y, (Z_WHOLES > 0)>(zc_gq_saturated<Z_Y>(y));
    i32 all[2] = {two.v[0], two.v[1]};
    work(all);
    return zc_gq_two{(Z_STORED)all[0], (Z_STORED)all[1]};
#else
    return zc_gq_saturated<Z_Y>(y);
#endif
}
