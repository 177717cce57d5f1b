/* A small model with one symbolic dimension: y[n,3] = Relu(x[n,4] w + b), and s = Shape(x). */
#ifndef ZC_TESTS_SMALL_MODEL_H
#define ZC_TESTS_SMALL_MODEL_H

#include "support/pb.h"

static inline void small_io(zc_buf *graph, uint32_t field, const char *name, int elem,
                            int64_t columns)
{
    zc_buf shape = {0}, tensor = {0}, type = {0}, value = {0}, rows = {0}, cols = {0};
    pb_str(&rows, DIM_PARAM, "n");
    pb_msg(&shape, SHAPE_DIM, &rows);
    pb_int(&cols, DIM_VALUE, columns);
    pb_msg(&shape, SHAPE_DIM, &cols);
    pb_int(&tensor, TYPE_TENSOR_ELEM, elem);
    pb_msg(&tensor, TYPE_TENSOR_SHAPE, &shape);
    pb_msg(&type, TYPE_TENSOR, &tensor);
    pb_str(&value, VALUE_NAME, name);
    pb_msg(&value, VALUE_TYPE, &type);
    pb_msg(graph, field, &value);
}

static inline void small_weights(zc_buf *graph, const char *name, int rank, const int64_t *dims,
                                 const float *v, size_t n)
{
    zc_buf t = {0};
    for (int i = 0; i < rank; i++) pb_int(&t, TENSOR_DIMS, dims[i]);
    pb_int(&t, TENSOR_DATA_TYPE, 1);
    pb_str(&t, TENSOR_NAME, name);
    pb_bytes(&t, TENSOR_RAW_DATA, v, n * sizeof *v);
    pb_msg(graph, GRAPH_INITIALIZER, &t);
}

static const float small_w[12] = {0.5f, -1, 2, 1, 0.25f, -0.5f, -2, 1.5f, 1, 0.125f, 3, -1};
static const float small_b[3] = {0.5f, -0.25f, 1};

static inline void small_model(zc_buf *model)
{
    zc_buf graph = {0};
    static const int64_t two = 2;
    pb_str(&graph, GRAPH_NAME, "small");
    small_weights(&graph, "w", 2, (int64_t[]){4, 3}, small_w, 12);
    small_weights(&graph, "b", 1, (int64_t[]){3}, small_b, 3);
    pb_node(&graph, "MatMul", "x", "w", "xw");
    pb_node(&graph, "Add", "xw", "b", "xwb");
    pb_node(&graph, "Relu", "xwb", NULL, "y");
    pb_node(&graph, "Shape", "x", NULL, "s");
    small_io(&graph, GRAPH_INPUT, "x", 1, 4);
    small_io(&graph, GRAPH_OUTPUT, "y", 1, 3);
    pb_value(&graph, GRAPH_OUTPUT, "s", 7, 1, &two);
    pb_model(model, 9, 20, &graph);
}

/* What row r of y must be for row r of x. */
static inline void small_expect(const float x[4], float y[3])
{
    for (int c = 0; c < 3; c++) {
        double sum = small_b[c];
        for (int k = 0; k < 4; k++) sum += (double)x[k] * small_w[k * 3 + c];
        y[c] = sum > 0 ? (float)sum : 0;
    }
}

#endif
