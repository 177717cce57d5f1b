/* Says which steps of a plan for the CPU will go through reference kernels, which are slow. */
#include "driver/slow.h"

#include <stdlib.h>

#include "cpu/kernel.h"

/* Steps of fewer elements cost nothing that would be noticed; what a symbolic size counts for. */
enum { LEAST_ELEMENTS = 16384, SYMBOLIC = 16 };

static bool tensor_of(const zc_pvalue *v, zc_tensor *t, bool *guesses)
{
    *t = (zc_tensor){.dtype = v->dtype, .rank = v->rank, .data = (void *)(uintptr_t)v->data};
    if (v->rank < 0) return false;
    for (int d = 0; d < v->rank; d++) {
        bool known = zc_dim_is_const(v->dims[d]);
        t->dims[d] = known ? v->dims[d].k : SYMBOLIC;
        *guesses |= !known;
    }
    return true;
}

/* Operands of value 0 are left out. false: a rank is known only at run time. */
static bool tensors_of(const zc_program *p, const uint32_t *values, uint32_t n, zc_tensor *t,
                       int64_t *most, bool *guesses)
{
    for (uint32_t i = 0; i < n; i++) {
        t[i] = (zc_tensor){.dtype = ZC_NONE};
        if (!values[i]) continue;
        if (!tensor_of(&p->values[values[i]], &t[i], guesses)) return false;
        if (zc_tensor_numel(&t[i]) > *most) *most = zc_tensor_numel(&t[i]);
    }
    return true;
}

static bool is_slow(const zc_program *p, const zc_pstep *step, zc_tensor *room)
{
    zc_tensor *in = room, *out = room + step->nin;
    zc_kstate state = {0};
    zc_scratch scratch = {0};
    zc_packs packs = {0};
    int64_t most = 0;
    bool guesses = false;
    if (!tensors_of(p, step->in, step->nin, in, &most, &guesses) ||
        !tensors_of(p, step->out, step->nout, out, &most, &guesses) || most < LEAST_ELEMENTS)
        return false;
    zc_kctx k = {.op = step->op,
                 .info = zc_op_get(step->op),
                 .attrs = step->attrs,
                 .nin = zc_op_own_inputs(zc_op_get(step->op), (int)step->nin),
                 .nout = (int)step->nout,
                 .in = in,
                 .out = out,
                 .scratch = &scratch,
                 .state = &state,
                 .packs = &packs,
                 .subject = step->name};
    for (uint32_t i = 0; i < step->nin && i < 64; i++)
        if (p->values[step->in[i]].kind == ZC_P_CONST) k.const_in |= UINT64_C(1) << i;
    bool slow = zc_kernel_is_slow(&k, guesses);
    zc_scratch_fini(&scratch);
    return slow;
}

zc_status zc_tell_slow_steps(const zc_program *p, zc_diag *diag)
{
    size_t count[ZC_OP_COUNT] = {0};
    const char *name[ZC_OP_COUNT] = {NULL};
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *step = &p->steps[i];
        zc_tensor *room = zc_calloc((size_t)step->nin + step->nout + 1, sizeof *room);
        if (!room) return zc_fail_nomem(diag, "operands", step->nin);
        bool slow = is_slow(p, step, room);
        free(room);
        if (slow && !count[step->op]++) name[step->op] = step->name;
    }
    for (int op = 0; op < ZC_OP_COUNT; op++)
        if (count[op])
            zc_warn(diag, name[op],
                    "runs on the reference kernel of %s on the CPU, which is slow (%zu such steps)",
                    zc_op_get((zc_op)op)->name, count[op]);
    return ZC_OK;
}
