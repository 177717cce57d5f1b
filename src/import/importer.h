/* The importer's state, and what the steps that bring old forms to the newest one are written in.
 *
 * A node of the model becomes a zc_inode: operator, inputs as values, attributes, names of outputs.
 * The steps that onnx_ops.def lists for the operator change it or build nodes themselves; what is
 * not built then becomes one node of the operation of that name. Builder functions return 0 once
 * im->status is not ZC_OK and do nothing then, so that a step may build several nodes and check
 * once. */
#ifndef ZC_IMPORT_IMPORTER_H
#define ZC_IMPORT_IMPORTER_H

#include "import/import.h"
#include "import/names.h"
#include "import/tensor_proto.h"

/* Regions and calls of functions inside each other. */
#define ZC_IMP_DEPTH_MAX 32
/* Nodes after functions are inlined. */
#define ZC_IMP_NODES_MAX ((size_t)2000000)
/* Opsets of the default domain. */
#define ZC_OPSET_MIN      1
#define ZC_OPSET_MAX      27
#define ZC_IR_VERSION_MAX 14

typedef struct zc_imp zc_imp;
typedef struct zc_inode zc_inode;
typedef zc_status (*zc_step_fn)(zc_imp *im, zc_inode *n);

/* What is done with an operator of the model. */
typedef struct zc_iop {
    zc_op op; /* NONE: steps build it, or it is a function or unsupported */
    const Onnx__FunctionProto *function; /* to be inlined, or NULL */
    int first_step, nsteps;              /* range of rows of the step table; see zc_iop_find */
    bool known;
    bool composites; /* its inputs may be sequences or optionals; see composite.h */
} zc_iop;

/* The function call being inlined. */
typedef struct zc_frame {
    const struct zc_frame *caller;
    const Onnx__FunctionProto *function;
    const zc_inode *call; /* its attributes are those of the function */
} zc_frame;

/* A symbol's value from --dim or --shape. */
typedef struct zc_bound_dim {
    int64_t value;
    const char *by; /* what bound it */
    bool used;
} zc_bound_dim;

typedef enum zc_composite_type { ZC_SEQUENCE, ZC_OPTIONAL } zc_composite_type;

/* A list of values in place of a tensor: composite.h. */
typedef struct zc_composite {
    zc_composite_type kind;
    zc_dtype dtype; /* of a sequence's tensors, or ZC_NONE */
    int n;          /* of an optional: 0 or 1 */
    const zc_vid *items;
} zc_composite;

typedef ZC_VEC(zc_vid) zc_vids;

struct zc_imp {
    zc_graph *g;
    zc_diag *diag;
    Onnx__ModelProto *model;
    const zc_import_params *params;
    zc_external *ext;       /* NULL: external data is refused */
    zc_arena arena;         /* what lives as long as the import */
    zc_status status;       /* the first failure of a builder function */
    void *dead;             /* attributes of a node that could not be made */
    uint64_t budget, bytes; /* of constants */
    zc_block *block;
    zc_scope *scope;
    const zc_frame *frame; /* NULL: in the model's own graphs */
    int depth;
    size_t visited;     /* nodes of the model so far, those of functions at each call */
    size_t nodes;       /* made so far */
    size_t unsupported; /* reported */
    zc_smap iops, functions;
    ZC_VEC(zc_iop) iop_rows;
    zc_smap symbols; /* symbols that an input's shape binds */
    zc_smap bound;   /* into bound_rows */
    ZC_VEC(zc_bound_dim) bound_rows;
    size_t contradictions; /* declared types that are not the inferred ones */
    bool overridden;       /* some dimension of an input is not the model's */
    zc_smap shared;        /* constants of functions and bodies, by their TensorProto's address */
    ZC_VEC(zc_vid) shared_rows;
    ZC_VEC(zc_composite) composites;
    size_t composite_items; /* in all of them */
};

struct zc_inode {
    const Onnx__NodeProto *proto;
    zc_arena *arena;   /* what lives as long as the node is being imported */
    const char *name;  /* for messages */
    const char **prov; /* it alone, in the graph's arena; made when needed */
    const char *domain, *op_type;
    int64_t version; /* of the domain's operator set */
    zc_op op;
    zc_vid *in; /* has room for ZC_INODE_SPARE more */
    int nin, cap_in;
    const char **out; /* names; "": not wanted */
    int nout;
    const Onnx__AttributeProto **attrs; /* references to a function's attributes resolved */
    const char **attr_names;
    int nattrs, cap_attrs;
    bool done; /* its outputs have their values */
};
#define ZC_INODE_SPARE 8

