/* zc's side: a case as a graph of copies, compiled as a user's model, and its session. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "bench.h"
#include "driver/compile.h"
#include "ir/graph.h"
#include "kernels/choose.h"
#include "planfile/program.h"

/* ---- the graph ---- */

static void put_type(const kb_tensor *t, zc_buf *out)
{
    zc_buf_printf(out, "%s[", zc_dtype_name(t->dtype));
    for (int d = 0; d < t->rank; d++)
        zc_buf_printf(out, "%s%lld", d ? "," : "", (long long)t->dims[d]);
    zc_buf_puts(out, "]");
}

/* All operands are inputs, operand by operand, each with its copies. */
static void put_graph(const kb_problem *p, int copies, zc_buf *out)
{
    zc_buf_puts(out, "graph \"kernels\" {\n");
    for (int i = 0; i < p->nin; i++)
        for (int c = 0; p->order[i] != KB_OUT && c < copies; c++) {
            zc_buf_printf(out, "  input %%i%d_%d: ", i, c);
            put_type(&p->t[p->order[i]], out);
            zc_buf_printf(out, " as \"i%d_%d\"\n", i, c);
        }
    for (int c = 0; c < copies; c++) {
        zc_buf_printf(out, "  %%o%d: f32[*] = %s(", c, p->op);
        for (int i = 0; i < p->nin; i++) {
            if (i) zc_buf_puts(out, ", ");
            if (p->order[i] == KB_OUT)
                zc_buf_puts(out, "_");
            else
                zc_buf_printf(out, "%%i%d_%d", i, c);
        }
        zc_buf_printf(out, ") %s @ \"step%d\"\n", strcmp(p->attrs, "{}") == 0 ? "" : p->attrs, c);
    }
    for (int c = 0; c < copies; c++) zc_buf_printf(out, "  output %%o%d as \"o%d\"\n", c, c);
    zc_buf_puts(out, "}\n");
}

static zc_status make_constant(zc_graph *g, zc_vid input, const kb_tensor *t, kb_role role,
                               int copy, const kb_pools *pools, zc_diag *diag)
{
    zc_tensor value = {.dtype = t->dtype, .rank = t->rank, .data = zc_calloc(t->bytes, 1)};
    if (!value.data) return zc_fail_nomem(diag, "weights", t->bytes);
    memcpy(value.dims, t->dims, (size_t)t->rank * sizeof *t->dims);
    kb_values(pools, t, role, copy, value.data);
    zc_vid made = zc_graph_const(g, NULL, &value, true);
    if (!made) return zc_fail_nomem(diag, "weights", t->bytes);
    zc_graph_forward(g, input, made);
    return ZC_OK;
}

/* Inputs that are constants to the model become so. */
static zc_status make_constants(zc_graph *g, const kb_problem *p, int copies, const kb_pools *pools,
                                zc_diag *diag)
{
    size_t at = 0, kept = 0;
    for (int i = 0; i < p->nin; i++) {
        kb_role role = p->order[i];
        for (int c = 0; role != KB_OUT && c < copies; c++, at++) {
            zc_vid input = g->top.params.data[at];
            if (p->t[role].constant) {
                ZC_TRY(make_constant(g, input, &p->t[role], role, c, pools, diag));
            } else {
                g->input_names[kept] = g->input_names[at];
                g->top.params.data[kept++] = input;
            }
        }
    }
    g->top.params.len = kept;
    zc_graph_resolve(g);
    return ZC_OK;
}

static zc_status make_graph(const kb_problem *p, int copies, const kb_pools *pools, zc_graph **out,
                            zc_diag *diag)
{
    zc_buf text = {0};
    put_graph(p, copies, &text);
    zc_status status = text.failed ? zc_fail_nomem(diag, "graph", text.len)
                                   : zc_graph_parse(text.data, text.len, out, diag);
    zc_buf_fini(&text);
    return status == ZC_OK ? make_constants(*out, p, copies, pools, diag) : status;
}

/* ---- the plan ---- */

/* The kernel of the first copy, which is that of all. */
static zc_status tell_kernel(const void *bytes, size_t len, kb_plan *out, zc_diag *diag)
{
    zc_arena arena;
    zc_program p;
    zc_buf config = {0};
    zc_arena_init(&arena, 0);
    zc_status status = zc_program_read(bytes, len, &arena, &p, diag);
    const zc_pstep *step = status == ZC_OK ? &p.steps[0] : NULL;
    if (step && !step->nchoices) {
        status = zc_fail(diag, ZC_ERR_ARG, "step", "it would run on the CPU: %s", step->why);
    } else if (step) {
        const zc_pkernel *k = &p.kernels[step->choices[0].kernel];
        (void)zc_config_text(k->family, k->config, &config);
        zc_snprintf(out->kernel, sizeof out->kernel, "%s", k->family);
        zc_snprintf(out->config, sizeof out->config, "%s", config.data ? config.data : "");
        zc_snprintf(out->why, sizeof out->why, "%s", step->choices[0].why);
    }
    zc_buf_fini(&config);
    zc_arena_fini(&arena);
    return status;
}

