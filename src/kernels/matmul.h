/* Matrix products as the device kernels see them: which operands and flags an operation has (known
 * when a kernel is specialised), and sizes and strides (from concrete shapes). */
#ifndef ZC_KERNELS_MATMUL_H
#define ZC_KERNELS_MATMUL_H

#include "abi/gemm_quant.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* An operand's axes by their place in a product: neighbouring axes that are its lines (A's rows,
 * B's columns) and the summed ones, and its axis for each batch axis of the result (-1: none). */
typedef struct zc_matmul_side {
    int line_first, line_count, depth_first, depth_count;
    int batch[ZC_GEMM_BATCH];
} zc_matmul_side;

/* What operation, attributes and ranks decide. */
typedef struct zc_matmul_form {
    int a, b, c; /* inputs; c is -1 without one, or when beta is 0 */
    bool flat;   /* A's leading axes are all rows (Linear) */
    bool norm;   /* its rows are normalised afterwards (LinearNorm) */
    bool trans_a, trans_b, trans_batch_a, trans_batch_b;
    bool a_along_k, b_along_k; /* is the summed axis the contiguous one? */
    float alpha, beta;
    const char *activation; /* NULL: none */
    float activation_params[3];
    int activation_count;
    bool by_axes; /* Einsum: the next three say what is what */
    int axes_batch;
    zc_matmul_side side_a, side_b, side_y; /* of y: lines are rows */
} zc_matmul_form;

/* ranks[nin]: of the inputs, -1 for an absent one. False: the step is no matrix product (an
 * Einsum). */
bool zc_matmul_form_of(const zc_op_info *info, const void *attrs, int nin, const int *ranks,
                       zc_matmul_form *out);
/* The same of a step to launch. */
zc_status zc_matmul_form_launch(zc_launch *l, zc_matmul_form *out);
/* An equation of two operands; ranks[2]. */
bool zc_matmul_form_einsum(const char *equation, const int *ranks, zc_matmul_form *form);

/* Are integers scaled, so that sums need 64 bits and alpha and beta apply as doubles? */
bool zc_matmul_scales_ints(const zc_matmul_form *form, zc_dtype dtype);

/* Operands that follow A's rows (ZC_MM_A and its parameters, ZC_MM_Y) or B's columns; in the order
 * of abi/gemm_quant.h. */
enum {
    ZC_MM_A,
    ZC_MM_A_SCALE,
    ZC_MM_A_ZERO,
    ZC_MM_B,
    ZC_MM_B_SCALE,
    ZC_MM_B_ZERO,
    ZC_MM_Y,
    ZC_MM_VIEWS
};

/* Strides in elements, 0 where it broadcasts. */
typedef struct zc_matmul_view {
    int64_t line, depth; /* along rows (columns), along the summed axis */
    int64_t batch[ZC_GEMM_BATCH];
} zc_matmul_view;

/* batch is 0 when y has no elements; y's columns are neighbours. */
typedef struct zc_matmul {
    int64_t m, n, k, batch;
    int batch_rank;
    int64_t batch_dims[ZC_GEMM_BATCH];
    zc_matmul_view view[ZC_MM_VIEWS];
    int64_t c_row, c_col;
} zc_matmul;

/* Also checks that the shapes fit each other. Views of parameters (scale, zero point): see
 * zc_matmul_param. */
zc_status zc_matmul_of(zc_launch *l, const zc_matmul_form *form, zc_matmul *out);
/* Input i as a parameter of A or B: one element, one a line, or of its operand's rank. Before
 * zc_matmul_simplify. */
zc_status zc_matmul_param(zc_launch *l, const zc_matmul_form *form, int i, int view, zc_matmul *mm);
/* Joins batch axes, and batch axes that B does not have with A's rows. */
void zc_matmul_simplify(const zc_matmul_form *form, zc_matmul *mm);

/* Do pieces of `bytes` bytes along operand t's contiguous axis begin at multiples of it? */
bool zc_matmul_aligned(const zc_tensor *t, const zc_matmul_view *v, const zc_matmul *mm, int64_t ld,
                       int bytes);
/* Parameters of the gemm kernels; vector_bytes: of an aligned piece. */
zc_status zc_matmul_params(const zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                           int vector_bytes, struct zc_gemm_params *p);
/* Blocks for tiles of this size: tiles in x, batch in z. */
zc_status zc_matmul_grid(zc_launch *l, const zc_matmul *mm, int height, int width, zc_dim3 *grid);
/* How tiles of a product are issued: kernel `entry`, or where there are few tiles and the sums are
 * long, kernel `split_entry` (-1: none) for parts of the summed axis, then entry 6, their sum. */
typedef struct zc_matmul_tiles {
    int entry, split_entry;
    zc_dim3 grid;
    uint32_t threads, smem;
    size_t sum_bytes; /* of one sum */
} zc_matmul_tiles;
/* form->norm: then entry 7, which normalises the rows. */
zc_status zc_matmul_launch_tiles(zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                                 const zc_matmul_tiles *tiles, struct zc_gemm_params *p);
/* Entry 7 of form->norm: normalises the rows of p->partial. */
zc_status zc_matmul_launch_norm(zc_launch *l, const struct zc_gemm_params *p);
/* Room for the sums of so many parts. */
zc_status zc_matmul_partial_sums(zc_launch *l, const zc_matmul *mm, int64_t splits,
                                 size_t sum_bytes, struct zc_gemm_params *p);
/* The kernel for m <= ZC_GEMM_SMALL_M rows: zc_gemv<1>, <4>, <8> are entries first to first + 2. */
zc_status zc_matmul_launch_small(zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                                 int first, size_t sum_bytes);

/* MatMulInteger and QLinearMatMul: sizes and parameters, with nothing said about alignment. */
zc_status zc_matmul_quant(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                          struct zc_gemm_quant_params *p);
/* zc_gq_general as entry `entry`. */
zc_status zc_matmul_launch_general(zc_launch *l, int entry, const zc_matmul *mm,
                                   const struct zc_gemm_quant_params *p);

/* The step's form; declines when its ranks are not known. */
zc_status zc_gen_matmul_form(zc_gen *g, zc_matmul_form *form);
/* The header that zc/gemm.cuh describes. */
zc_status zc_gen_matmul_spec(zc_gen *g, const zc_matmul_form *form);

#endif
