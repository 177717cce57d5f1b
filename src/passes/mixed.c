#include "passes/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "op/nhwc.h"
#include "op/work.h"
#include "passes/cost.h"
#include "passes/precision_rules.h"
#include "passes/prune.h"
#include "passes/quantise.h"
#include "passes/quantised.h"
#include "passes/query.h"
#include "passes/scaled.h"

static const struct {
    const char *name;
    zc_dtype dtype;
} types[] = {
#define TYPE(name, dtype) {#name, dtype},
#include "passes/precision_types.def"
};

const char *zc_precision_type_name(zc_precision_type t)
{
    return types[t].name;
}

/* Of a product of bytes GPUs round the sums to f16 as well as to f32. CPUs are slow in f16. */
zc_dtype zc_precision_dtype(zc_precision_type t, const zc_precision_part *part, bool gpu)
{
    if (t == ZC_PRECISION_int8 && gpu && part->is_product) return ZC_F16;
    const bool weights_alone = zc_precision_code_bits(t) || t == ZC_PRECISION_sparse;
    return weights_alone && !gpu ? ZC_F32 : types[t].dtype;
}

bool zc_precision_is_asked_for(zc_precision_type t)
{
    return t <= ZC_PRECISION_sparse;
}

int zc_precision_code_bits(zc_precision_type t)
{
    if (t == ZC_PRECISION_int4 || t == ZC_PRECISION_fp4) return 4;
    return t == ZC_PRECISION_w8 ? 8 : 0;
}

zc_precision_type zc_precision_type_find(const char *name)
{
    int t = 0;
    while (t < ZC_PRECISION_COUNT && strcmp(types[t].name, name) != 0) t++;
    return (zc_precision_type)t;
}

zc_status zc_parts_limit(const zc_parted *p, zc_scalable *s)
{
    const zc_mixed *m = p->mixed;
    const zc_weights w = zc_weights_of(p->g, s);
    if (!m->limits) return ZC_OK;
    float *limits = zc_arena_alloc(&p->g->arena, (size_t)w.columns, sizeof *limits);
    s->limits = limits;
    if (!limits) return zc_fail_nomem(p->diag, "precision", (size_t)w.columns);
    return m->limits(m->limits_user, zc_val(p->g, s->w)->name, &w, limits, p->diag);
}

/* ---- finding parts ---- */

typedef struct finder {
    const zc_graph *g;
    zc_mixed *m;
    bool describes;
    int inside;     /* regions */
    uint32_t *uses; /* by value */
    uint32_t *of;   /* by node: its part's number, from 1 */
    uint32_t count;
    ZC_VEC(zc_buf) names; /* by part */
    zc_diag *diag;
} finder;

static zc_status no_memory(const finder *f)
{
    return zc_fail_nomem(f->diag, "precision", 0);
}

static bool is_f32(const finder *f, zc_vid v)
{
    return v && zc_val(f->g, v)->type.dtype == ZC_F32;
}

static uint32_t part_of_value(const finder *f, zc_vid v)
{
    zc_nid n = is_f32(f, v) ? zc_producer(f->g, v) : 0;
    return n ? f->of[n] : 0;
}

/* The latest of the parts that the operands are of. */
static uint32_t followed(const finder *f, const zc_node *n)
{
    uint32_t latest = 0;
    for (int i = 0; i < n->nin; i++) {
        uint32_t part = part_of_value(f, n->in[i]);
        if (part > latest) latest = part;
    }
    return latest;
}

static zc_tensor tensor_of(const finder *f, zc_vid v)
{
    if (!v) return (zc_tensor){.dtype = ZC_NONE};
    const zc_type *t = &zc_val(f->g, v)->type;
    zc_tensor out = {.dtype = t->dtype, .rank = t->rank < 0 ? 0 : t->rank};
    for (int d = 0; d < out.rank; d++)
        out.dims[d] = zc_dim_is_const(t->dims[d]) ? t->dims[d].k : ZC_COST_DIM;
    return out;
}