static zc_status compile(const kb_problem *p, const kb_pools *pools, const kb_options *o, int arch,
                         kb_plan *out, zc_diag *diag)
{
    char name[16];
    const char *target = name;
    void *bytes = NULL;
    size_t len = 0;
    zc_graph *g = NULL;
    zc_compile_params params = {.size = sizeof params,
                                .targets = &target,
                                .target_count = 1,
                                .threads = 1,
                                .tuned = o->tuned,
                                .by_cost = o->by_cost,
                                .offered = o->offered};
    zc_snprintf(name, sizeof name, "sm_%d", arch);
    zc_status status = make_graph(p, out->copies, pools, &g, diag);
    if (status == ZC_OK) status = zc_compile_graph(g, &params, &bytes, &len, diag);
    zc_graph_destroy(&g);
    if (status == ZC_OK) status = tell_kernel(bytes, len, out, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, &out->plan, diag);
    zc_free(bytes);
    return status;
}

void kb_compile(const kb_problem *p, const kb_pools *pools, const kb_options *o, int arch,
                int copies, kb_plan *out)
{
    zc_diag *diag = zc_diag_create();
    *out = (kb_plan){.copies = copies};
    if (compile(p, pools, o, arch, out, diag) != ZC_OK) {
        zc_snprintf(out->failed, sizeof out->failed, "%s", zc_diag_text(diag, 0));
        zc_plan_destroy(&out->plan);
    }
    zc_diag_destroy(&diag);
}

/* ---- the session ---- */

static zc_view view_of(const kb_tensor *t, zc_cu_ptr at)
{
    zc_view v = {.elem = (zc_elem)t->dtype,
                 .rank = t->rank,
                 .data = (void *)(uintptr_t)at,
                 .bytes = t->bytes,
                 .on_device = true};
    memcpy(v.dims, t->dims, (size_t)t->rank * sizeof *t->dims);
    return v;
}

static zc_status bind_all(kb_run *r, zc_session *s, zc_diag *diag)
{
    size_t slot = 0;
    for (int i = 0; i < r->p->nin; i++) {
        kb_role role = r->p->order[i];
        const kb_tensor *t = &r->p->t[role];
        for (int c = 0; role != KB_OUT && !t->constant && c < r->copies; c++) {
            zc_view v = view_of(t, kb_at(r, role, c));
            ZC_TRY(zc_session_set_input(s, slot++, &v, true, diag));
        }
    }
    for (int c = 0; c < r->copies; c++)
        ZC_TRY(zc_session_bind_output_device(s, (size_t)c,
                                             (void *)(uintptr_t)kb_out_at(r, &r->ours, c),
                                             r->p->t[KB_OUT].bytes, diag));
    return ZC_OK;
}

/* One graph, all of it on the GPU: nothing else is timed as a kernel. */
static zc_status check_place(kb_run *r, zc_session *s, zc_diag *diag)
{
    zc_device_info info;
    ZC_TRY(zc_session_device(s, &info));
    if (info.cpu_steps || info.shape_steps)
        return zc_fail(diag, ZC_ERR_ARG, r->c->name, "steps run on the CPU (%zu and %zu)",
                       info.cpu_steps, info.shape_steps);
    if (info.graphs != 1 || info.graph_refusal)
        return zc_fail(diag, ZC_ERR_ARG, r->c->name, "it is not one CUDA graph (%zu): %s",
                       info.graphs, info.graph_refusal ? info.graph_refusal : "no reason");
    zc_snprintf(r->ours.how, sizeof r->ours.how, "%.1f launches each",
                (double)info.launches / r->copies);
    return ZC_OK;
}

zc_status kb_ours_open(kb_run *r, const kb_plan *plan, zc_diag *diag)
{
    ZC_TRY(zc_session_create(plan->plan,
                             ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA,
                                               .ordinal = r->rig->device.ordinal,
                                               .stream = r->rig->stream, .timeout_ms = KB_WAIT_MS),
                             &r->ours.session, diag));
    ZC_TRY(bind_all(r, r->ours.session, diag));
    for (int i = 0; i < 3; i++) ZC_TRY(zc_session_run(r->ours.session, diag));
    r->ours.form =
        (kb_form){.transposed = r->c->transposed, .channels_last = !r->c->image, .act = r->c->act};
    return check_place(r, r->ours.session, diag);
}
