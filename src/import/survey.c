/* Everything in a model that cannot be imported, in one report. */
#include <stdlib.h>

#include "import/importer.h"

/* Nodes or tensors that a line of the report names. */
#define NAMES_SHOWN 8

/* One unsupported thing and where it occurs. */
typedef struct finding {
    const char *what;  /* "operator Foo of domain com.foo" */
    const char *where; /* "nodes" */
    size_t count;
    const char *names[NAMES_SHOWN];
} finding;

typedef struct survey {
    zc_imp *im;
    zc_smap index; /* `what` to findings */
    ZC_VEC(finding) findings;
    zc_smap seen; /* functions, by domain, name and overload */
    ZC_VEC(const Onnx__FunctionProto *)
    functions; /* reached; those from `next` on not yet looked at */
} survey;

static zc_status note(survey *s, const char *what, const char *where, const char *name)
{
    bool added;
    zc_smap_slot *slot = zc_smap_add(&s->index, what, strlen(what), s->findings.len, &added);
    if (!slot) return zc_imp_nomem(s->im, "a report");
    if (added) {
        finding f = {.what = what, .where = where};
        if (!ZC_VEC_PUSH(&s->findings, f)) return zc_imp_nomem(s->im, "a report");
    }
    finding *f = &s->findings.data[slot->value];
    if (f->count < NAMES_SHOWN) f->names[f->count] = name;
    f->count++;
    return ZC_OK;
}

static zc_status survey_graph(survey *s, const Onnx__GraphProto *graph, const char *prefix);

static zc_status survey_unsupported_op(survey *s, const Onnx__NodeProto *node, const char *name)
{
    const char *domain = zc_imp_domain(node->domain);
    zc_buf what = {0};
    zc_buf_printf(&what, "operator '" ZC_NAME "'", zc_text(node->op_type));
    if (*domain) zc_buf_printf(&what, " of domain '" ZC_NAME "'", domain);
    const char *why = zc_iop_refusal(domain, zc_text(node->op_type));
    if (why) zc_buf_printf(&what, ": %s", why);
    const char *text = what.failed ? NULL : zc_arena_strdup(&s->im->arena, what.data);
    zc_buf_fini(&what);
    return text ? note(s, text, "nodes", name) : zc_imp_nomem(s->im, "a report");
}

static zc_status reach(survey *s, const Onnx__FunctionProto *f)
{
    const Onnx__FunctionProto **key = zc_arena_alloc(&s->im->arena, 1, sizeof *key);
    bool added = false;
    if (!key) return zc_imp_nomem(s->im, "a report");
    *key = f;
    if (!zc_smap_add(&s->seen, (const char *)key, sizeof *key, 0, &added) ||
        (added && !ZC_VEC_PUSH(&s->functions, f)))
        return zc_imp_nomem(s->im, "a report");
    return ZC_OK;
}

static bool holds_strings(const Onnx__AttributeProto *a)
{
    return a->t && a->t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
}

static zc_status survey_node(survey *s, const zc_scope *scope, size_t i)
{
    const Onnx__NodeProto *node = scope->nodes[i];
    const zc_iop *iop = zc_iop_find(s->im, node->domain, zc_text(node->op_type), node->overload);
    if (!iop) return s->im->status;
    if (iop->known && iop->function) ZC_TRY(reach(s, iop->function));
    if (iop->known && !node->n_attribute) return ZC_OK; /* without making its name */
    const bool known = iop->known;
    const char *name = zc_scope_node_name(scope, i, &s->im->arena);
    if (!name) return zc_imp_nomem(s->im, "a report");
    if (!known) return survey_unsupported_op(s, node, name);
    for (size_t j = 0; j < node->n_attribute; j++) {
        const Onnx__AttributeProto *a = node->attribute[j];
        if (holds_strings(a)) ZC_TRY(note(s, "tensors of strings", "nodes", name));
        if (a->g) ZC_TRY(survey_graph(s, a->g, name));
    }
    return ZC_OK;
}

static zc_status survey_nodes(survey *s, Onnx__NodeProto **nodes, size_t n, const char *prefix)
{
    const zc_scope scope = {.nodes = nodes, .nnodes = n, .prefix = prefix};
    for (size_t i = 0; i < n; i++) ZC_TRY(survey_node(s, &scope, i));
    return ZC_OK;
}

static zc_status survey_types(survey *s, Onnx__ValueInfoProto **infos, size_t n, const char *where)
{
    for (size_t i = 0; i < n; i++) {
        const char *what = infos[i]->type ? zc_type_kind_unsupported(infos[i]->type) : NULL;
        if (what) ZC_TRY(note(s, what, where, zc_text(infos[i]->name)));
    }
    return ZC_OK;
}

/* Recursion is as deep as graphs are nested, which the pre-scan of the file bounds. */
static zc_status survey_graph(survey *s, const Onnx__GraphProto *graph, const char *prefix)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *t = graph->initializer[i];
        if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
            ZC_TRY(note(s, "tensors of strings", "initialisers", zc_text(t->name)));
    }
    /* Outputs are what operators give. */
    ZC_TRY(survey_types(s, graph->input, graph->n_input, "inputs"));
    return survey_nodes(s, graph->node, graph->n_node, prefix);
}

/* "not supported: operator 'Foo' in 3 nodes (a, b, c)" */
static zc_status report(zc_imp *im, const finding *f)
{
    zc_buf names = {0};
    size_t shown = f->count < NAMES_SHOWN ? f->count : NAMES_SHOWN;
    for (size_t i = 0; i < shown; i++)
        zc_buf_printf(&names, "%s%.128s", i ? ", " : "", f->names[i]);
    zc_status status =
        zc_fail(im->diag, ZC_ERR_UNSUPPORTED, f->names[0], "not supported: %s (in %zu %s: %s%s)",
                f->what, f->count, f->where, zc_text(names.data), shown < f->count ? ", ..." : "");
    zc_buf_fini(&names);
    return status;
}

static zc_status survey_all(survey *s)
{
    ZC_TRY(survey_graph(s, s->im->model->graph, NULL));
    for (size_t i = 0; i < s->functions.len; i++) {
        const Onnx__FunctionProto *f = s->functions.data[i];
        ZC_TRY(survey_nodes(s, f->node, f->n_node, zc_text(f->name)));
    }
    for (size_t i = 0; i < s->findings.len; i++) report(s->im, &s->findings.data[i]);
    return s->findings.len ? ZC_ERR_UNSUPPORTED : ZC_OK;
}

zc_status zc_imp_survey(zc_imp *im)
{
    survey s = {.im = im};
    zc_status status = survey_all(&s);
    zc_smap_fini(&s.index);
    zc_smap_fini(&s.seen);
    ZC_VEC_FINI(&s.findings);
    ZC_VEC_FINI(&s.functions);
    return status;
}
