// Bytes of results whose columns are the rows of the tensor cores' products: of 64 columns a warp has 16, of which each thread has
// two neighbours, and of the products' columns, rows of the result, two neighbours in every eight. Memory has rows, of which a warp's
// columns are 16 bytes: matrices of 8 x 8 pairs are turned on their way.
#pragma once
#include "zc/gemm_quant_sm90.cuh"

// A thread's first column of 64.
ZC_DEV int zc_turned_column(int thread) { return thread / 32 * 16 + thread % 32 / 4 * 2; }

// What two neighbouring columns' sums are before they are bytes; sum: of a row, from the first column's on.
struct zc_turned_numbers {
    i32 y[2];
    ZC_MEMBER zc_turned_numbers(const zc_gq_shared &shared, const zc_gq_column (&c)[2], const i32 *sum)
        : y{zc_gq_number_of(sum[0], c[0], shared), zc_gq_number_of(sum[2], c[1], shared)} {}
};

// So many rows. to(row): the shared memory of the warp's 16 columns; from(row): the same of another
// operand's, with ADDS; make(place, second, its bytes, the first of a pair's): what becomes of the sums of two columns from number
// 4 * place + second on, as of zc_gq_saturated.
template <int ROWS, bool ADDS, bool UPPER, class FROM, class TO, class MAKE>
ZC_DEV void zc_turned_lay(FROM from, TO to, MAKE make) {
    constexpr int TURN = 32;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int begin = 0; begin < ROWS; begin += TURN) {
        u32 other[4] = {}, out[4];
        if constexpr (ADDS) zc_ldmatrix_x4_trans(other, from(begin + lane));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int place = begin / 8 + i;
            out[i] = zc_gq_word<UPPER>(make(place, 0, other[i], 0), make(place, 1, other[i], 2));
        }
        zc_stmatrix_x4_trans(to(begin + lane), out);
    }
}
