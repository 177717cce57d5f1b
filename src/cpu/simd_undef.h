/* Ends one instruction set of simd_each.h. */
#undef SIMD_FN
#undef SIMD_TARGET
#undef SIMD_VL
#undef SIMD_ROWS
#undef SIMD_FMA
#undef SIMD_MAX
#undef SIMD_MIN
#undef SIMD_BLEND
#undef SIMD_WHOLE
#undef SIMD_BYTES
#undef SIMD_PUT_BYTES
#undef vf
#undef vi
