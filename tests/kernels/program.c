/* A case to a plan: IR text, the graph, the program with its kernels, the plan's bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "program/build.h"
#include "zc/version.h"

typedef struct writer {
    const kc_variant *v;
    zc_buf inputs, consts, halves, args[64];
    int copies, n, ninputs;
    bool shared;
} writer;

static void put_type(writer *w, const char *item, zc_buf *out)
{
    size_t name = strcspn(item, "["), end = strcspn(item, "]");
    bool t = name == 1 && *item == 'T', u = name == 1 && *item == 'U';
    if (t || u)
        zc_buf_puts(out, t ? w->v->t : w->v->u);
    else
        zc_buf_append(out, item, name);
    zc_buf_append(out, item + name, end + 1 - name);
}

/* The operand in both halves of each line of something larger, which is split again. */
static void put_halves(writer *w)
{
    zc_buf_printf(&w->halves,
                  "  %%d%d: f32[*] = Concat(%%i%d_0, %%i%d_0) {axis = -1} @ \"twice\"\n", w->n,
                  w->n, w->n);
    zc_buf_printf(&w->halves,
                  "  %%u%d: f32[*], %%h%d: f32[*] = Split(%%d%d) {axis = -1} @ \"halves\"\n", w->n,
                  w->n, w->n);
}

static bool put_operand(void *arg, const char *item)
{
    writer *w = arg;
    bool absent = strcmp(item, "_") == 0, half = w->v->c->pitched >> w->n & 1;
    const char *equals = strstr(item, "]=");
    if (half) put_halves(w);
    for (int c = 0; c < w->copies; c++) {
        zc_buf *a = &w->args[c];
        if (w->n) zc_buf_puts(a, ", ");
        if (absent)
            zc_buf_puts(a, "_");
        else if (equals || half)
            zc_buf_printf(a, "%%%c%d", half ? 'h' : 'c', w->n);
        else
            zc_buf_printf(a, "%%i%d_%d", w->n, w->shared ? 0 : c);
        if (absent || equals || (w->shared && c)) continue;
        zc_buf_printf(&w->inputs, "  input %%i%d_%d: ", w->n, c);
        put_type(w, item, &w->inputs);
        zc_buf_printf(&w->inputs, " as \"i%d_%d\"\n", w->n, c);
    }
    if (equals) {
        zc_buf_printf(&w->consts, "  const %%c%d: ", w->n);
        put_type(w, item, &w->consts);
        zc_buf_printf(&w->consts, " = %s\n", equals + 2);
    } else if (!absent) {
        w->ninputs++;
    }
    w->n++;
    return true;
}

static void put_attrs(const kc_variant *v, zc_buf *out)
{
    for (const char *p = v->c->attrs ? v->c->attrs : ""; *p; p++) {
        if (*p == '$' && (p[1] == 'T' || p[1] == 'U'))
            zc_buf_puts(out, *++p == 'T' ? v->t : v->u);
        else if (*p == '$' && p[1] == 'N') { /* ONNX's number of U */
            p++;
            zc_buf_printf(out, "%d", (int)zc_dtype_parse(v->u));
        } else {
            zc_buf_append(out, p, 1);
        }
    }
}

static const char *outs_of(const kc_case *c)
{
    return c->outs ? c->outs : "y";
}

static void put_node(const writer *w, int copy, zc_buf *out, zc_buf *outputs)
{
    const char *outs = outs_of(w->v->c);
    const char *half = w->v->c->pitched & KC_RESULT ? "h" : "";
    zc_buf_puts(out, "  ");
    for (int o = 0; outs[o]; o++) {
        if (o) zc_buf_puts(out, ", ");
        if (outs[o] == '_') {
            zc_buf_puts(out, "_");
            continue;
        }
        zc_buf_printf(out, "%%o%d_%d: f32[*]", o, copy);
        zc_buf_printf(outputs, "  output %%%so%d_%d as \"o%d_%d\"\n", o ? "" : half, o, copy, o,
                      copy);
    }
    /* The copies have one name: it decides what operations without a seed draw. */
    zc_buf_printf(out, " = %s(%s) ", w->v->c->op, w->args[copy].data ? w->args[copy].data : "");
    put_attrs(w->v, out);
    zc_buf_puts(out, " @ \"node\"\n");
}

/* The copies' results, or the only one twice, in halves of something larger, which is split again.
 */
