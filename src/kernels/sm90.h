/* What the families on the pipeline of zc/gemm_sm90.cuh share. */
#ifndef ZC_KERNELS_SM90_H
#define ZC_KERNELS_SM90_H

#include "abi/gemm_quant_sm90.h"
#include "abi/gemm_sm90.h"
#include "kernels/matmul.h"

enum {
    ZC_SM90_THREADS = 384, /* but of tiles of ZC_SM90_TALL rows, which three warpgroups share */
    ZC_SM90_TALL = 192,
    ZC_SM90_DEPTH = 64,                  /* of a stage, of 16 bits: a line */
    ZC_SM90_LINE = 128,                  /* bytes */
    ZC_SM90_PANEL = 64 * ZC_SM90_LINE,   /* 64 lines */
    ZC_SM90_RESULTS = 2 * ZC_SM90_PANEL, /* panels that a warpgroup's results go through */
    ZC_SM90_LAID = 64 * (64 * 4 + 16),   /* ... or that threads store, f32 */
    ZC_SM90_SMEM = 232448,               /* of a block at most */
    ZC_SM90_RESERVED = 1024,             /* ... beside which each takes so many */
    ZC_SM90_STAGES = 8,                  /* at most */
    ZC_SM90_TALL_FIXED = 2,              /* microseconds of large tiles beside their estimates */
    ZC_SM90_ROWS = 65,                   /* fewer leave most of a tile empty */
    ZC_SM90_ROWS_ALONE = 9               /* ... but no other family for Hopper serves them */
};

/* Of e4m3 the tensor cores align what they add to the largest and keep some 14 binary digits, so
 * that each of their sums of 32 products may cut off 2^-14 of a result. Up to so many products that
 * stays below 2^-9, where e4m3's own roundings are 2^-4 of a factor; longer sums are added up in
 * f32. */
enum { ZC_SM90_F8_SHORT = 1024 };

/* The numbers of a configuration of gemm_sm90.cu, and their names. */
enum {
    ZC_SM90_TILE_M,
    ZC_SM90_TILE_N,
    ZC_SM90_STAGES_SET,
    ZC_SM90_CLUSTER,
    ZC_SM90_PINGPONG,
    ZC_SM90_RASTER,
    ZC_SM90_FUSED_TILE,
    ZC_SM90_PARTS,
    ZC_SM90_CROSSED /* of bytes by patches or of matrices */
};
#define ZC_SM90_NUMBERS                                                                            \
    "tile_m", "tile_n", "stages", "cluster", "pingpong", "raster", "fused_tile", "parts"
#define ZC_SM90_CONFIG       ZC_SM90_NUMBERS, NULL
#define ZC_SM90_BYTES_CONFIG ZC_SM90_NUMBERS, "crossed", NULL

typedef struct zc_sm90_problem {
    int64_t m, n, steps, items; /* steps of the summed axis */
    int sm_count;
    int fused_tile; /* the fused work's operand that comes as tiles; -1: none */
    int piece;      /* zc_sm90_piece of the result */
    bool norm;
    bool gated;       /* two matrices, of whose products a tile has the same places */
    bool uneven;      /* tiles' widths may be no multiples of a panel's */
    bool across;      /* B's lines lie across the summed axis */
    bool moments;     /* of rows are applied or made */
    bool parts;       /* blocks may share the summed axis */
    int band;         /* tiles have so many columns (op/conv_band.h); 0: as many as are best */
    int64_t phase;    /* no tile has columns of two parts of so many; 0: it may */
    bool scales;      /* of columns are applied */
    bool stepwise;    /* sums of two steps apart (Z_STEPWISE) */
    int column_words; /* of 8-bit integers: words of sums that each column has; 0: other types */
    bool unscaled;    /* their sums are the results */
    bool pair;        /* of two products of a tile the first one's results wait in a panel */
    bool crossed;     /* of 8-bit integers: the products' rows may be B's columns */
} zc_sm90_problem;

/* The configuration: the candidate that is asked for, or the best by cost that is not refused; may
 * decline. */
zc_status zc_gen_sm90(zc_gen *g, const zc_sm90_problem *p);
/* gemm_sm90.cu's specialisation for a step whose form and rows it serves; may decline. */
zc_status zc_gen_sm90_product(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s);
/* A matrix of `lines` of n elements for each item of the batch, and the box of a panel. Pitches are
 * in elements. */
zc_tensor_box zc_sm90_box(const void *data, zc_dtype dtype, int64_t n, int64_t lines, int64_t items,
                          int64_t pitch, int64_t item);
/* Entry 0 for as many tiles as the result has, with the map of the fused work's tile. */
zc_status zc_launch_sm90(zc_launch *l, struct zc_gemm_sm90_params *p);
/* The order of its tiles, and its blocks. */
zc_status zc_sm90_grid(zc_launch *l, struct zc_gemm_sm90_params *p, zc_dim3 *grid);
/* The order of so many tiles below and beside each other, in groups of so many lines. */
struct zc_gemm_order zc_sm90_order(int64_t down, int64_t across, int64_t lines);

/* Are lines of n elements certain to be multiples of 16 bytes, as the copy engine needs them? */
bool zc_sm90_in_pieces(int64_t n);
/* The most bytes, 16 at most, that divide such a result's rows where threads store them; 0: the
 * copy engine does. */
