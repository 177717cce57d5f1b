/* Bytes to a program. Nothing is used before it is verified: hashes, then ranges record by record;
 * order and definitions are checked by verify.c. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "base/sniff.h"
#include "planfile/format.h"
#include "planfile/program.h"

typedef struct plan_reader {
    const uint8_t *data;
    size_t len;
    zc_arena *arena;
    zc_diag *diag;
    zc_program *p;
    zc_plan_section table[ZC_PLAN_SECTION_COUNT];
} plan_reader;

static const char *const section_names[] = {
#define X(name, type) #name,
    ZC_PLAN_SECTIONS(X)
#undef X
};

static const size_t record_sizes[] = {
#define X(name, type) sizeof(type),
    ZC_PLAN_SECTIONS(X)
#undef X
};

#define bad(r, ...) zc_fail((r)->diag, ZC_ERR_FORMAT, NULL, __VA_ARGS__)

/* ---- the container ---- */

bool zc_program_magic(const uint8_t *data, size_t len)
{
    return len >= 8 && memcmp(data, ZC_PLAN_MAGIC, 8) == 0;
}

static zc_status not_a_plan(const plan_reader *r)
{
    const bool begins = r->len >= 8 && memcmp(r->data, ZC_PLAN_MAGIC, 4) == 0;
    const zc_file_kind *kind = r->len < 8 || begins ? NULL : zc_sniff(r->data, r->len);
    if (kind) return zc_fail_kind(r->diag, kind, "a zc plan");
    const bool onnx = r->len >= 8 && r->data[0] == 0x08; /* the first field of a ModelProto */
    return bad(r, "not a zc plan%s",
               !r->len ? " (the file is empty)"
               : onnx  ? " (it may be an ONNX model: `zc compile` makes a plan of it)"
                       : "");
}

static zc_status check_header(plan_reader *r, zc_plan_header *h)
{
    if (!zc_program_magic(r->data, r->len)) return not_a_plan(r);
    if (r->len < sizeof *h)
        return bad(r, "truncated plan: %zu bytes, the header alone has %zu", r->len, sizeof *h);
    memcpy(h, r->data, sizeof *h);
    if (h->major != ZC_PLAN_MAJOR)
        return zc_fail(
            r->diag, ZC_ERR_UNSUPPORTED, NULL,
            "plan format %u.%u was written by zc %.31s; this zc reads %d.x (compile the model "
            "again with `zc compile`)",
            h->major, h->minor, h->zc_version, ZC_PLAN_MAJOR);
    if (h->file_size > r->len)
        return bad(r, "truncated plan: %zu of %llu bytes", r->len,
                   (unsigned long long)h->file_size);
    if (h->file_size < r->len)
        return bad(r, "%llu bytes follow the end of the plan",
                   (unsigned long long)(r->len - h->file_size));
    if (h->section_count != ZC_PLAN_SECTION_COUNT)
        return bad(r, "wrong number of sections (got %u, need %d)", h->section_count,
                   ZC_PLAN_SECTION_COUNT);
    if (r->len < sizeof *h + sizeof r->table)
        return bad(r, "truncated plan: %zu bytes end inside the section table", r->len);
    memcpy(r->table, r->data + sizeof *h, sizeof r->table);
    return ZC_OK;
}

static zc_status check_header_hash(plan_reader *r, zc_plan_header h)
{
    uint8_t want[ZC_PLAN_SHA], got[ZC_PLAN_SHA];
    memcpy(want, h.sha256, sizeof want);
    memset(h.sha256, 0, sizeof h.sha256);
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, sizeof h, (const uint8_t *)&h);
    sha256_update(&ctx, sizeof r->table, (const uint8_t *)r->table);
    sha256_digest(&ctx, sizeof got, got);
    return memcmp(want, got, sizeof got) == 0 ? ZC_OK
                                              : bad(r, "corrupt plan: the header's hash is wrong");
}

