/* ONNX to a graph: the model as a whole, and its main graph. */
#include "import/import.h"

#include <stdlib.h>

#include "import/composite.h"

#define BUDGET_DEFAULT ((uint64_t)64 << 30)
/* Share of the budget for what is not tensor bytes: names, nodes, types. */
#define META_SHARE 4

static const zc_import_params default_params;

zc_status zc_imp_nomem(zc_imp *im, const char *what)
{
    im->status = zc_fail(im->diag, ZC_ERR_NOMEM, NULL,
                         "out of memory for %s (at most %llu bytes may be used besides constants)",
                         what, (unsigned long long)im->arena.budget);
    return im->status;
}

/* ---- the model ---- */

static zc_status check_model(zc_imp *im)
{
    const Onnx__ModelProto *m = im->model;
    long long ir = m->has_ir_version ? (long long)m->ir_version : 0;
    if (ir < 1)
        return zc_fail(im->diag, ZC_ERR_MODEL, NULL, "IR version (got %lld, need 1 to %d)", ir,
                       ZC_IR_VERSION_MAX);
    if (ir > ZC_IR_VERSION_MAX)
        return zc_fail(im->diag, ZC_ERR_UNSUPPORTED, NULL, "IR version (got %lld, need 1 to %d)",
                       ir, ZC_IR_VERSION_MAX);
    if (!m->graph) return zc_fail(im->diag, ZC_ERR_MODEL, NULL, "the model has no graph");
    if (!m->n_opset_import)
        return zc_fail(im->diag, ZC_ERR_MODEL, NULL,
                       "the model imports no operator set (need %d to %d of ai.onnx)", ZC_OPSET_MIN,
                       ZC_OPSET_MAX);
    if (!m->graph->n_output)
        return zc_fail(im->diag, ZC_ERR_MODEL, NULL, "the graph has no outputs");
    return ZC_OK;
}

/* ---- inputs ---- */

static zc_status add_tensor(zc_imp *im, const Onnx__ValueInfoProto *info, zc_vid *out)
{
    const char *own = zc_arena_strdup(&im->g->arena, info->name);
    zc_type type;
    ZC_TRY(zc_imp_input_type(im, info, &type));
    *out = own ? zc_graph_value(im->g, own, ZC_VALUE_PARAM, &type) : 0;
    if (!*out || !ZC_VEC_PUSH(&im->g->top.params, *out)) return zc_imp_nomem(im, "inputs");
    im->g->input_names[im->g->top.params.len - 1] = own;
    return ZC_OK;
}

static zc_status add_input(zc_imp *im, const Onnx__ValueInfoProto *info)
{
    zc_name *name;
    zc_vid v = 0;
    if (!*zc_text(info->name)) return zc_fail(im->diag, ZC_ERR_MODEL, NULL, "an input has no name");
    if (zc_type_is_composite(info->type))
        ZC_TRY(zc_composite_input(im, info, add_tensor, &v));
    else
        ZC_TRY(add_tensor(im, info, &v));
    ZC_TRY(zc_scope_define(im->scope, info->name, "input", ZC_NO_NODE, &name, im->diag));
    name->vid = v;
    name->state = ZC_NAME_READY;
    return ZC_OK;
}

/* An input that has an initialiser is that constant: what the model calls a default is no input
 * that a caller must or may give. */
static bool is_constant(const zc_imp *im, const Onnx__ValueInfoProto *info, size_t initialisers)
{
    const zc_smap_slot *s =
        zc_smap_find(&im->scope->index, zc_text(info->name), strlen(zc_text(info->name)));
    return s && s->value < initialisers;
}

/* Room for the names of all tensors that are inputs. */
static zc_status name_inputs(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    size_t count = graph->n_input;
    for (size_t i = 0; i < graph->n_input; i++) {
        size_t tensors = 0;
        if (zc_type_is_composite(graph->input[i]->type))
            ZC_TRY(zc_composite_count(im, graph->input[i], &tensors));
        count += tensors; /* at most ZC_SEQUENCE_MAX each */
    }
    im->g->input_names = zc_arena_alloc(&im->g->arena, count, sizeof *im->g->input_names);
    return im->g->input_names ? ZC_OK : zc_imp_nomem(im, "inputs");
}

static zc_status add_inputs(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    const size_t initialisers = im->scope->names.len;
    ZC_TRY(name_inputs(im));
    for (size_t i = 0; i < graph->n_input; i++)
        if (!is_constant(im, graph->input[i], initialisers)) ZC_TRY(add_input(im, graph->input[i]));
    return ZC_OK;
}

