/* Element types: THE table, and conversion of single elements.
 *
 * Storage is ONNX's: little-endian, sub-byte types packed low bits first with the last byte
 * zero-padded, so that a tensor's bytes are the same in a model, a plan, a caller's buffer and on
 * the device. */
#ifndef ZC_OP_DTYPE_H
#define ZC_OP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* name, ONNX TensorProto.DataType number, bits, class */
#define ZC_DTYPES(X)                                                                               \
    X(F32, f32, 1, 32, FLOAT)                                                                      \
    X(U8, u8, 2, 8, UINT)                                                                          \
    X(I8, i8, 3, 8, INT)                                                                           \
    X(U16, u16, 4, 16, UINT)                                                                       \
    X(I16, i16, 5, 16, INT)                                                                        \
    X(I32, i32, 6, 32, INT)                                                                        \
    X(I64, i64, 7, 64, INT)                                                                        \
    X(BOOL, bool, 9, 8, BOOL)                                                                      \
    X(F16, f16, 10, 16, FLOAT)                                                                     \
    X(F64, f64, 11, 64, FLOAT)                                                                     \
    X(U32, u32, 12, 32, UINT)                                                                      \
    X(U64, u64, 13, 64, UINT)                                                                      \
    X(C64, c64, 14, 64, COMPLEX)                                                                   \
    X(C128, c128, 15, 128, COMPLEX)                                                                \
    X(BF16, bf16, 16, 16, FLOAT)                                                                   \
    X(F8E4M3FN, f8e4m3fn, 17, 8, FLOAT)                                                            \
    X(F8E4M3FNUZ, f8e4m3fnuz, 18, 8, FLOAT)                                                        \
    X(F8E5M2, f8e5m2, 19, 8, FLOAT)                                                                \
    X(F8E5M2FNUZ, f8e5m2fnuz, 20, 8, FLOAT)                                                        \
    X(U4, u4, 21, 4, UINT)                                                                         \
    X(I4, i4, 22, 4, INT)                                                                          \
    X(F4E2M1, f4e2m1, 23, 4, FLOAT)                                                                \
    X(F8E8M0, f8e8m0, 24, 8, FLOAT)                                                                \
    X(U2, u2, 25, 2, UINT)                                                                         \
    X(I2, i2, 26, 2, INT)

typedef enum zc_dtype {
    ZC_NONE = 0, /* absent or not yet known */
#define X(NAME, name, onnx, bits, cls) ZC_##NAME = (onnx),
    ZC_DTYPES(X)
#undef X
        ZC_DTYPE_END
} zc_dtype;

typedef enum zc_dclass {
    ZC_CLASS_NONE,
    ZC_CLASS_FLOAT,
    ZC_CLASS_INT,
    ZC_CLASS_UINT,
    ZC_CLASS_BOOL,
    ZC_CLASS_COMPLEX
} zc_dclass;

/* True for the values listed above; safe for any int read from a file. */
bool zc_dtype_valid(int dtype);
const char *zc_dtype_name(zc_dtype dtype);
/* ZC_NONE when unknown. */
zc_dtype zc_dtype_parse(const char *name);
unsigned zc_dtype_bits(zc_dtype dtype);
zc_dclass zc_dtype_class(zc_dtype dtype);
static inline bool zc_dtype_is_float(zc_dtype d)
{
    return zc_dtype_class(d) == ZC_CLASS_FLOAT;
}
static inline bool zc_dtype_is_int(zc_dtype d)
{
    return zc_dtype_class(d) == ZC_CLASS_INT || zc_dtype_class(d) == ZC_CLASS_UINT;
}
/* Bytes that count elements take (rounded up for sub-byte types); false on overflow. */
bool zc_dtype_bytes(zc_dtype dtype, int64_t count, size_t *out);

/* Element access at index i of a packed array, for every dtype but the complex ones. Integers and
 * bool convert exactly through the i64 pair (u64 by two's complement), floats through f64. Loads
 * convert any dtype to the asked type; stores round to nearest even, overflow to the type's
 * infinity where it has one and saturate otherwise, truncate integers by wrapping, and take floats
 * stored to integers towards zero with saturation. NaN becomes integer 0, true, and f4e2m1's 6; a
 * type without a negative zero drops that sign. f8e8m0 rounds up in magnitude and drops the sign.
 * A store of a sub-byte element keeps its neighbours' bits. */