static zc_status check_padding(plan_reader *r, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (r->data[i])
            return bad(r, "corrupt plan: padding at byte %llu is not zero", (unsigned long long)i);
    return ZC_OK;
}

static zc_status check_section(plan_reader *r, int i, uint64_t *at)
{
    const zc_plan_section *s = &r->table[i];
    if (s->kind != (uint32_t)i || s->reserved)
        return bad(r, "section %d is not %s", i, section_names[i]);
    if (!zc_range_ok(s->offset, s->length, r->len))
        return bad(r, "section %s lies outside the file", section_names[i]);
    uint64_t expected = zc_align_up(*at, ZC_PLAN_ALIGN);
    if (s->offset != expected)
        return bad(r, "section %s is misplaced (got offset %llu, need %llu)", section_names[i],
                   (unsigned long long)s->offset, (unsigned long long)expected);
    if (s->length % record_sizes[i] || s->length / record_sizes[i] > UINT32_MAX)
        if (i != ZC_PLAN_DATA)
            return bad(r, "section %s is not a whole number of records", section_names[i]);
    ZC_TRY(check_padding(r, *at, s->offset));
    uint8_t got[ZC_PLAN_SHA];
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, s->length, r->data + s->offset);
    sha256_digest(&ctx, sizeof got, got);
    if (memcmp(got, s->sha256, sizeof got) != 0)
        return bad(r, "corrupt plan: section %s has a wrong hash", section_names[i]);
    *at = s->offset + s->length;
    return ZC_OK;
}

static zc_status check_container(plan_reader *r)
{
    zc_plan_header h;
    ZC_TRY(check_header(r, &h));
    ZC_TRY(check_header_hash(r, h));
    uint64_t at = sizeof h + sizeof r->table;
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) ZC_TRY(check_section(r, i, &at));
    ZC_TRY(check_padding(r, at, r->len));
    if (zc_align_up(at, ZC_PLAN_ALIGN) != r->len) return bad(r, "bytes follow the last section");
    return ZC_OK;
}

/* ---- records ---- */

static uint32_t count(const plan_reader *r, int section)
{
    return (uint32_t)(r->table[section].length / record_sizes[section]);
}

/* Reads record i, which a failure then names: "STEP 3". */
#define IN_RECORD(r, section, i, read)                                                             \
    do {                                                                                           \
        char in_name[32];                                                                          \
        snprintf(in_name, sizeof in_name, "%s %u", section_names[section], (i));                   \
        const char *in_before = zc_diag_lend_subject((r)->diag, in_name);                          \
        const zc_status in_status = (read);                                                        \
        zc_diag_lend_subject((r)->diag, in_before);                                                \
        if (in_status != ZC_OK) return in_status;                                                  \
    } while (0)

/* Record i of a section; the caller has checked i. Sections are aligned. */
static const void *record(const plan_reader *r, int section, uint32_t i)
{
    return r->data + r->table[section].offset + (size_t)i * record_sizes[section];
}

static zc_status check_list(const plan_reader *r, int section, zc_plan_list l)
{
    if (zc_range_ok(l.first, l.count, count(r, section))) return ZC_OK;
    return bad(r, "a list lies outside section %s (got %u+%u, need at most %u)",
               section_names[section], l.first, l.count, count(r, section));
}

static zc_status get_string(const plan_reader *r, uint32_t at, const char **out)
{
    *out = "";
    if (at >= count(r, ZC_PLAN_STRS))
        return bad(r, "a string lies outside section STRS (got %u, need < %u)", at,
                   count(r, ZC_PLAN_STRS));
    *out = record(r, ZC_PLAN_STRS, at);
    return ZC_OK;
}

static zc_status get_strings(const plan_reader *r, zc_plan_list l, const char *const **out)
{
    ZC_TRY(check_list(r, ZC_PLAN_REFS, l));
    const char **s = zc_arena_alloc(r->arena, l.count, sizeof *s);
    if (!s) return zc_fail_nomem(r->diag, "plan", l.count * sizeof *s);
    const uint32_t *refs = record(r, ZC_PLAN_REFS, l.first);
    for (uint32_t i = 0; i < l.count; i++) ZC_TRY(get_string(r, refs[i], &s[i]));
    *out = s;
    return ZC_OK;
}

