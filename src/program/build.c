#include <string.h>

#include "program/build.h"

typedef struct builder {
    const zc_graph *g;
    zc_arena *arena;
    zc_diag *diag;
    uint32_t *ids; /* by graph value: the program's index, 0 when not met yet */
    zc_pvalue *values;
    zc_pstep *steps;
    zc_pblock *blocks;
    uint32_t nvalues, nsteps, nblocks;
    uint32_t *constants; /* those that steps read, by mark_of; 0: free */
    size_t places;       /* a power of two */
} builder;

static zc_status nomem(const builder *b)
{
    return zc_fail_nomem(b->diag, "plan", 0);
}

/* Programs index values with one more entry for constants that only attributes use. */
static zc_status allocate(builder *b)
{
    size_t attr_constants = 0;
    for (size_t n = 1; n < b->g->nodes.len; n++)
        attr_constants += (size_t)zc_op_get(b->g->nodes.data[n].op)->field_count;
    size_t values = b->g->values.len + attr_constants;
    b->ids = zc_arena_alloc(b->arena, b->g->values.len, sizeof *b->ids);
    b->values = zc_arena_alloc(b->arena, values, sizeof *b->values);
    b->steps = zc_arena_alloc(b->arena, b->g->nodes.len, sizeof *b->steps);
    b->blocks = zc_arena_alloc(b->arena, b->g->blocks.len + 1, sizeof *b->blocks);
    for (b->places = 64; b->places < 2 * values;) b->places *= 2;
    b->constants = zc_arena_alloc(b->arena, b->places, sizeof *b->constants);
    if (!b->ids || !b->values || !b->steps || !b->blocks || !b->constants) return nomem(b);
    b->values[0] = (zc_pvalue){.kind = ZC_P_ABSENT, .name = "", .rank = -1};
    b->nvalues = 1;
    return ZC_OK;
}

static zc_status add_constant(builder *b, const char *name, const zc_tensor *t, uint32_t *out)
{
    size_t bytes;
    zc_dim *dims = zc_arena_alloc(b->arena, (size_t)t->rank, sizeof *dims);
    if (!dims || !zc_tensor_bytes(t, &bytes)) return nomem(b);
    for (int d = 0; d < t->rank; d++) dims[d] = zc_dim_const(t->dims[d]);
    if (bytes && !t->data)
        return zc_fail(b->diag, ZC_ERR_MODEL, name, "has no data (its external file is absent)");
    *out = b->nvalues;
    b->values[b->nvalues++] = (zc_pvalue){.kind = ZC_P_CONST,
                                          .name = name,
                                          .dtype = t->dtype,
                                          .rank = t->rank,
                                          .dims = dims,
                                          .data = t->data,
                                          .bytes = bytes};
    return ZC_OK;
}

/* Tells most constants apart: type, shape and some of the bytes. */
static uint64_t mark_of(const zc_tensor *t, size_t bytes)
{
    enum { SAMPLES = 64 };
    const uint8_t *data = t->data;
    uint64_t h = (uint64_t)t->dtype;
    for (int d = 0; d < t->rank; d++) h = (h ^ (uint64_t)t->dims[d]) * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; data && i < bytes; i += bytes / SAMPLES + 1)
        h = (h ^ data[i]) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

static bool is_constant(const zc_pvalue *v, const zc_tensor *t, size_t bytes)
{
    bool same = v->dtype == t->dtype && v->rank == t->rank && v->bytes == bytes;
    for (int d = 0; same && d < t->rank; d++) same = v->dims[d].k == t->dims[d];
    return same && (!bytes || (t->data && memcmp(v->data, t->data, bytes) == 0));
}

/* Equal ones are one: a weight that several steps wanted in the same other layout was turned for
 * each of them. */
