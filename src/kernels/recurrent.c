#include "op/recurrent.h"
#include "abi/recurrent.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

/* #define Z_<name> {...}: alpha (which 1) or beta (2) of each activation, or its kind (0). */
static void put_list(zc_gen *g, const char *name, const zc_recurrent *r, int which)
{
    zc_buf_printf(&g->spec, "#define Z_%s {", name);
    for (int i = 0; i < r->functions * r->directions; i++) {
        const zc_rnn_act *act = &r->act[i];
        if (which == 0)
            zc_buf_printf(&g->spec, "%s%d", i ? ", " : "", act->kind);
        else
            zc_buf_printf(&g->spec, "%s%.17g", i ? ", " : "", which == 1 ? act->alpha : act->beta);
    }
    zc_buf_puts(&g->spec, "}\n");
}

static bool is_finite(double v)
{
    return v - v == 0;
}

zc_status zc_gen_recurrent(zc_gen *g)
{
    const zc_pvalue *lengths = zc_gen_in(g, 4);
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_recurrent r;
    ZC_TRY(zc_recurrent_of(g->step->op, g->attrs, g->step->name, g->diag, &r));
    for (int i = 0; i < 3; i++)
        if (zc_gen_in(g, i)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(t) || zc_dtype_bits(t) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (lengths && !zc_kernel_type(lengths->dtype))
        return zc_gen_decline(g, "lengths of type %s", zc_dtype_name(lengths->dtype));
    for (int i = 0; i < r.functions * r.directions; i++)
        if (!is_finite(r.act[i].alpha) || !is_finite(r.act[i].beta))
            return zc_gen_decline(g, "an activation's parameter is not finite");
    if (r.clips && !(is_finite(r.clip) && r.clip >= 0))
        return zc_gen_decline(g, "clip is negative or not finite");
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "LENGTH_TYPE", lengths ? lengths->dtype : ZC_I32);
    zc_gen_define(g, "GATES", "%d", r.gates);
    zc_gen_define(g, "DIRECTIONS", "%d", r.directions);
    zc_gen_define(g, "REVERSE", "%d", r.reverse);
    zc_gen_define(g, "BATCH_FIRST", "%d", r.batch_first);
    zc_gen_define(g, "LINEAR_FIRST", "%d", r.linear_first);
    zc_gen_define(g, "INPUT_FORGET", "%d", r.input_forget);
    zc_gen_define(g, "CLIPS", "%d", r.clips);
    zc_gen_define(g, "CLIP", "%.17g", r.clips ? r.clip : 0);
    zc_gen_define(g, "FUNCTIONS", "%d", r.functions);
    put_list(g, "ACTS", &r, 0);
    put_list(g, "ALPHAS", &r, 1);
    put_list(g, "BETAS", &r, 2);
    return ZC_OK;
}

/* ---- the launch ---- */

#define IN(input) ZC_IN_LSTM_##input
enum { ENTRY_PROJECT, ENTRY_BEGIN, ENTRY_STEP, ENTRY_END, ENTRY_RESET };
enum { BLOCK = 256, SEQUENCES = 4 }; /* sequences a warp: as in the template */

typedef struct layer {
    zc_recurrent r;
    zc_op op;
    struct zc_recurrent_params p;
} layer;

static zc_status check(zc_launch *l, const layer *y)
{
    int64_t dirs = y->r.directions, gates = y->r.gates, hidden = y->p.hidden, batch = y->p.batch;
    const struct {
        int64_t dims[4];
        const char *what;
    } need[] = {{{1, 1, 1, 0}, "X"},
                {{dirs, gates, hidden, y->p.input}, "W"},
                {{dirs, gates, hidden, hidden}, "R"},
                {{dirs, gates, hidden, 2}, "B"},
                {{batch, 1, 1, 1}, "sequence_lens"},
                {{dirs, batch, hidden, 1}, "initial_h"},
                {{dirs, batch, hidden, 1}, "initial_c"},
                {{dirs, 3, hidden, 1}, "P"}};
    for (int i = IN(w); i < (int)ZC_COUNTOF(need); i++) {
        int64_t elements = zc_numel(4, need[i].dims);
        if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) == elements) continue;
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "%s has a wrong size (got %lld elements, need %lld)", need[i].what,
                       (long long)zc_tensor_numel(&l->in[i]), (long long)elements);
    }
    return ZC_OK;
}

