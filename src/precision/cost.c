#include "precision/cost.h"

#include <math.h>

typedef struct chip {
    int arch;
    double bytes, f32, tf32, f16, fp8, int8, int8_conv, sparse;
    bool codes;
} chip;

static const chip chips[] = {
#define CHIP(arch, bytes, f32, tf32, f16, fp8, int8, int8_conv, sparse, codes)                     \
    {arch, bytes, f32, tf32, f16, fp8, int8, int8_conv, sparse, codes},
#include "precision/chips.def"
};

enum { CPU = 0 };

/* One that is not in the table counts as the first GPU. */
static const chip *chip_of(int arch)
{
    for (size_t i = 0; i < ZC_COUNTOF(chips); i++)
        if (chips[i].arch == arch) return &chips[i];
    return &chips[1];
}

/* Shorter sums of bytes take longer than those of f32 on a core with AVX2, as each has to be scaled
 * and rounded: those of a convolution, which become bytes at once, and those of a product. So do
 * all those of channels by themselves. */
enum { CPU_CONV_DEPTH = 64, CPU_PRODUCT_DEPTH = 256 };

static bool is_deep(const zc_precision_part *part)
{
    return !part->each && part->depth >= (part->is_product ? CPU_PRODUCT_DEPTH : CPU_CONV_DEPTH);
}

/* On a GPU each tap of a window has lines of 128 bytes. Where channels are less than half of one,
 * f16, whose lines are as long, is the faster one, unless the tap is the only one, or a kernel of
 * images or of each channel by itself takes them: an eighth of f16's speed (bench/NOTES.md). */
enum { GPU_IMAGE = 4, GPU_CHANNELS = 64, GPU_SLOWER = 8 };

static bool fills_lines(const zc_precision_part *part)
{
    const int64_t channels = part->depth / part->taps;
    return part->taps == 1 || channels <= GPU_IMAGE || channels >= GPU_CHANNELS;
}

static double speed_of_bytes(const chip *c, const zc_precision_part *part)
{
    const double fast = part->is_product ? c->int8 : c->int8_conv;
    if (c->arch == CPU) return is_deep(part) ? fast : 0;
    if (part->is_product) return part->scales ? fast : 0;
    return fills_lines(part) ? fast : fmin(fast, c->f16 / GPU_SLOWER);
}

/* 0: there are no kernels, or none that is fast. */
static double speed(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    if (type == ZC_PRECISION_f32) return c->f32;
    if (type == ZC_PRECISION_int8) return speed_of_bytes(c, part);
    if (type == ZC_PRECISION_tf32) return part->is_product ? c->tf32 : c->f32;
    if (type == ZC_PRECISION_sparse) return part->prunes ? c->sparse : c->f16;
    return type == ZC_PRECISION_fp8 && part->scales ? c->fp8 : c->f16;
}

static double bits_of(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const zc_dtype dtype = zc_precision_dtype(type, part, c->arch != CPU);
    return type == ZC_PRECISION_int8 && dtype == ZC_F32 ? 8 : zc_dtype_bits(dtype);
}

/* Scales and zero points of weights as codes, in bits a weight: of groups of 64. */
#define CODE_SCALES 0.25

/* A weight of 16 bits of which each other one is stored, and where it stands in four. */
#define SPARSE_BITS 9

/* Bits of a weight that kernels read as codes or pruned; 0: they do not. */
static double weight_bits(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const int bits = zc_precision_code_bits(type);
    if (type == ZC_PRECISION_sparse) return part->prunes && c->sparse > c->f16 ? SPARSE_BITS : 0;
    return bits && c->codes && part->packs ? bits + CODE_SCALES : 0;
}

/* What these bytes of the part in f32, its weights among them, are where others have so many bits.
 */
static double narrow_bytes(const chip *c, const zc_precision_part *part, double bytes, double bits,
                           zc_precision_type type)
{
    const double each = weight_bits(c, part, type);
    const double other = each > 0 ? bytes - part->code_bytes : bytes;
    return (other * bits + (bytes - other) * each) / 32;
}

/* A type that is no faster to compute in than f32 is kept in f32, and one that is slower than f16
 * is held to move no fewer bytes in the time. */
static double moved_bytes(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const double fast = speed(c, part, type), bits = bits_of(c, part, type);
    if (fast <= c->f32) return part->bytes;
    return narrow_bytes(c, part, part->bytes, fast < c->f16 ? fmax(bits, 16) : bits, type);
}

/* Of reading an operand and writing it in 8 bits, as part of what f32 takes. */
static double conversion(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const zc_dtype dtype = zc_precision_dtype(type, part, c->arch != CPU);
    if (type != ZC_PRECISION_int8 && type != ZC_PRECISION_fp8) return 0;
    return (zc_dtype_bits(dtype) + 8) / 32.0;
}

/* Of a step by itself (bench/NOTES.md). */
#define STEP 3e-6

static double seconds(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const double fast = speed(c, part, type);
    if (fast == 0) return INFINITY;
    return fmax(moved_bytes(c, part, type) / c->bytes, part->operations / fast) +
           part->conversion * conversion(c, part, type) / c->bytes;
}

static const chip *chip_at(const zc_precision_chips *c, int i)
{
    return chip_of(c->narchs ? c->archs[i] : CPU);
}

double zc_precision_us(const zc_precision_chips *c, const zc_precision_part *part,
                       zc_precision_type type)
{
    double most = seconds(chip_at(c, 0), part, type);
    for (int i = 1; i < c->narchs; i++) most = fmax(most, seconds(chip_at(c, i), part, type));
    return most * 1e6;
}

double zc_precision_crossing_us(const zc_precision_chips *c, double bytes)
{
    double most = 0;
    for (int i = 0; i == 0 || i < c->narchs; i++)
        most = fmax(most, STEP + bytes * (16 + 8) / 32 / chip_at(c, i)->bytes);
    return most * 1e6;
}

bool zc_precision_faster(const zc_precision_chips *c, const zc_precision_part *part,
                         zc_precision_type type, bool half)
{
    const double us = zc_precision_us(c, part, type);
    const bool rivals = type == ZC_PRECISION_int8 ? half : zc_precision_is_asked_for(type);
    return us < zc_precision_us(c, part, ZC_PRECISION_f32) &&
           (!rivals || us < zc_precision_us(c, part, ZC_PRECISION_f16));
}

double zc_precision_weights(const zc_precision_chips *c, const zc_precision_part *part,
                            zc_precision_type type)
{
    const bool bytes = type == ZC_PRECISION_int8 || type == ZC_PRECISION_fp8;
    double most = 0;
    for (int i = 0; i == 0 || i < c->narchs; i++) {
        const chip *at = chip_at(c, i);
        const double bits = bytes ? 8 : bits_of(at, part, type);
        most = fmax(most, narrow_bytes(at, part, part->weights, bits, type));
    }
    return most;
}
