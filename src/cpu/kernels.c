#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/conv_dnnl.h"
#include "cpu/dnnl.h"
#include "cpu/kernel.h"
#include "op/expr.h"
#include "op/nhwc.h"
#include "op/scaled.h"

static const zc_kernel_fn reference[ZC_OP_COUNT] = {
#define OP(name, mini, maxi, mino, maxo, dt, infer, fl) [ZC_OP_##name] = zc_k_##name,
#define PW(name, n, dt, fl, text)                       [ZC_OP_##name] = zc_k_pointwise,
#include "op/ops.def"
};

#define FAST(op, fits, kernel, use)                                                                \
    bool fits(const zc_kctx *k);                                                                   \
    zc_status kernel(zc_kctx *k);
#include "cpu/fast.def"
#undef FAST

/* Tried in order; the first that fits runs. */
static const struct {
    zc_op op;
    bool (*fits)(const zc_kctx *k);
    zc_kernel_fn kernel;
    zc_dnnl_use use;
} fast[] = {
#define FAST(op, fits, kernel, use) {ZC_OP_##op, fits, kernel, ZC_DNNL_##use},
#include "cpu/fast.def"
#undef FAST
    {ZC_OP_NONE, NULL, NULL, ZC_DNNL_NONE},
};

static const bool moves[ZC_OP_COUNT] = {
#define FAST(op, fits, kernel, use)
#define MOVES(op) [ZC_OP_##op] = true,
#include "cpu/fast.def"
#undef FAST
};

/* Control flow has no kernel: the runtime and the folder walk its regions. */
static zc_status regions_have_no_kernel(zc_kctx *k)
{
    return zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject, "%s reached a kernel", k->info->name);
}
zc_status zc_k_If(zc_kctx *k)
{
    return regions_have_no_kernel(k);
}
zc_status zc_k_Loop(zc_kctx *k)
{
    return regions_have_no_kernel(k);
}
zc_status zc_k_Scan(zc_kctx *k)
{
    return regions_have_no_kernel(k);
}

static zc_kernel_fn pick(const zc_kctx *k, bool reference_only)
{
    if (reference_only) return reference[k->op];
    for (int i = 0; fast[i].fits; i++) {
        if (fast[i].op == k->op && fast[i].fits(k)) return fast[i].kernel;
    }
    return k->info->flags & ZC_OPF_POINTWISE ? zc_fast_pointwise : reference[k->op];
}

bool zc_kernel_is_slow(zc_kctx *k, bool guesses)
{
    if (k->info->flags & (ZC_OPF_REGIONS | ZC_OPF_VIEW | ZC_OPF_SHAPE_ONLY) || moves[k->op])
        return false;
    for (int i = 0; guesses && fast[i].fits; i++)
        if (fast[i].op == k->op) return false;
    zc_kernel_fn kernel = pick(k, false);
    if (kernel == zc_fast_pointwise) return !zc_pointwise_fits_blocks(k);
    return kernel == reference[k->op];
}

zc_status zc_kernel_prepare(zc_op op, const char *subject, zc_diag *diag)
{
    const zc_kctx k = {.op = op, .subject = subject, .diag = diag};
    for (int i = 0; fast[i].fits; i++) {
        if (fast[i].op != op) continue;
        if (fast[i].use == ZC_DNNL_PRODUCT)
            return zc_dnnl_report(&k, zc_dnnl_prepare_products(), "matrix product");
        if (fast[i].use == ZC_DNNL_CREATE)
            return zc_dnnl_report(&k, zc_dnnl_conv_prepare(), "convolution");
    }
    return ZC_OK;
}

/* ---- sub-byte carriers ---- */

static bool is_subbyte(const zc_tensor *t)
{
    return zc_present(t) && zc_dtype_bits(t->dtype) < 8;
}

/* The 8-bit type that carries unpacked elements: values for integers, raw codes for floats. */
static zc_dtype carrier(zc_dtype dtype)
{
    return zc_dtype_class(dtype) == ZC_CLASS_INT ? ZC_I8 : ZC_U8;
}

/* A view of the packed bytes as an integer type of the same width, so that f4 codes move unread. */
static zc_dtype code_type(zc_dtype dtype)
{
    return dtype == ZC_F4E2M1 ? ZC_U4 : dtype;
}

