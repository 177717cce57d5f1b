/* Graphs and their executable copies: a line of work that is replayed. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct hc_exec {
    uint64_t source; /* id of the graph it was made from */
    hc_work *work;
    unsigned count;
};

static uint64_t graph_ids;

hc_graph_t hc_graph_new(void)
{
    struct hc_graph *g = hc_new(HC_GRAPH, sizeof *g);
    if (g) g->id = ++graph_ids;
    return g;
}

bool hc_graph_add(hc_graph_t g, const hc_work *w)
{
    hc_node_t *nodes = realloc(g->nodes, (g->count + 1) * sizeof *nodes);
    if (!nodes) return false;
    g->nodes = nodes;
    struct hc_node *n = hc_new(HC_NODE, sizeof *n);
    if (!n) return false;
    if (!hc_work_copy(&n->work, w)) {
        hc_delete(n);
        return false;
    }
    n->graph = g;
    n->index = g->count;
    nodes[g->count++] = n;
    return true;
}

void hc_graph_delete(hc_graph_t g)
{
    for (unsigned i = 0; i < g->count; i++) {
        hc_work_free(&g->nodes[i]->work);
        hc_delete(g->nodes[i]);
    }
    free(g->nodes);
    hc_delete(g);
}

static void exec_delete(struct hc_exec *e)
{
    for (unsigned i = 0; i < e->count; i++) hc_work_free(&e->work[i]);
    free(e->work);
    hc_delete(e);
}

static hc_result instantiate(hc_exec_t *exec, hc_graph_t g)
{
    if (!exec) return HC_CUDA_ERROR_INVALID_VALUE;
    if (!hc_is(HC_GRAPH, g)) return HC_CUDA_ERROR_INVALID_HANDLE;
    struct hc_exec *e = hc_new(HC_EXEC, sizeof *e);
    if (!e) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    e->source = g->id;
    e->work = calloc(g->count + 1, sizeof *e->work);
    for (; e->work && e->count < g->count; e->count++)
        if (!hc_work_copy(&e->work[e->count], &g->nodes[e->count]->work)) break;
    if (!e->work || e->count < g->count) {
        exec_delete(e);
        return HC_CUDA_ERROR_OUT_OF_MEMORY;
    }
    *exec = e;
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphInstantiateWithFlags(hc_exec_t *exec, hc_graph_t graph, unsigned long long flags)
{
    (void)flags;
    HC_CALL(HC_NEEDS_CONTEXT, instantiate(exec, graph));
}

static hc_result launch(hc_exec_t e, hc_stream_t stream)
{
    hc_result r = HC_CUDA_SUCCESS;
    if (!hc_is(HC_EXEC, e)) return HC_CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < e->count && r == HC_CUDA_SUCCESS; i++)
        r = hc_submit(stream, &e->work[i]);
    return r;
}

hc_result cuGraphLaunch(hc_exec_t exec, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, launch(exec, stream));
}

hc_result cuGraphUpload(hc_exec_t exec, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, hc_is(HC_EXEC, exec) && (!stream || hc_is(HC_STREAM, stream))
                                  ? HC_CUDA_SUCCESS
                                  : HC_CUDA_ERROR_INVALID_HANDLE);
}

