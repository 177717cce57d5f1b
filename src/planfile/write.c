#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "planfile/format.h"
#include "planfile/program.h"

typedef struct plan_writer {
    const zc_program *p;
    const uint8_t *constants_sha256;
    zc_buf sections[ZC_PLAN_SECTION_COUNT]; /* DATA stays empty: it is written */
    uint64_t data_bytes;
} plan_writer;

static uint32_t count_of(const plan_writer *w, int section, size_t record)
{
    return (uint32_t)(w->sections[section].len / record);
}

/* Offset of a string in STRS. Strings are few and short; equal neighbours are not merged. */
static uint32_t put_string(plan_writer *w, const char *s)
{
    zc_buf *b = &w->sections[ZC_PLAN_STRS];
    uint32_t at = (uint32_t)b->len;
    zc_buf_append(b, s ? s : "", strlen(s ? s : "") + 1);
    return at;
}

static zc_plan_list put_refs(plan_writer *w, const uint32_t *v, uint32_t n)
{
    zc_plan_list l = {.first = count_of(w, ZC_PLAN_REFS, sizeof *v), .count = n};
    zc_buf_append(&w->sections[ZC_PLAN_REFS], v, n * sizeof *v);
    return l;
}

static zc_plan_list put_ints(plan_writer *w, const int64_t *v, uint32_t n)
{
    zc_plan_list l = {.first = count_of(w, ZC_PLAN_INTS, sizeof *v), .count = n};
    zc_buf_append(&w->sections[ZC_PLAN_INTS], v, n * sizeof *v);
    return l;
}

static zc_plan_list put_floats(plan_writer *w, const float *v, uint32_t n)
{
    zc_plan_list l = {.first = count_of(w, ZC_PLAN_FLTS, sizeof *v), .count = n};
    zc_buf_append(&w->sections[ZC_PLAN_FLTS], v, n * sizeof *v);
    return l;
}

static zc_plan_list put_strings(plan_writer *w, const char *const *s, uint32_t n)
{
    zc_plan_list l = {.first = count_of(w, ZC_PLAN_REFS, sizeof(uint32_t)), .count = n};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = put_string(w, s[i]);
        zc_buf_append(&w->sections[ZC_PLAN_REFS], &at, sizeof at);
    }
    return l;
}

static zc_plan_dref dref(zc_dim d)
{
    return (zc_plan_dref){.k = d.k, .e = d.e};
}

static zc_plan_list put_drefs(plan_writer *w, const zc_dim *dims, uint32_t n)
{
    zc_plan_list l = {count_of(w, ZC_PLAN_DREF, sizeof(zc_plan_dref)), n};
    for (uint32_t d = 0; d < n; d++) {
        zc_plan_dref one = dref(dims[d]);
        zc_buf_append(&w->sections[ZC_PLAN_DREF], &one, sizeof one);
    }
    return l;
}

static void put_dims(plan_writer *w)
{
    for (uint32_t i = 0; i < w->p->ndims; i++) {
        const zc_dim_node *n = &w->p->dim_nodes[i];
        zc_plan_dim r = {.kind = (uint32_t)n->kind,
                         .is_input = n->is_input,
                         .a = dref(n->a),
                         .b = dref(n->b),
                         .name = put_string(w, n->name)};
        zc_buf_append(&w->sections[ZC_PLAN_DIMS], &r, sizeof r);
    }
}

static void put_values(plan_writer *w)
{
    for (uint32_t v = 0; v < w->p->nvalues; v++) {
        const zc_pvalue *value = &w->p->values[v];
        zc_plan_value r = {
            .kind = (uint32_t)value->kind,
            .name = put_string(w, value->name),
            .dtype = (uint32_t)value->dtype,
            .rank = value->rank,
            .dims = put_drefs(w, value->dims, value->rank > 0 ? (uint32_t)value->rank : 0).first};
        if (value->kind == ZC_P_CONST) {
            r.offset = w->data_bytes;
            r.length = value->bytes;
            w->data_bytes += zc_align_up(value->bytes, ZC_PLAN_DATA_ALIGN);
        }
        zc_buf_append(&w->sections[ZC_PLAN_VALS], &r, sizeof r);
    }
}

/* TENSOR attributes are constants of the program: which one holds these bytes? */
static uint32_t tensor_value(const plan_writer *w, const zc_tensor *t)
{
    for (uint32_t v = 1; v < w->p->nvalues; v++)
        if (w->p->values[v].kind == ZC_P_CONST && w->p->values[v].data == t->data) return v;
    return 0;
}