static zc_status use_constant(builder *b, const char *name, const zc_tensor *t, uint32_t *out)
{
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes)) return nomem(b);
    size_t at = (size_t)mark_of(t, bytes) & (b->places - 1);
    while (b->constants[at] && !is_constant(&b->values[b->constants[at]], t, bytes))
        at = (at + 1) & (b->places - 1);
    if (!b->constants[at]) ZC_TRY(add_constant(b, name, t, &b->constants[at]));
    *out = b->constants[at];
    return ZC_OK;
}

static zc_status define(builder *b, zc_vid v, zc_pkind kind)
{
    if (!v) return ZC_OK;
    const zc_value *value = zc_val(b->g, v);
    int rank = value->type.rank;
    zc_dim *dims =
        zc_arena_dup(b->arena, value->type.dims, rank > 0 ? (size_t)rank : 0, sizeof *dims);
    if (!dims) return nomem(b);
    b->ids[v] = b->nvalues;
    b->values[b->nvalues++] = (zc_pvalue){
        .kind = kind, .name = value->name, .dtype = value->type.dtype, .rank = rank, .dims = dims};
    return ZC_OK;
}

static zc_status use(builder *b, zc_vid v, uint32_t *out)
{
    if (v && !b->ids[v]) {
        const zc_value *value = zc_val(b->g, v);
        if (value->kind != ZC_VALUE_CONST)
            return zc_fail(b->diag, ZC_ERR_INTERNAL, value->name, "is used before it is defined");
        ZC_TRY(use_constant(b, value->name, value->data, &b->ids[v]));
    }
    *out = v ? b->ids[v] : 0;
    return ZC_OK;
}

static zc_status use_all(builder *b, const zc_vid *v, size_t n, const uint32_t **out)
{
    uint32_t *ids = zc_arena_alloc(b->arena, n, sizeof *ids);
    if (!ids) return nomem(b);
    for (size_t i = 0; i < n; i++) ZC_TRY(use(b, v[i], &ids[i]));
    *out = ids;
    return ZC_OK;
}

static zc_status define_all(builder *b, const zc_vid *v, size_t n, zc_pkind kind,
                            const uint32_t **out)
{
    for (size_t i = 0; i < n; i++) ZC_TRY(define(b, v[i], kind));
    return use_all(b, v, n, out);
}

/* Tensor attributes become constants of the program. */
static zc_status add_attr_constants(builder *b, const zc_node *node)
{
    const zc_op_info *info = zc_op_get(node->op);
    for (int i = 0; i < info->field_count; i++) {
        if (info->fields[i].kind != ZC_ATTR_TENSOR) continue;
        const zc_tensor *t = *(const zc_tensor *const *)zc_attr_at(info, node->attrs, i);
        uint32_t id;
        if (t) ZC_TRY(add_constant(b, node->name, t, &id));
    }
    return ZC_OK;
}

static zc_status add_block(builder *b, const zc_block *block, uint32_t id);

static zc_status add_step(builder *b, const zc_node *node, uint32_t *out)
{
    zc_pstep s = {.op = node->op,
                  .attrs = node->attrs,
                  .nin = (uint32_t)node->nin,
                  .nout = (uint32_t)node->nout,
                  .nblocks = (uint32_t)node->nregions,
                  .nprov = (uint32_t)node->nprov,
                  .name = node->name,
                  .why = "",
                  .tf32 = node->tf32,
                  .prov = node->prov};
    ZC_TRY(use_all(b, node->in, s.nin, &s.in));
    ZC_TRY(add_attr_constants(b, node));
    uint32_t *blocks = zc_arena_alloc(b->arena, s.nblocks, sizeof *blocks);
    if (!blocks) return nomem(b);
    for (uint32_t i = 0; i < s.nblocks; i++) {
        blocks[i] = b->nblocks++;
        ZC_TRY(add_block(b, node->regions[i], blocks[i]));
    }
    s.blocks = blocks;
    ZC_TRY(define_all(b, node->out, s.nout, ZC_P_STEP, &s.out));
    *out = b->nsteps;
    b->steps[b->nsteps++] = s;
    return ZC_OK;
}

