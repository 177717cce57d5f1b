#include "precision/cost.h"

#include <math.h>

typedef struct chip {
    int arch;
    double bytes, f32, tf32, f16, fp8;
} chip;

static const chip chips[] = {
#define CHIP(arch, bytes, f32, tf32, f16, fp8) {arch, bytes, f32, tf32, f16, fp8},
#include "precision/chips.def"
};

static const chip *chip_of(int arch)
{
    for (size_t i = 0; i < ZC_COUNTOF(chips); i++)
        if (chips[i].arch == arch) return &chips[i];
    return &chips[0];
}

static double speed(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    if (type == ZC_PRECISION_f32) return c->f32;
    if (type == ZC_PRECISION_tf32) return part->is_product ? c->tf32 : c->f32;
    return type == ZC_PRECISION_fp8 && part->scales ? c->fp8 : c->f16;
}

/* Of reading a factor of 16 bits and writing it in 8, as part of what f32 takes. */
#define CONVERSION 0.75

/* As part of what f32 takes. */
static double size(zc_precision_type type)
{
    return zc_dtype_bits(zc_precision_dtype(type)) / 32.0;
}

static double seconds(const chip *c, const zc_precision_part *part, zc_precision_type type)
{
    double conversion = type == ZC_PRECISION_fp8 ? part->conversion * CONVERSION / c->bytes : 0;
    return fmax(part->bytes * size(type) / c->bytes, part->operations / speed(c, part, type)) +
           conversion;
}

double zc_precision_us(const zc_precision_chips *c, const zc_precision_part *part,
                       zc_precision_type type)
{
    double most = 0;
    for (int i = 0; i < c->narchs; i++)
        most = fmax(most, seconds(chip_of(c->archs[i]), part, type));
    return most * 1e6;
}

bool zc_precision_faster(const zc_precision_chips *c, const zc_precision_part *part,
                         zc_precision_type type)
{
    double us = zc_precision_us(c, part, type);
    return us < zc_precision_us(c, part, ZC_PRECISION_f32) &&
           (type != ZC_PRECISION_fp8 || us < zc_precision_us(c, part, ZC_PRECISION_f16));
}

double zc_precision_weights(const zc_precision_part *part, zc_precision_type type)
{
    return part->weights * (type == ZC_PRECISION_fp8 ? 0.25 : size(type));
}
