#include "precision/cost.h"

#include <math.h>

typedef struct chip {
    int arch;
    double bytes, f32, tf32, f16, fp8, int8;
    bool codes;
} chip;

static const chip chips[] = {
#define CHIP(arch, bytes, f32, tf32, f16, fp8, int8, codes)                                        \
    {arch, bytes, f32, tf32, f16, fp8, int8, codes},
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
 * and rounded: those of a convolution, which become bytes at once, and those of a product. */
enum { CPU_CONV_DEPTH = 64, CPU_PRODUCT_DEPTH = 256 };

static bool has_bytes(const chip *c, const zc_precision_part *part)
{
    if (c->arch != CPU) return !part->is_product;
    return part->depth >= (part->is_product ? CPU_PRODUCT_DEPTH : CPU_CONV_DEPTH);
}

/* 0: there are no kernels, or none that is fast. */
static double speed(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    if (type == ZC_PRECISION_f32) return c->f32;
    if (type == ZC_PRECISION_int8) return has_bytes(c, part) ? c->int8 : 0;
    if (type == ZC_PRECISION_tf32) return part->is_product ? c->tf32 : c->f32;
    return type == ZC_PRECISION_fp8 && part->scales ? c->fp8 : c->f16;
}

/* As part of what f32 takes. */
static double size(zc_precision_type type)
{
    return type == ZC_PRECISION_int8 ? 0.25 : zc_dtype_bits(zc_precision_dtype(type)) / 32.0;
}

/* Scales and zero points of weights as codes, in bits a weight: of groups of 64. */
#define CODE_SCALES 0.25

/* What these bytes of the part, its weights among them, are in the type. */
static double narrow_bytes(const chip *c, const zc_precision_part *part, double bytes,
                           zc_precision_type type)
{
    const int bits = c->codes && part->packs ? zc_precision_code_bits(type) : 0;
    if (!bits) return bytes * size(type);
    return (bytes - part->code_bytes) * size(type) + part->code_bytes * (bits + CODE_SCALES) / 32;
}

/* Of reading an operand and writing it in 8 bits, as part of what f32 takes: it is of 16 bits
 * before it is fp8, and of 32 before it is int8. */
static double conversion(zc_precision_type type)
{
    return type == ZC_PRECISION_int8 ? 1.25 : type == ZC_PRECISION_fp8 ? 0.75 : 0;
}

/* A type that is no faster to compute in than f32 is kept in f32, too. */
static double seconds(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    const double fast = speed(c, part, type);
    const double bytes = fast > c->f32 ? narrow_bytes(c, part, part->bytes, type) : part->bytes;
    if (fast == 0) return INFINITY;
    return fmax(bytes / c->bytes, part->operations / fast) +
           part->conversion * conversion(type) / c->bytes;
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

bool zc_precision_faster(const zc_precision_chips *c, const zc_precision_part *part,
                         zc_precision_type type)
{
    double us = zc_precision_us(c, part, type);
    return us < zc_precision_us(c, part, ZC_PRECISION_f32) &&
           (!zc_precision_is_scaled(type) || us < zc_precision_us(c, part, ZC_PRECISION_f16));
}

double zc_precision_weights(const zc_precision_chips *c, const zc_precision_part *part,
                            zc_precision_type type)
{
    if (type == ZC_PRECISION_int8 || type == ZC_PRECISION_fp8) return part->weights * 0.25;
    double most = narrow_bytes(chip_at(c, 0), part, part->weights, type);
    for (int i = 1; i < c->narchs; i++)
        most = fmax(most, narrow_bytes(chip_at(c, i), part, part->weights, type));
    return most;
}
