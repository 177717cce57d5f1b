/* The text form of a graph: what parses, prints to text that parses to a graph that means the same.
 */
#include <string.h>

#include "fuzz.h"
#include "ir/graph.h"

/* The values of all dimension expressions when symbols have values that follow from their names;
 * NULL: one overflows or divides by zero. */
static int64_t *dim_values(const zc_graph *g)
{
    int64_t *values = calloc(g->dims.count + 1, sizeof *values);
    size_t bad;
    for (size_t i = 0; values && i < g->dims.count; i++) {
        const zc_dim_node *node = &g->dims.nodes[i];
        if (node->kind != ZC_DIM_SYM) continue;
        unsigned hash = 7;
        for (const char *c = node->is_input ? node->name : "?"; *c; c++)
            hash = hash * 31 + (uint8_t)*c;
        values[i] = hash % 97 + 1;
    }
    if (values && zc_dims_eval(g->dims.nodes, g->dims.count, values, &bad)) return values;
    free(values);
    return NULL;
}

/* Inputs have the same shapes: the same expressions, however they are written. */
static void check_inputs(const zc_graph *a, const zc_graph *b)
{
    int64_t *in_a = dim_values(a), *in_b = dim_values(b);
    FUZZ_CHECK(a->top.params.len == b->top.params.len);
    for (size_t i = 0; in_a && in_b && i < a->top.params.len; i++) {
        const zc_type *ta = &zc_val(a, a->top.params.data[i])->type;
        const zc_type *tb = &zc_val(b, b->top.params.data[i])->type;
        FUZZ_CHECK(ta->dtype == tb->dtype && ta->rank == tb->rank);
        for (int d = 0; d < ta->rank; d++)
            FUZZ_CHECK(zc_dim_value(ta->dims[d], in_a) == zc_dim_value(tb->dims[d], in_b));
    }
    free(in_a);
    free(in_b);
}

static void check_round_trip(const zc_graph *g, zc_diag *diag)
{
    zc_buf once = {0};
    zc_graph *again = NULL;
    zc_graph_print(g, true, &once);
    if (once.failed || !once.data) {
        zc_buf_fini(&once);
        return;
    }
    zc_status status = zc_graph_parse(once.data, once.len, &again, diag);
    if (status != ZC_OK) fprintf(stderr, "%s\n%s\n", zc_diag_text(diag, 0), once.data);
    /* An expression that is nested too deeply prints as "...". */
    FUZZ_CHECK(status == ZC_OK || status == ZC_ERR_NOMEM || strstr(once.data, "..."));
    if (status == ZC_OK) check_inputs(g, again);
    zc_graph_destroy(&again);
    zc_buf_fini(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    if (!diag) return 0;
    zc_status status = zc_graph_parse((const char *)data, size, &g, diag);
    FUZZ_CHECK((status == ZC_OK) == (g != NULL));
    fuzz_check_words(diag, status);
    FUZZ_CHECK(status == ZC_OK || *zc_diag_text(diag, 0));
    if (g) check_round_trip(g, diag);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
    return 0;
}