static zc_status get_refs(const plan_reader *r, zc_plan_list l, uint32_t limit, const char *what,
                          const uint32_t **out)
{
    ZC_TRY(check_list(r, ZC_PLAN_REFS, l));
    *out = record(r, ZC_PLAN_REFS, l.first);
    for (uint32_t i = 0; i < l.count; i++)
        if ((*out)[i] >= limit)
            return bad(r, "%s index out of range (got %u, need < %u)", what, (*out)[i], limit);
    return ZC_OK;
}

static zc_status get_dim(const plan_reader *r, const zc_plan_dref *d, uint32_t limit, zc_dim *out)
{
    if (d->e > limit || (d->e && d->k) || d->reserved)
        return bad(
            r, "a dimension refers to an expression that does not exist (got %u, need at most %u)",
            d->e, limit);
    *out = (zc_dim){.k = d->k, .e = d->e};
    return ZC_OK;
}

/* After the expressions that they refer to. */
static zc_status get_dims(plan_reader *r, zc_plan_list l, const zc_dim **out)
{
    ZC_TRY(check_list(r, ZC_PLAN_DREF, l));
    zc_dim *dims = zc_arena_alloc(r->arena, l.count, sizeof *dims);
    if (!dims) return zc_fail_nomem(r->diag, "plan", l.count * sizeof *dims);
    for (uint32_t d = 0; d < l.count; d++)
        ZC_TRY(get_dim(r, record(r, ZC_PLAN_DREF, l.first + d), r->p->ndims, &dims[d]));
    *out = dims;
    return ZC_OK;
}

static bool is_dynamic(const zc_dim_node *nodes, zc_dim d)
{
    return d.e && nodes[d.e - 1].dynamic;
}

static zc_status read_dim(plan_reader *r, zc_dim_node *nodes, uint32_t i)
{
    const zc_plan_dim *d = record(r, ZC_PLAN_DIMS, i);
    zc_dim_node *node = &nodes[i];
    if (d->kind > ZC_DIM_MIN || d->is_input > 1)
        return bad(r, "dimension expression is of no known kind (got %u)", d->kind);
    node->kind = (zc_dim_kind)d->kind;
    node->is_input = d->is_input;
    ZC_TRY(get_dim(r, &d->a, i, &node->a));
    ZC_TRY(get_dim(r, &d->b, i, &node->b));
    ZC_TRY(get_string(r, d->name, &node->name));
    node->dynamic = node->kind == ZC_DIM_SYM
                        ? !node->is_input
                        : is_dynamic(nodes, node->a) || is_dynamic(nodes, node->b);
    return ZC_OK;
}

static zc_status read_dims(plan_reader *r)
{
    uint32_t n = count(r, ZC_PLAN_DIMS);
    zc_dim_node *nodes = zc_arena_alloc(r->arena, n, sizeof *nodes);
    if (!nodes) return zc_fail_nomem(r->diag, "plan", n * sizeof *nodes);
    for (uint32_t i = 0; i < n; i++) IN_RECORD(r, ZC_PLAN_DIMS, i, read_dim(r, nodes, i));
    r->p->dim_nodes = nodes;
    r->p->ndims = n;
    return ZC_OK;
}

static zc_status read_constant(plan_reader *r, const zc_plan_value *v, zc_pvalue *out)
{
    zc_tensor t = {.dtype = out->dtype, .rank = out->rank};
    size_t bytes;
    for (int d = 0; d < t.rank; d++) {
        if (!zc_dim_is_const(out->dims[d]))
            return bad(r, "constant %s has a symbolic dimension", out->name);
        t.dims[d] = out->dims[d].k;
    }
    if (t.rank < 0 || !zc_tensor_bytes(&t, &bytes) || bytes != v->length)
        return bad(r, "constant %s has a wrong number of bytes (got %llu)", out->name,
                   (unsigned long long)v->length);
    if (v->offset % ZC_PLAN_DATA_ALIGN ||
        !zc_range_ok(v->offset, v->length, r->table[ZC_PLAN_DATA].length))
        return bad(r, "constant %s lies outside section DATA", out->name);
    out->data = r->data + r->table[ZC_PLAN_DATA].offset + v->offset;
    out->bytes = v->length;
    return ZC_OK;
}

