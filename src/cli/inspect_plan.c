/* What a plan holds, as text and for Graphviz. */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inspect.h"
#include "ir/graph.h"
#include "kernels/table.h"
#include "op/sizes.h"
#include "planfile/format.h"
#include "runtime/plan.h"

void cli_sha256_text(const void *data, size_t len, char out[65])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, len, data);
    sha256_digest(&ctx, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void cli_dim_text(const zc_program *p, zc_dim d, zc_buf *out)
{
    /* Printing only reads the table. */
    zc_dims dims = {.nodes = (zc_dim_node *)(uintptr_t)p->dim_nodes, .count = p->ndims};
    zc_dim_print(&dims, d, out);
}

void cli_range_text(const zc_program *p, const zc_prange *r, zc_buf *out)
{
    for (uint32_t f = 0; f < r->nfactors; f++) {
        if (f) zc_buf_puts(out, " * ");
        cli_dim_text(p, r->factors[f], out);
    }
}

bool cli_first_of_arch(const zc_program *p, uint32_t binary)
{
    for (uint32_t i = 0; i < binary; i++)
        if (p->binaries[i].arch == p->binaries[binary].arch) return false;
    return true;
}

void cli_count_types(const zc_program *p, uint32_t counts[ZC_DTYPE_END])
{
    memset(counts, 0, ZC_DTYPE_END * sizeof *counts);
    for (uint32_t i = 1; i < p->nvalues; i++)
        if (p->values[i].kind == ZC_P_STEP && zc_dtype_is_float(p->values[i].dtype))
            counts[p->values[i].dtype]++;
}

uint32_t cli_unplanned_values(const zc_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < p->nvalues; i++)
        n += p->values[i].kind == ZC_P_STEP && !p->values[i].planned;
    return n;
}

/* ---- text ---- */

static void put_quoted(const char *text)
{
    putchar('"');
    cli_put(stdout, text);
    putchar('"');
}

static void put_type(const zc_program *p, const zc_pvalue *v)
{
    zc_buf text = {0};
    zc_buf_printf(&text, "%s[", zc_dtype_name(v->dtype));
    if (v->rank < 0) zc_buf_puts(&text, "*");
    for (int d = 0; d < v->rank; d++) {
        if (d) zc_buf_puts(&text, ",");
        cli_dim_text(p, v->dims[d], &text);
    }
    zc_buf_puts(&text, "]");
    cli_put(stdout, text.failed ? "?" : text.data);
    zc_buf_fini(&text);
}

static void put_value(const zc_program *p, uint32_t v, bool typed)
{
    if (!v) {
        putchar('_');
        return;
    }
    putchar('%');
    cli_put(stdout, p->values[v].name);
    if (!typed) return;
    fputs(": ", stdout);
    put_type(p, &p->values[v]);
}

static void put_list(const zc_program *p, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i) fputs(", ", stdout);
        put_value(p, values[i], true);
    }
}

/* The tuning parameters of a user's kernel. */
static void put_tuned(const zc_pstep *s)
{
    zc_buf text = {0};
    if (s->op != ZC_OP_UserKernel) return;
    const zc_attrs_UserKernel *a = s->attrs;
    zc_tuning_print(a->tuning, a->tuned, &text);
    if (text.len) {
        fputs(" with ", stdout);
        cli_put(stdout, text.data);
    }
    zc_buf_fini(&text);
}

static void put_config(const zc_pkernel *k)
{
    int n, family = zc_family_find(k->family);
    if (family < 0 || !k->nconfig) return;
    const char *const *names = zc_family_config(family, &n);
    const char *separator = " {";
    for (uint32_t i = 0; i < k->nconfig && (int)i < n; i++) {
        printf("%s%s=%" PRId64, separator, names[i], k->config[i]);
        separator = ", ";
    }
    if (k->threads)
        printf("%sthreads=%" PRIu32 ", smem=%" PRIu32 ", cluster=%" PRIu32, separator, k->threads,
               k->smem, k->cluster);
    putchar('}');
}

static void put_ranges(const zc_program *p, const zc_pchoice *c)
{
    for (uint32_t i = 0; i < c->nranges; i++) {
        const zc_prange *r = &c->ranges[i];
        zc_buf text = {0};
        cli_range_text(p, r, &text);
        fputs(i ? " and " : " where ", stdout);
        cli_put(stdout, text.failed ? "?" : text.data);
        if (r->low == r->high)
            printf(" = %" PRId64, r->low);
        else
            printf(" <= %" PRId64, r->high);
        zc_buf_fini(&text);
    }
}

static void put_choice(const zc_program *p, const zc_pchoice *c)
{
    printf(" on sm_%" PRIu32, c->arch);
    put_ranges(p, c);
    fputs(" by ", stdout);
    cli_put(stdout, p->kernels[c->kernel].name);
    put_config(&p->kernels[c->kernel]);
    if (*c->why) {
        fputs(" (", stdout);
        cli_put(stdout, c->why);
        putchar(')');
    }
}

