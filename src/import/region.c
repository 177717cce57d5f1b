/* Graphs inside nodes: as regions, or in place of their node. */
#include <stdlib.h>

#include "import/composite.h"

const Onnx__GraphProto *zc_imp_take_graph(zc_imp *im, zc_inode *n, const char *name)
{
    const Onnx__AttributeProto *a =
        zc_imp_take(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    return a ? a->g : NULL;
}

/* The declared element type is checked; the shape is the caller's to know. */
static zc_status define_input(zc_imp *im, zc_inode *n, const Onnx__ValueInfoProto *info, zc_vid v)
{
    zc_dtype declared, dtype = zc_is_composite(v) ? ZC_NONE : zc_imp_dtype(im, v);
    zc_name *name;
    ZC_TRY(zc_imp_elem_type(im, info, &declared));
    if (dtype != ZC_NONE && declared != ZC_NONE && declared != dtype)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "input '" ZC_NAME "' of the body has the wrong type (got %s, need %s)",
                           zc_text(info->name), zc_dtype_name(dtype), zc_dtype_name(declared));
    ZC_TRY(zc_scope_define(im->scope, zc_text(info->name), "input", ZC_NO_NODE, &name, im->diag));
    name->vid = v;
    name->state = ZC_NAME_READY;
    return ZC_OK;
}

static zc_status find_outputs(zc_imp *im, zc_inode *n, const Onnx__GraphProto *graph, zc_vid *out)
{
    bool poisoned = false;
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *text = zc_text(graph->output[i]->name);
        const zc_name *name = zc_scope_find(im->scope, text);
        if (!name || name->state == ZC_NAME_LATER || name->state == ZC_NAME_ABSENT)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "output '" ZC_NAME "' of the body is never produced", text);
        ZC_TRY(zc_imp_lookup(im, text, n->name, &out[i], &poisoned));
    }
    return poisoned ? ZC_ERR_UNSUPPORTED : ZC_OK; /* the reason has been reported */
}

static zc_status import_body(zc_imp *im, zc_inode *n, const Onnx__GraphProto *graph,
                             const zc_vid *in, zc_vid *out)
{
    for (size_t i = 0; i < graph->n_input; i++) ZC_TRY(define_input(im, n, graph->input[i], in[i]));
    ZC_TRY(zc_imp_initialisers(im, im->scope, graph));
    ZC_TRY(zc_imp_declare(im, im->scope, NULL, NULL));
    ZC_TRY(zc_imp_infos(im, im->scope));
    ZC_TRY(zc_imp_nodes(im));
    return find_outputs(im, n, graph, out);
}

static zc_status check_body(zc_imp *im, const zc_inode *n, const Onnx__GraphProto *graph,
                            size_t nin)
{
    if (im->status != ZC_OK) return im->status;
    if (graph->n_input != nin)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "%s: the body has a wrong number of inputs (got %zu, need %zu)",
                           n->op_type, graph->n_input, nin);
    if (im->depth < ZC_IMP_DEPTH_MAX) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_LIMIT,
                       "functions and graphs are nested too deeply (need at most %d)",
                       ZC_IMP_DEPTH_MAX);
}

zc_status zc_imp_splice(zc_imp *im, zc_inode *n, const Onnx__GraphProto *graph, const char *prefix,
                        size_t nin, const zc_vid *in, zc_vid *out)
{
    ZC_TRY(check_body(im, n, graph, nin));
    zc_scope *outer = im->scope;
    zc_scope scope = {.parent = outer,
                      .nodes = graph->node,
                      .nnodes = graph->n_node,
                      .prefix = prefix ? prefix : outer->prefix,
                      .graph = graph};
    im->scope = &scope;
    im->depth++;
    im->status = import_body(im, n, graph, in, out);
    im->depth--;
    im->scope = outer;
    zc_scope_fini(&scope);
    return im->status;
}

static zc_status add_params(zc_imp *im, zc_block *b, const Onnx__GraphProto *graph,
                            const zc_type *types)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        zc_vid v = zc_graph_value(im->g, zc_text(graph->input[i]->name), ZC_VALUE_PARAM, &types[i]);
        if (!v || !ZC_VEC_PUSH(&b->params, v)) return zc_imp_nomem(im, "values");
    }
    return ZC_OK;
}

zc_status zc_imp_region_outputs(zc_imp *im, zc_inode *n, zc_nid id, int i,
                                const Onnx__GraphProto *graph, const zc_type *types, size_t ntypes,
                                zc_vid *out)
{
    ZC_TRY(check_body(im, n, graph, ntypes));
    zc_block *outer = im->block, *b = zc_graph_region(im->g, id, i);
    if (!b) return zc_imp_nomem(im, "regions");
    ZC_TRY(add_params(im, b, graph, types));
    im->block = b;
    im->status = zc_imp_splice(im, n, graph, NULL, ntypes, b->params.data, out);
    im->block = outer;
    /* The types were for the steps inside; inference finds them anew. */
    for (size_t o = 0; o < b->params.len; o++)
        zc_val(im->g, b->params.data[o])->type = (zc_type){.dtype = ZC_NONE, .rank = -1};
    zc_vids flat = {0};
    for (size_t o = 0; im->status == ZC_OK && o < graph->n_output; o++)
        zc_composite_flatten(im, out[o], &flat);
    for (size_t o = 0; im->status == ZC_OK && o < flat.len; o++)
        if (!ZC_VEC_PUSH(&b->outputs, flat.data[o])) zc_imp_nomem(im, "values");
    ZC_VEC_FINI(&flat);
    return im->status;
}

zc_status zc_imp_region(zc_imp *im, zc_inode *n, zc_nid id, int i, const Onnx__GraphProto *graph,
                        const zc_type *types, size_t ntypes)
{
    zc_vid *out = zc_arena_alloc(n->arena, graph->n_output, sizeof *out);
    if (!out) return zc_imp_nomem(im, "regions");
    ZC_TRY(zc_imp_region_outputs(im, n, id, i, graph, types, ntypes, out));
    return zc_need_tensors(im, n, out, graph->n_output, "output of the body");
}
