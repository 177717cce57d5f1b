/* Operators of com.microsoft that move data, compare it or look for it. */
#include "import/steps.h"

static zc_vid slice(zc_imp *im, zc_inode *n, zc_vid v, int64_t from, int64_t to, int64_t axis)
{
    return zc_imp_slice(im, n, v, zc_imp_ints(im, &from, 1, 1), zc_imp_ints(im, &to, 1, 1), axis);
}

static zc_vid expression(zc_imp *im, zc_inode *n, int nin, const zc_vid *in, const char *text)
{
    return zc_imp_done(im, n, zc_imp_expr(im, n, nin, in, text));
}

/* ---- ExpandDims, Pad, Unique ---- */

zc_status zc_step_ms_expand_dims(zc_imp *im, zc_inode *n)
{
    static const int64_t one[] = {1};
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    zc_vid axis = zc_imp_reshape(im, n, zc_imp_cast(im, n, n->in[1], ZC_I64), one, 1);
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Unsqueeze, 2, (zc_vid[]){n->in[0], axis});
}

/* The numbers of elements to add may be one row, the value a vector of one. */
zc_status zc_step_ms_pad(zc_imp *im, zc_inode *n)
{
    static const int64_t row[] = {-1};
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 3));
    if (zc_imp_rank(im, n->in[1]) == 2) n->in[1] = zc_imp_reshape(im, n, n->in[1], row, 1);
    if (zc_imp_rank(im, zc_imp_in(n, 2)) == 1) n->in[2] = zc_imp_reshape(im, n, n->in[2], NULL, 0);
    return im->status;
}

/* In the order in which they are found: values, their indices for each element, their numbers. */
zc_status zc_step_ms_unique(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (n->nout > 3)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "Unique has too many outputs (got %d, need 3)",
                           n->nout);
    const char *of[4] = {"", "", "", ""};
    for (int i = 0; i < n->nout; i++) of[i ? i + 1 : 0] = n->out[i];
    n->out = zc_arena_dup(n->arena, of, 4, sizeof *of);
    if (!n->out) return zc_imp_nomem(im, "outputs");
    n->nout = 4;
    zc_nid id = zc_imp_node(im, n, ZC_OP_Unique, 1, n->in, 4);
    ZC_IMP_SET(im, Unique, id, sorted, 0);
    return zc_imp_finish(im, n, id);
}

/* ---- windows ---- */

/* All windows of `size` elements along an axis, `step` apart: the axis counts them, the next one
 * their elements. */
static zc_nid windows(zc_imp *im, zc_inode *n, zc_vid x, int axis, int64_t size, int64_t step)
{
    const int64_t one = 1;
    zc_vid last = zc_imp_op2(im, n, ZC_OP_Sub,
                             zc_imp_reshape(im, n, zc_imp_sizes(im, n, x, axis, axis + 1), NULL, 0),
                             zc_imp_scalar(im, ZC_I64, (double)(size - 1)));
    const zc_vid from = zc_imp_scalar(im, ZC_I64, 0), by_one = zc_imp_scalar(im, ZC_I64, 1);
    const zc_vid starts[] = {from, last, zc_imp_scalar(im, ZC_I64, (double)step)};
    const zc_vid within[] = {from, zc_imp_scalar(im, ZC_I64, (double)size), by_one};
    zc_vid rows = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Range, 3, starts, 1));
    zc_vid columns = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Range, 3, within, 1));
    rows = zc_imp_op2(im, n, ZC_OP_Unsqueeze, rows, zc_imp_ints(im, &one, 1, 1));
    const zc_vid in[] = {x, zc_imp_op2(im, n, ZC_OP_Add, rows, columns)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gather, 2, in, 1);
    ZC_IMP_SET(im, Gather, id, axis, axis);
    return id;
}

static zc_status need_range(zc_imp *im, zc_inode *n, const char *what, int64_t got, int64_t least,
                            int64_t most)
{
    if (im->status != ZC_OK || (got >= least && got <= most)) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s out of range (got %lld, need [%lld, %lld])", what,
                       (long long)got, (long long)least, (long long)most);
}

