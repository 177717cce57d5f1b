#include "cpu/rows.h"

#include <math.h>

#define SIMD_SOURCE "cpu/rows_tmpl.h"
#include "cpu/simd_each.h"

#define TABLE(level, vl)                                                                           \
    {                                                                                              \
        vl, row_moments_##level, row_affine_##level, row_affines_##level, row_scale_##level,       \
            row_add_##level, row_softmax_##level, column_softmax_##level, row_products_##level,    \
            lstm_step_##level, gru_gates_##level, gru_state_##level                                \
    }

const zc_rows *zc_rows_at(zc_simd level)
{
    static const zc_rows tables[] = {
        TABLE(base, 4),
#if SIMD_X86
        TABLE(avx2, 8),
        TABLE(avx512, 16)
#endif
    };
    return &tables[level];
}