static void put_place(const zc_program *p, const zc_pstep *s, int indent)
{
    for (uint32_t i = 0; i < s->nchoices; i++) {
        if (s->nchoices > 1) printf("\n%*s", indent + 2, "");
        put_choice(p, &s->choices[i]);
    }
    if (s->nchoices)
        put_tuned(s);
    else if (s->why && *s->why) {
        fputs(" on CPU: ", stdout);
        cli_put(stdout, s->why);
    }
}

static void put_attrs(const zc_pstep *s)
{
    zc_buf text = {0};
    zc_attrs_print(s->op, s->attrs, &text);
    if (text.len) cli_put(stdout, text.data);
    zc_buf_fini(&text);
}

static void put_block(const zc_program *p, uint32_t block, int indent);

static void put_step(const zc_program *p, uint32_t at, int indent)
{
    const zc_pstep *s = &p->steps[at];
    printf("%*s%" PRIu32 ": ", indent, "", at);
    put_list(p, s->out, s->nout);
    printf(" = %s(", zc_op_get(s->op)->name);
    put_list(p, s->in, s->nin);
    putchar(')');
    put_attrs(s);
    fputs(" @ ", stdout);
    put_quoted(s->name);
    for (uint32_t i = 0; i < s->nprov; i++) {
        fputs(i ? ", " : " from ", stdout);
        put_quoted(s->prov[i]);
    }
    put_place(p, s, indent);
    putchar('\n');
    for (uint32_t i = 0; i < s->nblocks; i++) {
        printf("%*sblock (", indent + 2, "");
        put_list(p, p->blocks[s->blocks[i]].params, p->blocks[s->blocks[i]].nparams);
        puts("):");
        put_block(p, s->blocks[i], indent + 4);
    }
}

/* Blocks nest at most as deep as the reader allows. */
static void put_block(const zc_program *p, uint32_t block, int indent)
{
    const zc_pblock *b = &p->blocks[block];
    for (uint32_t i = 0; i < b->nsteps; i++) put_step(p, b->steps[i], indent);
    if (!block) return;
    printf("%*syield ", indent, "");
    put_list(p, b->outs, b->nouts);
    putchar('\n');
}

static void put_constants(const plan_view *v)
{
    const zc_program *p = v->program;
    puts("constants:");
    for (uint32_t i = 1; i < p->nvalues; i++) {
        const zc_pvalue *value = &p->values[i];
        if (value->kind != ZC_P_CONST) continue;
        fputs("  ", stdout);
        put_value(p, i, true);
        printf(", %" PRIu64 " bytes", value->bytes);
        if (v->hashes) {
            char hash[65];
            cli_sha256_text(value->data, (size_t)value->bytes, hash);
            printf(", sha256:%s", hash);
        }
        putchar('\n');
    }
}

static void put_ios(const zc_program *p, const char *what, const uint32_t *values,
                    const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        printf("%s ", what);
        cli_put(stdout, names[i]);
        fputs(": ", stdout);
        put_type(p, &p->values[values[i]]);
        putchar('\n');
    }
}

static void put_targets(const zc_program *p)
{
    fputs(p->target, stdout);
    for (uint32_t i = 0, n = 0; i < p->nbinaries; i++)
        if (cli_first_of_arch(p, i))
            printf("%ssm_%" PRIu32, n++ ? ", " : " (", p->binaries[i].arch);
    if (p->nbinaries) putchar(')');
}

static void put_precision(const zc_program *p)
{
    uint32_t counts[ZC_DTYPE_END], n = 0;
    cli_count_types(p, counts);
    fputs("precision: ", stdout);
    for (int d = 0; d < ZC_DTYPE_END; d++)
        if (counts[d])
            printf("%s%s (%" PRIu32 " values)", n++ ? ", " : "", zc_dtype_name((zc_dtype)d),
                   counts[d]);
    puts(!n ? "no floats" : p->tf32 ? ", products by tf32" : "");
    for (uint32_t i = 0; i < p->nprecision; i++) {
        fputs("  ", stdout);
        cli_put(stdout, p->precision[i]);
        putchar('\n');
    }
}

static void put_memory(const plan_view *v)
{
    if (!v->memory_known) {
        puts("working memory depends on dimensions (give them by --dim NAME=VALUE)");
        return;
    }
    printf("%" PRIu64 " bytes of working memory\n%" PRIu64 " bytes of it needed at once\n%" PRIu64
           " bytes of results\n",
           v->memory.arena_bytes, v->memory.live_bytes, v->memory.result_bytes);
    uint32_t open = cli_unplanned_values(v->program);
    if (open)
        printf("and on top %" PRIu32 " results of steps whose sizes depend on values, not on "
               "dimensions alone\n",
               open);
}

static void put_said(const char *what, const char *text)
{
    if (!*text) return;
    printf("%s ", what);
    cli_put_short(stdout, text, "\"");
    putchar('\n');
}