/* The elements of a window stand along a new axis, the last. */
zc_status zc_step_ms_unfold_tensor(zc_imp *im, zc_inode *n)
{
    int64_t axis = zc_imp_take_int(im, n, "dim", -1), perm[ZC_MAX_RANK];
    const int64_t size = zc_imp_take_int(im, n, "size", 0);
    const int64_t step = zc_imp_take_int(im, n, "step", 1);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const int rank = zc_imp_need_rank(im, n, n->in[0], "its input");
    ZC_TRY(need_range(im, n, "dim", axis, -rank, rank - 1));
    if (axis < 0) axis += rank;
    const zc_dim length = zc_val(im->g, n->in[0])->type.dims[axis];
    ZC_TRY(need_range(im, n, "size", size, 1, zc_dim_is_const(length) ? length.k : INT32_MAX));
    ZC_TRY(need_range(im, n, "step", step, 1, INT32_MAX));
    zc_nid id = windows(im, n, n->in[0], (int)axis, size, step);
    if (axis == rank - 1) return zc_imp_finish(im, n, id);
    if (rank == ZC_MAX_RANK)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT, "too many axes (got %d, need at most %d)", rank,
                           ZC_MAX_RANK - 1);
    for (int i = 0; i <= rank; i++) perm[i] = i <= axis ? i : i == rank ? axis + 1 : i + 1;
    zc_vid parts = zc_imp_done(im, n, id);
    return zc_imp_finish(im, n, zc_imp_transpose(im, n, parts, perm, rank + 1));
}

/* How many elements of each window of ids[batch, length] but its last are not those at the end of
 * the row, which is filled up in front so that it has as many. */
static zc_vid differences(zc_imp *im, zc_inode *n, zc_vid ids, zc_vid grams, int64_t size)
{
    const int64_t pads[] = {0, size - 1, 0, 0}, row = 1, element = 2;
    zc_vid end = zc_imp_op2(im, n, ZC_OP_Pad, ids, zc_imp_ints(im, pads, 4, 1));
    end = slice(im, n, end, size > 1 ? 1 - size : INT64_MAX, INT64_MAX, 1);
    const zc_vid in[] = {slice(im, n, grams, 0, size - 1, 2),
                         zc_imp_op2(im, n, ZC_OP_Unsqueeze, end, zc_imp_ints(im, &row, 1, 1))};
    const zc_vid of[] = {expression(im, n, 2, in, "f32(x0 != x1)"),
                         zc_imp_ints(im, &element, 1, 1)};
    zc_nid sum = zc_imp_node(im, n, ZC_OP_ReduceSum, 2, of, 1);
    ZC_IMP_SET(im, ReduceSum, sum, keepdims, 0);
    return zc_imp_done(im, n, sum);
}

/* Where the end of a row of ids stands before in it, what followed then gets the score -inf. */
zc_status zc_step_ms_ngram_repeat_block(zc_imp *im, zc_inode *n)
{
    const int64_t size = zc_imp_take_int(im, n, "ngram_size", 0), element = 2;
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    ZC_TRY(need_range(im, n, "ngram_size", size, 1, 65536));
    ZC_TRY(need_range(im, n, "the rank of input_ids", zc_imp_rank(im, n->in[0]), 2, 2));
    zc_vid grams = zc_imp_done(im, n, windows(im, n, n->in[0], 1, size, 1));
    const zc_vid differ = differences(im, n, n->in[0], grams, size);
    const zc_vid in[] = {n->in[1],
                         zc_imp_op2(im, n, ZC_OP_Squeeze,
                                    slice(im, n, grams, size - 1, INT64_MAX, 2),
                                    zc_imp_ints(im, &element, 1, 1)),
                         expression(im, n, 1, &differ, "x0 == 0 ? f32(-inf) : f32(inf)")};
    zc_nid id = zc_imp_node(im, n, ZC_OP_ScatterElements, 3, in, 1);
    ZC_IMP_SET(im, ScatterElements, id, axis, 1);
    ZC_IMP_SET(im, ScatterElements, id, reduction, "min");
    return zc_imp_finish(im, n, id);
}

/* ---- CDist ---- */

static zc_vid squares(zc_imp *im, zc_inode *n, zc_vid x, bool keep)
{
    const int64_t axis = 1;
    zc_nid id = zc_imp_node(im, n, ZC_OP_ReduceSumSquare, 2,
                            (zc_vid[]){x, zc_imp_ints(im, &axis, 1, 1)}, 1);
    ZC_IMP_SET(im, ReduceSumSquare, id, keepdims, keep);
    return zc_imp_done(im, n, id);
}