static double weights_of(const finder *f, const zc_node *n)
{
    double sum = 0;
    for (int i = 0; i < n->nin; i++)
        if (is_f32(f, n->in[i]) && zc_val(f->g, n->in[i])->kind == ZC_VALUE_CONST)
            sum += (double)zc_cost_bytes(&zc_val(f->g, n->in[i])->type);
    return sum;
}

/* Work on what the part makes is done where that is made: it reads what else it needs. */
static double bytes_of(const zc_node *n, const zc_work *w, const zc_precision_part *part)
{
    double all = w->bytes_in + w->bytes_out, beside = w->bytes_in - w->bytes_out;
    if (!part->bytes || !zc_precision_pointwise(n)) return all;
    return beside > 0 ? beside : 0;
}

/* Does it work on bytes as on floats, where they are a convolution's? */
static bool has_bytes(const finder *f, const zc_node *n)
{
    switch (n->op) {
    case ZC_OP_Conv:
    case ZC_OP_Relu:
    case ZC_OP_Clip:
    case ZC_OP_Add:
    case ZC_OP_Concat:
    case ZC_OP_AveragePool:
    case ZC_OP_GlobalAveragePool:
    case ZC_OP_ReduceMean:
        return true;
    default:
        return zc_only_chooses(f->g, n);
    }
}

static zc_status describe(finder *f, const zc_node *n, uint32_t number)
{
    zc_precision_part *part = &f->m->parts.data[number - 1];
    zc_buf *names = &f->names.data[number - 1];
    zc_buf_printf(names, "%s%s '%s'", names->len ? ", " : "", zc_op_get(n->op)->name, n->name);
    zc_tensor *all = zc_calloc((size_t)n->nin + (size_t)n->nout + 1, sizeof *all);
    if (!all) return no_memory(f);
    for (int i = 0; i < n->nin; i++) all[i] = tensor_of(f, n->in[i]);
    for (int i = 0; i < n->nout; i++) all[n->nin + i] = tensor_of(f, n->out[i]);
    zc_work work = zc_work_of(zc_op_get(n->op), n->attrs, n->nin, all, n->nout, all + n->nin);
    free(all);
    part->bytes += bytes_of(n, &work, part);
    if (!has_bytes(f, n)) part->wide += work.bytes_in + work.bytes_out;
    part->operations += work.operations > 0 ? work.operations : 0;
    part->weights += weights_of(f, n);
    return ZC_OK;
}

/* May what makes v give it 8 bits to a convolution? left: values that are looked at. */
static bool is_of_convolutions(const finder *f, zc_vid v, int *left)
{
    const zc_vid x = zc_chosen_from(f->g, v);
    const zc_nid made = zc_producer(f->g, x);
    const zc_node *maker = made ? zc_node_at(f->g, made) : NULL;
    if (!maker || --*left < 0) return false;
    if (maker->op != ZC_OP_Concat) return maker->op == ZC_OP_Conv || zc_precision_pointwise(maker);
    for (int i = 0; i < maker->nin; i++)
        if (!is_of_convolutions(f, maker->in[i], left)) return false;
    return true;
}

/* Bytes of the first operand, unless what makes it may as well give it 8 bits. What else reads a
 * convolution's operand takes the same bytes. */
static double conversion_of(const finder *f, const zc_node *n)
{
    const bool conv = n->op == ZC_OP_Conv;
    const zc_vid x = conv ? zc_chosen_from(f->g, n->in[0]) : n->in[0];
    const zc_nid made = zc_producer(f->g, x);
    int left = ZC_JOINED_MOST;
    bool joins = conv ? is_of_convolutions(f, x, &left)
                      : made && f->uses[x] == 1 && zc_precision_pointwise(zc_node_at(f->g, made));
    return joins ? 0 : (double)zc_cost_bytes(&zc_val(f->g, x)->type);
}