int zc_sm90_piece(int64_t n, zc_dtype dtype);
/* Does the copy engine store such results, in a configuration of gemm_sm90.cu? Codes of 8 bits by
 * panels of 128 columns. */
bool zc_sm90_sends(int64_t n, zc_dtype dtype, const int64_t *config);
/* The map of such a result. */
zc_status zc_sm90_y_map(zc_launch *l, struct zc_gemm_sm90_params *p);
/* The same of results of products of 8-bit integers, whose bytes the copy engine stores, too. */
int zc_sm90_byte_piece(int64_t n, zc_dtype dtype);
/* Z_DEALT of gemm_quant_sm90.cu for a result of n columns; 0: they are not dealt out. */
int zc_sm90_dealt(int64_t n, zc_dtype y, const int64_t *config);
void zc_gen_dealt(zc_gen *g, const zc_sm90_problem *p);
/* The same where products may be crossed: then ZC_SM90_CROSSED_BY. */
int zc_sm90_bytes_dealt(int64_t n, zc_dtype y, const int64_t *config);
/* Rows of a warpgroup's tile whose products are crossed. */
int zc_sm90_crossed_rows(const int64_t *config);
/* The box of so many lines of B ([k, n, batch]), dealt out by so many columns, or not. */
enum { ZC_SM90_CROSSED_BY = 16 };
void zc_sm90_deal(zc_tensor_box *b, int lines, int dealt);
/* Of the kernels for few rows, with n columns in tiles: blocks that share the summed axis have one
 * tile each, others as many as there are, where so many blocks have a place. */
int64_t zc_sm90_gemv_blocks(int64_t n, int cols, int parts, int64_t places);
/* The header's part about the types of A and B. */
void zc_gen_sm90_factors(zc_gen *g, zc_dtype a, zc_dtype b);
/* What every such product needs, in part written to the header; may decline. */
zc_status zc_gen_sm90_form(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s);
/* The same of products with so many rows as the family serves, and whole rows of the result. */
zc_status zc_gen_sm90_few(zc_gen *g, int family, zc_matmul_form *form, zc_matmul_sizes *s);
/* Declines a result whose rows are not in pieces; too few rows for tiles of 128. */
zc_status zc_gen_sm90_whole_rows(zc_gen *g, const zc_matmul_sizes *s);
zc_status zc_gen_sm90_tall(zc_gen *g, const zc_matmul_sizes *s);
/* Parts of the models of cost. Bytes of shared memory that gemm_quant_sm90.cu has beside its ring;
 * columns of a panel by which the copy engine stores bytes; can it store tiles of so many columns;
 * elements of results a cycle; cycles of a block's tiles, of so many of products and of results
 * each. */
int zc_sm90_byte_smem(const zc_sm90_problem *p, int tile_m, int tile_n, bool pingpong);
int zc_sm90_byte_panel(int64_t tile_n);
bool zc_sm90_panels_fit(const zc_sm90_problem *p, int tile_n);
double zc_sm90_finish(const zc_sm90_problem *p);
double zc_sm90_cycles(const zc_sm90_problem *p, bool pingpong, int64_t tiles, double products,
                      double results);
/* What the best configuration is held to take, beyond what a launch takes anyhow. */
double zc_sm90_us(const zc_sm90_problem *p);
/* The same of a step that gemm_sm90 would serve. */
double zc_gen_gemm_sm90_us(zc_gen *g, const zc_matmul_form *form, const zc_matmul_sizes *s);
/* Of the batch, as far as it is certain. */
int64_t zc_gen_sm90_items(zc_gen *g, const zc_matmul_form *f);
/* Bytes of shared memory that each of so many blocks on a multiprocessor has. */
int zc_sm90_smem(int shares);
/* As many stages, of so many lines of A and of B, as fit beside `other` bytes. */
int zc_sm90_stages(int tile_m, int b_lines, uint32_t other);

/* A step's form, sizes and parameters; mm->batch 0: there is nothing to do. */
zc_status zc_sm90_operands(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                           struct zc_gemm_params *p);
/* Maps of A and B in p->g, and items: a box has `rows` of A, `b_rows` lines of B, or these are
 * dealt out. */
zc_status zc_sm90_maps(zc_launch *l, const zc_matmul_form *f, const zc_matmul *mm, int rows,
                       int b_rows, int dealt, struct zc_gemm_sm90_params *p);
/* The map of an operand as B lies, of which p has the sizes. */
zc_status zc_sm90_b_map(zc_launch *l, const zc_matmul_form *f, int input, int lines, int dealt,
                        const struct zc_gemm_sm90_params *p, zc_tensor_map *out);
/* The map of an operand (rows of a tile) or a result (64) of y's form; pitch: elements from row to
 * row. */
zc_status zc_sm90_like_y(zc_launch *l, const struct zc_gemm_sm90_params *p, const void *data,
                         zc_dtype dtype, int64_t pitch, int rows, zc_tensor_map *out);
/* What gemm_quant_sm90.cu's header has beside the configuration and the factors. */
zc_status zc_gen_quant_sm90_spec(zc_gen *g, const zc_sm90_problem *p);
/* The map of results that the copy engine stores. */
zc_status zc_sm90_put_bytes(zc_launch *l, struct zc_gemm_quant_sm90_params *p);

#endif