static zc_status read_value(plan_reader *r, uint32_t i, zc_pvalue *out)
{
    const zc_plan_value *v = record(r, ZC_PLAN_VALS, i);
    ZC_TRY(get_string(r, v->name, &out->name));
    if (v->kind > ZC_P_STEP || (v->kind == ZC_P_ABSENT) != (i == 0))
        return bad(r, "value is of no known kind (got %u)", v->kind);
    out->kind = (zc_pkind)v->kind;
    out->rank = -1;
    if (i == 0) return ZC_OK;
    if (v->dtype > INT32_MAX || !zc_dtype_valid((int)v->dtype))
        return bad(r, "value %s has no known element type (got %u)", out->name, v->dtype);
    if (v->rank < -1 || v->rank > ZC_MAX_RANK)
        return bad(r, "value %s has a wrong rank (got %d, need at most %d)", out->name, v->rank,
                   ZC_MAX_RANK);
    out->dtype = (zc_dtype)v->dtype;
    out->rank = v->rank;
    uint32_t n = v->rank > 0 ? (uint32_t)v->rank : 0;
    ZC_TRY(get_dims(r, (zc_plan_list){v->dims, n}, &out->dims));
    out->planned = v->rank >= 0;
    for (uint32_t d = 0; d < n; d++) {
        if (zc_dim_is_const(out->dims[d]) && out->dims[d].k < 0)
            return bad(r, "value %s has a negative dimension", out->name);
        if (is_dynamic(r->p->dim_nodes, out->dims[d])) out->planned = false;
    }
    return out->kind == ZC_P_CONST ? read_constant(r, v, out) : ZC_OK;
}

static zc_status read_values(plan_reader *r)
{
    uint32_t n = count(r, ZC_PLAN_VALS);
    if (n == 0) return bad(r, "the plan has no values");
    zc_pvalue *values = zc_arena_alloc(r->arena, n, sizeof *values);
    if (!values) return zc_fail_nomem(r->diag, "plan", n * sizeof *values);
    for (uint32_t i = 0; i < n; i++) IN_RECORD(r, ZC_PLAN_VALS, i, read_value(r, i, &values[i]));
    r->p->values = values;
    r->p->nvalues = n;
    return ZC_OK;
}

/* ---- steps ---- */

static zc_status read_tensor_attr(plan_reader *r, const zc_plan_attr *a, const zc_tensor **out)
{
    uint32_t v = a->list.first;
    if (v == 0 || v >= r->p->nvalues || r->p->values[v].kind != ZC_P_CONST)
        return bad(r, "a tensor attribute is not a constant (got value %u)", v);
    const zc_pvalue *value = &r->p->values[v];
    zc_tensor *t = zc_arena_alloc(r->arena, 1, sizeof *t);
    if (!t) return zc_fail_nomem(r->diag, "plan", sizeof *t);
    *t = (zc_tensor){
        .dtype = value->dtype, .rank = value->rank, .data = (void *)(uintptr_t)value->data};
    for (int d = 0; d < t->rank; d++) t->dims[d] = value->dims[d].k;
    *out = t;
    return ZC_OK;
}