/* Distances of the rows of both: a^2 - 2 a b + b^2, and its root. */
zc_status zc_step_ms_cdist(zc_imp *im, zc_inode *n)
{
    const char *metric = zc_imp_take_str(im, n, "metric", "sqeuclidean");
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const bool root = strcmp(metric, "euclidean") == 0;
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return zc_imp_fail(
            im, n, ZC_ERR_UNSUPPORTED,
            "metric is not supported (got '" ZC_NAME "', need euclidean or sqeuclidean)", metric);
    for (int i = 0; i < 2; i++)
        ZC_TRY(need_range(im, n, "an input's rank", zc_imp_rank(im, n->in[i]), 2, 2));
    zc_nid product = zc_imp_node(im, n, ZC_OP_FusedMatMul, 2, n->in, 1);
    ZC_IMP_SET(im, FusedMatMul, product, alpha, -2.0f);
    ZC_IMP_SET(im, FusedMatMul, product, transB, 1);
    const zc_vid in[] = {zc_imp_done(im, n, product), squares(im, n, n->in[0], true),
                         squares(im, n, n->in[1], false)};
    return zc_imp_finish(
        im, n, zc_imp_expr(im, n, 3, in, root ? "sqrt(abs(x0 + x1 + x2))" : "abs(x0 + x1 + x2)"));
}

/* ---- CropAndResize ---- */

/* Where `count` samples of boxes[r, 4] stand, in pixels: [r, count]. They begin at column `at`. */
static zc_vid samples(zc_imp *im, zc_inode *n, zc_vid boxes, int at, int64_t count, zc_vid farthest)
{
    const zc_vid range[] = {zc_imp_scalar(im, ZC_I64, 0), zc_imp_scalar(im, ZC_I64, (double)count),
                            zc_imp_scalar(im, ZC_I64, 1)};
    zc_vid steps = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Range, 3, range, 1));
    const zc_vid in[] = {slice(im, n, boxes, at, at + 1, 1), slice(im, n, boxes, at + 2, at + 3, 1),
                         farthest, zc_imp_cast(im, n, steps, ZC_F32),
                         zc_imp_scalar(im, ZC_F32, (double)(count - 1))};
    if (count == 1) return expression(im, n, 3, in, "0.5 * (x0 + x1) * x2");
    return expression(
        im, n, 5, in,
        "x3 == 0 ? x0 * x2 : x3 == x4 ? x1 * x2 : x0 * x2 + x3 * ((x1 - x0) * x2 / x4)");
}

typedef struct crop {
    zc_vid pixels;               /* rows of channels */
    zc_vid image, height, width; /* which image each box is of: [r, 1, 1]; its sizes */
    zc_vid bottom, right;        /* the farthest samples in it */
    zc_vid y, x;                 /* where samples stand: [r, h, 1, 1], [r, 1, w, 1] */
    zc_vid row, column;          /* the same within the image: [r, h, 1], [r, 1, w] */
} crop;

static zc_vid with_axes(zc_imp *im, zc_inode *n, zc_vid v, const int64_t *axes, int count)
{
    return zc_imp_op2(im, n, ZC_OP_Unsqueeze, v, zc_imp_ints(im, axes, count, 1));
}

/* Samples outside of the image are not looked up. */
static zc_vid within(zc_imp *im, zc_inode *n, zc_vid at, zc_vid farthest)
{
    return expression(im, n, 2, (zc_vid[]){at, farthest}, "x0 >= 0 && x0 <= x1 ? x0 : 0");
}

static zc_status read_crop(zc_imp *im, zc_inode *n, const zc_ints *size, crop *c)
{
    static const int64_t last[] = {0, 2, 3, 1}, behind[] = {1, 2}, y_axes[] = {2, 3},
                         x_axes[] = {1, 3};
    const zc_vid images = n->in[0], boxes = n->in[1];
    zc_nid pixels =
        zc_imp_node(im, n, ZC_OP_Flatten, 1,
                    (zc_vid[]){zc_imp_done(im, n, zc_imp_transpose(im, n, images, last, 4))}, 1);
    ZC_IMP_SET(im, Flatten, pixels, axis, 3);
    c->pixels = zc_imp_done(im, n, pixels);
    c->image = with_axes(im, n, zc_imp_cast(im, n, n->in[2], ZC_I64), behind, 2);
    c->height = zc_imp_sizes(im, n, images, 2, 3);
    c->width = zc_imp_sizes(im, n, images, 3, 4);
    c->bottom = expression(im, n, 1, &c->height, "f32(x0 - 1)");
    c->right = expression(im, n, 1, &c->width, "f32(x0 - 1)");
    zc_vid y = samples(im, n, boxes, 0, size->v[0], c->bottom);
    zc_vid x = samples(im, n, boxes, 1, size->v[1], c->right);
    c->y = with_axes(im, n, y, y_axes, 2);
    c->x = with_axes(im, n, x, x_axes, 2);
    c->row = with_axes(im, n, within(im, n, y, c->bottom), y_axes, 1);
    c->column = with_axes(im, n, within(im, n, x, c->right), x_axes, 1);
    return im->status;
}