static void put_attr(plan_writer *w, const zc_attr_field *f, const void *at)
{
    zc_plan_attr r = {.name = put_string(w, f->name), .kind = (uint32_t)f->kind};
    switch (f->kind) {
    case ZC_ATTR_INT:
        r.i = *(const int64_t *)at;
        break;
    case ZC_ATTR_FLOAT:
        r.f = *(const float *)at;
        break;
    case ZC_ATTR_DTYPE:
        r.i = (int64_t) * (const zc_dtype *)at;
        break;
    case ZC_ATTR_STR:
        r.list.first = put_string(w, *(const char *const *)at);
        break;
    case ZC_ATTR_TENSOR:
        r.list.first = tensor_value(w, *(const zc_tensor *const *)at);
        break;
    case ZC_ATTR_INTS: {
        const zc_ints *l = at;
        r.list = put_ints(w, l->v, (uint32_t)l->n);
        break;
    }
    case ZC_ATTR_FLOATS: {
        const zc_floats *l = at;
        r.list = put_floats(w, l->v, (uint32_t)l->n);
        break;
    }
    }
    zc_buf_append(&w->sections[ZC_PLAN_ATTR], &r, sizeof r);
}

static zc_plan_list put_ranges(plan_writer *w, const zc_pchoice *c)
{
    zc_plan_list l = {count_of(w, ZC_PLAN_RANG, sizeof(zc_plan_range)), c->nranges};
    for (uint32_t i = 0; i < c->nranges; i++) {
        const zc_prange *range = &c->ranges[i];
        zc_plan_range r = {.factors = put_drefs(w, range->factors, range->nfactors),
                           .low = range->low,
                           .high = range->high};
        zc_buf_append(&w->sections[ZC_PLAN_RANG], &r, sizeof r);
    }
    return l;
}

static zc_plan_list put_choices(plan_writer *w, const zc_pstep *step)
{
    zc_plan_list l = {count_of(w, ZC_PLAN_CHOI, sizeof(zc_plan_choice)), step->nchoices};
    for (uint32_t i = 0; i < step->nchoices; i++) {
        const zc_pchoice *c = &step->choices[i];
        zc_plan_choice r = {.arch = c->arch,
                            .kernel = c->kernel,
                            .ranges = put_ranges(w, c),
                            .literals = put_floats(w, c->literals, c->nliterals),
                            .why = put_string(w, c->why)};
        zc_buf_append(&w->sections[ZC_PLAN_CHOI], &r, sizeof r);
    }
    return l;
}

static zc_plan_list put_attrs(plan_writer *w, const zc_pstep *step)
{
    const zc_op_info *info = zc_op_get(step->op);
    zc_plan_list l = {.first = count_of(w, ZC_PLAN_ATTR, sizeof(zc_plan_attr))};
    for (int i = 0; i < info->field_count; i++) {
        if (!(*(const uint64_t *)step->attrs >> i & 1)) continue;
        put_attr(w, &info->fields[i], (const char *)step->attrs + info->fields[i].offset);
        l.count++;
    }
    return l;
}

static void put_steps(plan_writer *w)
{
    for (uint32_t i = 0; i < w->p->nsteps; i++) {
        const zc_pstep *s = &w->p->steps[i];
        zc_plan_step r = {.op = put_string(w, zc_op_get(s->op)->name),
                          .name = put_string(w, s->name),
                          .in = put_refs(w, s->in, s->nin),
                          .out = put_refs(w, s->out, s->nout),
                          .blocks = put_refs(w, s->blocks, s->nblocks),
                          .prov = put_strings(w, s->prov, s->nprov),
                          .attrs = put_attrs(w, s),
                          .choices = put_choices(w, s),
                          .why = put_string(w, s->why),
                          .flags = s->tf32 ? ZC_PLAN_TF32 : 0};
        zc_buf_append(&w->sections[ZC_PLAN_STEP], &r, sizeof r);
    }
}

