#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/graph_run.h"

#include "cpu/kernel.h"

enum { OPERANDS_MAX = 64 };

static void run_node(const char *name, const zc_graph *g, const zc_node *n, bool reference,
                     zc_tensor *values)
{
    zc_tensor in[OPERANDS_MAX] = {{0}}, out[OPERANDS_MAX] = {{0}};
    zc_diag *diag = zc_diag_create();
    assert_true(n->nin <= OPERANDS_MAX && n->nout <= OPERANDS_MAX);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) in[i] = values[n->in[i]];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) out[i].dtype = zc_val(g, n->out[i])->type.dtype;
    if (zc_cpu_eval(n->op, n->attrs, n->nin, in, n->nout, out, reference, n->name, diag) != ZC_OK)
        fail_msg("%s: %s", name, zc_diag_text(diag, 0));
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) values[n->out[i]] = out[i];
    zc_diag_destroy(&diag);
}

void graph_run(const char *name, const zc_graph *g, bool reference, zc_tensor *values)
{
    for (size_t i = 0; i < g->values.len; i++)
        if (zc_val(g, (zc_vid)i)->data) values[i] = *zc_val(g, (zc_vid)i)->data;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        run_node(name, g, zc_node_at(g, g->top.nodes.data[i]), reference, values);
}

void graph_run_free(const zc_graph *g, zc_vid kept, zc_tensor *values)
{
    for (size_t i = 0; i < g->values.len; i++)
        if (i != kept && !zc_val(g, (zc_vid)i)->data) free(values[i].data);
}