/* ---- failing ---- */

#define zc_imp_fail(im, n, st, ...)                                                                \
    ((im)->status = zc_fail((im)->diag, (st), (n)->name, __VA_ARGS__))
/* Records that memory, or the budget for it, is used up. */
zc_status zc_imp_nomem(zc_imp *im, const char *what);

/* ---- walk: node.c, iop.c, functions.c, survey.c ---- */

/* Imports scope's nodes into im->block. */
zc_status zc_imp_nodes(zc_imp *im);
/* Defines the outputs of scope->nodes as names to come. For a function's body: the call, and the
 * function's names for the outputs that the call wants, by their indices. */
zc_status zc_imp_declare(zc_imp *im, zc_scope *scope, const zc_inode *call, const zc_smap *outer);
/* The value of an input of the node being imported: 0 when absent; *poisoned is set when it comes
 * from something unsupported. */
zc_status zc_imp_lookup(zc_imp *im, const char *text, const char *subject, zc_vid *out,
                        bool *poisoned);
/* Finds out what an operator is. Never NULL but when memory runs out. */
const zc_iop *zc_iop_find(zc_imp *im, const char *domain, const char *op_type,
                          const char *overload);
/* Why an operator is not read, where the table says it; or NULL. */
const char *zc_iop_refusal(const char *domain, const char *op_type);
zc_status zc_iop_run(zc_imp *im, const zc_iop *iop, zc_inode *n);
/* "" for the default domain. */
const char *zc_imp_domain(const char *domain);
/* The version of a domain's operator set where we are. */
zc_status zc_imp_version(zc_imp *im, const char *domain, const char *subject, int64_t *out);
zc_status zc_imp_inline(zc_imp *im, const Onnx__FunctionProto *function, zc_inode *n);
/* Indexes the model's functions and checks the versions of operator sets. */
zc_status zc_imp_functions(zc_imp *im);
/* Appends what identifies a function or operator. */
void zc_imp_function_key(zc_buf *out, const char *domain, const char *name, const char *overload);
/* Reports everything that cannot be imported. */
zc_status zc_imp_survey(zc_imp *im);

/* ---- region.c ---- */

/* A node's graph attribute; NULL when it has none. */
const Onnx__GraphProto *zc_imp_take_graph(zc_imp *im, zc_inode *n, const char *name);
/* Imports graph as region i of node id; its inputs get those types. */
zc_status zc_imp_region(zc_imp *im, zc_inode *n, zc_nid id, int i, const Onnx__GraphProto *graph,
                        const zc_type *types, size_t ntypes);
/* The same, with the region's outputs as the graph has them, composites included, in
 * out[graph->n_output]. */
zc_status zc_imp_region_outputs(zc_imp *im, zc_inode *n, zc_nid id, int i,
                                const Onnx__GraphProto *graph, const zc_type *types, size_t ntypes,
                                zc_vid *out);
/* Imports graph into the current block with `in` for its inputs; out[graph->n_output] gets its
 * outputs, which may be composites. prefix: before the names inside; NULL: as around it. */
zc_status zc_imp_splice(zc_imp *im, zc_inode *n, const Onnx__GraphProto *graph, const char *prefix,
                        size_t nin, const zc_vid *in, zc_vid *out);

/* ---- types.c ---- */

/* Takes in --dim and --shape. */
zc_status zc_imp_overrides(zc_imp *im);
zc_status zc_imp_overrides_used(zc_imp *im);
/* Takes in the --shape of a tensor of a sequence. */
zc_status zc_imp_item_shape(zc_imp *im, const Onnx__ValueInfoProto *item);
/* What --dim gives for a name, or NULL. */
zc_bound_dim *zc_imp_bound(zc_imp *im, const char *name);
/* The type of the main graph's input. */
zc_status zc_imp_input_type(zc_imp *im, const Onnx__ValueInfoProto *info, zc_type *out);
/* Holds what the model says of a value against what was inferred. */
zc_status zc_imp_check_type(zc_imp *im, zc_vid v, const Onnx__ValueInfoProto *info);
/* The element type alone, ZC_NONE when none is given. */
zc_status zc_imp_elem_type(zc_imp *im, const Onnx__ValueInfoProto *info, zc_dtype *out);
/* NULL when values of the type can be imported, else what it is: "maps". */
const char *zc_type_kind_unsupported(const Onnx__TypeProto *type);
/* Indexes graph->value_info. */
zc_status zc_imp_infos(zc_imp *im, zc_scope *scope);

