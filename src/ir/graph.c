#include "ir/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names: open addressing over value ids ---- */

struct zc_graph_names {
    zc_vid *slots;
    size_t cap, count;
};

static uint64_t name_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* The slot that holds name, or the free one where it belongs. */
static zc_vid *name_slot(const zc_graph *g, zc_vid *slots, size_t cap, const char *name)
{
    size_t i = name_hash(name) & (cap - 1);
    while (slots[i] && strcmp(zc_val(g, slots[i])->name, name) != 0) i = (i + 1) & (cap - 1);
    return &slots[i];
}

static bool names_grow(zc_graph *g)
{
    struct zc_graph_names *names = g->names;
    size_t cap = names->cap ? names->cap * 2 : 256;
    zc_vid *slots = zc_calloc(cap, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < names->cap; i++) {
        if (names->slots[i])
            *name_slot(g, slots, cap, zc_val(g, names->slots[i])->name) = names->slots[i];
    }
    free(names->slots);
    names->slots = slots;
    names->cap = cap;
    return true;
}

zc_vid zc_graph_find(const zc_graph *g, const char *name)
{
    return g->names->cap ? *name_slot(g, g->names->slots, g->names->cap, name) : 0;
}

/* A name nobody has: `name`, or it with a suffix. NULL: no memory. */
static const char *unique_name(zc_graph *g, const char *name)
{
    if (name && *name && !zc_graph_find(g, name)) return zc_arena_strdup(&g->arena, name);
    zc_buf buf = {0};
    do {
        buf.len = 0;
        if (name && *name)
            zc_buf_printf(&buf, "%s.%u", name, g->next_name++);
        else
            zc_buf_printf(&buf, "v%u", g->next_name++);
    } while (!buf.failed && zc_graph_find(g, buf.data));
    const char *out = buf.failed ? NULL : zc_arena_strdup(&g->arena, buf.data);
    zc_buf_fini(&buf);
    return out;
}

/* ---- life ---- */

zc_status zc_graph_create(const char *name, zc_graph **out, zc_diag *diag)
{
    *out = NULL;
    zc_graph *g = zc_calloc(1, sizeof *g);
    if (!g) return zc_fail_nomem(diag, "graph", sizeof *g);
    zc_arena_init(&g->arena, 0);
    zc_dims_init(&g->dims);
    g->names = zc_calloc(1, sizeof *g->names);
    g->name = zc_arena_strdup(&g->arena, name ? name : "");
    bool ok = g->names && g->name && ZC_VEC_PUSH(&g->values, ((zc_value){.name = ""})) &&
              ZC_VEC_PUSH(&g->nodes, ((zc_node){.op = ZC_OP_NONE}));
    if (!ok) {
        zc_graph_destroy(&g);
        return zc_fail_nomem(diag, "graph", sizeof *g);
    }
    *out = g;
    return ZC_OK;
}

static void block_fini(zc_block *b)
{
    ZC_VEC_FINI(&b->params);
    ZC_VEC_FINI(&b->nodes);
    ZC_VEC_FINI(&b->outputs);
}

void zc_graph_destroy(zc_graph **gp)
{
    if (!gp || !*gp) return;
    zc_graph *g = *gp;
    *gp = NULL;
    for (size_t i = 0; i < g->blocks.len; i++) {
        block_fini(g->blocks.data[i]);
        free(g->blocks.data[i]);
    }
    block_fini(&g->top);
    for (size_t i = 0; i < g->buffers.len; i++) free(g->buffers.data[i]);
    ZC_VEC_FINI(&g->blocks);
    ZC_VEC_FINI(&g->buffers);
    ZC_VEC_FINI(&g->values);
    ZC_VEC_FINI(&g->nodes);
    if (g->names) free(g->names->slots);
    free(g->names);
    zc_dims_fini(&g->dims);
    zc_arena_fini(&g->arena);
    free(g);
}

/* ---- values ---- */