static zc_status read_attr(plan_reader *r, const zc_plan_attr *a, zc_attr_kind kind, void *at)
{
    switch (kind) {
    case ZC_ATTR_INT:
        *(int64_t *)at = a->i;
        return ZC_OK;
    case ZC_ATTR_FLOAT:
        *(float *)at = a->f;
        return ZC_OK;
    case ZC_ATTR_STR:
        return get_string(r, a->list.first, at);
    case ZC_ATTR_TENSOR:
        return read_tensor_attr(r, a, at);
    case ZC_ATTR_DTYPE:
        if (a->i < 0 || a->i > INT32_MAX || (a->i && !zc_dtype_valid((int)a->i)))
            return bad(r, "an attribute names no known element type (got %lld)", (long long)a->i);
        *(zc_dtype *)at = (zc_dtype)a->i;
        return ZC_OK;
    case ZC_ATTR_INTS:
        ZC_TRY(check_list(r, ZC_PLAN_INTS, a->list));
        *(zc_ints *)at = (zc_ints){(int)a->list.count, record(r, ZC_PLAN_INTS, a->list.first)};
        return a->list.count <= INT32_MAX ? ZC_OK : bad(r, "an attribute is too long");
    case ZC_ATTR_FLOATS:
        ZC_TRY(check_list(r, ZC_PLAN_FLTS, a->list));
        *(zc_floats *)at = (zc_floats){(int)a->list.count, record(r, ZC_PLAN_FLTS, a->list.first)};
        return a->list.count <= INT32_MAX ? ZC_OK : bad(r, "an attribute is too long");
    }
    return bad(r, "an attribute is of no known kind");
}

static zc_status read_attrs(plan_reader *r, zc_plan_list l, zc_op op, const void **out)
{
    const zc_op_info *info = zc_op_get(op);
    void *attrs = zc_arena_alloc(r->arena, 1, info->attrs_size);
    if (!attrs) return zc_fail_nomem(r->diag, "plan", info->attrs_size);
    zc_attrs_default(info, attrs);
    ZC_TRY(check_list(r, ZC_PLAN_ATTR, l));
    for (uint32_t i = 0; i < l.count; i++) {
        const zc_plan_attr *a = record(r, ZC_PLAN_ATTR, l.first + i);
        const char *name;
        ZC_TRY(get_string(r, a->name, &name));
        int f = zc_attr_find(info, name, strlen(name));
        if (f < 0 || a->kind != (uint32_t)info->fields[f].kind)
            return bad(r, "%s has no such attribute (got %s)", info->name, name);
        ZC_TRY(read_attr(r, a, info->fields[f].kind, zc_attr_at(info, attrs, f)));
        zc_attr_mark(attrs, f);
    }
    *out = attrs;
    return ZC_OK;
}

static zc_status read_range(plan_reader *r, uint32_t i, zc_prange *out)
{
    const zc_plan_range *range = record(r, ZC_PLAN_RANG, i);
    *out = (zc_prange){.nfactors = range->factors.count, .low = range->low, .high = range->high};
    if (out->nfactors == 0 || out->nfactors > ZC_RANGE_FACTORS || out->low > out->high)
        return bad(r, "a range is empty");
    ZC_TRY(get_dims(r, range->factors, &out->factors));
    for (uint32_t d = 0; d < out->nfactors; d++)
        if (is_dynamic(r->p->dim_nodes, out->factors[d]))
            return bad(r, "a range depends on what is known only when run");
    return ZC_OK;
}

static zc_status read_choice(plan_reader *r, uint32_t i, zc_pchoice *out)
{
    const zc_plan_choice *c = record(r, ZC_PLAN_CHOI, i);
    *out = (zc_pchoice){.arch = c->arch, .kernel = c->kernel, .nranges = c->ranges.count};
    if (out->kernel >= r->p->nkernels)
        return bad(r, "a choice has no such kernel (got %u, need less than %u)", out->kernel,
                   r->p->nkernels);
    if (c->reserved) return bad(r, "a choice's flags are unknown");
    ZC_TRY(get_string(r, c->why, &out->why));
    ZC_TRY(check_list(r, ZC_PLAN_FLTS, c->literals));
    if (c->literals.count > ZC_LITERALS)
        return bad(r, "a choice has too many numbers (got %u, need at most %d)", c->literals.count,
                   ZC_LITERALS);
    out->nliterals = c->literals.count;
    out->literals = record(r, ZC_PLAN_FLTS, c->literals.first);
    ZC_TRY(check_list(r, ZC_PLAN_RANG, c->ranges));
    zc_prange *ranges = zc_arena_alloc(r->arena, out->nranges, sizeof *ranges);
    if (!ranges) return zc_fail_nomem(r->diag, "plan", out->nranges * sizeof *ranges);
    for (uint32_t n = 0; n < out->nranges; n++)
        IN_RECORD(r, ZC_PLAN_RANG, c->ranges.first + n,
                  read_range(r, c->ranges.first + n, &ranges[n]));
    out->ranges = ranges;
    return ZC_OK;
}