static zc_status carry_in(zc_kctx *k, const zc_tensor *from, zc_tensor *to)
{
    int64_t n = zc_tensor_numel(from);
    *to = *from;
    to->dtype = carrier(from->dtype);
    to->data = zc_scratch_get(k->scratch, (size_t)n);
    if (!to->data) return zc_fail_nomem(k->diag, "unpacked operand", (size_t)n);
    for (int64_t i = 0; i < n; i++)
        zc_store_i64(to->dtype, to->data, i, zc_load_i64(code_type(from->dtype), from->data, i));
    return ZC_OK;
}

static zc_status carry_out_room(zc_kctx *k, const zc_tensor *packed, zc_tensor *to)
{
    int64_t n = zc_tensor_numel(packed);
    *to = *packed;
    to->dtype = carrier(packed->dtype);
    to->data = zc_scratch_get(k->scratch, (size_t)n);
    return to->data ? ZC_OK : zc_fail_nomem(k->diag, "unpacked result", (size_t)n);
}

static void carry_out(const zc_tensor *from, zc_tensor *packed)
{
    int64_t n = zc_tensor_numel(packed);
    size_t bytes = 0;
    if (zc_tensor_bytes(packed, &bytes) && bytes) memset(packed->data, 0, bytes);
    for (int64_t i = 0; i < n; i++)
        zc_store_i64(code_type(packed->dtype), packed->data, i,
                     zc_load_i64(from->dtype, from->data, i));
}

static bool needs_carriers(const zc_kctx *k)
{
    if (k->info->flags & ZC_OPF_SUBBYTE) return false;
    for (int i = 0; i < k->nin; i++)
        if (is_subbyte(&k->in[i])) return true;
    for (int i = 0; i < k->nout; i++)
        if (is_subbyte(&k->out[i])) return true;
    return false;
}

/* Runs a kernel that knows no packed elements on unpacked copies. */
static zc_status run_carried(zc_kctx *k, zc_kernel_fn kernel)
{
    if (k->info->flags & ZC_OPF_DYNAMIC)
        return zc_kernel_unsupported(k, "%s on 4-bit or 2-bit elements", k->info->name);
    zc_tensor *in = zc_scratch_get(k->scratch, (size_t)(k->nin + k->nout) * sizeof *in);
    if (!in) return zc_fail_nomem(k->diag, "unpacked operands", 0);
    zc_tensor *out = in + k->nin;
    for (int i = 0; i < k->nin; i++) {
        in[i] = k->in[i];
        if (is_subbyte(&k->in[i])) ZC_TRY(carry_in(k, &k->in[i], &in[i]));
    }
    for (int i = 0; i < k->nout; i++) {
        out[i] = k->out[i];
        if (is_subbyte(&k->out[i])) ZC_TRY(carry_out_room(k, &k->out[i], &out[i]));
    }
    zc_kctx inner = *k;
    inner.in = in;
    inner.out = out;
    ZC_TRY(kernel(&inner));
    for (int i = 0; i < k->nout; i++) {
        if (is_subbyte(&k->out[i])) carry_out(&out[i], &k->out[i]);
    }
    return ZC_OK;
}

/* ---- prologues and epilogues ---- */

zc_kctx zc_fused_step(const zc_kctx *k, const char *text, const zc_tensor *x0, int first, int end,
                      zc_tensor *to, zc_fused *room)
{
    int n = 0;
    room->attrs = (zc_attrs_Pointwise){.expr = text};
    room->in[n++] = *x0;
    for (int i = first; i < end && i < k->nin; i++) room->in[n++] = k->in[i];
    return zc_inner(k, ZC_OP_Pointwise, &room->attrs, n, room->in, to);
}

static zc_status run_fused(zc_kctx *k, const char *text, const zc_tensor *x0, int first, int end,
                           zc_tensor *to, zc_kstate *state, bool reference_only)
{
    zc_fused room;
    zc_kctx inner = zc_fused_step(k, text, x0, first, end, to, &room);
    inner.state = state;
    return pick(&inner, reference_only)(&inner);
}