static void put_kernels(plan_writer *w)
{
    const zc_program *p = w->p;
    for (uint32_t i = 0; i < p->nkernels; i++) {
        const zc_pkernel *k = &p->kernels[i];
        zc_plan_kernel r = {.family = put_string(w, k->family),
                            .template_name = put_string(w, k->template_name),
                            .name = put_string(w, k->name),
                            .spec = put_string(w, k->spec),
                            .products = put_string(w, k->products),
                            .is_static = k->is_static,
                            .threads = k->threads,
                            .smem = k->smem,
                            .cluster = k->cluster,
                            .config = put_ints(w, k->config, k->nconfig),
                            .abi = k->abi,
                            .pitched = k->pitched};
        zc_buf_append(&w->sections[ZC_PLAN_KERN], &r, sizeof r);
    }
    for (uint32_t i = 0; i < p->nbinaries; i++) {
        zc_buf *code = &w->sections[ZC_PLAN_CODE];
        zc_buf_grow(code, zc_align_up(code->len, ZC_PLAN_DATA_ALIGN) - code->len);
        zc_plan_binary r = {.kernel = p->binaries[i].kernel,
                            .arch = p->binaries[i].arch,
                            .offset = code->len,
                            .length = p->binaries[i].bytes};
        zc_buf_append(code, p->binaries[i].data, (size_t)p->binaries[i].bytes);
        zc_buf_append(&w->sections[ZC_PLAN_BINS], &r, sizeof r);
    }
    for (uint32_t i = 0; i < p->nsources; i++) {
        zc_plan_source r = {.name = put_string(w, p->sources[i].name),
                            .text = put_string(w, p->sources[i].text)};
        zc_buf_append(&w->sections[ZC_PLAN_SRCS], &r, sizeof r);
    }
}

static void put_blocks(plan_writer *w)
{
    for (uint32_t i = 0; i < w->p->nblocks; i++) {
        const zc_pblock *b = &w->p->blocks[i];
        zc_plan_block r = {.params = put_refs(w, b->params, b->nparams),
                           .steps = put_refs(w, b->steps, b->nsteps),
                           .outs = put_refs(w, b->outs, b->nouts)};
        zc_buf_append(&w->sections[ZC_PLAN_BLKS], &r, sizeof r);
    }
}

static void put_meta(plan_writer *w)
{
    const zc_program *p = w->p;
    zc_plan_meta r = {.model_name = put_string(w, p->model_name),
                      .version = put_string(w, p->version),
                      .target = put_string(w, p->target),
                      .flags = p->tf32 ? ZC_PLAN_TF32 : 0,
                      .input_names = put_strings(w, p->input_names, p->blocks[0].nparams),
                      .output_names = put_strings(w, p->output_names, p->blocks[0].nouts),
                      .producer = put_string(w, p->origin.producer),
                      .producer_version = put_string(w, p->origin.producer_version),
                      .domain = put_string(w, p->origin.domain),
                      .doc = put_string(w, p->origin.doc),
                      .model_version = p->origin.version,
                      .pairs = put_strings(w, p->origin.pairs, 2 * p->origin.npairs),
                      .precision = put_strings(w, p->precision, p->nprecision)};
    memcpy(r.model_sha256, p->model_sha256, sizeof r.model_sha256);
    zc_buf_append(&w->sections[ZC_PLAN_META], &r, sizeof r);
}

/* ---- sinks ---- */

static zc_status append_to_buffer(void *user, const void *data, size_t len, zc_diag *diag)
{
    zc_buf *b = user;
    zc_buf_append(b, data, len);
    return b->failed ? zc_fail_nomem(diag, "plan", b->len + len) : ZC_OK;
}

static zc_status overwrite_buffer(void *user, const void *data, size_t len, uint64_t at,
                                  zc_diag *diag)
{
    zc_buf *b = user;
    (void)diag;
    memcpy(b->data + at, data, len);
    return ZC_OK;
}

zc_sink zc_sink_to_buffer(zc_buf *out)
{
    return (zc_sink){append_to_buffer, overwrite_buffer, out};
}

static const char zeros[ZC_PLAN_ALIGN];

static zc_status pad(uint64_t n, const zc_sink *sink, zc_diag *diag)
{
    for (; n > sizeof zeros; n -= sizeof zeros)
        ZC_TRY(sink->append(sink->user, zeros, sizeof zeros, diag));
    return n ? sink->append(sink->user, zeros, (size_t)n, diag) : ZC_OK;
}

/* ---- the constants, behind room for the header and the table ---- */

enum { TABLE_BYTES = ZC_PLAN_SECTION_COUNT * sizeof(zc_plan_section) };

static uint64_t data_begin(void)
{
    return zc_align_up(sizeof(zc_plan_header) + TABLE_BYTES, ZC_PLAN_ALIGN);
}

/* Piece by piece, so that what is hashed is in a cache when it is written. */
static zc_status put_constant(const void *data, size_t len, struct sha256_ctx *ctx,
                              const zc_sink *sink, zc_diag *diag)
{
    enum { PIECE = 1 << 18 };
    for (size_t at = 0; at < len;) {
        const size_t n = len - at < PIECE ? len - at : PIECE;
        const uint8_t *from = (const uint8_t *)data + at;
        sha256_update(ctx, n, from);
        ZC_TRY(sink->append(sink->user, from, n, diag));
        at += n;
    }
    return ZC_OK;
}