zc_vid zc_graph_value(zc_graph *g, const char *name, zc_value_kind kind, const zc_type *type)
{
    if (g->values.len >= UINT32_MAX) return 0;
    if (g->names->count * 2 >= g->names->cap && !names_grow(g)) return 0;
    zc_value v = {.name = unique_name(g, name),
                  .kind = kind,
                  .type = {.dtype = ZC_NONE, .rank = -1},
                  .vals = {.n = -1}};
    if (type) v.type = *type;
    if (!v.name || !ZC_VEC_PUSH(&g->values, v)) return 0;
    zc_vid id = (zc_vid)(g->values.len - 1);
    *name_slot(g, g->names->slots, g->names->cap, v.name) = id;
    g->names->count++;
    return id;
}

/* The bytes as the graph's own, or NULL. */
static void *own_bytes(zc_graph *g, const zc_tensor *t, bool take)
{
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes)) {
        if (take) free(t->data);
        return NULL;
    }
    void *data = t->data;
    if (!take) {
        data = zc_calloc(bytes, 1);
        if (data && bytes) memcpy(data, t->data, bytes);
    }
    if (data && !ZC_VEC_PUSH(&g->buffers, data)) {
        free(data);
        return NULL;
    }
    return data;
}

zc_vid zc_graph_lend(zc_graph *g, const char *name, const zc_tensor *t)
{
    zc_operand operand;
    const zc_tensor *own = zc_arena_dup(&g->arena, t, 1, sizeof *t);
    if (!own || !zc_operand_of(own, &g->arena, &operand)) return 0;
    zc_vid v = zc_graph_value(g, name, ZC_VALUE_CONST, &operand.type);
    if (!v) return 0;
    zc_val(g, v)->data = own;
    zc_val(g, v)->vals = operand.vals;
    return v;
}

zc_vid zc_graph_const(zc_graph *g, const char *name, const zc_tensor *t, bool take)
{
    zc_tensor own = *t;
    if (t->data && !(own.data = own_bytes(g, t, take))) return 0;
    return zc_graph_lend(g, name, &own);
}

bool zc_graph_owns(const zc_graph *g, const void *data)
{
    size_t i = 0;
    while (i < g->buffers.len && g->buffers.data[i] != data) i++;
    return i < g->buffers.len;
}

zc_vid zc_graph_hollow(zc_graph *g, const char *name, const zc_type *type)
{
    zc_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < t.rank; d++) {
        if (!zc_dim_is_const(type->dims[d])) return 0;
        t.dims[d] = type->dims[d].k;
    }
    return t.rank < 0 ? 0 : zc_graph_const(g, name, &t, false);
}

bool zc_graph_is_hollow(const zc_graph *g, zc_vid v)
{
    const zc_tensor *t = zc_val(g, v)->data;
    return t && !t->data && zc_tensor_numel(t) != 0;
}

bool zc_graph_splat(const zc_graph *g, zc_vid v, double *out)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    int64_t n = t ? zc_tensor_numel(t) : 0;
    if (!t || !t->data || n < 1 || zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) return false;
    *out = zc_load_f64(t->dtype, t->data, 0);
    bool is_float = zc_dtype_is_float(t->dtype);
    for (int64_t i = 1; i < n; i++) {
        /* Integers beyond 2^53 have neighbours that f64 cannot tell from them. */
        if (is_float ? zc_load_f64(t->dtype, t->data, i) != *out
                     : zc_load_i64(t->dtype, t->data, i) != zc_load_i64(t->dtype, t->data, 0))
            return false;
    }
    return true;
}

zc_vid zc_graph_const_i64(zc_graph *g, const char *name, const int64_t *v, int n, int rank)
{
    zc_tensor t = {.dtype = ZC_I64, .rank = rank, .dims = {n}, .data = (void *)(uintptr_t)v};
    return zc_graph_const(g, name, &t, false);
}

/* ---- nodes ---- */

/* Operation, attributes and operands of *n. */
static bool fill_node(zc_graph *g, zc_node *n, zc_op op, int nin, const zc_vid *in)
{
    const zc_op_info *info = zc_op_get(op);
    void *attrs = zc_arena_alloc(&g->arena, 1, info->attrs_size);
    zc_vid *own = zc_arena_alloc(&g->arena, (size_t)nin, sizeof *own);
    if (!attrs || !own) return false;
    zc_attrs_default(info, attrs);
    for (int i = 0; in && i < nin; i++) own[i] = in[i];
    n->op = op;
    n->attrs = attrs;
    n->nin = nin;
    n->in = own;
    return true;
}

