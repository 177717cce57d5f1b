/* Weights of a convolution with groups as a band of a matrix: of each `columns` results the
 * channels that they see begin at one place, and lie in as many weights as the most of them need;
 * those of other groups are zero. So groups of any width are products of whole tiles. */
#ifndef ZC_OP_CONV_BAND_H
#define ZC_OP_CONV_BAND_H

#include <stdint.h>

typedef struct zc_conv_band {
    int64_t columns, groups, in, out; /* channels of a group */
    int64_t piece;                    /* channels in 16 bytes, of which each place is a multiple */
} zc_conv_band;

/* The place of the results of which `column` is one. */
static inline int64_t zc_conv_band_from(const zc_conv_band *b, int64_t column)
{
    int64_t group = column / b->columns * b->columns / b->out;
    return group * b->in / b->piece * b->piece;
}

/* Channels in the weights: of as many groups as such results may lie in, wherever they begin. */
static inline int64_t zc_conv_band_depth(const zc_conv_band *b)
{
    const int64_t piece = b->piece;
    int64_t step = b->columns, rest = b->out; /* the greatest common divisor */
    while (rest) {
        int64_t next = step % rest;
        step = rest;
        rest = next;
    }
    int64_t groups = (b->columns - step + b->out - 1) / b->out + 1;
    int64_t depth = (groups < b->groups ? groups : b->groups) * b->in;
    int64_t apart = b->columns % b->out ? b->in : b->columns / b->out * b->in; /* or a multiple */
    return (depth + piece - 1 + (apart % piece ? piece - 1 : 0)) / piece * piece;
}

/* The columns at once, of which all of Hopper's kernels have tiles. Of 16 bits those for which less
 * is read: lines of 64 channels, of 128 pixels and of the columns. Of bytes, whose lines have 128
 * channels and whose results leave by as many, there is no choice. */
static inline int64_t zc_conv_band_columns(const zc_conv_band *of)
{
    enum { NARROW = 64, WIDE = 128, PIXELS = 128, LINE = 64, BYTES = 16 };
    if (of->piece == BYTES) return of->out * of->groups > NARROW ? WIDE : NARROW;
    zc_conv_band narrow = *of, wide = *of;
    narrow.columns = NARROW;
    wide.columns = WIDE;
    const int64_t one = (zc_conv_band_depth(&narrow) + LINE - 1) / LINE * (PIXELS + NARROW);
    const int64_t other = (zc_conv_band_depth(&wide) + LINE - 1) / LINE * (PIXELS + WIDE);
    return of->out * of->groups > NARROW && other * NARROW < one * WIDE ? WIDE : NARROW;
}

#endif
