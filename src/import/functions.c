/* Model-local functions: found by domain, name and overload, and inlined where they are called. */
#include "import/importer.h"

#define OPSETS_MAX 1024

void zc_imp_function_key(zc_buf *out, const char *domain, const char *name, const char *overload)
{
    zc_buf_printf(out, "%s\x1f%s\x1f%s", zc_imp_domain(domain), zc_text(name), zc_text(overload));
}

static const char *function_key(zc_imp *im, const Onnx__FunctionProto *f)
{
    zc_buf buf = {0};
    zc_imp_function_key(&buf, f->domain, f->name, f->overload);
    const char *key = buf.failed ? NULL : zc_arena_strndup(&im->arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    return key;
}

static zc_status check_opsets(zc_imp *im, Onnx__OperatorSetIdProto **opsets, size_t n,
                              const char *subject)
{
    if (n > OPSETS_MAX)
        return zc_fail(im->diag, ZC_ERR_LIMIT, subject,
                       "too many operator sets (got %zu, need at most %d)", n, OPSETS_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *domain = zc_imp_domain(opsets[i]->domain);
        long long version = opsets[i]->has_version ? (long long)opsets[i]->version : 0;
        /* Once more with the same version, as skl2onnx writes it, does no harm. */
        for (size_t j = 0; j < i; j++)
            if (strcmp(zc_imp_domain(opsets[j]->domain), domain) == 0 &&
                opsets[j]->version != opsets[i]->version)
                return zc_fail(im->diag, ZC_ERR_MODEL, subject,
                               "operator set '" ZC_NAME
                               "' is imported twice (versions %lld and %lld)",
                               domain, (long long)opsets[j]->version, version);
        long long max = *domain ? INT64_MAX : ZC_OPSET_MAX;
        if (version < ZC_OPSET_MIN || version > max)
            return zc_fail(im->diag, version < ZC_OPSET_MIN ? ZC_ERR_MODEL : ZC_ERR_UNSUPPORTED,
                           subject,
                           "version of operator set '" ZC_NAME "' (got %lld, need %d to %lld)",
                           *domain ? domain : "ai.onnx", version, ZC_OPSET_MIN, max);
    }
    return ZC_OK;
}

zc_status zc_imp_functions(zc_imp *im)
{
    ZC_TRY(check_opsets(im, im->model->opset_import, im->model->n_opset_import, NULL));
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        const char *key = function_key(im, f);
        bool added;
        if (!key || !zc_smap_add(&im->functions, key, strlen(key), i, &added))
            return zc_imp_nomem(im, "functions");
        if (!added)
            return zc_fail(im->diag, ZC_ERR_MODEL, zc_text(f->name),
                           "the function is defined twice (domain '" ZC_NAME "', overload '" ZC_NAME
                           "')",
                           zc_text(f->domain), zc_text(f->overload));
        ZC_TRY(check_opsets(im, f->opset_import, f->n_opset_import, zc_text(f->name)));
    }
    return ZC_OK;
}

/* ---- inlining ---- */

static zc_status refuse_recursion(zc_imp *im, const zc_inode *n, const Onnx__FunctionProto *f)
{
    const zc_frame *again = im->frame;
    while (again && again->function != f) again = again->caller;
    if (!again) return ZC_OK;
    zc_buf chain = {0};
    zc_buf_printf(&chain, ZC_NAME, zc_text(f->name));
    /* Frames run from the innermost call outwards; the chain reads the same way. */
    for (const zc_frame *at = im->frame; at != again->caller; at = at->caller)
        zc_buf_printf(&chain, " <- " ZC_NAME, zc_text(at->function->name));
    zc_status status =
        zc_imp_fail(im, n, ZC_ERR_MODEL, "a function calls itself: %s", zc_text(chain.data));
    zc_buf_fini(&chain);
    return status;
}

static zc_status check_call(zc_imp *im, const zc_inode *n, const Onnx__FunctionProto *f)
{
    ZC_TRY(refuse_recursion(im, n, f));
    if (im->depth >= ZC_IMP_DEPTH_MAX)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT,
                           "functions and graphs are nested too deeply (need at most %d)",
                           ZC_IMP_DEPTH_MAX);
    if ((size_t)n->nin > f->n_input || (size_t)n->nout > f->n_output)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "the call does not fit function '" ZC_NAME
                           "' (got %d inputs and %d outputs, need at most %zu and %zu)",
                           zc_text(f->name), n->nin, n->nout, f->n_input, f->n_output);
    return ZC_OK;
}

