#include "passes/kept.h"

#include <stdlib.h>

void zc_kept_fini(zc_kept *k)
{
    for (size_t i = 0; i < k->list.len; i++) free(k->list.data[i].made.data);
    ZC_VEC_FINI(&k->list);
}

static const zc_kept_constant *find(const zc_kept *k, const zc_graph *g, zc_vid v, int form)
{
    const void *from = zc_val(g, v)->data->data;
    for (size_t i = 0; k && i < k->list.len; i++)
        if (k->list.data[i].from == from && k->list.data[i].form == form) return &k->list.data[i];
    return NULL;
}

bool zc_kept_has(const zc_kept *k, const zc_graph *g, zc_vid v, int form)
{
    return find(k, g, v, form);
}

zc_vid zc_kept_use(const zc_kept *k, zc_graph *g, zc_vid v, int form)
{
    const zc_kept_constant *c = find(k, g, v, form);
    return c ? zc_graph_lend(g, zc_val(g, v)->name, &c->made) : 0;
}

zc_vid zc_kept_take(zc_kept *k, zc_graph *g, zc_vid v, int form, const zc_tensor *made)
{
    const zc_kept_constant c = {zc_val(g, v)->data->data, form, *made};
    const char *name = zc_val(g, v)->name;
    size_t bytes, sum;
    if (!k || !c.from || zc_graph_owns(g, c.from) || !zc_tensor_bytes(made, &bytes) ||
        !zc_add_size(k->bytes, bytes, &sum) || sum > k->most || !ZC_VEC_PUSH(&k->list, c))
        return zc_graph_const(g, name, made, true);
    k->bytes = sum;
    return zc_graph_lend(g, name, made);
}