/* Architectures ascend, and each ends with a choice that always holds. */
static zc_status read_choices(plan_reader *r, zc_plan_list l, zc_pstep *out)
{
    ZC_TRY(check_list(r, ZC_PLAN_CHOI, l));
    zc_pchoice *choices = zc_arena_alloc(r->arena, l.count, sizeof *choices);
    if (!choices) return zc_fail_nomem(r->diag, "plan", l.count * sizeof *choices);
    for (uint32_t i = 0; i < l.count; i++)
        IN_RECORD(r, ZC_PLAN_CHOI, l.first + i, read_choice(r, l.first + i, &choices[i]));
    for (uint32_t i = 0; i < l.count; i++) {
        bool last = i + 1 == l.count || choices[i + 1].arch != choices[i].arch;
        if ((i && choices[i].arch < choices[i - 1].arch) || last != (choices[i].nranges == 0))
            return bad(r, "%s has choices of kernels out of order", out->name);
    }
    out->choices = choices;
    out->nchoices = l.count;
    return ZC_OK;
}

static zc_status read_step(plan_reader *r, uint32_t i, zc_pstep *out)
{
    const zc_plan_step *s = record(r, ZC_PLAN_STEP, i);
    const char *op;
    ZC_TRY(get_string(r, s->op, &op));
    ZC_TRY(get_string(r, s->name, &out->name));
    out->op = zc_op_find(op, strlen(op));
    if (out->op == ZC_OP_NONE)
        return zc_fail(r->diag, ZC_ERR_UNSUPPORTED, out->name, "this zc has no operation %s", op);
    out->nin = s->in.count;
    out->nout = s->out.count;
    out->nblocks = s->blocks.count;
    out->nprov = s->prov.count;
    const zc_op_info *info = zc_op_get(out->op);
    ZC_TRY(read_attrs(r, s->attrs, out->op, &out->attrs));
    if (out->nin < (uint32_t)info->min_in || out->nin > (uint32_t)zc_op_max_in(info, out->attrs) ||
        out->nout < (uint32_t)info->min_out || out->nout > (uint32_t)info->max_out)
        return bad(r, "%s has a wrong number of inputs or outputs (got %u and %u)", out->name,
                   out->nin, out->nout);
    ZC_TRY(get_refs(r, s->in, r->p->nvalues, "value", &out->in));
    ZC_TRY(get_refs(r, s->out, r->p->nvalues, "value", &out->out));
    ZC_TRY(get_refs(r, s->blocks, count(r, ZC_PLAN_BLKS), "block", &out->blocks));
    ZC_TRY(get_strings(r, s->prov, &out->prov));
    ZC_TRY(get_string(r, s->why, &out->why));
    if (s->flags > ZC_PLAN_TF32) return bad(r, "a step's flags are unknown");
    out->tf32 = s->flags & ZC_PLAN_TF32;
    return read_choices(r, s->choices, out);
}

static zc_status read_steps(plan_reader *r)
{
    uint32_t n = count(r, ZC_PLAN_STEP);
    zc_pstep *steps = zc_arena_alloc(r->arena, n, sizeof *steps);
    if (!steps) return zc_fail_nomem(r->diag, "plan", n * sizeof *steps);
    for (uint32_t i = 0; i < n; i++) IN_RECORD(r, ZC_PLAN_STEP, i, read_step(r, i, &steps[i]));
    r->p->steps = steps;
    r->p->nsteps = n;
    return ZC_OK;
}