/* The type of what the prologue makes of input 0, which is another one where that has bytes. */
static zc_status prologue_type(zc_kctx *k, const char *text, zc_dtype *made)
{
    const int end = zc_op_epilogue_first(k->info, k->attrs);
    zc_dtype types[1 + ZC_PROLOGUE_INPUTS] = {k->in[0].dtype};
    int n = 1;
    if (k->in[0].dtype != ZC_U8 && k->in[0].dtype != ZC_I8) return ZC_OK;
    for (int i = k->info->max_in; i < end && i < k->nin; i++) types[n++] = k->in[i].dtype;
    zc_expr *e = zc_scratch_get(k->scratch, sizeof *e);
    if (!e) return zc_fail_nomem(k->diag, "prologue", sizeof *e);
    ZC_TRY(zc_expr_parse(text, types, n, NULL, 0, e, k->subject, k->diag));
    *made = zc_expr_dtype(e, 0);
    return ZC_OK;
}

/* k's own inputs, the first as the prologue makes it. */
static zc_status run_prologue(zc_kctx *k, const char *text, zc_kctx *own, bool reference_only)
{
    size_t bytes;
    zc_tensor *in = zc_scratch_get(k->scratch, (size_t)own->nin * sizeof *in);
    if (!in) return zc_fail_nomem(k->diag, "prologue", (size_t)own->nin * sizeof *in);
    memcpy(in, k->in, (size_t)own->nin * sizeof *in);
    ZC_TRY(prologue_type(k, text, &in[0].dtype));
    in[0].data = zc_tensor_bytes(&in[0], &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    if (!in[0].data) return zc_fail_nomem(k->diag, "prologue", 0);
    own->in = in;
    own->const_in &= ~UINT64_C(1);
    return run_fused(k, text, &k->in[0], k->info->max_in, zc_op_epilogue_first(k->info, k->attrs),
                     &in[0], k->prologue_state, reference_only);
}

zc_tensor zc_plain_result(const zc_kctx *k)
{
    zc_tensor t = k->out[0];
    if (k->info->flags & ZC_OPF_SUMS) t.dtype = ZC_I32;
    if (zc_conv_plain_like(k->op) >= 0) t.dtype = k->in[zc_conv_plain_like(k->op)].dtype;
    const zc_dtype to = zc_scaled_to(k->op, k->attrs);
    if (to != ZC_NONE)
        t.dtype = to;
    else if (k->info->flags & ZC_OPF_QUANTISES && zc_dtype_bits(t.dtype) == 8)
        t.dtype = k->in[0].dtype;
    return t;
}

/* Room of its own for a plain result of larger elements than what the epilogue makes of it. */
static zc_status make_room(zc_kctx *k, zc_tensor *plain)
{
    size_t bytes;
    if (zc_dtype_bits(plain->dtype) <= zc_dtype_bits(k->out[0].dtype)) return ZC_OK;
    plain->data = zc_tensor_bytes(plain, &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    return plain->data ? ZC_OK : zc_fail_nomem(k->diag, "plain result", 0);
}

/* The last output, of the first, which may have room of its own alone. own: what computed it. */
static zc_status run_also(zc_kctx *k, const char *text, const zc_kctx *own, bool reference_only)
{
    return run_fused(k, text, &own->out[0], 0, 0, &k->out[k->info->max_out - 1], k->epilogue_state,
                     reference_only);
}

/* Where nobody wants the first output, room for it. */
static zc_status make_first(zc_kctx *k, zc_kctx *own)
{
    size_t bytes;
    const zc_tensor *last = &k->out[k->info->max_out - 1];
    if (k->out[0].dtype != ZC_NONE) return ZC_OK;
    zc_tensor *out = zc_scratch_get(k->scratch, (size_t)k->nout * sizeof *out);
    if (!out) return zc_fail_nomem(k->diag, "outputs", (size_t)k->nout);
    memcpy(out, k->out, (size_t)k->nout * sizeof *out);
    out[0] = *last;
    out[0].dtype = k->in[0].dtype;
    out[0].data = zc_tensor_bytes(&out[0], &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    own->out = out;
    return out[0].data ? ZC_OK : zc_fail_nomem(k->diag, "output 0", 0);
}

zc_status zc_kernel_run(zc_kctx *k, bool reference_only)
{
    int extras;
    const char *also = zc_op_also(k->info, k->attrs);
    const char *prologue = zc_op_prologue(k->info, k->attrs, &extras);
    const char *epilogue = zc_op_epilogue(k->info, k->attrs);
    zc_kctx own = *k;
    own.nin = zc_op_own_inputs(k->info, k->nin);
    own.step = epilogue && !reference_only ? k : NULL;
    own.finished = false;
    zc_tensor plain;
    if (prologue) ZC_TRY(run_prologue(k, prologue, &own, reference_only));
    if (epilogue) {
        plain = zc_plain_result(&own);
        ZC_TRY(make_room(k, &plain));
        own.out = &plain;
        own.nout = 1;
    }
    if (also) ZC_TRY(make_first(k, &own));
    ZC_TRY(needs_carriers(&own) ? run_carried(&own, reference[k->op])
                                : pick(&own, reference_only)(&own));
    if (also) return run_also(k, also, &own, reference_only);
    if (!epilogue || own.finished) return ZC_OK;
    return run_fused(k, epilogue, &plain, zc_op_epilogue_first(k->info, k->attrs), k->nin,
                     &k->out[0], k->epilogue_state, reference_only);
}

/* ---- helpers for kernels ---- */

void zc_broadcast_strides(const zc_tensor *t, const zc_tensor *out, int64_t strides[ZC_MAX_RANK])
{
    int64_t own[ZC_MAX_RANK];
    zc_strides(t, own);
    int shift = out->rank - t->rank;
    for (int i = 0; i < out->rank; i++) {
        bool along = i >= shift && t->dims[i - shift] != 1;
        strides[i] = along ? own[i - shift] : 0;
    }
}

bool zc_index_next(int rank, const int64_t *dims, int64_t *idx, int n,
                   const int64_t (*strides)[ZC_MAX_RANK], int64_t *off)
{
    for (int d = rank - 1; d >= 0; d--) {
        bool carry = ++idx[d] == dims[d];
        int64_t step = carry ? 1 - dims[d] : 1;
        for (int j = 0; j < n; j++) off[j] += step * strides[j][d];
        if (!carry) return true;
        idx[d] = 0;
    }
    return false;
}

typedef struct parts_job {
    const zc_kctx *k;
    void (*fn)(void *arg, int i);
    void *arg;
} parts_job;

static void run_unless_stopped(void *arg, int i)
{
    const parts_job *job = arg;
    if (!zc_stopped(job->k)) job->fn(job->arg, i);
}

void zc_parts(zc_kctx *k, int n, void (*fn)(void *arg, int i), void *arg)
{
    parts_job job = {.k = k, .fn = fn, .arg = arg};
    zc_pool_run(k->pool, n, run_unless_stopped, &job);
}

typedef struct range_job {
    const zc_kctx *k;
    void (*fn)(void *arg, int64_t begin, int64_t end);
    void *arg;
    int64_t n, grain;
    int parts;
} range_job;

/* A range in pieces between which the run may end: the first as small as is worth a call, the next
 * ones larger while they take less than half a millisecond. */
static void run_range(void *arg, int i)
{
    enum { SHORT_NS = 500000, GROWTH = 4 };
    const range_job *job = arg;
    int64_t begin = job->n / job->parts * i + job->n % job->parts * i / job->parts;
    const int64_t end = job->n / job->parts * (i + 1) + job->n % job->parts * (i + 1) / job->parts;
    int64_t piece = job->k->stopped ? job->grain : end - begin, before = 0;
    while (begin < end && !zc_stopped(job->k)) {
        if (piece > end - begin || end - begin - piece < job->grain) piece = end - begin;
        if (piece < end - begin) before = zc_clock_ns();
        job->fn(job->arg, begin, begin + piece);
        begin += piece;
        if (begin < end && zc_clock_ns() - before < SHORT_NS && piece <= INT64_MAX / GROWTH)
            piece *= GROWTH;
    }
}

void zc_parallel(zc_kctx *k, int64_t n, int64_t grain,
                 void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    const int threads = zc_pool_threads(k->pool);
    range_job job = {.k = k, .fn = fn, .arg = arg, .n = n, .grain = grain > 0 ? grain : 1};
    int64_t most = n / job.grain;
    if (most < 1) most = 1;
    job.parts = (int)(most < threads ? most : threads);
    if (n > 0) zc_pool_run(k->pool, job.parts, run_range, &job);
}