/* What the model says of itself. */
static void put_origin(const zc_origin *o)
{
    put_said("producer", o->producer);
    put_said("producer version", o->producer_version);
    put_said("domain", o->domain);
    if (o->version) printf("model version %" PRId64 "\n", o->version);
    put_said("description", o->doc);
    for (uint32_t i = 0; i < o->npairs; i++) {
        fputs("metadata ", stdout);
        put_quoted(o->pairs[2 * i]);
        fputs(": ", stdout);
        cli_put_short(stdout, o->pairs[2 * i + 1], "\"");
        putchar('\n');
    }
}

static void put_text(const plan_view *v)
{
    const zc_program *p = v->program;
    printf("plan by zc %s for ", p->version);
    put_targets(p);
    printf(", format %u.%u\nmodel ", v->major, v->minor);
    put_quoted(p->model_name);
    fputs(", SHA-256 ", stdout);
    for (size_t i = 0; i < sizeof p->model_sha256; i++) printf("%02x", p->model_sha256[i]);
    printf("\n%" PRIu32 " steps, %" PRIu64 " bytes of weights", p->blocks[0].nsteps,
           v->weight_bytes);
    if (p->nkernels)
        printf(", %" PRIu32 " GPU kernels, %" PRIu32 " binaries, %" PRIu32 " sources", p->nkernels,
               p->nbinaries, p->nsources);
    putchar('\n');
    put_origin(&p->origin);
    put_precision(p);
    put_memory(v);
    put_ios(p, "input", p->blocks[0].params, p->input_names, p->blocks[0].nparams);
    put_ios(p, "output", p->blocks[0].outs, p->output_names, p->blocks[0].nouts);
    put_constants(v);
    puts("steps:");
    put_block(p, 0, 2);
}

/* ---- Graphviz ---- */

/* By value: the step that makes it, or UINT32_MAX. NULL: no memory. */
static uint32_t *find_producers(const zc_program *p)
{
    uint32_t *by = zc_calloc(p->nvalues, sizeof *by);
    if (!by) return NULL;
    memset(by, 0xff, p->nvalues * sizeof *by);
    for (uint32_t s = 0; s < p->nsteps; s++)
        for (uint32_t i = 0; i < p->steps[s].nout; i++) by[p->steps[s].out[i]] = s;
    return by;
}

static void put_edges(const zc_program *p, uint32_t s, const uint32_t *by)
{
    for (uint32_t i = 0; i < p->steps[s].nin; i++) {
        uint32_t v = p->steps[s].in[i];
        if (!v || p->values[v].kind == ZC_P_CONST) continue;
        if (by[v] != UINT32_MAX)
            printf("  s%" PRIu32 " -> s%" PRIu32 ";\n", by[v], s);
        else
            printf("  v%" PRIu32 " -> s%" PRIu32 ";\n", v, s);
    }
}

static zc_status put_dot(const zc_program *p, zc_diag *diag)
{
    uint32_t *by = find_producers(p);
    if (!by) return zc_fail_nomem(diag, "producers", p->nvalues);
    puts("digraph plan {\n  node [shape=box];");
    for (uint32_t v = 1; v < p->nvalues; v++) {
        if (p->values[v].kind != ZC_P_INPUT && p->values[v].kind != ZC_P_PARAM) continue;
        printf("  v%" PRIu32 " [shape=ellipse, label=", v);
        cli_json(stdout, p->values[v].name);
        puts("];");
    }
    for (uint32_t s = 0; s < p->nsteps; s++) {
        printf("  s%" PRIu32 " [label=", s);
        cli_json(stdout, zc_op_get(p->steps[s].op)->name);
        fputs(", tooltip=", stdout);
        cli_json(stdout, p->steps[s].name);
        puts("];");
        put_edges(p, s, by);
    }
    puts("}");
    free(by);
    return ZC_OK;
}

/* ---- the plan ---- */

static zc_status show(zc_plan *plan, const inspect *o, zc_diag *diag)
{
    const zc_plan_header *header = (const void *)plan->bytes;
    plan_view v = {.program = &plan->program,
                   .major = header->major,
                   .minor = header->minor,
                   .weight_bytes = plan->weight_bytes,
                   .hashes = o->hashes};
    if (o->dot) return put_dot(v.program, diag);
    if (o->memory) return cli_inspect_memory(plan, o, diag);
    ZC_TRY(cli_plan_memory(plan, &o->dims, &v.memory_known, &v.memory, diag));
    (o->json ? cli_plan_json : put_text)(&v);
    return ZC_OK;
}

zc_status cli_inspect_plan(const zc_model_source *from, const inspect *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_status status = from->path ? zc_plan_load_file(from->path, &plan, diag)
                                  : zc_plan_load_bytes(from->bytes, from->len, &plan, diag);
    if (status == ZC_OK) status = show(plan, o, diag);
    zc_plan_destroy(&plan);
    return status;
}