zc_nid zc_graph_node(zc_graph *g, zc_block *block, zc_op op, const char *name, int nin,
                     const zc_vid *in, int nout)
{
    zc_node n = {.nout = nout};
    n.out = zc_arena_alloc(&g->arena, (size_t)nout, sizeof *n.out);
    n.name = zc_arena_strdup(&g->arena, name && *name ? name : zc_op_get(op)->name);
    if (!fill_node(g, &n, op, nin, in) || !n.out || !n.name) return 0;
    if (g->nodes.len >= UINT32_MAX || !ZC_VEC_PUSH(&g->nodes, n)) return 0;
    zc_nid id = (zc_nid)(g->nodes.len - 1);
    if (block && !ZC_VEC_PUSH(&block->nodes, id)) {
        g->nodes.len--;
        return 0;
    }
    return id;
}

bool zc_graph_become(zc_graph *g, zc_nid n, zc_op op, int nin, const zc_vid *in)
{
    return fill_node(g, zc_node_at(g, n), op, nin, in);
}

zc_vid zc_graph_out(zc_graph *g, zc_nid n, int i, const char *name)
{
    zc_vid v = zc_graph_value(g, name, ZC_VALUE_NODE, NULL);
    if (!v) return 0;
    zc_val(g, v)->producer = n;
    zc_node_at(g, n)->out[i] = v;
    return v;
}

zc_block *zc_graph_region(zc_graph *g, zc_nid n, int i)
{
    zc_node *node = zc_node_at(g, n);
    if (i >= node->nregions) {
        zc_block **regions = zc_arena_alloc(&g->arena, (size_t)i + 1, sizeof *regions);
        if (!regions) return NULL;
        for (int j = 0; j < node->nregions; j++) regions[j] = node->regions[j];
        node->regions = regions;
        node->nregions = i + 1;
    }
    if (node->regions[i]) return node->regions[i];
    zc_block *b = zc_calloc(1, sizeof *b);
    if (!b || !ZC_VEC_PUSH(&g->blocks, b)) {
        free(b);
        return NULL;
    }
    return node->regions[i] = b;
}

static bool has_prov(const zc_node *node, const char *name)
{
    for (int i = 0; i < node->nprov; i++)
        if (strcmp(node->prov[i], name) == 0) return true;
    return false;
}

bool zc_graph_inherit(zc_graph *g, zc_nid to, zc_nid from)
{
    zc_node *dst = zc_node_at(g, to);
    const zc_node *src = zc_node_at(g, from);
    const char **prov =
        zc_arena_alloc(&g->arena, (size_t)dst->nprov + (size_t)src->nprov, sizeof *prov);
    if (!prov) return false;
    int n = 0;
    for (int i = 0; i < dst->nprov; i++) prov[n++] = dst->prov[i];
    for (int i = 0; i < src->nprov; i++)
        if (!has_prov(dst, src->prov[i])) prov[n++] = src->prov[i];
    dst->prov = prov;
    dst->nprov = n;
    dst->tf32 |= src->tf32;
    return true;
}

static const zc_tensor *tensor_dup(zc_graph *g, const zc_tensor *t)
{
    size_t bytes;
    zc_tensor *own = zc_arena_dup(&g->arena, t, 1, sizeof *t);
    if (!own || !zc_tensor_bytes(t, &bytes)) return NULL;
    own->data = zc_arena_dup(&g->arena, t->data, bytes, 1);
    return own->data ? own : NULL;
}

/* Replaces what field `at` points to by a copy in the arena. */
static bool field_dup(zc_graph *g, zc_attr_kind kind, void *at)
{
    zc_ints *ints = at;
    zc_floats *floats = at;
    switch (kind) {
    case ZC_ATTR_INT:
    case ZC_ATTR_FLOAT:
    case ZC_ATTR_DTYPE:
        return true;
    case ZC_ATTR_STR: {
        const char **s = at;
        return !*s || (*s = zc_arena_strdup(&g->arena, *s)) != NULL;
    }
    case ZC_ATTR_INTS:
        return !ints->n || (ints->v = zc_arena_dup(&g->arena, ints->v, (size_t)ints->n,
                                                   sizeof *ints->v)) != NULL;
    case ZC_ATTR_FLOATS:
        return !floats->n || (floats->v = zc_arena_dup(&g->arena, floats->v, (size_t)floats->n,
                                                       sizeof *floats->v)) != NULL;
    case ZC_ATTR_TENSOR: {
        const zc_tensor **t = at;
        return !*t || (*t = tensor_dup(g, *t)) != NULL;
    }
    }
    return false;
}

