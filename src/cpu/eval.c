#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"

/* Allocates t's data; the caller frees it. Never NULL on success, so that empty tensors have a
 * valid pointer. */
static zc_status alloc_data(zc_tensor *t, const char *subject, zc_diag *diag)
{
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes)) {
        char text[256];
        return zc_fail(diag, ZC_ERR_LIMIT, subject, "result too large (got %s)",
                       zc_tensor_type_text(t, text, sizeof text));
    }
    t->data = zc_calloc(bytes, 1);
    return t->data ? ZC_OK : zc_fail_nomem(diag, "result", bytes);
}

static zc_status resize(zc_kctx *k, int i, int rank, const int64_t *dims)
{
    zc_tensor *t = &k->out[i];
    if (dims != t->dims) memmove(t->dims, dims, (size_t)rank * sizeof *dims);
    t->rank = rank;
    free(t->data);
    t->data = NULL;
    return alloc_data(t, k->subject, k->diag);
}

static zc_status concrete_type(const zc_type *type, zc_tensor *t)
{
    t->dtype = type->dtype;
    t->rank = type->rank;
    for (int i = 0; i < type->rank; i++) t->dims[i] = type->dims[i].k;
    return ZC_OK;
}

/* Output types from concrete inputs. Data-dependent ones stay without rank. */
static zc_status infer(zc_infer *f, const zc_tensor *in, zc_operand *operands)
{
    for (int i = 0; i < f->nin; i++) {
        if (!zc_operand_of(&in[i], f->arena, &operands[i]))
            return zc_fail_nomem(f->diag, "operands", 0);
    }
    f->in = operands;
    f->out = operands + f->nin;
    return zc_infer_run(f);
}

static bool is_concrete(const zc_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (!zc_dim_is_const(type->dims[i])) return false;
    return type->rank >= 0;
}

static zc_status prepare_outputs(const zc_infer *f, zc_tensor *out)
{
    bool dynamic = f->info->flags & ZC_OPF_DYNAMIC;
    for (int i = 0; i < f->nout; i++) {
        if (out[i].dtype == ZC_NONE) continue;
        const zc_type *type = &f->out[i].type;
        if (dynamic || !is_concrete(type)) {
            if (!dynamic)
                return zc_fail(f->diag, ZC_ERR_INTERNAL, f->subject,
                               "%s: output %d's shape is not known from its inputs", f->info->name,
                               i);
            out[i] = (zc_tensor){.dtype = type->dtype};
            continue;
        }
        ZC_TRY(concrete_type(type, &out[i]));
        ZC_TRY(alloc_data(&out[i], f->subject, f->diag));
    }
    return ZC_OK;
}

zc_status zc_cpu_eval(zc_op op, const void *attrs, int nin, const zc_tensor *in, int nout,
                      zc_tensor *out, bool reference_only, const char *subject, zc_diag *diag)
{
    zc_arena arena;
    zc_dims dims;
    zc_scratch scratch = {0};
    zc_kstate epilogue = {0};
    zc_arena_init(&arena, 0);
    zc_dims_init(&dims);
    for (int i = 0; i < nout; i++) out[i].data = NULL;

    zc_infer f = {.op = op,
                  .info = zc_op_get(op),
                  .attrs = attrs,
                  .dims = &dims,
                  .arena = &arena,
                  .nin = nin,
                  .nout = nout,
                  .subject = subject,
                  .diag = diag};
    zc_kctx k = {.op = op,
                 .info = f.info,
                 .attrs = attrs,
                 .nin = nin,
                 .nout = nout,
                 .in = in,
                 .out = out,
                 .scratch = &scratch,
                 .epilogue_state = &epilogue,
                 .resize = resize,
                 .subject = subject,
                 .diag = diag};
    zc_operand *operands = zc_arena_alloc(&arena, (size_t)(nin + nout), sizeof *operands);
    zc_status status = operands ? infer(&f, in, operands) : zc_fail_nomem(diag, "operands", 0);
    if (status == ZC_OK) status = prepare_outputs(&f, out);
    if (status == ZC_OK) status = zc_kernel_run(&k, reference_only);
    for (int i = 0; status != ZC_OK && i < nout; i++) {
        free(out[i].data);
        out[i].data = NULL;
    }
    if (epilogue.destroy) epilogue.destroy(epilogue.p);
    zc_scratch_fini(&scratch);
    zc_dims_fini(&dims);
    zc_arena_fini(&arena);
    return status;
}