static zc_status describe_edges(finder *f, const zc_node *n, uint32_t number)
{
    for (int i = 0; i < n->nin; i++) {
        const uint32_t from = part_of_value(f, n->in[i]);
        if (!from || from == number) continue;
        const zc_precision_edge edge = {.from = from - 1,
                                        .to = number - 1,
                                        .value = n->in[i],
                                        .bytes =
                                            (double)zc_cost_bytes(&zc_val(f->g, n->in[i])->type),
                                        .joins = n->op == ZC_OP_Concat};
        if (!ZC_VEC_PUSH(&f->m->edges, edge)) return no_memory(f);
    }
    return ZC_OK;
}

static zc_status describe_codes(const finder *f, const zc_scalable *s, zc_precision_part *part)
{
    const zc_value *w = zc_val(f->g, s->w);
    part->codes = zc_arena_strdup(f->m->arena, w->name);
    part->code_bytes = (double)zc_cost_bytes(&w->type);
    part->packs = zc_codable_packs(f->g, s);
    bool ok = part->codes;
    part->forms[ZC_PRECISION_fp4] = zc_code_form_of_floats(f->g, s);
    for (int t = 0; t < ZC_CODED_TYPES && ok; t++)
        ok = t == ZC_PRECISION_fp4 ||
             zc_code_form_of(f->g, s, zc_precision_code_bits((zc_precision_type)t), f->m->group,
                             &part->forms[t]);
    return ok ? ZC_OK : no_memory(f);
}

static zc_status describe_prunes(const finder *f, const zc_scalable *s, zc_precision_part *part)
{
    const zc_value *w = zc_val(f->g, s->w);
    part->prunes = zc_arena_strdup(f->m->arena, w->name);
    part->code_bytes = (double)zc_cost_bytes(&w->type);
    return part->prunes ? ZC_OK : no_memory(f);
}

/* The sums of node n as bytes. */
static void describe_sums(const finder *f, const zc_node *n, const zc_scalable *s,
                          zc_precision_part *part)
{
    const bool conv = n->op == ZC_OP_Conv;
    part->depth = zc_weights_of(f->g, s).depth;
    part->taps = conv ? part->depth / zc_val(f->g, s->w)->type.dims[1].k : 1;
    part->each = conv && zc_conv_groups(n->op, n->attrs) > 1;
}

static zc_status begin_part(finder *f, const zc_node *n)
{
    zc_precision_part part = {.is_product = zc_precision_is_product(n->op),
                              .keeps = zc_precision_sensitive(n->op)};
    const zc_buf names = {.len = 0};
    zc_scalable s;
    f->count++;
    if (!f->describes) return ZC_OK;
    part.scales = !f->inside && zc_scalable_of(f->g, n, &s);
    part.quantises = !f->inside && zc_quantisable_of(f->g, n, &s);
    part.spans = part.quantises && n->op == ZC_OP_Conv ? ZC_SPANS : part.quantises || part.scales;
    if (part.spans) part.conversion = conversion_of(f, n);
    if (part.quantises) describe_sums(f, n, &s, &part);
    if (f->m->codes && !f->inside && zc_codable_of(f->g, n, &s))
        ZC_TRY(describe_codes(f, &s, &part));
    if (f->m->prunes && !f->inside && zc_prunable_of(f->g, n, &f->m->target, &s))
        ZC_TRY(describe_prunes(f, &s, &part));
    return ZC_VEC_PUSH(&f->m->parts, part) && ZC_VEC_PUSH(&f->names, names) ? ZC_OK : no_memory(f);
}

static bool begins(const finder *f, const zc_node *n, zc_precision_rule r, uint32_t follows)
{
    if (r == ZC_RULE_LOWER) return true;
    bool may = r == ZC_RULE_FOLLOW || r == ZC_RULE_CLAMP;
    return may && ((follows && zc_precision_sensitive(n->op)) ||
                   (!follows && zc_precision_reads_table(f->g, n)));
}