static bool is_declared(const Onnx__FunctionProto *f, const char *attr)
{
    for (size_t i = 0; i < f->n_attribute; i++)
        if (strcmp(zc_text(f->attribute[i]), attr) == 0) return true;
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (strcmp(zc_text(f->attribute_proto[i]->name), attr) == 0) return true;
    return false;
}

static zc_status check_attrs(zc_imp *im, const zc_inode *n, const Onnx__FunctionProto *f)
{
    for (int i = 0; i < n->nattrs; i++)
        if (!is_declared(f, n->attr_names[i]))
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "function '" ZC_NAME "' has no attribute '" ZC_NAME "'",
                               zc_text(f->name), n->attr_names[i]);
    return ZC_OK;
}

static zc_status define_inputs(zc_imp *im, const zc_inode *n, const Onnx__FunctionProto *f,
                               zc_scope *scope)
{
    for (size_t i = 0; i < f->n_input; i++) {
        zc_name *name;
        ZC_TRY(zc_scope_define(scope, zc_text(f->input[i]), "input", ZC_NO_NODE, &name, im->diag));
        name->vid = zc_imp_in(n, (int)i);
        name->state = name->vid ? ZC_NAME_READY : ZC_NAME_ABSENT;
    }
    return ZC_OK;
}

/* The function's names for the outputs that the call wants, with the call's names for them. */
static zc_status map_outputs(zc_imp *im, const zc_inode *n, const Onnx__FunctionProto *f,
                             zc_smap *outer)
{
    for (int i = 0; i < n->nout; i++) {
        const char *inner = zc_text(f->output[i]);
        bool added;
        if (!*n->out[i]) continue;
        if (!zc_smap_add(outer, inner, strlen(inner), (size_t)i, &added))
            return zc_imp_nomem(im, "names");
    }
    return ZC_OK;
}

static zc_status bind_outputs(zc_imp *im, zc_inode *n, const Onnx__FunctionProto *f,
                              zc_scope *inner, zc_scope *outer)
{
    for (int i = 0; i < n->nout; i++) {
        if (!*n->out[i]) continue;
        zc_name *from = zc_scope_own(inner, zc_text(f->output[i]));
        if (!from || from->state == ZC_NAME_LATER || from->state == ZC_NAME_ABSENT)
            return zc_imp_fail(im, n, ZC_ERR_MODEL,
                               "output '" ZC_NAME "' of function '" ZC_NAME "' is never produced",
                               zc_text(f->output[i]), zc_text(f->name));
        zc_name *to = zc_scope_own(outer, n->out[i]);
        to->state = from->state;
        to->vid = from->vid;
    }
    n->done = true;
    return ZC_OK;
}

static zc_status inline_body(zc_imp *im, const Onnx__FunctionProto *f, zc_inode *n, zc_scope *body)
{
    zc_scope *caller = im->scope;
    zc_frame frame = {.caller = im->frame, .function = f, .call = n};
    zc_smap outer = {0};
    zc_status status = define_inputs(im, n, f, body);
    if (status == ZC_OK) status = map_outputs(im, n, f, &outer);
    if (status == ZC_OK) status = zc_imp_declare(im, body, n, &outer);
    zc_smap_fini(&outer);
    if (status != ZC_OK) return status;
    im->frame = &frame;
    im->scope = body;
    im->depth++;
    status = zc_imp_nodes(im);
    im->depth--;
    im->scope = caller;
    im->frame = frame.caller;
    return status == ZC_OK ? bind_outputs(im, n, f, body, caller) : status;
}

zc_status zc_imp_inline(zc_imp *im, const Onnx__FunctionProto *f, zc_inode *n)
{
    ZC_TRY(check_call(im, n, f));
    ZC_TRY(check_attrs(im, n, f));
    zc_scope body = {.nodes = f->node, .nnodes = f->n_node, .prefix = n->name};
    zc_status status = inline_body(im, f, n, &body);
    zc_scope_fini(&body);
    return status;
}
