/* The walk over a scope's nodes. */
#include <stdlib.h>

#include "import/composite.h"

#define INPUTS_MAX 1000000

/* ---- names ---- */

/* What a value of an inlined function is called in the graph. */
static zc_status inner_name(zc_imp *im, const zc_scope *scope, zc_name *name, const zc_inode *call,
                            const zc_smap *outer)
{
    const zc_smap_slot *s = outer ? zc_smap_find(outer, name->text, strlen(name->text)) : NULL;
    if (s) {
        const zc_name *to = zc_scope_own(im->scope, call->out[s->value]);
        name->as = to->as ? to->as : to->text;
        return ZC_OK;
    }
    zc_buf buf = {0};
    zc_buf_printf(&buf, ZC_NAME "/" ZC_NAME, scope->prefix, name->text);
    name->as = buf.failed ? NULL : zc_arena_strndup(&im->arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    return name->as ? ZC_OK : zc_imp_nomem(im, "names");
}

zc_status zc_imp_declare(zc_imp *im, zc_scope *scope, const zc_inode *call, const zc_smap *outer)
{
    for (size_t i = 0; i < scope->nnodes; i++) {
        const Onnx__NodeProto *node = scope->nodes[i];
        for (size_t j = 0; j < node->n_output; j++) {
            const char *text = zc_text(node->output[j]);
            zc_name *name;
            if (!*text) continue;
            ZC_TRY(zc_scope_define(scope, text, NULL, i, &name, im->diag));
            if (scope->prefix) ZC_TRY(inner_name(im, scope, name, call, outer));
        }
    }
    return ZC_OK;
}

zc_status zc_imp_lookup(zc_imp *im, const char *text, const char *subject, zc_vid *out,
                        bool *poisoned)
{
    const zc_name *name = zc_scope_find(im->scope, text);
    *out = 0;
    if (!name || name->state == ZC_NAME_LATER)
        return zc_scope_missing(im->scope, text, subject, im->diag);
    if (name->state == ZC_NAME_DROPPED)
        return zc_fail(im->diag, ZC_ERR_UNSUPPORTED, subject,
                       "uses '" ZC_NAME "', an output that exists in training only", text);
    if (name->state == ZC_NAME_POISONED) *poisoned = true;
    if (name->state == ZC_NAME_READY) *out = name->vid;
    return ZC_OK;
}

/* ---- one node ---- */

static zc_status read_inputs(zc_imp *im, zc_inode *n, bool *poisoned)
{
    size_t count = n->proto->n_input;
    if (count > INPUTS_MAX || n->proto->n_output > INPUTS_MAX)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT, "too many inputs or outputs (need at most %d)",
                           INPUTS_MAX);
    n->cap_in = (int)count + ZC_INODE_SPARE;
    n->in = zc_arena_alloc(n->arena, (size_t)n->cap_in, sizeof *n->in);
    if (!n->in) return zc_imp_nomem(im, "inputs");
    for (size_t i = 0; i < count; i++) {
        const char *text = zc_text(n->proto->input[i]);
        if (*text) ZC_TRY(zc_imp_lookup(im, text, n->name, &n->in[i], poisoned));
    }
    n->nin = (int)count;
    while (n->nin && !n->in[n->nin - 1]) n->nin--;
    return ZC_OK;
}

static zc_status read_outputs(zc_imp *im, zc_inode *n)
{
    n->out = zc_arena_alloc(n->arena, n->proto->n_output, sizeof *n->out);
    if (!n->out) return zc_imp_nomem(im, "outputs");
    for (size_t i = 0; i < n->proto->n_output; i++) {
        n->out[i] = zc_text(n->proto->output[i]);
        if (*n->out[i]) n->nout = (int)i + 1;
    }
    return ZC_OK;
}

static zc_status import_known(zc_imp *im, zc_inode *n, bool *poisoned)
{
    const zc_iop *iop = zc_iop_find(im, n->proto->domain, n->op_type, n->proto->overload);
    if (!iop) return im->status;
    ZC_TRY(read_outputs(im, n));
    ZC_TRY(read_inputs(im, n, poisoned));
    if (*poisoned || !n->nout) return ZC_OK;
    if (!iop->composites) ZC_TRY(zc_need_tensors(im, n, n->in, (size_t)n->nin, "input"));
    ZC_TRY(zc_imp_version(im, n->domain, n->name, &n->version));
    ZC_TRY(zc_imp_attrs(im, n));
    if (iop->function) return zc_imp_inline(im, iop->function, n);
    return zc_iop_run(im, iop, n);
}

/* After something unsupported the walk goes on without these values, to find more of it. */
static void poison(zc_imp *im, const Onnx__NodeProto *proto)
{
    for (size_t i = 0; i < proto->n_output; i++) {
        zc_name *name =
            *zc_text(proto->output[i]) ? zc_scope_own(im->scope, proto->output[i]) : NULL;
        if (name) name->state = ZC_NAME_POISONED;
    }
}

static zc_status import_node(zc_imp *im, size_t i)
{
    zc_arena arena;
    zc_arena_init(&arena, 0);
    const Onnx__NodeProto *proto = im->scope->nodes[i];
    zc_inode n = {.proto = proto,
                  .arena = &arena,
                  .name = zc_scope_node_name(im->scope, i, &arena),
                  .domain = zc_imp_domain(proto->domain),
                  .op_type = zc_text(proto->op_type)};
    bool poisoned = false;
    const char *before = zc_diag_lend_subject(im->diag, n.name);
    zc_status status = n.name ? import_known(im, &n, &poisoned) : zc_imp_nomem(im, "names");
    zc_diag_lend_subject(im->diag, before);
    if (status == ZC_ERR_UNSUPPORTED) {
        im->unsupported++;
        im->status = status = ZC_OK;
        poisoned = true;
    }
    if (poisoned) poison(im, proto);
    im->status = status;
    zc_arena_fini(&arena);
    return status;
}

zc_status zc_imp_nodes(zc_imp *im)
{
    zc_scope *scope = im->scope;
    for (scope->at = 0; scope->at < scope->nnodes; scope->at++) {
        /* Before a node of the graph stands for it, so that calls of empty functions count too. */
        if (++im->visited > ZC_IMP_NODES_MAX)
            return zc_fail(im->diag, ZC_ERR_LIMIT, NULL,
                           "too many nodes, inlined functions counted (need at most %zu)",
                           ZC_IMP_NODES_MAX);
        ZC_TRY(import_node(im, scope->at));
    }
    return ZC_OK;
}
