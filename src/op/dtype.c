#include "op/dtype.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor bytes are little-endian");

typedef struct dtype_row {
    const char *name;
    unsigned bits;
    zc_dclass cls;
} dtype_row;

static const dtype_row rows[ZC_DTYPE_END] = {
#define X(NAME, text, onnx, nbits, klass) [onnx] = {#text, nbits, ZC_CLASS_##klass},
    ZC_DTYPES(X)
#undef X
};

bool zc_dtype_valid(int dtype)
{
    return dtype > 0 && dtype < ZC_DTYPE_END && rows[dtype].name;
}

const char *zc_dtype_name(zc_dtype dtype)
{
    return zc_dtype_valid((int)dtype) ? rows[dtype].name : "none";
}

zc_dtype zc_dtype_parse(const char *name)
{
    for (int i = 0; i < ZC_DTYPE_END; i++)
        if (rows[i].name && strcmp(rows[i].name, name) == 0) return (zc_dtype)i;
    return ZC_NONE;
}

unsigned zc_dtype_bits(zc_dtype dtype)
{
    return zc_dtype_valid((int)dtype) ? rows[dtype].bits : 0;
}

zc_dclass zc_dtype_class(zc_dtype dtype)
{
    return zc_dtype_valid((int)dtype) ? rows[dtype].cls : ZC_CLASS_NONE;
}

bool zc_dtype_bytes(zc_dtype dtype, int64_t count, size_t *out)
{
    const unsigned bits = zc_dtype_bits(dtype);
    if (count < 0 || (uint64_t)count > SIZE_MAX) return false;
    if (bits >= 8) return zc_mul_size((size_t)count, bits / 8, out);
    if (bits == 0) {
        *out = 0;
        return count == 0;
    }
    const size_t per_byte = 8 / bits;
    *out = (size_t)count / per_byte + ((size_t)count % per_byte != 0);
    return true;
}

/* A float type narrower than f32 with an explicit significand. Codes are without the sign. */
typedef struct minifloat {
    unsigned exp_bits, man_bits;
    int bias;
    uint32_t max;       /* largest finite */
    uint32_t inf;       /* what overflow gives; max where neither infinity nor NaN exists */
    uint32_t nan;       /* likewise for NaN */
    bool unsigned_zero; /* the code of -0 is the only NaN, and overflow goes there */
} minifloat;

static const minifloat f16_format = {5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, false};
static const minifloat bf16_format = {8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, false};
static const minifloat e4m3fn_format = {4, 3, 7, 0x7E, 0x7F, 0x7F, false};
static const minifloat e4m3fnuz_format = {4, 3, 8, 0x7F, 0x80, 0x80, true};
static const minifloat e5m2_format = {5, 2, 15, 0x7B, 0x7C, 0x7E, false};
static const minifloat e5m2fnuz_format = {5, 2, 16, 0x7F, 0x80, 0x80, true};
static const minifloat e2m1_format = {2, 1, 1, 0x7, 0x7, 0x7, false};

static const minifloat *format_of(zc_dtype dtype)
{
    switch (dtype) {
    case ZC_F16:
        return &f16_format;
    case ZC_BF16:
        return &bf16_format;
    case ZC_F8E4M3FN:
        return &e4m3fn_format;
    case ZC_F8E4M3FNUZ:
        return &e4m3fnuz_format;
    case ZC_F8E5M2:
        return &e5m2_format;
    case ZC_F8E5M2FNUZ:
        return &e5m2fnuz_format;
    case ZC_F4E2M1:
        return &e2m1_format;
    default:
        return NULL;
    }
}

/* v's magnitude rounded to nearest even, as a code that may lie above f->max. v is finite. */
static inline uint64_t round_code(const minifloat *f, uint64_t magnitude_bits)
{
    const int exponent = (int)(magnitude_bits >> 52) - 1023 + f->bias;
    const uint64_t sig = (magnitude_bits & ((1ull << 52) - 1)) | 1ull << 52;
    const bool subnormal = exponent <= 0;
    const int shift = 52 - (int)f->man_bits + (subnormal ? 1 - exponent : 0);
    if (shift > 53) return 0; /* less than half of the smallest; doubles' own subnormals too */
    const uint64_t rest = sig & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    uint64_t code = sig >> shift;
    code += rest > half || (rest == half && (code & 1));
    /* The leading 1 in code adds one to the exponent field, and so does a carry out of it. */
    return subnormal ? code : code + ((uint64_t)(exponent - 1) << f->man_bits);
}

static inline uint32_t encode(const minifloat *f, double v, bool saturate)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint64_t magnitude = bits & ~(1ull << 63), infinity = 0x7FFull << 52;
    const uint32_t sign = (uint32_t)(bits >> 63) << (f->exp_bits + f->man_bits);
    uint32_t code;
    if (magnitude > infinity) {
        /* A type without NaN takes its largest number, positive, for it. */
        code = f->nan;
        if (f->nan == f->max) return code;
    } else {
        const uint64_t rounded = magnitude == infinity ? UINT64_MAX : round_code(f, magnitude);
        code = rounded <= f->max ? (uint32_t)rounded : saturate ? f->max : f->inf;
    }
    if (f->unsigned_zero && (code == 0 || code == f->nan)) return code;
    return code | sign;
}

