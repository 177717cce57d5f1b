#include "precision/cost.h"

#include <math.h>

typedef struct chip {
    int arch;
    double bytes, f32, tf32, f16, fp8, int8;
} chip;

static const chip chips[] = {
#define CHIP(arch, bytes, f32, tf32, f16, fp8, int8) {arch, bytes, f32, tf32, f16, fp8, int8},
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
    const double bytes = part->bytes * (fast > c->f32 ? size(type) : 1);
    if (fast == 0) return INFINITY;
    return fmax(bytes / c->bytes, part->operations / fast) +
           part->conversion * conversion(type) / c->bytes;
}

double zc_precision_us(const zc_precision_chips *c, const zc_precision_part *part,
                       zc_precision_type type)
{
    double most = c->narchs ? 0 : seconds(chip_of(CPU), part, type);
    for (int i = 0; i < c->narchs; i++)
        most = fmax(most, seconds(chip_of(c->archs[i]), part, type));
    return most * 1e6;
}

bool zc_precision_faster(const zc_precision_chips *c, const zc_precision_part *part,
                         zc_precision_type type)
{
    double us = zc_precision_us(c, part, type);
    return us < zc_precision_us(c, part, ZC_PRECISION_f32) &&
           (!zc_precision_is_scaled(type) || us < zc_precision_us(c, part, ZC_PRECISION_f16));
}

double zc_precision_weights(const zc_precision_part *part, zc_precision_type type)
{
    return part->weights * (zc_precision_is_scaled(type) ? 0.25 : size(type));
}