/* A constant that is declared as an input too must be what is declared. */
static zc_status check_constants(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    for (size_t i = 0; i < graph->n_input; i++) {
        const zc_name *name = zc_scope_own(im->scope, zc_text(graph->input[i]->name));
        if (!name || name->state != ZC_NAME_READY || zc_is_composite(name->vid) ||
            zc_val(im->g, name->vid)->kind != ZC_VALUE_CONST)
            continue;
        ZC_TRY(zc_imp_check_type(im, name->vid, graph->input[i]));
    }
    return ZC_OK;
}

/* ---- outputs ---- */

/* The value of an output; 0: poisoned. */
static zc_status find_output(zc_imp *im, const Onnx__ValueInfoProto *info, zc_vid *out)
{
    const char *text = zc_text(info->name);
    const zc_name *name = zc_scope_own(im->scope, text);
    bool poisoned = false;
    if (!name || name->state == ZC_NAME_LATER)
        return zc_fail(im->diag, ZC_ERR_MODEL, text, "the graph's output is never produced");
    ZC_TRY(zc_imp_lookup(im, text, text, out, &poisoned));
    if (poisoned) *out = 0;
    return ZC_OK;
}

/* One tensor, which is an output or a part of one. */
static zc_status push_output(zc_imp *im, zc_vid v, const char *text, zc_smap *seen)
{
    const char *own = zc_arena_strdup(&im->g->arena, text);
    bool added;
    if (!own || !zc_smap_add(seen, own, strlen(own), 0, &added) ||
        !ZC_VEC_PUSH(&im->g->top.outputs, v))
        return zc_imp_nomem(im, "outputs");
    if (!added) return zc_fail(im->diag, ZC_ERR_MODEL, text, "the graph has this output twice");
    im->g->output_names[im->g->top.outputs.len - 1] = own;
    return ZC_OK;
}

static zc_status add_output(zc_imp *im, const Onnx__ValueInfoProto *info, zc_vid v, zc_smap *seen)
{
    zc_vids tensors = {0};
    zc_status status = zc_imp_check_type(im, v, info);
    if (status == ZC_OK) status = zc_composite_flatten(im, v, &tensors);
    for (size_t i = 0; i < tensors.len && status == ZC_OK; i++) {
        zc_buf name = {0};
        zc_composite_name(im, v, info->name, i, &name);
        status = name.failed ? zc_imp_nomem(im, "names")
                             : push_output(im, tensors.data[i], name.data, seen);
        zc_buf_fini(&name);
    }
    ZC_VEC_FINI(&tensors);
    return status;
}

static zc_status add_outputs(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    zc_vid *values = zc_arena_alloc(&im->arena, graph->n_output, sizeof *values);
    size_t count = 0;
    if (!values) return zc_imp_nomem(im, "outputs");
    for (size_t i = 0; i < graph->n_output; i++) {
        ZC_TRY(find_output(im, graph->output[i], &values[i]));
        count += zc_composite_width(im, values[i]);
    }
    im->g->output_names = zc_arena_alloc(&im->g->arena, count, sizeof *im->g->output_names);
    if (!im->g->output_names) return zc_imp_nomem(im, "outputs");
    zc_smap seen = {0};
    zc_status status = ZC_OK;
    for (size_t i = 0; i < graph->n_output && status == ZC_OK; i++)
        if (values[i]) status = add_output(im, graph->output[i], values[i], &seen);
    zc_smap_fini(&seen);
    if (status != ZC_OK || im->g->top.outputs.len || im->unsupported) return status;
    return zc_fail(im->diag, ZC_ERR_UNSUPPORTED, zc_text(graph->output[0]->name),
                   "every output is an empty sequence or an absent optional: nothing is to be "
                   "computed");
}

/* ---- the main graph ---- */

static zc_status import_graph(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    ZC_TRY(zc_imp_initialisers(im, im->scope, graph));
    ZC_TRY(zc_imp_overrides(im));
    ZC_TRY(add_inputs(im));
    ZC_TRY(zc_imp_overrides_used(im));
    ZC_TRY(check_constants(im));
    ZC_TRY(zc_imp_declare(im, im->scope, NULL, NULL));
    ZC_TRY(zc_imp_infos(im, im->scope));
    ZC_TRY(zc_imp_nodes(im));
    ZC_TRY(add_outputs(im));
    return im->unsupported ? ZC_ERR_UNSUPPORTED : ZC_OK;
}

static void *dead_attrs(zc_arena *arena)
{
    size_t most = 0;
    for (int op = 0; op < ZC_OP_COUNT; op++) {
        size_t size = zc_op_get((zc_op)op)->attrs_size;
        if (size > most) most = size;
    }
    return zc_arena_alloc(arena, 1, most);
}