/* ---- consts.c ---- */

zc_status zc_imp_initialisers(zc_imp *im, zc_scope *scope, const Onnx__GraphProto *graph);
/* A tensor of the model as a constant; its bytes are moved where that can be. */
zc_status zc_imp_tensor(zc_imp *im, Onnx__TensorProto *proto, const char *name, const char *subject,
                        zc_vid *out);
zc_status zc_imp_sparse(zc_imp *im, const Onnx__SparseTensorProto *proto, const char *name,
                        const char *subject, zc_vid *out);
/* A constant that copies t's bytes. */
zc_vid zc_imp_const(zc_imp *im, const char *name, const zc_tensor *t);
zc_vid zc_imp_ints(zc_imp *im, const int64_t *v, int n, int rank);
/* One number as a tensor of rank 0. */
zc_vid zc_imp_scalar(zc_imp *im, zc_dtype dtype, double value);
/* The integers of a constant of rank 0 or 1; false when they are not known. Into arena. */
bool zc_imp_known_ints(zc_imp *im, zc_inode *n, zc_vid v, zc_ints *out);

/* ---- attrs.c ---- */

/* Collects the node's attributes and checks their form. */
zc_status zc_imp_attrs(zc_imp *im, zc_inode *n);
/* Copies the attributes into the operation's struct by name. */
zc_status zc_imp_attrs_copy(zc_imp *im, zc_inode *n, zc_nid id);
/* Take an attribute away from the node; the default, or false, when it has none. A wrong type
 * fails. */
int64_t zc_imp_take_int(zc_imp *im, zc_inode *n, const char *name, int64_t def);
double zc_imp_take_float(zc_imp *im, zc_inode *n, const char *name, double def);
const char *zc_imp_take_str(zc_imp *im, zc_inode *n, const char *name, const char *def);
bool zc_imp_take_ints(zc_imp *im, zc_inode *n, const char *name, zc_ints *out);
bool zc_imp_take_floats(zc_imp *im, zc_inode *n, const char *name, zc_floats *out);
const Onnx__AttributeProto *zc_imp_take(zc_imp *im, zc_inode *n, const char *name,
                                        Onnx__AttributeProto__AttributeType type);
bool zc_imp_has_attr(const zc_inode *n, const char *name);
/* Give the node an attribute, in place of one of that name. */
void zc_imp_set_int(zc_imp *im, zc_inode *n, const char *name, int64_t value);
void zc_imp_set_float(zc_imp *im, zc_inode *n, const char *name, float value);
void zc_imp_set_str(zc_imp *im, zc_inode *n, const char *name, const char *value);
/* Fails on the first attribute that is left. */
zc_status zc_imp_no_more_attrs(zc_imp *im, const zc_inode *n);

/* ---- custom.c ---- */

/* The node of an operator of the caller's. */
zc_status zc_imp_custom(zc_imp *im, zc_inode *n);

/* ---- build.c ---- */

/* A node in the current block with those inputs and default attributes. */
zc_nid zc_imp_node(zc_imp *im, zc_inode *n, zc_op op, int nin, const zc_vid *in, int nout);
/* Infers it and gives it outputs without a name of the model; returns output 0. */
zc_vid zc_imp_done(zc_imp *im, zc_inode *n, zc_nid id);
/* Infers it and makes its outputs those of the model's node. */
zc_status zc_imp_finish(zc_imp *im, zc_inode *n, zc_nid id);
/* The same in two steps, so that what is built in between cannot take the names. */
zc_status zc_imp_name_outputs(zc_imp *im, zc_inode *n, zc_nid id);
zc_status zc_imp_finish_named(zc_imp *im, zc_inode *n, zc_nid id);
/* The same for output 0 alone, where others of at most `most` are bound to values of other nodes.
 */