static hc_result exec_destroy(hc_exec_t e)
{
    if (!hc_is(HC_EXEC, e)) return HC_CUDA_ERROR_INVALID_HANDLE;
    exec_delete(e);
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphExecDestroy(hc_exec_t exec)
{
    HC_CALL(HC_NEEDS_CONTEXT, exec_destroy(exec));
}

static hc_result graph_destroy(hc_graph_t g)
{
    if (!hc_is(HC_GRAPH, g)) return HC_CUDA_ERROR_INVALID_HANDLE;
    hc_graph_delete(g);
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphDestroy(hc_graph_t graph)
{
    HC_CALL(HC_NEEDS_CONTEXT, graph_destroy(graph));
}

static bool replace(hc_work *old, const hc_work *by)
{
    hc_work w;
    if (!hc_work_copy(&w, by)) return false;
    hc_work_free(old);
    *old = w;
    return true;
}

static hc_result update(hc_exec_t e, hc_graph_t g, hc_update_info *info)
{
    if (!info) return HC_CUDA_ERROR_INVALID_VALUE;
    *info = (hc_update_info){.result = HC_CU_GRAPH_EXEC_UPDATE_SUCCESS};
    if (!hc_is(HC_EXEC, e) || !hc_is(HC_GRAPH, g)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (e->count != g->count) {
        info->result = HC_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return HC_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (unsigned i = 0; i < g->count; i++) {
        if (e->work[i].type == g->nodes[i]->work.type) continue;
        info->result = HC_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        info->error_node = g->nodes[i];
        return HC_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (unsigned i = 0; i < g->count; i++)
        if (!replace(&e->work[i], &g->nodes[i]->work)) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    e->source = g->id;
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphExecUpdate_v2(hc_exec_t exec, hc_graph_t graph, hc_update_info *info)
{
    HC_CALL(HC_NEEDS_CONTEXT, update(exec, graph, info));
}

static hc_result get_nodes(hc_graph_t g, hc_node_t *nodes, size_t *count)
{
    if (!hc_is(HC_GRAPH, g)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!count) return HC_CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < g->count ? g->nodes[i] : NULL;
    if (!nodes || *count > g->count) *count = g->count;
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphGetNodes(hc_graph_t graph, hc_node_t *nodes, size_t *count)
{
    HC_CALL(HC_NEEDS_CONTEXT, get_nodes(graph, nodes, count));
}

static hc_result node_type(hc_node_t node, unsigned *type)
{
    if (!hc_is(HC_NODE, node)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!type) return HC_CUDA_ERROR_INVALID_VALUE;
    *type = node->work.type;
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphNodeGetType(hc_node_t node, unsigned *type)
{
    HC_CALL(HC_NEEDS_CONTEXT, node_type(node, type));
}

static bool is_kernel_node(hc_node_t node)
{
    return hc_is(HC_NODE, node) && node->work.type == HC_CU_GRAPH_NODE_TYPE_KERNEL;
}

static hc_result get_params(hc_node_t node, hc_kernel_params *p)
{
    if (!is_kernel_node(node)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!p) return HC_CUDA_ERROR_INVALID_VALUE;
    const hc_launch *l = &node->work.launch;
    *p = (hc_kernel_params){.func = l->function,
                            .grid_x = l->grid.x,
                            .grid_y = l->grid.y,
                            .grid_z = l->grid.z,
                            .block_x = l->block.x,
                            .block_y = l->block.y,
                            .block_z = l->block.z,
                            .smem = l->smem,
                            .params = l->params};
    return HC_CUDA_SUCCESS;
}

hc_result cuGraphKernelNodeGetParams_v2(hc_node_t node, hc_kernel_params *params)
{
    HC_CALL(HC_NEEDS_CONTEXT, get_params(node, params));
}

static hc_result set_params(hc_exec_t e, hc_node_t node, const hc_kernel_params *p)
{
    if (!hc_is(HC_EXEC, e) || !is_kernel_node(node)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!p || p->extra || node->graph->id != e->source) return HC_CUDA_ERROR_INVALID_VALUE;
    hc_work w = {.type = HC_CU_GRAPH_NODE_TYPE_KERNEL,
                 .launch = {.function = p->func,
                            .grid = {p->grid_x, p->grid_y, p->grid_z},
                            .block = {p->block_x, p->block_y, p->block_z},
                            /* attributes, not parameters */ .cluster = node->work.launch.cluster,
                            .overlaps = node->work.launch.overlaps,
                            .smem = p->smem,
                            .params = p->params}};
    hc_result r = hc_check_launch(&w.launch);
    if (r != HC_CUDA_SUCCESS) return r;
    return replace(&e->work[node->index], &w) ? HC_CUDA_SUCCESS : HC_CUDA_ERROR_OUT_OF_MEMORY;
}

hc_result cuGraphExecKernelNodeSetParams_v2(hc_exec_t exec, hc_node_t node,
                                            const hc_kernel_params *params)
{
    HC_CALL(HC_NEEDS_CONTEXT, set_params(exec, node, params));
}

static void clear_graph(void *p, size_t size)
{
    (void)size;
    hc_graph_delete(p);
}

static void clear_exec(void *p, size_t size)
{
    (void)size;
    exec_delete(p);
}

void hc_graphs_clear(void)
{
    hc_for_each(HC_GRAPH, clear_graph);
    hc_for_each(HC_EXEC, clear_exec);
}
