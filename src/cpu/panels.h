/* f32 products of rows by packed matrices with AVX2. A result is one chain of sums from the bias
 * on, tap by tap: how the work is divided changes no bit. */
#ifndef ZC_CPU_PANELS_H
#define ZC_CPU_PANELS_H

#include "cpu/kernel.h"

enum { ZC_PANEL = 16, ZC_PANEL_BLOCK = 64 }; /* columns; rows that are multiplied at a time */

/* A matrix a group, of taps * depth rows and n columns, which becomes panels of ZC_PANEL columns.
 * Steps are those of the constant's elements. */
typedef struct zc_panel_matrix {
    int64_t groups, n, depth, taps;
    int64_t group_step, column_step, depth_step, tap_step;
} zc_panel_matrix;

/* A constant of the plan in this form. */
zc_status zc_panels_packed(zc_kctx *k, int input, const zc_panel_matrix *m, const void **out);

/* y = act(x w + bias + residual), of one group. */
typedef struct zc_panel_product {
    const float *w; /* the group's panels, as packed */
    int64_t n, depth, taps;
    const float *bias;     /* NULL: 0 */
    const float *residual; /* where y's first result has its own, or NULL; may be y */
    bool relu;
    float *y;
    int64_t ldy; /* also the residual's */
} zc_panel_product;

/* Are products of constants made this way? Where vectors are wider, oneDNN's are faster. */
bool zc_panels_wanted(void);

static inline int64_t zc_panels_of(int64_t n)
{
    return (n + ZC_PANEL - 1) / ZC_PANEL;
}

/* Rows [0, m) of at most ZC_PANEL_BLOCK by panels [from, to). Tap t of row r has its `depth` floats
 * at x[t * ZC_PANEL_BLOCK + r] + shift. */
void zc_panels_multiply(const zc_panel_product *p, int64_t m, const float *const *x, int64_t shift,
                        int64_t from, int64_t to);

#endif