static inline float decode(const minifloat *f, uint32_t v)
{
    const uint32_t sign_bit = 1u << (f->exp_bits + f->man_bits);
    const uint32_t code = v & (sign_bit - 1), sign = v & sign_bit;
    if (f->unsigned_zero && sign && code == 0) return NAN;
    if (code > f->max)
        return code == f->inf && f->inf != f->nan ? (sign ? -INFINITY : INFINITY)
                                                  : copysignf(NAN, sign ? -1 : 1);
    const uint32_t man = code & ((1u << f->man_bits) - 1), exponent = code >> f->man_bits;
    const uint32_t rebias = 127 - (uint32_t)f->bias;
    /* A subnormal is man/2^man_bits times the smallest normal. */
    const uint32_t bits =
        exponent ? (exponent + rebias) << 23 | man << (23 - f->man_bits) : (1 + rebias) << 23;
    float r;
    memcpy(&r, &bits, sizeof r);
    if (exponent == 0) r *= (float)man / (float)(1u << f->man_bits);
    return sign ? -r : r;
}

static float e8m0_to_f32(uint8_t v)
{
    return v == 0xFF ? NAN : ldexpf(1.0f, (int)v - 127);
}

static uint8_t encode_e8m0(double v, zc_round round, bool saturate)
{
    const double x = fabs(v);
    if (isnan(x)) return 0xFF;
    if (x < 0x1p-127) return saturate ? 0 : 0xFF;
    if (isinf(x)) return saturate ? 0xFE : 0xFF;
    int exponent;
    const double m = frexp(x, &exponent); /* x = 2m * 2^(exponent-1), 1 <= 2m < 2 */
    int code = exponent - 1 + 127;
    if ((round == ZC_ROUND_UP && m > 0.5) || (round == ZC_ROUND_NEAREST && m >= 0.75)) code++;
    if (code > 0xFE) return saturate ? 0xFE : 0xFF;
    return (uint8_t)code;
}

uint8_t zc_f32_to_f8e8m0(float f, zc_round round, bool saturate)
{
    return encode_e8m0(f, round, saturate);
}

float zc_f8_to_f32(zc_dtype dtype, uint8_t v)
{
    if (dtype == ZC_F8E8M0) return e8m0_to_f32(v);
    const minifloat *f = format_of(dtype);
    return f ? decode(f, v) : 0;
}

uint8_t zc_f32_to_f8(zc_dtype dtype, float f, bool saturate)
{
    if (dtype == ZC_F8E8M0) return encode_e8m0(f, ZC_ROUND_UP, saturate);
    const minifloat *format = format_of(dtype);
    return format ? (uint8_t)encode(format, f, saturate) : 0;
}

/* Bits of element i of a type of at most 64 bits, zero-extended. */
static uint64_t load_bits(unsigned bits, const void *data, int64_t i)
{
    uint64_t v = 0;
    const char *at = (const char *)data + i * (int64_t)(bits / 8);
    if (bits == 64) {
        memcpy(&v, at, 8);
    } else if (bits == 32) {
        memcpy(&v, at, 4);
    } else if (bits == 16) {
        memcpy(&v, at, 2);
    } else if (bits == 8) {
        memcpy(&v, at, 1);
    } else if (bits) {
        const unsigned per_byte = 8 / bits, shift = (unsigned)(i % per_byte) * bits;
        v = (((const uint8_t *)data)[i / per_byte] >> shift) & ((1u << bits) - 1);
    }
    return v;
}

static void store_bits(unsigned bits, void *data, int64_t i, uint64_t v)
{
    char *at = (char *)data + i * (int64_t)(bits / 8);
    if (bits == 64) {
        memcpy(at, &v, 8);
    } else if (bits == 32) {
        memcpy(at, &v, 4);
    } else if (bits == 16) {
        memcpy(at, &v, 2);
    } else if (bits == 8) {
        memcpy(at, &v, 1);
    } else if (bits) {
        const unsigned per_byte = 8 / bits, shift = (unsigned)(i % per_byte) * bits;
        const unsigned mask = (1u << bits) - 1;
        uint8_t *p = (uint8_t *)data + i / per_byte;
        *p = (uint8_t)((*p & ~(mask << shift)) | ((unsigned)v & mask) << shift);
    }
}

