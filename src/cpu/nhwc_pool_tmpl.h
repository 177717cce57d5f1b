/* What poolings join pixels by, n channels each, for one instruction set: see nhwc_pool_fast.c and
 * simd.h. */
#define JOIN(name, type, joined)                                                                   \
    SIMD_FUNC void SIMD_FN(name)(const void *from, int64_t n, void *to)                            \
    {                                                                                              \
        const type *restrict x = from;                                                             \
        type *restrict y = to;                                                                     \
        for (int64_t i = 0; i < n; i++) y[i] = joined;                                             \
    }
JOIN(max_f32, float, ((x[i] > y[i]) | (x[i] != x[i])) ? x[i] : y[i])
JOIN(max_u8, uint8_t, x[i] > y[i] ? x[i] : y[i])
JOIN(max_i8, int8_t, x[i] > y[i] ? x[i] : y[i])
JOIN(sum_f32, float, y[i] + x[i])
#undef JOIN
