/* The graph: SSA values and nodes in arrays by dense id, regions for control flow, one arena.
 *
 * Ids are stable: removing a node leaves a hole (op ZC_OP_NONE), zc_graph_compact closes the block
 * lists. Value 0 and node 0 are never used, so that 0 means "absent". Nodes of a block stand in
 * topological order; a region's nodes may use values of the enclosing blocks. */
#ifndef ZC_IR_GRAPH_H
#define ZC_IR_GRAPH_H

#include "base/origin.h"
#include "op/infer.h"

typedef uint32_t zc_vid;
typedef uint32_t zc_nid;

typedef enum zc_value_kind {
    ZC_VALUE_PARAM, /* an input of the graph or of a region */
    ZC_VALUE_CONST,
    ZC_VALUE_NODE
} zc_value_kind;

typedef struct zc_value {
    const char *name; /* unique in the graph */
    zc_value_kind kind;
    zc_type type;
    zc_vals vals;          /* symbolic elements when known; of constants too */
    const zc_tensor *data; /* CONST: owned by the graph */
    zc_nid producer;       /* NODE */
    zc_vid forward;        /* not 0: replaced by that value, see zc_graph_forward */
} zc_value;

typedef struct zc_block zc_block;

typedef struct zc_node {
    zc_op op; /* ZC_OP_NONE: removed */
    void *attrs;
    int nin, nout, nregions;
    zc_vid *in;         /* 0: optional input left out */
    zc_vid *out;        /* 0: optional output not wanted */
    zc_block **regions; /* If: then, else. Loop, Scan: body. */
    const char *name;   /* for messages and reports */
    const char **prov;  /* names of the ONNX nodes it stands for */
    int nprov;
    bool
        tf32; /* a product that may round f32 factors to tf32 on a GPU; the printed form omits it */
} zc_node;

/* A list of nodes with parameters and results: the whole graph, or a region.
 * Loop body: params (iteration i64, condition bool, carried...), outputs (condition, carried...,
 * scanned...). Scan body: params (states..., slices...), outputs (states..., slices...). If
 * branches: no params. */
struct zc_block {
    ZC_VEC(zc_vid) params;
    ZC_VEC(zc_nid) nodes;
    ZC_VEC(zc_vid) outputs;
};

typedef struct zc_graph {
    zc_arena arena;
    zc_dims dims;
    const char *name;
    zc_origin origin;
    const struct zc_custom_set
        *custom; /* operators of the caller's; they outlive the graph. NULL: none */
    ZC_VEC(zc_value) values;
    ZC_VEC(zc_node) nodes;
    zc_block top;
    ZC_VEC(zc_block *) blocks; /* all regions, for freeing */
    const char **input_names;  /* of top.params; values may be renamed or merged, these stay */
    const char **output_names;
    ZC_VEC(void *) buffers;       /* malloc'd constant bytes, freed with the graph */
    struct zc_graph_names *names; /* name -> value */
    unsigned next_name;
} zc_graph;

zc_status zc_graph_create(const char *name, zc_graph **out, zc_diag *diag);
/* A graph with the same ids, which may be changed alone. Its strings and constants' bytes are g's,
 * which has to outlive it. */
zc_status zc_graph_copy(const zc_graph *g, zc_graph **out, zc_diag *diag);
void zc_graph_destroy(zc_graph **g);

static inline zc_value *zc_val(const zc_graph *g, zc_vid v)
{
    return &g->values.data[v];
}
static inline zc_node *zc_node_at(const zc_graph *g, zc_nid n)
{
    return &g->nodes.data[n];
}
/* Operand and result i, 0 when it is absent. */
static inline zc_vid zc_node_in(const zc_node *n, int i)
{
    return i < n->nin ? n->in[i] : 0;
}
static inline zc_vid zc_node_out(const zc_node *n, int i)
{
    return i < n->nout ? n->out[i] : 0;
}

/* A value of that name (made unique by a suffix when taken; NULL: "v<N>"). 0 when memory is
 * exhausted. */
zc_vid zc_graph_value(zc_graph *g, const char *name, zc_value_kind kind, const zc_type *type);
/* The value of exactly that name, or 0. */
zc_vid zc_graph_find(const zc_graph *g, const char *name);
/* A constant. take: t->data is malloc'd and becomes the graph's, also on failure; otherwise it is
 * copied. Small integer constants get their vals. */
zc_vid zc_graph_const(zc_graph *g, const char *name, const zc_tensor *t, bool take);
/* A constant whose bytes are somebody else's, who outlives the graph. */
zc_vid zc_graph_lend(zc_graph *g, const char *name, const zc_tensor *t);
/* Are a constant's bytes the graph's own? */
bool zc_graph_owns(const zc_graph *g, const void *data);
/* A constant without bytes, as a weightless import makes; 0: no memory, or the type is not static.
 */
