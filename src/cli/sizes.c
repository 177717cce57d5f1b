#include "cli/sizes.h"

#include <stdlib.h>
#include <string.h>

#include "op/dim_poly.h"

static zc_dim *shape_of(const cli_sizes *s, size_t i)
{
    return s->shapes + i * ZC_RANK_MAX;
}

static zc_dim parse(zc_dims *t, const zc_io_info *io, int d)
{
    zc_dim dim;
    const char *text = io->dim_texts[d];
    if (io->dims[d] >= 0) return zc_dim_const(io->dims[d]);
    size_t len = text ? strlen(text) : 0;
    return len && zc_dim_parse(t, text, len, &dim) == len ? dim : zc_dim_fresh(t);
}

/* The node of the symbol of that name; the number of nodes when there is none. */
static size_t find(const cli_sizes *s, const char *name)
{
    size_t i = 0;
    for (; i < s->dims.count; i++) {
        const zc_dim_node *n = &s->dims.nodes[i];
        if (n->kind == ZC_DIM_SYM && n->is_input && strcmp(n->name, name) == 0) break;
    }
    return i;
}

static zc_status unknown(const cli_sizes *s, const char *name, zc_diag *diag)
{
    zc_buf names = {0};
    for (size_t i = 0; i < s->dims.count; i++)
        if (s->dims.nodes[i].kind == ZC_DIM_SYM && s->dims.nodes[i].is_input)
            zc_buf_printf(&names, "%s%s", names.len ? ", " : "", s->dims.nodes[i].name);
    zc_status status =
        zc_fail(diag, ZC_ERR_ARG, name,
                "no input of the plan has a symbolic dimension of this name (it has %s)",
                names.len ? names.data : "none");
    zc_buf_fini(&names);
    return status;
}

zc_status cli_sizes_open(const zc_plan *plan, const cli_dims *given, cli_sizes *out, zc_diag *diag)
{
    zc_plan_info info;
    *out = (cli_sizes){.n = 0};
    zc_dims_init(&out->dims);
    ZC_TRY(zc_plan_info_get(plan, &info));
    out->inputs = zc_calloc(info.inputs, sizeof *out->inputs);
    out->shapes = zc_calloc(info.inputs, ZC_RANK_MAX * sizeof *out->shapes);
    if (!out->inputs || !out->shapes) return zc_fail_nomem(diag, "inputs", info.inputs);
    for (out->n = 0; out->n < info.inputs; out->n++) {
        zc_io_info *io = &out->inputs[out->n];
        ZC_TRY(zc_plan_input(plan, out->n, io, diag));
        for (int d = 0; d < io->rank; d++) shape_of(out, out->n)[d] = parse(&out->dims, io, d);
    }
    out->values = zc_calloc(out->dims.count, sizeof *out->values);
    out->fixed = zc_calloc(out->dims.count, sizeof *out->fixed);
    if (!out->values || !out->fixed || out->dims.failed)
        return zc_fail_nomem(diag, "dimensions", out->dims.count);
    for (size_t i = 0; i < out->dims.count; i++) out->values[i] = -1;
    for (size_t i = 0; i < given->n; i++) {
        size_t at = find(out, given->v[i].name);
        if (at == out->dims.count) return unknown(out, given->v[i].name, diag);
        out->values[at] = given->v[i].value;
        out->fixed[at] = true;
    }
    return ZC_OK;
}

void cli_sizes_close(cli_sizes *s)
{
    zc_dims_fini(&s->dims);
    free(s->inputs);
    free(s->shapes);
    free(s->values);
    free(s->fixed);
}

zc_status cli_sizes_learn(cli_sizes *s, size_t i, const zc_tensor *value, zc_diag *diag)
{
    /* A wrong rank is the session's to report. */
    for (int d = 0; value->rank == s->inputs[i].rank && d < value->rank; d++) {
        zc_dim dim = shape_of(s, i)[d];
        if (zc_dim_is_const(dim) || s->dims.nodes[dim.e - 1].kind != ZC_DIM_SYM) continue;
        int64_t *size = &s->values[dim.e - 1];
        if (s->fixed[dim.e - 1] && *size != value->dims[d])
            return zc_fail(diag, ZC_ERR_ARG, s->inputs[i].name,
                           "dimension %d is %s: got %lld in the file, need %lld as --dim says", d,
                           s->dims.nodes[dim.e - 1].name, (long long)value->dims[d],
                           (long long)*size);
        if (*size < 0) *size = value->dims[d];
    }
    return ZC_OK;
}

void cli_sizes_assume(cli_sizes *s, zc_buf *told)
{
    for (size_t i = 0; i < s->dims.count; i++) {
        const zc_dim_node *n = &s->dims.nodes[i];
        if (n->kind != ZC_DIM_SYM || s->values[i] >= 0) continue;
        s->values[i] = 1;
        if (n->is_input) zc_buf_printf(told, "%s%s=1", told->len ? ", " : "", n->name);
    }
}

/* False when it depends on what is not known, or has no value for what is. */
static bool value_of(const cli_sizes *s, zc_dim d, int64_t *out)
{
    int64_t a, b;
    if (!zc_dim_is_const(d) && s->dims.nodes[d.e - 1].kind != ZC_DIM_SYM) {
        const zc_dim_node *n = &s->dims.nodes[d.e - 1];
        return value_of(s, n->a, &a) && value_of(s, n->b, &b) && zc_dim_apply(n->kind, a, b, out);
    }
    *out = zc_dim_value(d, s->values);
    return *out >= 0;
}

void cli_sizes_shape(const cli_sizes *s, size_t i, int64_t dims[ZC_RANK_MAX])
{
    for (int d = 0; d < s->inputs[i].rank; d++)
        if (!value_of(s, shape_of(s, i)[d], &dims[d]) || dims[d] < 0) dims[d] = -1;
}