static void fill(zc_launch *l, layer *y)
{
    const zc_tensor *x = &l->in[IN(x)];
    bool first = y->r.batch_first, cell = y->op == ZC_OP_LSTM;
    y->p = (struct zc_recurrent_params){.x = x->data,
                                        .w = l->in[IN(w)].data,
                                        .r = l->in[IN(r)].data,
                                        .bias = zc_launch_in(l, IN(bias)),
                                        .lengths = zc_launch_in(l, IN(lengths)),
                                        .h0 = zc_launch_in(l, IN(h)),
                                        .c0 = cell ? zc_launch_in(l, IN(c)) : NULL,
                                        .peepholes = cell ? zc_launch_in(l, IN(peepholes)) : NULL,
                                        .y = zc_launch_out(l, 0),
                                        .yh = zc_launch_out(l, 1),
                                        .yc = zc_launch_out(l, 2),
                                        .fault = l->fault,
                                        .step = l->step_id,
                                        .length = x->dims[first ? 1 : 0],
                                        .batch = x->dims[first ? 0 : 1],
                                        .input = x->dims[2],
                                        .hidden = l->in[IN(r)].dims[2]};
}

/* Scratch memory for n compute values. */
static zc_status buffer(zc_launch *l, int n, const int64_t *dims, void **out)
{
    size_t bytes;
    zc_dtype type = l->in[IN(x)].dtype == ZC_F64 ? ZC_F64 : ZC_F32;
    if (!zc_dtype_bytes(type, zc_numel(n, dims), &bytes))
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "the layer's temporary memory is too large");
    return zc_launch_scratch(l, bytes, out);
}

static zc_status make_room(zc_launch *l, layer *y, void *states[2])
{
    const int64_t state[] = {y->r.directions, y->p.batch, y->p.hidden};
    const int64_t pre[] = {y->r.directions, y->p.length, y->p.batch, y->r.gates, y->p.hidden};
    ZC_TRY(buffer(l, 5, pre, &y->p.pre));
    ZC_TRY(buffer(l, 3, state, &states[0]));
    ZC_TRY(buffer(l, 3, state, &states[1]));
    if (y->r.gates == 4) ZC_TRY(buffer(l, 3, state, &y->p.cell));
    if (y->r.gates != 3 || y->r.linear_first) return ZC_OK;
    ZC_TRY(buffer(l, 3, state, &y->p.update));
    return buffer(l, 3, state, &y->p.v);
}

static zc_status issue(zc_launch *l, layer *y, int entry, int64_t blocks)
{
    zc_dim3 grid = {zc_launch_blocks(blocks, 1, 0),
                    entry == ENTRY_BEGIN || entry == ENTRY_END ? 1 : (uint32_t)y->r.directions, 1};
    return zc_launch_kernel(l, entry, grid, BLOCK, 0, &y->p, sizeof y->p);
}

static zc_op op_of(const zc_launch *l)
{
    return l->info == zc_op_get(ZC_OP_RNN)   ? ZC_OP_RNN
           : l->info == zc_op_get(ZC_OP_GRU) ? ZC_OP_GRU
                                             : ZC_OP_LSTM;
}

zc_status zc_launch_recurrent(zc_launch *l)
{
    layer y = {.op = op_of(l)};
    void *states[2];
    ZC_TRY(zc_recurrent_of(y.op, l->attrs, l->subject, l->diag, &y.r));
    fill(l, &y);
    ZC_TRY(check(l, &y));
    ZC_TRY(make_room(l, &y, states));
    int64_t rows = (y.p.length * y.p.batch + 63) / 64, cols = (y.r.gates * y.p.hidden + 63) / 64;
    int64_t all = (y.r.directions * y.p.batch * y.p.hidden + BLOCK - 1) / BLOCK;
    int64_t units =
        (y.p.hidden + BLOCK / 32 - 1) / (BLOCK / 32) * ((y.p.batch + SEQUENCES - 1) / SEQUENCES);
    y.p.to = states[0];
    ZC_TRY(issue(l, &y, ENTRY_PROJECT, rows * cols));
    ZC_TRY(issue(l, &y, ENTRY_BEGIN, all));
    for (y.p.i = 0; y.p.i < y.p.length; y.p.i++) {
        y.p.from = states[y.p.i % 2];
        y.p.to = states[(y.p.i + 1) % 2];
        ZC_TRY(issue(l, &y, ENTRY_STEP, units));
        if (y.r.gates == 3 && !y.r.linear_first) ZC_TRY(issue(l, &y, ENTRY_RESET, units));
    }
    return issue(l, &y, ENTRY_END, all);
}
