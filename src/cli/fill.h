/* zc fill: completing a model whose external weights are missing. cmd_fill.c is the command;
 * fill_tensors.c finds the external tensors and their uses, fill_forms.c decides from the uses what
 * values they get, fill_values.c makes those, fill_files.c writes the files. */
#ifndef ZC_CLI_FILL_H
#define ZC_CLI_FILL_H

#include "base/file.h"
#include "base/mem.h"
#include "cli/progress.h"
#include "import/load.h"
#include "op/dtype.h"

#define CHUNK_ELEMENTS 65536 /* a multiple of 8: sub-byte elements fill whole bytes */
#define CHUNK_BYTES    ((size_t)CHUNK_ELEMENTS * 8)

/* How a tensor is used, weakest first: of several uses the strongest decides. */
typedef enum form {
    FORM_NONE,
    FORM_SMALL,     /* around 0: biases, means */
    FORM_EMBEDDING, /* rows that are looked up */
    FORM_SCALE,     /* around 1; for a Mul only when the tensor is a vector */
    FORM_POSITIVE,  /* 0.5 to 1.5: variances, divisors */
    FORM_LEFT,      /* left matrix: sums over its last axis, with transA over the one before */
    FORM_RIGHT,     /* right matrix: sums over the last axis but one, with transB over the last */
    FORM_CONV,
    FORM_CONV_TRANSPOSE,
} form;

typedef struct use {
    const char *name;
    const Onnx__NodeProto *node;
    size_t slot, order;
} use;

/* One external tensor. */
typedef struct piece {
    const Onnx__TensorProto *proto;
    const char *name, *location;
    uint64_t offset;
    size_t bytes;
    int64_t count;
    zc_dtype dtype;
    form form;
    double deviation;
} piece;

/* Nodes and initialisers of a graph, or the nodes of a function. */
typedef struct scope {
    Onnx__NodeProto **nodes;
    size_t node_count;
    const Onnx__GraphProto *graph;
} scope;

typedef struct fill {
    const char *model, *output;
    char *root; /* the directory of the model */
    uint64_t seed;
    zc_diag *diag;
    ZC_VEC(scope) scopes;
    ZC_VEC(use) uses;
    ZC_VEC(piece) pieces;
    uint8_t *chunk;
    size_t tensors, shared, copied; /* for the summary; copied counts files */
    uint64_t bytes, total; /* of values: made so far, and to make when every file is missing */
    cli_progress progress;
} fill;

/* protobuf leaves fields out: "" instead. */
static inline const char *text(const char *s)
{
    return s ? s : "";
}

zc_status cli_fill_nomem(fill *f);

/* Every external tensor of the model to f->pieces, every use of a name to f->uses. */
zc_status cli_fill_collect(fill *f, const Onnx__ModelProto *model);
/* Index of the first use of a name, the others follow it; uses.len when there is none. */
size_t cli_fill_first_use(const fill *f, const char *name);

/* Sets the piece's form and deviation. */
void cli_fill_judge(const fill *f, piece *p);

/* Appends the piece's values: the same bytes for the same seed and name. */
zc_status cli_fill_write_values(fill *f, const piece *p, zc_writer *w);

/* The model's copy and its external files. */
zc_status cli_fill_write_files(fill *f);

#endif