void *zc_graph_attrs_dup(zc_graph *g, zc_op op, const void *attrs)
{
    const zc_op_info *info = zc_op_get(op);
    void *copy = zc_arena_dup(&g->arena, attrs, 1, info->attrs_size);
    for (int i = 0; copy && i < info->field_count; i++) {
        if (!field_dup(g, info->fields[i].kind, zc_attr_at(info, copy, i))) return NULL;
    }
    return copy;
}

/* ---- copies ---- */

static size_t copy_elements(void *to, const void *from, size_t n, size_t size)
{
    if (n) memcpy(to, from, n * size);
    return n;
}

/* True when `to` has the elements of `from`. */
#define COPY_VEC(to, from)                                                                         \
    (zc_vec_reserve((void **)&(to)->data, &(to)->cap, (from)->len, sizeof *(to)->data) &&          \
     ((to)->len = copy_elements((to)->data, (from)->data, (from)->len, sizeof *(to)->data), true))

static bool copy_block(zc_block *to, const zc_block *from)
{
    return COPY_VEC(&to->params, &from->params) && COPY_VEC(&to->nodes, &from->nodes) &&
           COPY_VEC(&to->outputs, &from->outputs);
}

static bool copy_blocks(zc_graph *to, const zc_graph *from)
{
    for (size_t i = 0; i < from->blocks.len; i++) {
        zc_block *b = zc_calloc(1, sizeof *b);
        if (!b || !ZC_VEC_PUSH(&to->blocks, b)) {
            free(b);
            return false;
        }
        if (!copy_block(b, from->blocks.data[i])) return false;
    }
    return copy_block(&to->top, &from->top);
}

static size_t place_of(const zc_graph *g, const zc_block *b)
{
    size_t i = 0;
    while (g->blocks.data[i] != b) i++;
    return i;
}

/* What passes change in place. */
static bool own_node(zc_graph *to, const zc_graph *from, zc_node *n)
{
    zc_block **regions = zc_arena_alloc(&to->arena, (size_t)n->nregions, sizeof(zc_block *));
    for (int r = 0; regions && r < n->nregions; r++)
        regions[r] = n->regions[r] ? to->blocks.data[place_of(from, n->regions[r])] : NULL;
    n->regions = regions;
    n->in = zc_arena_dup(&to->arena, n->in, (size_t)n->nin, sizeof *n->in);
    n->out = zc_arena_dup(&to->arena, n->out, (size_t)n->nout, sizeof *n->out);
    if (n->attrs) n->attrs = zc_arena_dup(&to->arena, n->attrs, 1, zc_op_get(n->op)->attrs_size);
    return regions && n->in && n->out && (n->attrs || n->op == ZC_OP_NONE);
}

static bool copy_names(zc_graph *to, const zc_graph *from)
{
    const size_t cap = from->names->cap;
    zc_vid *slots = zc_calloc(cap, sizeof *slots);
    if (!slots) return false;
    if (cap) memcpy(slots, from->names->slots, cap * sizeof *slots);
    *to->names = (struct zc_graph_names){.slots = slots, .cap = cap, .count = from->names->count};
    to->next_name = from->next_name;
    return true;
}

static bool copy_into(zc_graph *to, const zc_graph *from)
{
    to->origin = from->origin;
    to->custom = from->custom;
    to->input_names = from->input_names;
    to->output_names = from->output_names;
    to->values.len = to->nodes.len = 0;
    bool ok = zc_dims_fork(&to->dims, &from->dims) && COPY_VEC(&to->values, &from->values) &&
              COPY_VEC(&to->nodes, &from->nodes) && copy_blocks(to, from) && copy_names(to, from);
    for (size_t n = 1; ok && n < to->nodes.len; n++) ok = own_node(to, from, &to->nodes.data[n]);
    return ok;
}

