#include "cli/ranges.h"

#include <stdlib.h>
#include <string.h>

/* An input's range along one dimension; -1: not given. */
typedef struct range {
    int64_t min, opt, max;
} range;

typedef struct taking {
    const cli_ranges *r;
    const zc_graph *g;
    cli_dims *dims;
    cli_profiles *profiles;
    zc_arena *names;
    zc_diag *diag;
} taking;

static const zc_fixed_shape *find(const cli_shapes *shapes, const char *name)
{
    for (size_t i = 0; i < shapes->n; i++)
        if (strcmp(shapes->v[i].input, name) == 0) return &shapes->v[i];
    return NULL;
}

/* Every name is an input of the model, and every rank its. */
static zc_status check(const taking *t, const cli_shapes *shapes)
{
    for (size_t i = 0; i < shapes->n; i++) {
        const zc_fixed_shape *s = &shapes->v[i];
        size_t k = 0;
        while (k < t->g->top.params.len && strcmp(t->g->input_names[k], s->input) != 0) k++;
        if (k == t->g->top.params.len)
            return zc_fail(t->diag, ZC_ERR_ARG, s->input, "the model has no input of this name");
        int rank = zc_val(t->g, t->g->top.params.data[k])->type.rank;
        if (rank >= 0 && rank != s->rank)
            return zc_fail(t->diag, ZC_ERR_ARG, s->input, "wrong rank (got %d, need %d)", s->rank,
                           rank);
    }
    return ZC_OK;
}

static zc_status add_dim(const taking *t, const char *name, int64_t value)
{
    for (size_t i = 0; i < t->dims->n; i++)
        if (strcmp(t->dims->v[i].name, name) == 0)
            return t->dims->v[i].value == value
                       ? ZC_OK
                       : zc_fail(t->diag, ZC_ERR_ARG, name, "two fixed sizes (got %lld, and %lld)",
                                 (long long)value, (long long)t->dims->v[i].value);
    if (t->dims->n == CLI_LIST_MAX)
        return zc_fail(t->diag, ZC_ERR_ARG, name, "too many fixed dimensions");
    t->dims->v[t->dims->n++] = (zc_fixed_dim){.name = name, .value = value};
    return ZC_OK;
}

static zc_status add_profile(const taking *t, const char *name, int64_t value)
{
    cli_profiles *p = t->profiles;
    size_t i = 0;
    while (i < p->n && strcmp(p->v[i].name, name) != 0) i++;
    if (i == CLI_PROFILES_MAX)
        return zc_fail(t->diag, ZC_ERR_ARG, name, "too many profiles (need at most %d)",
                       CLI_PROFILES_MAX);
    if (i == p->n) p->v[p->n++] = (zc_profile){.name = name, .values = p->sizes[i]};
    for (size_t k = 0; k < p->v[i].count; k++)
        if (p->sizes[i][k] == value) return ZC_OK;
    if (p->v[i].count == CLI_SIZES_MAX)
        return zc_fail(t->diag, ZC_ERR_ARG, name, "too many sizes (need at most %d)",
                       CLI_SIZES_MAX);
    p->sizes[i][p->v[i].count++] = value;
    return ZC_OK;
}

static zc_status take(const taking *t, const char *input, int d, zc_dim dim, range r)
{
    int64_t low = r.min < 0 ? r.opt : r.min, high = r.max < 0 ? r.opt : r.max;
    int64_t best = r.opt < 0 ? low : r.opt;
    if (low > best || best > high)
        return zc_fail(t->diag, ZC_ERR_ARG, input,
                       "dimension %d: the sizes do not ascend (got %lld, %lld, %lld)", d,
                       (long long)low, (long long)best, (long long)high);
    if (zc_dim_is_const(dim) && (low != dim.k || high != dim.k))
        return zc_fail(t->diag, ZC_ERR_ARG, input,
                       "wrong size of dimension %d (got %lld, need %lld)", d,
                       (long long)(low != dim.k ? low : high), (long long)dim.k);
    if (zc_dim_is_const(dim) || t->g->dims.nodes[dim.e - 1].kind != ZC_DIM_SYM) return ZC_OK;
    const char *name = zc_arena_strdup(t->names, t->g->dims.nodes[dim.e - 1].name);
    if (!name) return zc_fail_nomem(t->diag, input, 0);
    if (low == high) return add_dim(t, name, best);
    return t->r->has_gpu ? add_profile(t, name, best) : ZC_OK;
}

static zc_status take_input(const taking *t, size_t i)
{
    const char *name = t->g->input_names[i];
    const zc_type *type = &zc_val(t->g, t->g->top.params.data[i])->type;
    const zc_fixed_shape *min = find(t->r->min, name), *opt = find(t->r->opt, name),
                         *max = find(t->r->max, name);
    if ((!min || !max) && !opt) {
        if (!min && !max) return ZC_OK;
        return zc_fail(t->diag, ZC_ERR_ARG, name, "has --%sShapes alone (need --optShapes, too)",
                       min ? "min" : "max");
    }
    for (int d = 0; d < type->rank; d++)
        ZC_TRY(take(
            t, name, d, type->dims[d],
            (range){min ? min->dims[d] : -1, opt ? opt->dims[d] : -1, max ? max->dims[d] : -1}));
    return ZC_OK;
}

zc_status cli_take_ranges(const zc_model_source *model, const zc_compile_params *params,
                          const cli_ranges *ranges, cli_dims *dims, cli_profiles *profiles,
                          zc_arena *names, zc_diag *diag)
{
    zc_graph *g = NULL;
    ZC_TRY(zc_model_import(model, params, NULL, true, &g, diag));
    const taking t = {ranges, g, dims, profiles, names, diag};
    zc_status status = check(&t, ranges->min);
    if (status == ZC_OK) status = check(&t, ranges->opt);
    if (status == ZC_OK) status = check(&t, ranges->max);
    for (size_t i = 0; status == ZC_OK && i < g->top.params.len; i++) status = take_input(&t, i);
    zc_graph_destroy(&g);
    return status;
}