static inline double zc_load_f64(zc_dtype dtype, const void *data, int64_t i);
int64_t zc_load_i64(zc_dtype dtype, const void *data, int64_t i);
static inline void zc_store_f64(zc_dtype dtype, void *data, int64_t i, double v);
void zc_store_i64(zc_dtype dtype, void *data, int64_t i, int64_t v);

/* The same for every type; most elements are f32 or f64, which takes no call. */
double zc_load_any(zc_dtype dtype, const void *data, int64_t i);
void zc_store_any(zc_dtype dtype, void *data, int64_t i, double v);
static inline double zc_load_f64(zc_dtype dtype, const void *data, int64_t i)
{
    float narrow;
    double wide;
    if (dtype == ZC_F32) {
        memcpy(&narrow, (const char *)data + i * 4, 4);
        return (double)narrow;
    }
    if (dtype != ZC_F64) return zc_load_any(dtype, data, i);
    memcpy(&wide, (const char *)data + i * 8, 8);
    return wide;
}
static inline void zc_store_f64(zc_dtype dtype, void *data, int64_t i, double v)
{
    if (dtype == ZC_F32) {
        const float narrow = (float)v;
        memcpy((char *)data + i * 4, &narrow, 4);
    } else if (dtype == ZC_F64) {
        memcpy((char *)data + i * 8, &v, 8);
    } else {
        zc_store_any(dtype, data, i, v);
    }
}

/* Of 16-bit floats, without branches. */
static inline uint32_t zc_f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline float zc_f32_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline float zc_f16_to_f32(uint16_t h)
{
    const uint32_t magnitude = h & 0x7FFFu, sign = (h & 0x8000u) << 16;
    const uint32_t normal = (magnitude << 13) + (112u << 23);
    const uint32_t subnormal = zc_f32_bits((float)(int32_t)magnitude * 0x1p-24f);
    const uint32_t special = magnitude == 0x7C00 ? 0x7F800000u : 0x7FC00000u;
    const uint32_t finite = magnitude < 0x400 ? subnormal : normal;
    return zc_f32_of_bits((magnitude < 0x7C00 ? finite : special) | sign);
}
static inline uint16_t zc_f32_to_f16(float f)
{
    const uint32_t bits = zc_f32_bits(f), magnitude = bits & 0x7FFFFFFFu;
    const uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1)) - (112u << 23);
    /* The last bit of a sum with 0.5 counts as much as f16's least number. */
    const uint32_t subnormal = zc_f32_bits(zc_f32_of_bits(magnitude) + 0.5f) - (126u << 23);
    const uint32_t finite = magnitude < 113u << 23 ? subnormal : normal >> 13;
    const uint32_t special = magnitude > 0x7F800000u ? 0x7E00 : 0x7C00;
    return (uint16_t)((magnitude < 0x477FF000u ? finite : special) | (bits >> 16 & 0x8000u));
}
static inline float zc_bf16_to_f32(uint16_t h)
{
    return zc_f32_of_bits((uint32_t)h << 16);
}
static inline uint16_t zc_f32_to_bf16(float f)
{
    const uint32_t bits = zc_f32_bits(f), rounded = bits + 0x7FFF + (bits >> 16 & 1);
    const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    return (uint16_t)(is_nan ? 0x7FC0u | (bits >> 16 & 0x8000u) : rounded >> 16);
}
/* 8-bit and 4-bit floats. saturate: overflow and infinity give the largest finite value, otherwise
 * the type's infinity or NaN (ONNX Cast's attribute `saturate`). */
float zc_f8_to_f32(zc_dtype dtype, uint8_t v);
uint8_t zc_f32_to_f8(zc_dtype dtype, float f, bool saturate);

/* ONNX Cast's attribute `round_mode`, which only f8e8m0 knows; zc_f32_to_f8 takes UP. NEAREST takes
 * ties up. A negative number counts by its magnitude; zero and what lies below 2^-127 give 2^-127,
 * or NaN without saturation. */
typedef enum zc_round { ZC_ROUND_UP, ZC_ROUND_DOWN, ZC_ROUND_NEAREST } zc_round;
uint8_t zc_f32_to_f8e8m0(float f, zc_round round, bool saturate);

#endif