zc_status zc_imp_finish_first(zc_imp *im, zc_inode *n, zc_nid id, int most);
/* The attribute struct of a node just made. */
void *zc_imp_at(zc_imp *im, zc_op op, zc_nid id);
#define ZC_IMP_AT(im, op, id)                ((zc_attrs_##op *)zc_imp_at(im, ZC_OP_##op, id))
#define ZC_IMP_SET(im, op, id, field, value) ZC_ATTR_SET(op, ZC_IMP_AT(im, op, id), field, (value))

/* Nodes without attributes to set. */
zc_vid zc_imp_op1(zc_imp *im, zc_inode *n, zc_op op, zc_vid a);
zc_vid zc_imp_op2(zc_imp *im, zc_inode *n, zc_op op, zc_vid a, zc_vid b);
/* The same as the whole of the model's node. */
zc_status zc_imp_finish_op(zc_imp *im, zc_inode *n, zc_op op, int nin, const zc_vid *in);
/* Output i, which has a name, is value v. */
zc_status zc_imp_bind(zc_imp *im, zc_inode *n, int i, zc_vid v);
/* Output 0 is a copy of v. */
zc_status zc_imp_finish_value(zc_imp *im, zc_inode *n, zc_vid v);
/* Output 0 is v itself: a constant or a composite. */
zc_status zc_imp_finish_as(zc_imp *im, zc_inode *n, zc_vid v);
/* What the value of output 0 is to be called in the graph. */
const char *zc_imp_out_name(const zc_imp *im, const zc_inode *n);
/* Counts unwanted outputs at the end too: their number means something. */
void zc_imp_all_outputs(zc_inode *n);
zc_vid zc_imp_cast(zc_imp *im, zc_inode *n, zc_vid v, zc_dtype to);
/* v as that shape: 0 is as it is, -1 what is left. */
zc_vid zc_imp_reshape(zc_imp *im, zc_inode *n, zc_vid v, const int64_t *shape, int rank);
/* Sizes `start` to before `end` of v, as a vector. */
zc_vid zc_imp_sizes(zc_imp *im, zc_inode *n, zc_vid v, int64_t start, int64_t end);
/* v along an axis, from and to before what these vectors of one number say. */
zc_vid zc_imp_slice(zc_imp *im, zc_inode *n, zc_vid v, zc_vid from, zc_vid to, int64_t axis);
/* A Transpose node; perm is copied. */
zc_nid zc_imp_transpose(zc_imp *im, zc_inode *n, zc_vid v, const int64_t *perm, int rank);
/* v[batch, ..., channels], of known rank, as [batch, channels, ...]; and a node that does the
 * reverse. */
zc_vid zc_imp_channels_first(zc_imp *im, zc_inode *n, zc_vid v);
zc_nid zc_imp_channels_last(zc_imp *im, zc_inode *n, zc_vid v);
/* A Pointwise node: expr over x0, x1, ...; at most ZC_EXPR_MAX_INPUTS of them. */
zc_nid zc_imp_expr(zc_imp *im, zc_inode *n, int nin, const zc_vid *in, const char *expr);

/* One node of n->op with the node's inputs and attributes. */
zc_nid zc_imp_plain(zc_imp *im, zc_inode *n);
/* Its outputs are the model's. */
zc_status zc_imp_finish_plain(zc_imp *im, zc_inode *n);

/* The node's input i, 0 when absent. */
static inline zc_vid zc_imp_in(const zc_inode *n, int i)
{
    return i < n->nin ? n->in[i] : 0;
}
/* Sets input i, growing the list. */
void zc_imp_set_in(zc_imp *im, zc_inode *n, int i, zc_vid v);
/* Fails unless inputs from..nin are there. */
zc_status zc_imp_need_all(zc_imp *im, zc_inode *n, int from);
zc_status zc_imp_need_inputs(zc_imp *im, zc_inode *n, int min, int max);
/* Rank of a value; -1 when unknown, or for 0. */
int zc_imp_rank(const zc_imp *im, zc_vid v);
zc_dtype zc_imp_dtype(const zc_imp *im, zc_vid v);
/* Fails with ZC_ERR_UNSUPPORTED when the rank is not known. */
int zc_imp_need_rank(zc_imp *im, zc_inode *n, zc_vid v, const char *what);

#endif