static zc_status read_text(zc_imp *im, const char *text, const char **out)
{
    *out = zc_arena_strdup(&im->g->arena, zc_text(text));
    return *out ? ZC_OK : zc_imp_nomem(im, "metadata");
}

static zc_status read_origin(zc_imp *im, zc_origin *out)
{
    const Onnx__ModelProto *m = im->model;
    const char **pairs = zc_arena_alloc(&im->g->arena, m->n_metadata_props, 2 * sizeof *pairs);
    if (!pairs) return zc_imp_nomem(im, "metadata");
    ZC_TRY(read_text(im, m->producer_name, &out->producer));
    ZC_TRY(read_text(im, m->producer_version, &out->producer_version));
    ZC_TRY(read_text(im, m->domain, &out->domain));
    ZC_TRY(read_text(im, m->doc_string, &out->doc));
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        ZC_TRY(read_text(im, m->metadata_props[i]->key, &pairs[2 * i]));
        ZC_TRY(read_text(im, m->metadata_props[i]->value, &pairs[2 * i + 1]));
    }
    out->version = m->model_version;
    out->npairs = (uint32_t)m->n_metadata_props;
    out->pairs = pairs;
    return ZC_OK;
}

static zc_status import_model(zc_imp *im)
{
    const Onnx__GraphProto *graph = im->model->graph;
    zc_scope scope = {.nodes = graph->node, .nnodes = graph->n_node, .graph = graph};
    ZC_TRY(zc_imp_functions(im));
    ZC_TRY(zc_imp_survey(im));
    ZC_TRY(zc_graph_create(graph->name, &im->g, im->diag));
    im->g->custom = im->params->custom;
    im->g->arena.budget = im->g->dims.arena.budget = im->arena.budget;
    im->dead = dead_attrs(&im->arena);
    if (!im->dead) return zc_fail_nomem(im->diag, "attributes", 0);
    ZC_TRY(read_origin(im, &im->g->origin));
    im->block = &im->g->top;
    im->scope = &scope;
    zc_status status = import_graph(im);
    zc_scope_fini(&scope);
    return status;
}

static void imp_fini(zc_imp *im)
{
    zc_smap_fini(&im->iops);
    zc_smap_fini(&im->functions);
    zc_smap_fini(&im->symbols);
    zc_smap_fini(&im->bound);
    zc_smap_fini(&im->shared);
    ZC_VEC_FINI(&im->iop_rows);
    ZC_VEC_FINI(&im->bound_rows);
    ZC_VEC_FINI(&im->shared_rows);
    ZC_VEC_FINI(&im->composites);
    zc_external_destroy(&im->ext);
    zc_arena_fini(&im->arena);
}

/* Imports and frees the model. path: NULL when there is none. */
static zc_status import(Onnx__ModelProto *model, const char *path, const zc_import_params *params,
                        zc_graph **out, zc_diag *diag)
{
    if (!params) params = &default_params;
    zc_imp im = {.diag = diag, .model = model, .params = params};
    im.budget = params->max_memory ? params->max_memory : BUDGET_DEFAULT;
    zc_arena_init(&im.arena, (size_t)(im.budget / META_SHARE));
    zc_status status = check_model(&im);
    if (status == ZC_OK && (path || params->data_root))
        status = zc_external_create(path, params->data_root, im.budget, &im.ext, diag);
    if (status == ZC_OK) status = import_model(&im);
    if (status == ZC_OK && im.contradictions > 1)
        zc_warn(diag, NULL, "%zu more declared types contradict the inferred ones",
                im.contradictions - 1);
    imp_fini(&im);
    zc_onnx_free(&model);
    if (status == ZC_OK && im.g->dims.failed)
        status = zc_fail_nomem(diag, "symbolic dimensions", 0);
    if (status == ZC_OK)
        *out = im.g;
    else
        zc_graph_destroy(&im.g);
    return status;
}

zc_status zc_import_file(const char *path, const zc_import_params *params, zc_graph **out,
                         zc_diag *diag)
{
    Onnx__ModelProto *model = NULL;
    *out = NULL;
    ZC_TRY(zc_onnx_load(path, &model, diag));
    return import(model, path, params, out, diag);
}

zc_status zc_import_bytes(const void *data, size_t len, const zc_import_params *params,
                          zc_graph **out, zc_diag *diag)
{
    Onnx__ModelProto *model = NULL;
    *out = NULL;
    ZC_TRY(zc_onnx_load_bytes(data, len, &model, diag));
    return import(model, NULL, params, out, diag);
}