zc_vid zc_graph_hollow(zc_graph *g, const char *name, const zc_type *type);
bool zc_graph_is_hollow(const zc_graph *g, zc_vid v);
/* The number that all elements of a constant equal. false: no constant, empty, complex, hollow, or
 * of several numbers. */
bool zc_graph_splat(const zc_graph *g, zc_vid v, double *out);
zc_vid zc_graph_const_i64(zc_graph *g, const char *name, const int64_t *v, int n, int rank);

/* A node at the end of block (NULL: in no block yet) with default attributes, these operands (NULL:
 * all 0) and room for nout results (all 0). Returns 0 when memory is exhausted. Pointers to nodes
 * move: hold ids. */
zc_nid zc_graph_node(zc_graph *g, zc_block *block, zc_op op, const char *name, int nin,
                     const zc_vid *in, int nout);
/* Node n becomes this operation on these operands, with default attributes; its results, name and
 * provenance stay. false: no memory. */
bool zc_graph_become(zc_graph *g, zc_nid n, zc_op op, int nin, const zc_vid *in);
/* Gives an attribute of node n, which is an `op`, a value; and the node's attributes as its struct.
 */
#define ZC_NODE_SET(g, op, n, field, ...)                                                          \
    ZC_ATTR_SET(op, ZC_NODE_ATTRS(g, op, n), field, __VA_ARGS__)
#define ZC_NODE_ATTRS(g, op, n) ((zc_attrs_##op *)zc_node_at((g), (n))->attrs)
/* A fresh output value for slot i of node n. */
zc_vid zc_graph_out(zc_graph *g, zc_nid n, int i, const char *name);
zc_block *zc_graph_region(zc_graph *g, zc_nid n, int i);
/* Adds node `from`'s provenance to node `to`, and whether it may round to tf32. */
bool zc_graph_inherit(zc_graph *g, zc_nid to, zc_nid from);
/* Copies an attribute struct deeply into the graph's arena; NULL: no memory. */
void *zc_graph_attrs_dup(zc_graph *g, zc_op op, const void *attrs);

/* Infers node n's outputs from its inputs and sets the types and vals of its output values. A node
 * with regions infers them too, to a fixed point where values are carried around a loop. */
zc_status zc_graph_infer(zc_graph *g, zc_nid n, zc_diag *diag);
/* Infers everything again, in order, regions included. */
zc_status zc_graph_infer_all(zc_graph *g, zc_diag *diag);
/* Infers every node of the top block once more, on the side: what a run would refuse, and a result
 * of another type than the graph says, is an error. A body or branch may never run: those are left
 * out. */
zc_status zc_graph_recheck(const zc_graph *g, zc_diag *diag);
/* Can no value have both types? What is merely less known on one side is fine. */
bool zc_type_contradicts(const zc_type *a, const zc_type *b);

/* All later uses of `from` mean `to`. Takes effect in the whole graph at zc_graph_resolve, in one
 * sweep. */
void zc_graph_forward(zc_graph *g, zc_vid from, zc_vid to);
zc_vid zc_graph_resolved(const zc_graph *g, zc_vid v);
void zc_graph_resolve(zc_graph *g);
/* Marks a node removed. */
void zc_graph_remove(zc_graph *g, zc_nid n);
/* Drops removed nodes from the block lists. */
void zc_graph_compact(zc_graph *g);

/* Frees the bytes of constants that nothing uses any more; these are hollow then. false: no memory.
 */
bool zc_graph_shed(zc_graph *g);

/* Number of uses of every value (operands, block outputs), by value id; the caller frees it. NULL:
 * no memory. */
uint32_t *zc_graph_uses(const zc_graph *g);

/* Collects every fault into diag: ids, order, arity, unique definition, regions' arity, types.
 * `after` names the stage in the messages: its fault (ZC_ERR_INTERNAL). NULL: the graph is
 * somebody's text (ZC_ERR_MODEL). */
zc_status zc_graph_validate(const zc_graph *g, const char *after, zc_diag *diag);

/* The printed form; zc_graph_parse reads it back to an equal graph. Constants of at most 64
 * elements (or all, with `full`) are printed inline, others as a SHA-256 with no bytes, which does
 * not parse. */
void zc_graph_print(const zc_graph *g, bool full, zc_buf *out);
/* What stands behind an operation there: " {axis = 1, epilogue = "x0*2"}", or nothing; and the
 * value of one attribute. */
void zc_attrs_print(zc_op op, const void *attrs, zc_buf *out);
void zc_attr_print(const zc_attr_field *field, const void *at, zc_buf *out);
/* What zc_attrs_print wrote, to be added to `attrs`; what it refers to lives in `arena`. Tensors
 * are refused. */
zc_status zc_attrs_parse(const char *text, size_t len, zc_op op, void *attrs, zc_arena *arena,
                         zc_diag *diag);
zc_status zc_graph_parse(const char *text, size_t len, zc_graph **out, zc_diag *diag);

/* "f32[batch,3,224]" */
void zc_type_print(const zc_dims *dims, const zc_type *type, zc_buf *out);

#endif