static void put_joined(int copies, zc_buf *out)
{
    zc_buf_printf(out, "  %%w: f32[*] = Concat(%%o0_0, %%o0_%d) {axis = -1} @ \"joined\"\n",
                  copies - 1);
    zc_buf_puts(out, "  %ho0_0: f32[*], %ho0_1: f32[*] = Split(%w) {axis = -1} @ \"results\"\n");
}

static bool write_text(const kc_variant *v, const kc_sizes *fixed, kc_program *p, bool shared,
                       zc_buf *out)
{
    writer w = {.v = v, .copies = p->copies, .shared = shared};
    zc_buf in = {0}, outputs = {0};
    kc_substitute(v->c->in, fixed, &in);
    bool ok = p->copies <= (int)ZC_COUNTOF(w.args) &&
              (!in.data || kc_each(in.data, ';', put_operand, &w));
    zc_buf_puts(out, "graph \"case\" {\n");
    if (w.inputs.data) zc_buf_puts(out, w.inputs.data);
    if (w.consts.data) zc_buf_puts(out, w.consts.data);
    if (w.halves.data) zc_buf_puts(out, w.halves.data);
    for (int c = 0; c < p->copies; c++) put_node(&w, c, out, &outputs);
    if (v->c->pitched & KC_RESULT) put_joined(p->copies, out);
    zc_buf_puts(out, outputs.data ? outputs.data : "");
    zc_buf_puts(out, "}\n");
    p->nin = w.n;
    p->ninputs = w.ninputs;
    for (int c = 0; c < p->copies; c++) zc_buf_fini(&w.args[c]);
    zc_buf_fini(&in);
    zc_buf_fini(&w.inputs);
    zc_buf_fini(&w.consts);
    zc_buf_fini(&w.halves);
    zc_buf_fini(&outputs);
    return ok && !out->failed;
}

static zc_status lower_graph(const kc_variant *v, const int *archs, int narchs, kc_program *p,
                             zc_diag *diag)
{
    zc_program *program = &p->program;
    ZC_TRY(zc_program_build(p->graph, &p->arena, program, diag));
    program->version = ZC_VERSION;
    program->target = "cpu";
    program->tf32 = true; /* a case names its family, and others do not look at it */
    const zc_choose_params choose = {
        .archs = archs, .narchs = narchs, .family = v->c->family, .candidate = v->c->candidate};
    ZC_TRY(zc_choose(program, &choose, &p->arena, diag));
    const zc_pstep *step = program->steps;
    while (strcmp(step->name, "node") != 0) step++;
    p->step = step;
    snprintf(p->why, sizeof p->why, "%s", step->why ? step->why : "");
    p->family = step->nchoices ? program->kernels[step->choices[0].kernel].family : NULL;
    return ZC_OK;
}

zc_status kc_lower(const kc_variant *v, const kc_sizes *fixed, int copies, bool shared,
                   const int *archs, int narchs, kc_program *p, zc_diag *diag)
{
    zc_buf text = {0};
    const char *outs = outs_of(v->c);
    *p = (kc_program){.copies = copies};
    zc_arena_init(&p->arena, 0);
    for (; outs[p->nout] && p->nout < KC_OUTPUTS; p->nout++)
        p->wanted[p->nout] = outs[p->nout] != '_';
    zc_status status = ZC_OK;
    if (!write_text(v, fixed, p, shared, &text))
        status = zc_fail(diag, ZC_ERR_ARG, v->c->op, "bad case: %s", v->c->in);
    const char *before = zc_diag_lend_subject(diag, v->c->op);
    if (status == ZC_OK) status = zc_graph_parse(text.data, text.len, &p->graph, diag);
    zc_diag_lend_subject(diag, before);
    zc_buf_fini(&text);
    if (status == ZC_OK) status = lower_graph(v, archs, narchs, p, diag);
    return status;
}

zc_status kc_build(const kc_variant *v, const kc_sizes *fixed, int copies, bool shared, int arch,
                   kc_program *p, zc_diag *diag)
{
    zc_buf bytes = {0};
    zc_codegen_build_params build = {.archs = &arch, .narchs = 1, .threads = 1};
    ZC_TRY(kc_lower(v, fixed, copies, shared, &arch, 1, p, diag));
    ZC_TRY(zc_codegen_build(&p->program, &build, &p->arena, diag));
    const zc_sink sink = zc_sink_to_buffer(&bytes);
    zc_status status = zc_program_write(&p->program, &sink, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes.data, bytes.len, &p->plan, diag);
    zc_buf_fini(&bytes);
    return status;
}

void kc_program_free(kc_program *p)
{
    zc_plan_destroy(&p->plan);
    zc_graph_destroy(&p->graph);
    zc_arena_fini(&p->arena);
}