static double bits_to_double(zc_dtype dtype, uint64_t bits)
{
    if (dtype == ZC_F64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (dtype == ZC_F32) {
        const uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        return f;
    }
    if (dtype == ZC_BF16) return zc_bf16_to_f32((uint16_t)bits);
    if (dtype == ZC_F16) return zc_f16_to_f32((uint16_t)bits);
    if (dtype == ZC_F8E8M0) return e8m0_to_f32((uint8_t)bits);
    return decode(format_of(dtype), (uint32_t)bits);
}

static uint64_t double_to_bits(zc_dtype dtype, double v)
{
    uint64_t bits = 0;
    if (dtype == ZC_F64) {
        memcpy(&bits, &v, sizeof bits);
        return bits;
    }
    if (dtype == ZC_F32) {
        const float f = (float)v;
        memcpy(&bits, &f, sizeof f);
        return bits;
    }
    const minifloat *f = format_of(dtype);
    if (!f) return encode_e8m0(v, ZC_ROUND_UP, true);
    return encode(f, v, f->inf == f->nan || f->inf == f->max);
}

static int64_t sign_extend(uint64_t v, unsigned bits)
{
    const uint64_t sign = 1ull << (bits - 1);
    return (int64_t)((v ^ sign) - sign);
}

/* Truncation to an integer of `bits` bits, saturating. The limits are powers of two or one less,
 * so that comparing with limit+1 in double is exact. */
static uint64_t trunc_signed(double v, unsigned bits)
{
    const double above = ldexp(1, (int)bits - 1);
    if (isnan(v)) return 0;
    if (v >= above) return (1ull << (bits - 1)) - 1;
    if (v < -above) return ~((1ull << (bits - 1)) - 1);
    return (uint64_t)(int64_t)v;
}

static uint64_t trunc_unsigned(double v, unsigned bits)
{
    if (!(v > 0)) return 0;
    if (v >= ldexp(1, (int)bits)) return UINT64_MAX;
    return (uint64_t)v;
}

double zc_load_any(zc_dtype dtype, const void *data, int64_t i)
{
    if (dtype == ZC_F16) return zc_f16_to_f32((uint16_t)load_bits(16, data, i));
    if (dtype == ZC_BF16) return zc_bf16_to_f32((uint16_t)load_bits(16, data, i));
    const zc_dclass cls = zc_dtype_class(dtype);
    if (cls == ZC_CLASS_FLOAT) return bits_to_double(dtype, load_bits(rows[dtype].bits, data, i));
    const int64_t v = zc_load_i64(dtype, data, i);
    return cls == ZC_CLASS_UINT ? (double)(uint64_t)v : (double)v;
}

int64_t zc_load_i64(zc_dtype dtype, const void *data, int64_t i)
{
    const zc_dclass cls = zc_dtype_class(dtype);
    if (cls == ZC_CLASS_NONE || cls == ZC_CLASS_COMPLEX) return 0;
    const unsigned n = rows[dtype].bits;
    const uint64_t bits = load_bits(n, data, i);
    switch (cls) {
    case ZC_CLASS_FLOAT:
        return (int64_t)trunc_signed(bits_to_double(dtype, bits), 64);
    case ZC_CLASS_INT:
        return sign_extend(bits, n);
    case ZC_CLASS_BOOL:
        return bits != 0;
    default:
        return (int64_t)bits;
    }
}

void zc_store_any(zc_dtype dtype, void *data, int64_t i, double v)
{
    const zc_dclass cls = zc_dtype_class(dtype);
    if (cls == ZC_CLASS_NONE || cls == ZC_CLASS_COMPLEX) return;
    const unsigned n = rows[dtype].bits;
    uint64_t bits;
    switch (cls) {
    case ZC_CLASS_FLOAT:
        bits = double_to_bits(dtype, v);
        break;
    case ZC_CLASS_INT:
        bits = trunc_signed(v, n);
        break;
    case ZC_CLASS_BOOL:
        bits = v != 0;
        break;
    default:
        bits = trunc_unsigned(v, n);
        break;
    }
    store_bits(n, data, i, bits);
}

/* v as a double whose last bit is set when it is not exact, so that rounding the double again to a
 * narrower type gives the same as rounding v itself. */
static double to_odd(int64_t v)
{
    const uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    const uint64_t low = magnitude & 0x7FF;
    /* Dropping 11 of 64 bits leaves 53, which a double holds. */
    if (magnitude >> 53 == 0 || low == 0) return (double)v;
    const double d = (double)((magnitude & ~0x7FFull) | 0x800);
    return v < 0 ? -d : d;
}

void zc_store_i64(zc_dtype dtype, void *data, int64_t i, int64_t v)
{
    const zc_dclass cls = zc_dtype_class(dtype);
    if (cls == ZC_CLASS_NONE || cls == ZC_CLASS_COMPLEX) return;
    uint64_t bits = (uint64_t)v;
    if (cls == ZC_CLASS_FLOAT)
        bits = double_to_bits(dtype, dtype == ZC_F64 ? (double)v : to_odd(v));
    if (cls == ZC_CLASS_BOOL) bits = v != 0;
    store_bits(rows[dtype].bits, data, i, bits);
}