/* Recursion is as deep as the importer let regions nest. */
static zc_status add_block(builder *b, const zc_block *block, uint32_t id)
{
    zc_pblock p = {.nparams = (uint32_t)block->params.len,
                   .nsteps = (uint32_t)block->nodes.len,
                   .nouts = (uint32_t)block->outputs.len};
    ZC_TRY(define_all(b, block->params.data, p.nparams, id ? ZC_P_PARAM : ZC_P_INPUT, &p.params));
    uint32_t *steps = zc_arena_alloc(b->arena, p.nsteps, sizeof *steps);
    if (!steps) return nomem(b);
    for (uint32_t i = 0; i < p.nsteps; i++)
        ZC_TRY(add_step(b, zc_node_at(b->g, block->nodes.data[i]), &steps[i]));
    p.steps = steps;
    ZC_TRY(use_all(b, block->outputs.data, p.nouts, &p.outs));
    b->blocks[id] = p;
    return ZC_OK;
}

static zc_status unknown_dim(const builder *b, size_t i, int d)
{
    zc_buf text = {0};
    zc_dim_print(&b->g->dims, zc_val(b->g, b->g->top.params.data[i])->type.dims[d], &text);
    zc_status status =
        text.failed
            ? nomem(b)
            : zc_fail(b->diag, ZC_ERR_MODEL, b->g->input_names[i],
                      "dimension %d is " ZC_NAME
                      ", but no input has a dimension that is one of its symbols alone: fix it "
                      "(--dim, --shape)",
                      d, text.data);
    zc_buf_fini(&text);
    return status;
}

/* A run learns its symbols from the dimensions of inputs that are one symbol alone: expressions of
 * others would have no value. */
static zc_status check_symbols(const builder *b)
{
    const zc_dims *dims = &b->g->dims;
    const zc_block *top = &b->g->top;
    bool *known = zc_arena_alloc(b->arena, dims->count, sizeof *known);
    if (!known) return nomem(b);
    for (size_t i = 0; i < top->params.len; i++) {
        const zc_type *t = &zc_val(b->g, top->params.data[i])->type;
        for (int d = 0; d < t->rank; d++)
            if (t->dims[d].e && dims->nodes[t->dims[d].e - 1].kind == ZC_DIM_SYM)
                known[t->dims[d].e - 1] = true;
    }
    for (size_t i = 0; i < dims->count; i++) {
        const zc_dim_node *n = &dims->nodes[i];
        if (n->kind != ZC_DIM_SYM)
            known[i] = (!n->a.e || known[n->a.e - 1]) && (!n->b.e || known[n->b.e - 1]);
    }
    for (size_t i = 0; i < top->params.len; i++) {
        const zc_type *t = &zc_val(b->g, top->params.data[i])->type;
        for (int d = 0; d < t->rank; d++)
            if (t->dims[d].e && !known[t->dims[d].e - 1]) return unknown_dim(b, i, d);
    }
    return ZC_OK;
}

zc_status zc_program_build(const zc_graph *g, zc_arena *arena, zc_program *out, zc_diag *diag)
{
    builder b = {.g = g, .arena = arena, .diag = diag};
    *out = (zc_program){0};
    ZC_TRY(check_symbols(&b));
    ZC_TRY(allocate(&b));
    b.nblocks = 1;
    ZC_TRY(add_block(&b, &g->top, 0));
    *out = (zc_program){.model_name = g->name,
                        .origin = g->origin,
                        .ndims = (uint32_t)g->dims.count,
                        .nvalues = b.nvalues,
                        .nsteps = b.nsteps,
                        .nblocks = b.nblocks,
                        .dim_nodes = g->dims.nodes,
                        .values = b.values,
                        .steps = b.steps,
                        .blocks = b.blocks,
                        .input_names = g->input_names,
                        .output_names = g->output_names};
    return ZC_OK;
}