static bool is_of_floats(const finder *f, const zc_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (is_f32(f, n->in[i])) return true;
    return false;
}

static zc_status find_block(finder *f, const zc_block *b);

static zc_status find_node(finder *f, zc_nid id)
{
    const zc_node *n = zc_node_at(f->g, id);
    f->inside++;
    for (int r = 0; r < n->nregions; r++) ZC_TRY(find_block(f, n->regions[r]));
    f->inside--;
    if (n->op == ZC_OP_NONE || n->nregions || !is_of_floats(f, n)) return ZC_OK;
    zc_precision_rule rule = zc_precision_rule_of(f->g, n);
    uint32_t follows = followed(f, n);
    if (begins(f, n, rule, follows)) {
        ZC_TRY(begin_part(f, n));
        f->of[id] = f->count;
    } else if (rule == ZC_RULE_FOLLOW || rule == ZC_RULE_CLAMP) {
        f->of[id] = follows;
    }
    if (!f->of[id] || !f->describes) return ZC_OK;
    ZC_TRY(describe_edges(f, n, f->of[id]));
    return describe(f, n, f->of[id]);
}

static zc_status find_block(finder *f, const zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) ZC_TRY(find_node(f, b->nodes.data[i]));
    return ZC_OK;
}

/* ---- what makes an output ---- */

/* The operand that the node passes on, element by element or by the row. */
static zc_vid passed_on(const finder *f, const zc_node *n)
{
    const unsigned flags = zc_op_get(n->op)->flags;
    bool passes = (flags & (ZC_OPF_VIEW | ZC_OPF_POINTWISE)) || n->op == ZC_OP_Softmax ||
                  n->op == ZC_OP_LogSoftmax || n->op == ZC_OP_Transpose;
    for (int i = 0; passes && i < n->nin; i++)
        if (is_f32(f, n->in[i]) && zc_val(f->g, n->in[i])->kind == ZC_VALUE_NODE) return n->in[i];
    return 0;
}

static void keep_output(const finder *f, zc_vid v)
{
    while (v && is_f32(f, v)) {
        zc_nid n = zc_producer(f->g, v);
        if (!n) return;
        zc_precision_part *part = f->of[n] ? &f->m->parts.data[f->of[n] - 1] : NULL;
        if (part && !part->keeps) {
            part->keeps = "makes an output";
            part->keeps_result = true;
        }
        v = passed_on(f, zc_node_at(f->g, n));
    }
}

static zc_status find(finder *f)
{
    ZC_TRY(find_block(f, &f->g->top));
    if (!f->describes) return ZC_OK;
    for (size_t i = 0; i < f->g->top.outputs.len; i++) keep_output(f, f->g->top.outputs.data[i]);
    for (size_t i = 0; i < f->names.len; i++) {
        const zc_buf *names = &f->names.data[i];
        char *own = names->failed ? NULL : zc_arena_strndup(f->m->arena, names->data, names->len);
        if (!own) return no_memory(f);
        f->m->parts.data[i].names = own;
    }
    return ZC_OK;
}

zc_status zc_mixed_find(const zc_graph *g, zc_mixed *m, uint32_t **of, zc_diag *diag)
{
    finder f = {.g = g,
                .m = m,
                .describes = !m->parts.len,
                .of = zc_calloc(g->nodes.len, sizeof *f.of),
                .diag = diag};
    *of = f.of;
    if (f.describes) f.uses = zc_graph_uses(g);
    zc_status status = f.of && (f.uses || !f.describes) ? find(&f) : no_memory(&f);
    free(f.uses);
    for (size_t i = 0; i < f.names.len; i++) zc_buf_fini(&f.names.data[i]);
    ZC_VEC_FINI(&f.names);
    if (status == ZC_OK && f.count != m->parts.len)
        status = zc_fail(diag, ZC_ERR_INTERNAL, NULL, "the graph has other parts than before");
    return status;
}