zc_status zc_graph_copy(const zc_graph *g, zc_graph **out, zc_diag *diag)
{
    ZC_TRY(zc_graph_create(g->name, out, diag));
    if (copy_into(*out, g)) return ZC_OK;
    zc_graph_destroy(out);
    return zc_fail_nomem(diag, "graph", g->values.len);
}

/* ---- rewriting ---- */

void zc_graph_forward(zc_graph *g, zc_vid from, zc_vid to)
{
    to = zc_graph_resolved(g, to);
    if (from != to) zc_val(g, from)->forward = to;
}

zc_vid zc_graph_resolved(const zc_graph *g, zc_vid v)
{
    while (v && zc_val(g, v)->forward) v = zc_val(g, v)->forward;
    return v;
}

static void resolve_outputs(zc_graph *g, zc_block *b)
{
    for (size_t i = 0; i < b->outputs.len; i++)
        b->outputs.data[i] = zc_graph_resolved(g, b->outputs.data[i]);
}

void zc_graph_resolve(zc_graph *g)
{
    for (size_t n = 1; n < g->nodes.len; n++) {
        zc_node *node = &g->nodes.data[n];
        for (int i = 0; i < node->nin; i++) node->in[i] = zc_graph_resolved(g, node->in[i]);
    }
    resolve_outputs(g, &g->top);
    for (size_t i = 0; i < g->blocks.len; i++) resolve_outputs(g, g->blocks.data[i]);
}

void zc_graph_remove(zc_graph *g, zc_nid n)
{
    zc_node *node = zc_node_at(g, n);
    for (int r = 0; r < node->nregions; r++) {
        zc_block *b = node->regions[r];
        for (size_t i = 0; i < b->nodes.len; i++) zc_graph_remove(g, b->nodes.data[i]);
        b->nodes.len = b->outputs.len = b->params.len = 0;
    }
    node->op = ZC_OP_NONE;
    node->nin = node->nout = node->nregions = 0;
}

static void compact_block(zc_graph *g, zc_block *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        if (zc_node_at(g, b->nodes.data[i])->op != ZC_OP_NONE)
            b->nodes.data[kept++] = b->nodes.data[i];
    }
    b->nodes.len = kept;
}

void zc_graph_compact(zc_graph *g)
{
    compact_block(g, &g->top);
    for (size_t i = 0; i < g->blocks.len; i++) compact_block(g, g->blocks.data[i]);
}

uint32_t *zc_graph_uses(const zc_graph *g)
{
    uint32_t *uses = zc_calloc(g->values.len, sizeof *uses);
    if (!uses) return NULL;
    for (size_t n = 1; n < g->nodes.len; n++) {
        const zc_node *node = &g->nodes.data[n];
        for (int i = 0; i < node->nin; i++) uses[node->in[i]]++;
    }
    for (size_t i = 0; i < g->top.outputs.len; i++) uses[g->top.outputs.data[i]]++;
    for (size_t b = 0; b < g->blocks.len; b++) {
        const zc_block *block = g->blocks.data[b];
        for (size_t i = 0; i < block->outputs.len; i++) uses[block->outputs.data[i]]++;
    }
    return uses;
}

/* Has a constant that is used these bytes? Those that are not used forget them. */
static bool is_needed(zc_graph *g, const uint32_t *uses, const void *bytes)
{
    bool needed = false;
    for (zc_vid v = 1; v < g->values.len; v++) {
        const zc_tensor *t = zc_val(g, v)->data;
        needed |= t && t->data == bytes && uses[v];
    }
    for (zc_vid v = 1; !needed && v < g->values.len; v++) {
        /* Of the graph's own arena, as its bytes are. */
        zc_tensor *t = (zc_tensor *)(uintptr_t)zc_val(g, v)->data;
        if (t && t->data == bytes) t->data = NULL;
    }
    return needed;
}

bool zc_graph_shed(zc_graph *g)
{
    uint32_t *uses = zc_graph_uses(g);
    size_t kept = 0;
    for (size_t i = 0; uses && i < g->buffers.len; i++) {
        void *bytes = g->buffers.data[i];
        if (is_needed(g, uses, bytes))
            g->buffers.data[kept++] = bytes;
        else
            free(bytes);
    }
    if (uses) g->buffers.len = kept;
    free(uses);
    return uses;
}
