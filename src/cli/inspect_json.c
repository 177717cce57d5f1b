/* What a plan holds, as one JSON document. */
#include <inttypes.h>
#include <string.h>

#include "cli/inspect.h"
#include "ir/graph.h"
#include "kernels/table.h"

static void put_string(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    cli_json(stdout, text);
}

/* Numbers, and strings where a dimension is not the same for every run; null: an unknown rank. */
static void put_dims(const zc_program *p, const zc_pvalue *v)
{
    if (v->rank < 0) {
        fputs("null", stdout);
        return;
    }
    putchar('[');
    for (int d = 0; d < v->rank; d++) {
        if (d) fputs(", ", stdout);
        if (zc_dim_is_const(v->dims[d])) {
            printf("%" PRId64, v->dims[d].k);
            continue;
        }
        zc_buf text = {0};
        cli_dim_text(p, v->dims[d], &text);
        cli_json(stdout, text.failed || !text.data ? "?" : text.data);
        zc_buf_fini(&text);
    }
    putchar(']');
}

static void put_value(const zc_program *p, uint32_t v, const char *name)
{
    if (!v) {
        fputs("null", stdout);
        return;
    }
    putchar('{');
    put_string("name", name ? name : p->values[v].name);
    printf(", \"type\": \"%s\", \"dims\": ", zc_dtype_name(p->values[v].dtype));
    put_dims(p, &p->values[v]);
    putchar('}');
}

static void put_values(const zc_program *p, const char *key, const uint32_t *values, uint32_t n,
                       const char *const *names)
{
    printf("\"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        if (i) fputs(", ", stdout);
        put_value(p, values[i], names ? names[i] : NULL);
    }
    putchar(']');
}