zc_status zc_program_write_constants(const zc_program *p, const zc_sink *sink, uint8_t sha256[32],
                                     zc_diag *diag)
{
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    ZC_TRY(pad(data_begin(), sink, diag));
    for (uint32_t v = 1; v < p->nvalues; v++) {
        const zc_pvalue *value = &p->values[v];
        if (value->kind != ZC_P_CONST) continue;
        const size_t padded = zc_align_up(value->bytes, ZC_PLAN_DATA_ALIGN);
        ZC_TRY(put_constant(value->data, value->bytes, &ctx, sink, diag));
        ZC_TRY(put_constant(zeros, padded - value->bytes, &ctx, sink, diag));
    }
    sha256_digest(&ctx, ZC_PLAN_SHA, sha256);
    return ZC_OK;
}

/* ---- all else ---- */

static uint64_t section_bytes(const plan_writer *w, int i)
{
    return i == ZC_PLAN_DATA ? w->data_bytes : w->sections[i].len;
}

static void hash_section(const plan_writer *w, int i, uint8_t out[ZC_PLAN_SHA])
{
    struct sha256_ctx ctx;
    if (i == ZC_PLAN_DATA) {
        memcpy(out, w->constants_sha256, ZC_PLAN_SHA);
        return;
    }
    sha256_init(&ctx);
    sha256_update(&ctx, w->sections[i].len, (const uint8_t *)w->sections[i].data);
    sha256_digest(&ctx, ZC_PLAN_SHA, out);
}

static void fill_header(const plan_writer *w, zc_plan_header *h, zc_plan_section *table)
{
    uint64_t at = data_begin();
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) {
        table[i] =
            (zc_plan_section){.kind = (uint32_t)i, .offset = at, .length = section_bytes(w, i)};
        hash_section(w, i, table[i].sha256);
        at = zc_align_up(at + table[i].length, ZC_PLAN_ALIGN);
    }
    *h = (zc_plan_header){.major = ZC_PLAN_MAJOR,
                          .minor = ZC_PLAN_MINOR,
                          .section_count = ZC_PLAN_SECTION_COUNT,
                          .file_size = at};
    memcpy(h->magic, ZC_PLAN_MAGIC, sizeof h->magic);
    strncpy(h->zc_version, w->p->version, sizeof h->zc_version - 1);
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, sizeof *h, (const uint8_t *)h);
    sha256_update(&ctx, TABLE_BYTES, (const uint8_t *)table);
    sha256_digest(&ctx, ZC_PLAN_SHA, h->sha256);
}

static zc_status write_sections(const plan_writer *w, const zc_sink *sink, zc_diag *diag)
{
    zc_plan_header h;
    zc_plan_section table[ZC_PLAN_SECTION_COUNT];
    fill_header(w, &h, table);
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) {
        const uint64_t end = table[i].offset + table[i].length;
        if (i != ZC_PLAN_DATA && table[i].length)
            ZC_TRY(sink->append(sink->user, w->sections[i].data, (size_t)table[i].length, diag));
        ZC_TRY(pad(zc_align_up(end, ZC_PLAN_ALIGN) - end, sink, diag));
    }
    ZC_TRY(sink->overwrite(sink->user, table, sizeof table, sizeof h, diag));
    return sink->overwrite(sink->user, &h, sizeof h, 0, diag);
}

zc_status zc_program_write_rest(const zc_program *p, const uint8_t constants_sha256[32],
                                const zc_sink *sink, zc_diag *diag)
{
    plan_writer w = {.p = p, .constants_sha256 = constants_sha256};
    put_meta(&w);
    put_dims(&w);
    put_values(&w);
    put_steps(&w);
    put_blocks(&w);
    put_kernels(&w);
    bool failed = false;
    bool too_large = false;
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) {
        failed |= w.sections[i].failed;
        too_large |= w.sections[i].len > UINT32_MAX;
    }
    zc_status status = failed      ? zc_fail_nomem(diag, "plan", 0)
                       : too_large ? zc_fail(diag, ZC_ERR_LIMIT, NULL, "plan has too many records")
                                   : write_sections(&w, sink, diag);
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) zc_buf_fini(&w.sections[i]);
    return status;
}

zc_status zc_program_write(const zc_program *p, const zc_sink *sink, zc_diag *diag)
{
    uint8_t sha256[ZC_PLAN_SHA];
    ZC_TRY(zc_program_write_constants(p, sink, sha256, diag));
    return zc_program_write_rest(p, sha256, sink, diag);
}
