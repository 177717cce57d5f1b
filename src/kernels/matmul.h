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
    int a, b, c;      /* inputs; c is -1 without one, or when beta is 0 */
    int scale;        /* input of the columns' scales; 0: none */
    bool flat;        /* A's leading axes are all rows (Linear) */
    bool norm;        /* its rows are normalised afterwards (LinearNorm) */
    int gate, gate_c; /* inputs, as b and c, of the product that gates it (GatedLinear); 0: none */
    bool trans_a, trans_b, trans_batch_a, trans_batch_b;
    bool a_along_k, b_along_k; /* is the summed axis the contiguous one? */
    float alpha, beta;
    const char *activation; /* NULL: none */
    zc_floats activation_params;
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
/* Normalises the rows of p->partial: entry 1. */
zc_status zc_matmul_launch_norm(zc_launch *l, const struct zc_gemm_params *p);
/* Room for the sums of so many parts. */
zc_status zc_matmul_partial_sums(zc_launch *l, const zc_matmul *mm, int64_t splits,
                                 size_t sum_bytes, struct zc_gemm_params *p);
/* A product by the configuration that zc_gen_matmul_tiles chose; vector_bytes: of an aligned piece
 * of a tile; sum_bytes: of one sum. */
zc_status zc_matmul_launch(zc_launch *l, int vector_bytes, size_t sum_bytes);

/* Which inputs of MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, and the first of two
 * convolutions (zc_conv_has_halves), are what; -1: it has none. */
typedef struct zc_quant_roles {
    int in[ZC_GQ_OPERANDS]; /* as abi/gemm_quant.h names them */
    int y_scale, y_zero, bias;
} zc_quant_roles;

zc_quant_roles zc_quant_roles_of(zc_op op);
/* The same of the second one, whose A may be what the first one gives and no input; false: there is
 * none. */
bool zc_quant_second_of(zc_op op, zc_quant_roles *out);
/* Has the step zero points, in input i, that are not certain to be 0? */
bool zc_gen_zero_point(const zc_gen *g, int i);
/* Can B's columns be the products' rows (Z_CROSSED), in sums of so many: bytes, one scale of A, no
 * zero points? */
bool zc_gen_quant_crosses(const zc_gen *g, int64_t depth);
/* Z_SMALL_SCALES: are sums of 32 bits and a bias less than 2^31 when they are scaled? */
bool zc_gen_small_scales(zc_gen *g);
/* The words of scales by which sums of so many products become bytes by whole numbers
 * (op/requant.h), of both convolutions where there are two; 0: they do not. */
int zc_gen_quant_wholes(const zc_gen *g, int64_t depth);
/* Z_SCALES_CONSTANT: scales, zero points and biases are constants of the plan; Z_WHOLES: those
 * words. */
void zc_gen_quant_factors(zc_gen *g, int64_t depth);
/* QLinearConv: what zc/quant_channel.cuh needs, but for Z_SMALL_SCALES, for sums of so many
 * products. */
void zc_gen_quant_channels(zc_gen *g, int64_t depth);
/* The header that zc/gemm_quant.cuh describes, B along the summed axis or not; may decline. */
zc_status zc_gen_quant_spec(zc_gen *g, bool b_along_k);
/* A sum of so many products of 8-bit numbers, each less its zero point, fits 32 bits. */
enum { ZC_GQ_DEPTH_MOST = 33025 }; /* 2^31 / 255^2 */
/* MatMulInteger and QLinearMatMul: sizes and parameters, with nothing said about alignment. */
zc_status zc_matmul_quant(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                          struct zc_gemm_quant_params *p);
/* zc_gq_general. */
zc_status zc_matmul_launch_general(zc_launch *l, const zc_matmul *mm,
                                   const struct zc_gemm_quant_params *p);

/* May products of f32 round their factors to tf32? */
bool zc_gen_rounds_factors(const zc_gen *g);
/* The step's form; declines when its ranks are not known. */
zc_status zc_gen_matmul_form(zc_gen *g, zc_matmul_form *form);
/* Sizes as they are known when a kernel is chosen, -1 where they are not. m is a range (of
 * zc_gen_size), with the rows that zc_matmul_simplify will find. */
enum { ZC_MM_FAR = 4096 }; /* rows that stand for a range without an end */
typedef struct zc_matmul_sizes {
    int64_t m_low, m_high, n, k, batch;
} zc_matmul_sizes;
zc_matmul_sizes zc_gen_matmul_sizes(zc_gen *g, const zc_matmul_form *form);
/* zc_gen_size of the rows of any product. */
void zc_gen_matmul_rows(zc_gen *g, const zc_dim *factors, int n, int64_t *low, int64_t *high);
/* The form and sizes of a product of 8-bit integers whose sums fit 32 bits; may decline. */
zc_status zc_gen_matmul_bytes(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s);

/* The configuration of products that are no pipeline of Hopper: `rows` at most of the kernels for
 * few, 0: tiles; the `side` of a tile; `split`: the summed axis goes in parts whose sums entry 1
 * adds up (never, always, or where there are few tiles). */
enum { ZC_MM_ROWS, ZC_MM_SIDE, ZC_MM_SPLIT };
enum { ZC_MM_SPLIT_NEVER, ZC_MM_SPLIT_ALWAYS, ZC_MM_SPLIT_FEW };
typedef struct zc_matmul_tiling {
    int small, large; /* sides */
    int least;        /* rows and columns that large tiles need more than */
    size_t sum_bytes;
} zc_matmul_tiling;
/* The side of tiles by these sizes; the one candidate there is to ask for is the large one. */
int zc_gen_matmul_side(const zc_gen *g, const zc_matmul_sizes *s, const zc_matmul_tiling *t);
void zc_gen_matmul_tiles(zc_gen *g, const zc_matmul_form *form, const zc_matmul_tiling *t);

/* The header that zc/gemm.cuh describes. */
zc_status zc_gen_matmul_spec(zc_gen *g, const zc_matmul_form *form);

#endif