/* ---- GPU kernels ---- */

static zc_status read_kernel(plan_reader *r, uint32_t i, zc_pkernel *out)
{
    const zc_plan_kernel *k = record(r, ZC_PLAN_KERN, i);
    if (k->is_static > 1 || k->pitched > ZC_PITCHED_ALL)
        return bad(r, "a kernel's flags are unknown");
    ZC_TRY(check_list(r, ZC_PLAN_INTS, k->config));
    *out =
        (zc_pkernel){.is_static = k->is_static,
                     .abi = k->abi,
                     .pitched = k->pitched,
                     .threads = k->threads,
                     .smem = k->smem,
                     .cluster = k->cluster,
                     .nconfig = k->config.count,
                     .config = k->config.count ? record(r, ZC_PLAN_INTS, k->config.first) : NULL};
    ZC_TRY(get_string(r, k->family, &out->family));
    ZC_TRY(get_string(r, k->template_name, &out->template_name));
    ZC_TRY(get_string(r, k->name, &out->name));
    ZC_TRY(get_string(r, k->products, &out->products));
    return get_string(r, k->spec, &out->spec);
}

static zc_status read_binary(plan_reader *r, uint32_t i, zc_pbinary *out)
{
    const zc_plan_binary *b = record(r, ZC_PLAN_BINS, i);
    const zc_plan_section *code = &r->table[ZC_PLAN_CODE];
    if (b->kernel >= r->p->nkernels)
        return bad(r, "machine code of no kernel (got %u, need less than %u)", b->kernel,
                   r->p->nkernels);
    if (!zc_range_ok(b->offset, b->length, code->length) || b->offset % ZC_PLAN_DATA_ALIGN)
        return bad(r, "machine code lies outside its section");
    *out = (zc_pbinary){.kernel = b->kernel,
                        .arch = b->arch,
                        .data = r->data + code->offset + b->offset,
                        .bytes = b->length};
    return ZC_OK;
}

static zc_status read_source(plan_reader *r, uint32_t i, zc_psource *out)
{
    const zc_plan_source *s = record(r, ZC_PLAN_SRCS, i);
    ZC_TRY(get_string(r, s->name, &out->name));
    return get_string(r, s->text, &out->text);
}

static zc_status read_kernels(plan_reader *r)
{
    uint32_t nk = count(r, ZC_PLAN_KERN), nb = count(r, ZC_PLAN_BINS), ns = count(r, ZC_PLAN_SRCS);
    zc_pkernel *kernels = zc_arena_alloc(r->arena, nk, sizeof *kernels);
    zc_pbinary *binaries = zc_arena_alloc(r->arena, nb, sizeof *binaries);
    zc_psource *sources = zc_arena_alloc(r->arena, ns, sizeof *sources);
    if (!kernels || !binaries || !sources) return zc_fail_nomem(r->diag, "plan", nk + nb + ns);
    r->p->kernels = kernels;
    r->p->binaries = binaries;
    r->p->sources = sources;
    r->p->nkernels = nk;
    for (uint32_t i = 0; i < nk; i++) IN_RECORD(r, ZC_PLAN_KERN, i, read_kernel(r, i, &kernels[i]));
    for (uint32_t i = 0; i < nb; i++)
        IN_RECORD(r, ZC_PLAN_BINS, i, read_binary(r, i, &binaries[i]));
    for (uint32_t i = 0; i < ns; i++) IN_RECORD(r, ZC_PLAN_SRCS, i, read_source(r, i, &sources[i]));
    r->p->nbinaries = nb;
    r->p->nsources = ns;
    return ZC_OK;
}