/* The pixels [r, h, w, channels] at whole rows and columns. */
static zc_vid look_up(zc_imp *im, zc_inode *n, const crop *c, const char *text)
{
    const zc_vid in[] = {c->image, c->height, c->row, c->width, c->column};
    zc_vid index = expression(im, n, 5, in, text);
    return zc_imp_op2(im, n, ZC_OP_Gather, c->pixels, index);
}

#define PIXEL(row, column) "(x0 * x1 + i64(" row ")) * x3 + i64(" column ")"
#define NEAREST(x)         x " - floor(" x ") >= 0.5 ? ceil(" x ") : floor(" x ")"
#define INSIDE             "x0 >= 0 && x0 <= x1 && x2 >= 0 && x2 <= x3 ? "

static zc_vid crop_nearest(zc_imp *im, zc_inode *n, const crop *c, zc_vid outside)
{
    const zc_vid in[] = {c->y,    c->bottom,
                         c->x,    c->right,
                         outside, look_up(im, n, c, PIXEL(NEAREST("x2"), NEAREST("x4")))};
    return expression(im, n, 6, in, INSIDE "x5 : x4");
}

static zc_vid crop_bilinear(zc_imp *im, zc_inode *n, const crop *c, zc_vid outside)
{
    const zc_vid in[] = {c->y,
                         c->bottom,
                         c->x,
                         c->right,
                         outside,
                         look_up(im, n, c, PIXEL("floor(x2)", "floor(x4)")),
                         look_up(im, n, c, PIXEL("floor(x2)", "ceil(x4)")),
                         look_up(im, n, c, PIXEL("ceil(x2)", "floor(x4)")),
                         look_up(im, n, c, PIXEL("ceil(x2)", "ceil(x4)"))};
    return expression(im, n, 9, in,
                      "a = x2 - floor(x2); t = x5 + (x6 - x5) * a; b = x7 + (x8 - x7) * a; " INSIDE
                      "t + (b - t) * (x0 - floor(x0)) : x4");
}

/* Images, boxes, which image each is of, and the size that all get. */
static zc_status crop_inputs(zc_imp *im, zc_inode *n, zc_ints *size)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 4, 4));
    ZC_TRY(need_range(im, n, "the rank of the images", zc_imp_rank(im, n->in[0]), 4, 4));
    ZC_TRY(need_range(im, n, "the rank of the boxes", zc_imp_rank(im, n->in[1]), 2, 2));
    ZC_TRY(need_range(im, n, "the rank of the indices", zc_imp_rank(im, n->in[2]), 1, 1));
    const zc_dim corners = zc_val(im->g, n->in[1])->type.dims[1];
    if (zc_dim_is_const(corners)) ZC_TRY(need_range(im, n, "a box's numbers", corners.k, 4, 4));
    if (!zc_imp_known_ints(im, n, n->in[3], size))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "crop_size must be a constant");
    ZC_TRY(need_range(im, n, "the number of sizes", size->n, 2, 2));
    for (int i = 0; i < 2; i++) ZC_TRY(need_range(im, n, "crop_size", size->v[i], 1, INT32_MAX));
    return ZC_OK;
}

/* Boxes (y1, x1, y2, x2 of the image's sizes) of images, sampled at as many points each. */
zc_status zc_step_ms_crop_and_resize(zc_imp *im, zc_inode *n)
{
    static const int64_t first[] = {0, 3, 1, 2};
    zc_ints size;
    crop c;
    const double outside = zc_imp_take_float(im, n, "extrapolation_value", 0);
    const char *mode = zc_imp_take_str(im, n, "mode", "bilinear");
    ZC_TRY(crop_inputs(im, n, &size));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const bool nearest = strcmp(mode, "nearest") == 0;
    if (!nearest && strcmp(mode, "bilinear") != 0)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "mode is unknown (got '" ZC_NAME "', need bilinear or nearest)", mode);
    ZC_TRY(read_crop(im, n, &size, &c));
    const zc_vid fill = zc_imp_scalar(im, ZC_F32, outside);
    zc_vid y = nearest ? crop_nearest(im, n, &c, fill) : crop_bilinear(im, n, &c, fill);
    ZC_TRY(im->status);
    return zc_imp_finish(im, n, zc_imp_transpose(im, n, y, first, 4));
}