static void put_indices(const char *key, const uint32_t *v, uint32_t n)
{
    printf("\"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) printf("%s%" PRIu32, i ? ", " : "", v[i]);
    putchar(']');
}

/* Numbers as such, where JSON has them; all else as text. */
static void put_attr(const zc_attr_field *field, const void *at)
{
    zc_buf text = {0};
    zc_attr_print(field, at, &text);
    const char *value = text.data ? text.data : "";
    bool is_number = field->kind == ZC_ATTR_INT || field->kind == ZC_ATTR_INTS ||
                     field->kind == ZC_ATTR_FLOAT || field->kind == ZC_ATTR_FLOATS;
    if (field->kind == ZC_ATTR_STR)
        cli_json(stdout, *(const char *const *)at ? *(const char *const *)at : "");
    else if (is_number && !strpbrk(value, "in")) /* inf, nan */
        fputs(value, stdout);
    else
        cli_json(stdout, value);
    zc_buf_fini(&text);
}

static void put_attrs(const zc_pstep *s)
{
    const zc_op_info *info = zc_op_get(s->op);
    const char *separator = "";
    fputs("\"attributes\": {", stdout);
    for (int i = 0; i < info->field_count; i++) {
        if (!(*(const uint64_t *)s->attrs >> i & 1)) continue;
        printf("%s\"%s\": ", separator, info->fields[i].name);
        put_attr(&info->fields[i], zc_attr_at(info, (void *)(uintptr_t)s->attrs, i));
        separator = ", ";
    }
    fputs("}, ", stdout);
}

static void put_config(const zc_pkernel *k)
{
    int n, family = zc_family_find(k->family);
    const char *const *names = family < 0 ? NULL : zc_family_config(family, &n);
    const char *separator = ", \"config\": {";
    for (uint32_t i = 0; names && i < k->nconfig && (int)i < n; i++) {
        printf("%s\"%s\": %" PRId64, separator, names[i], k->config[i]);
        separator = ", ";
    }
    if (k->threads)
        printf("%s\"threads\": %" PRIu32 ", \"smem\": %" PRIu32 ", \"cluster\": %" PRIu32,
               separator, k->threads, k->smem, k->cluster);
    putchar('}');
}

static void put_ranges(const zc_program *p, const zc_pchoice *c)
{
    fputs(", \"where\": [", stdout);
    for (uint32_t i = 0; i < c->nranges; i++) {
        const zc_prange *r = &c->ranges[i];
        zc_buf text = {0};
        cli_range_text(p, r, &text);
        fputs(i ? ", {" : "{", stdout);
        put_string("size", text.failed ? "" : text.data);
        printf(", \"low\": %" PRId64 ", \"high\": %" PRId64 "}", r->low, r->high);
        zc_buf_fini(&text);
    }
    putchar(']');
}

static void put_choices(const zc_program *p, const zc_pstep *s)
{
    fputs("\"kernels\": [", stdout);
    for (uint32_t i = 0; i < s->nchoices; i++) {
        const zc_pchoice *c = &s->choices[i];
        const zc_pkernel *k = &p->kernels[c->kernel];
        printf("%s{\"arch\": %" PRIu32 ", ", i ? ", " : "", c->arch);
        put_string("kernel", k->name);
        if (k->nconfig) put_config(k);
        if (c->nranges) put_ranges(p, c);
        if (*c->why) {
            fputs(", ", stdout);
            put_string("why", c->why);
        }
        putchar('}');
    }
    putchar(']');
}

static void put_step(const zc_program *p, uint32_t at)
{
    const zc_pstep *s = &p->steps[at];
    printf("{\"index\": %" PRIu32 ", ", at);
    put_string("op", zc_op_get(s->op)->name);
    fputs(", ", stdout);
    put_string("name", s->name);
    fputs(", ", stdout);
    cli_json_texts(stdout, "from", s->prov, s->nprov);
    fputs(", ", stdout);
    put_attrs(s);
    put_values(p, "inputs", s->in, s->nin, NULL);
    fputs(", ", stdout);
    put_values(p, "outputs", s->out, s->nout, NULL);
    fputs(", ", stdout);
    put_indices("blocks", s->blocks, s->nblocks);
    if (p->nkernels) {
        fputs(", ", stdout);
        if (s->nchoices)
            put_choices(p, s);
        else
            put_string("on_cpu", s->why ? s->why : "");
    }
    putchar('}');
}

static void put_block(const zc_program *p, uint32_t at)
{
    const zc_pblock *b = &p->blocks[at];
    putchar('{');
    put_values(p, "params", b->params, b->nparams, NULL);
    fputs(", ", stdout);
    put_indices("steps", b->steps, b->nsteps);
    fputs(", ", stdout);
    put_values(p, "results", b->outs, b->nouts, NULL);
    putchar('}');
}

static void put_constants(const plan_view *v)
{
    const zc_program *p = v->program;
    const char *separator = "\n    ";
    fputs("  \"constants\": [", stdout);
    for (uint32_t i = 1; i < p->nvalues; i++) {
        const zc_pvalue *value = &p->values[i];
        if (value->kind != ZC_P_CONST) continue;
        printf("%s{", separator);
        put_string("name", value->name);
        printf(", \"type\": \"%s\", \"dims\": ", zc_dtype_name(value->dtype));
        put_dims(p, value);
        printf(", \"bytes\": %" PRIu64, value->bytes);
        if (v->hashes) {
            char hash[65];
            cli_sha256_text(value->data, (size_t)value->bytes, hash);
            printf(", \"sha256\": \"%s\"", hash);
        }
        putchar('}');
        separator = ",\n    ";
    }
    puts("],");
}

/* What the model says of itself. */
static void put_origin(const zc_origin *o)
{
    fputs(",\n  ", stdout);
    put_string("producer", o->producer);
    fputs(", ", stdout);
    put_string("producer_version", o->producer_version);
    fputs(", ", stdout);
    put_string("domain", o->domain);
    printf(", \"model_version\": %" PRId64 ", ", o->version);
    put_string("description", o->doc);
    fputs(", \"metadata\": [", stdout);
    for (uint32_t i = 0; i < o->npairs; i++) {
        fputs(i ? ", [" : "[", stdout);
        cli_json(stdout, o->pairs[2 * i]);
        fputs(", ", stdout);
        cli_json(stdout, o->pairs[2 * i + 1]);
        putchar(']');
    }
    putchar(']');
}

static void put_head(const plan_view *v)
{
    const zc_program *p = v->program;
    char hash[2 * sizeof p->model_sha256 + 1];
    for (size_t i = 0; i < sizeof p->model_sha256; i++)
        snprintf(hash + 2 * i, 3, "%02x", p->model_sha256[i]);
    printf("{\n  \"format\": [%u, %u], ", v->major, v->minor);
    put_string("zc", p->version);
    fputs(", ", stdout);
    put_string("target", p->target);
    fputs(", \"archs\": [", stdout);
    for (uint32_t i = 0, n = 0; i < p->nbinaries; i++)
        if (cli_first_of_arch(p, i)) printf("%s%" PRIu32, n++ ? ", " : "", p->binaries[i].arch);
    fputs("],\n  \"float_values\": {", stdout);
    uint32_t counts[ZC_DTYPE_END], types = 0;
    cli_count_types(p, counts);
    for (int d = 0; d < ZC_DTYPE_END; d++)
        if (counts[d])
            printf("%s\"%s\": %" PRIu32, types++ ? ", " : "", zc_dtype_name((zc_dtype)d),
                   counts[d]);
    printf("}, \"tf32\": %s, \"unplanned_values\": %" PRIu32 ",\n  ", p->tf32 ? "true" : "false",
           cli_unplanned_values(p));
    cli_json_texts(stdout, "precision", p->precision, p->nprecision);
    fputs(",\n  ", stdout);
    put_string("model", p->model_name);
    fputs(", ", stdout);
    put_string("model_sha256", hash);
    put_origin(&p->origin);
    printf(",\n  \"weight_bytes\": %" PRIu64 ", \"working_bytes\": ", v->weight_bytes);
    if (v->memory_known)
        printf("%" PRIu64 ", \"live_bytes\": %" PRIu64 ",\n  ", v->memory.arena_bytes,
               v->memory.live_bytes);
    else
        fputs("null, \"live_bytes\": null,\n  ", stdout);
}

void cli_plan_json(const plan_view *v)
{
    const zc_program *p = v->program;
    const zc_pblock *top = &p->blocks[0];
    put_head(v);
    put_values(p, "inputs", top->params, top->nparams, p->input_names);
    fputs(",\n  ", stdout);
    put_values(p, "outputs", top->outs, top->nouts, p->output_names);
    puts(",");
    put_constants(v);
    fputs("  \"steps\": [", stdout);
    for (uint32_t s = 0; s < p->nsteps; s++) {
        fputs(s ? ",\n    " : "\n    ", stdout);
        put_step(p, s);
    }
    fputs("],\n  \"blocks\": [", stdout);
    for (uint32_t b = 0; b < p->nblocks; b++) {
        fputs(b ? ",\n    " : "\n    ", stdout);
        put_block(p, b);
    }
    puts("]\n}");
}