static zc_status read_block(plan_reader *r, uint32_t i, zc_pblock *out)
{
    const zc_plan_block *b = record(r, ZC_PLAN_BLKS, i);
    *out =
        (zc_pblock){.nparams = b->params.count, .nsteps = b->steps.count, .nouts = b->outs.count};
    ZC_TRY(get_refs(r, b->params, r->p->nvalues, "value", &out->params));
    ZC_TRY(get_refs(r, b->steps, r->p->nsteps, "step", &out->steps));
    return get_refs(r, b->outs, r->p->nvalues, "value", &out->outs);
}

static zc_status read_blocks(plan_reader *r)
{
    uint32_t n = count(r, ZC_PLAN_BLKS);
    if (n == 0) return bad(r, "the plan has no blocks");
    zc_pblock *blocks = zc_arena_alloc(r->arena, n, sizeof *blocks);
    if (!blocks) return zc_fail_nomem(r->diag, "plan", n * sizeof *blocks);
    for (uint32_t i = 0; i < n; i++) IN_RECORD(r, ZC_PLAN_BLKS, i, read_block(r, i, &blocks[i]));
    r->p->blocks = blocks;
    r->p->nblocks = n;
    return ZC_OK;
}

static zc_status read_origin(plan_reader *r, const zc_plan_meta *m, zc_origin *out)
{
    ZC_TRY(get_string(r, m->producer, &out->producer));
    ZC_TRY(get_string(r, m->producer_version, &out->producer_version));
    ZC_TRY(get_string(r, m->domain, &out->domain));
    ZC_TRY(get_string(r, m->doc, &out->doc));
    if (m->pairs.count % 2) return bad(r, "the model's metadata ends with a key");
    out->version = m->model_version;
    out->npairs = m->pairs.count / 2;
    return get_strings(r, m->pairs, &out->pairs);
}

static zc_status read_meta(plan_reader *r)
{
    if (count(r, ZC_PLAN_META) != 1) return bad(r, "section META is not one record");
    uint32_t strings = count(r, ZC_PLAN_STRS);
    if (strings == 0 || *(const char *)record(r, ZC_PLAN_STRS, strings - 1) != 0)
        return bad(r, "section STRS does not end a string");
    const zc_plan_meta *m = record(r, ZC_PLAN_META, 0);
    ZC_TRY(get_string(r, m->model_name, &r->p->model_name));
    ZC_TRY(get_string(r, m->version, &r->p->version));
    ZC_TRY(get_string(r, m->target, &r->p->target));
    if (m->flags > ZC_PLAN_TF32) return bad(r, "the plan's flags are unknown");
    r->p->tf32 = m->flags & ZC_PLAN_TF32;
    memcpy(r->p->model_sha256, m->model_sha256, sizeof m->model_sha256);
    ZC_TRY(get_strings(r, m->input_names, &r->p->input_names));
    ZC_TRY(get_strings(r, m->output_names, &r->p->output_names));
    r->p->nprecision = m->precision.count;
    ZC_TRY(get_strings(r, m->precision, &r->p->precision));
    return read_origin(r, m, &r->p->origin);
}

static zc_status check_names(plan_reader *r)
{
    const zc_plan_meta *m = record(r, ZC_PLAN_META, 0);
    const zc_pblock *top = &r->p->blocks[0];
    if (m->input_names.count == top->nparams && m->output_names.count == top->nouts) return ZC_OK;
    return bad(r, "inputs or outputs and their names differ in number");
}

zc_status zc_program_read(const uint8_t *data, size_t len, zc_arena *arena, zc_program *out,
                          zc_diag *diag)
{
    plan_reader r = {.data = data, .len = len, .arena = arena, .diag = diag, .p = out};
    *out = (zc_program){0};
    ZC_TRY(check_container(&r));
    IN_RECORD(&r, ZC_PLAN_META, 0, read_meta(&r));
    ZC_TRY(read_dims(&r));
    ZC_TRY(read_values(&r));
    ZC_TRY(read_kernels(&r));
    ZC_TRY(read_steps(&r));
    ZC_TRY(read_blocks(&r));
    ZC_TRY(check_names(&r));
    return zc_program_complete(out, arena, diag);
}
