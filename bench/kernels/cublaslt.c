/* Products by cuBLASLt: the fastest of what its heuristics offer, for constant weights in either
 * layout, bias and GELU (tanh's form, the only one there) as its epilogue, a residual as its C.
 *
 * It counts columns first: row-major y[rows, n] = x[rows, k] w[k, n] is D[n, rows] = A B, with A w
 * and B x. */
#include "cublaslt_api.h"

#include <stdlib.h>

#include "base/number.h"

enum { OFFERS = 8 };

static const kb_symbol symbols[] = {
#define LT(field, symbol, result, params) {#symbol, offsetof(struct kb_cublaslt, field)},
#include "cublaslt.def"
#undef LT
};

struct kb_cublaslt *kb_cublaslt_open(const char *folders, char *why, size_t n)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    struct kb_cublaslt *lt = zc_calloc(1, sizeof *lt);
    int code = 0;
    if (!lt) {
        zc_snprintf(why, n, "no memory");
        return NULL;
    }
    lt->library = kb_library(names, folders, why, n);
    bool ok = lt->library && kb_bind(lt->library, symbols, ZC_COUNTOF(symbols), lt, why, n);
    if (ok && (code = lt->create(&lt->handle)) != 0) {
        zc_snprintf(why, n, "cublasLtCreate: %s", lt->status_name(code));
        ok = false;
    }
    if (!ok) kb_cublaslt_close(&lt);
    return lt;
}

void kb_cublaslt_close(struct kb_cublaslt **lt)
{
    if (!*lt) return;
    if ((*lt)->handle) (void)(*lt)->destroy((*lt)->handle);
    free(*lt);
    *lt = NULL;
}

size_t kb_cublaslt_version(const struct kb_cublaslt *lt)
{
    return lt->version();
}

/* A product with w in one layout. */
typedef struct call {
    kb_run *r;
    struct kb_cublaslt *lt;
    void *desc, *a, *b, *d, *preference; /* D's layout is C's, too */
    const lt_found *use;
} call;

static zc_status check(const struct kb_cublaslt *lt, int code, const char *what, zc_diag *diag)
{
    if (!code) return ZC_OK;
    return zc_fail(diag, ZC_ERR_DEVICE, "cublasLt", "%s: %s", what, lt->status_name(code));
}

static int type_of(zc_dtype dtype)
{
    switch (dtype) {
    case ZC_F8E4M3FN:
        return LT_R_8F_E4M3;
    case ZC_I8:
        return LT_R_8I;
    case ZC_I32:
        return LT_R_32I;
    case ZC_F32:
        return LT_R_32F;
    default:
        return dtype == ZC_BF16 ? LT_R_16BF : LT_R_16F;
    }
}

/* Sums of bytes, and what multiplies them, are i32. */
static bool is_integer(const kb_case *c)
{
    return c->type == ZC_I8;
}

static zc_status issue_by(const call *k, kb_role w, int copy, zc_diag *diag)
{
    const kb_run *r = k->r;
    const float f32[] = {0, 1};
    const int32_t i32[] = {0, 1};
    const void *zero = is_integer(r->c) ? (const void *)&i32[0] : &f32[0],
               *one = is_integer(r->c) ? (const void *)&i32[1] : &f32[1];
    bool residual = r->p->t[KB_RESIDUAL].dtype != ZC_NONE;
    void *bias = (void *)(uintptr_t)kb_at(r, KB_BIAS, copy);
    void *d = (void *)(uintptr_t)kb_out_at(r, &r->yardstick, copy);
    void *c = residual ? (void *)(uintptr_t)kb_at(r, KB_RESIDUAL, copy) : d;
    if (r->p->t[KB_BIAS].dtype)
        ZC_TRY(check(k->lt, k->lt->desc_set(k->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias),
                     "bias", diag));
    return check(k->lt,
                 k->lt->matmul(k->lt->handle, k->desc, one, (void *)(uintptr_t)kb_at(r, w, copy),
                               k->a, (void *)(uintptr_t)kb_at(r, KB_X, copy), k->b,
                               residual ? one : zero, c, k->d, d, k->d, &k->use->algorithm,
                               (void *)(uintptr_t)r->rig->workspace, KB_WORKSPACE, r->rig->stream),
                 "cublasLtMatmul", diag);
}

/* Of a gate both products, without what joins them: the second one's result is kept. */
static zc_status issue(void *user, int copy, zc_diag *diag)
{
    const call *k = user;
    ZC_TRY(issue_by(k, KB_W, copy, diag));
    return k->r->c->gated ? issue_by(k, KB_SECOND_W, copy, diag) : ZC_OK;
}

static zc_status describe(call *k, bool transposed, zc_diag *diag)
{
    struct kb_cublaslt *lt = k->lt;
    const kb_case *c = k->r->c;
    const kb_problem *p = k->r->p;
    uint64_t rows = (uint64_t)(p->t[KB_OUT].count / c->n), in = (uint64_t)c->k,
             out = (uint64_t)c->n, workspace = KB_WORKSPACE;
    int type = type_of(c->type), trans = transposed ? LT_OP_T : LT_OP_N,
        epilogue = (c->bias ? LT_EPILOGUE_BIAS : 0) | (c->act ? LT_EPILOGUE_GELU : 0);
    const int8_t fast = !c->f32_sums; /* e4m3's sums stay in the tensor cores */
    void *bias = (void *)(uintptr_t)kb_at(k->r, KB_BIAS, 0);
    if (!epilogue) epilogue = LT_EPILOGUE_DEFAULT;
    ZC_TRY(check(lt,
                 lt->desc_create(&k->desc, is_integer(c) ? LT_COMPUTE_32I : LT_COMPUTE_32F,
                                 is_integer(c) ? LT_R_32I : LT_R_32F),
                 "description", diag));
    ZC_TRY(check(lt, lt->desc_set(k->desc, LT_DESC_TRANSA, &trans, sizeof trans), "A", diag));
    ZC_TRY(check(lt, lt->desc_set(k->desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                 "epilogue", diag));
    if (c->type == ZC_F8E4M3FN)
        ZC_TRY(
            check(lt, lt->desc_set(k->desc, LT_DESC_FAST_ACCUM, &fast, sizeof fast), "sums", diag));
    if (c->bias)
        ZC_TRY(check(lt, lt->desc_set(k->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias), "bias",
                     diag));
    ZC_TRY(check(lt,
                 lt->layout_create(&k->a, type, transposed ? in : out, transposed ? out : in,
                                   (int64_t)(transposed ? in : out)),
                 "A", diag));
    ZC_TRY(check(lt, lt->layout_create(&k->b, type, in, rows, (int64_t)in), "B", diag));
    ZC_TRY(check(lt, lt->layout_create(&k->d, type_of(p->t[KB_OUT].dtype), out, rows, (int64_t)out),
                 "D", diag));
    ZC_TRY(check(lt, lt->preference_create(&k->preference), "preference", diag));
    return check(
        lt,
        lt->preference_set(k->preference, LT_PREFERENCE_WORKSPACE, &workspace, sizeof workspace),
        "workspace", diag);
}

static void tell(const call *k, bool transposed, int offer)
{
    const kb_case *c = k->r->c;
    kb_side *y = &k->r->yardstick;
    y->form = (kb_form){
        .transposed = transposed, .ungated = c->gated, .act = c->act ? KB_GELU_TANH : KB_PLAIN};
    zc_snprintf(
        y->how, sizeof y->how, "%s, offer %d%s%s%s%s%s", transposed ? "TN" : "NN", offer + 1,
        c->type != ZC_F8E4M3FN ? ""
        : c->f32_sums          ? ", f32 sums"
                               : ", fast sums",
        c->bias ? ", bias" : "", c->act ? ", GELU by tanh" : "",
        c->residual ? ", residual as C" : "", c->gated ? ", two products without the gate" : "");
}

/* An offer that fails is none; the last one's error stays in diag. */
static zc_status try_offers(call *k, bool transposed, double *best_us, zc_diag *diag)
{
    lt_found found[OFFERS] = {{.state = 0}};
    int count = 0;
    zc_status status = check(k->lt,
                             k->lt->heuristic(k->lt->handle, k->desc, k->a, k->b, k->d, k->d,
                                              k->preference, OFFERS, found, &count),
                             "cublasLtMatmulAlgoGetHeuristic", diag);
    for (int i = 0; i < count && i < OFFERS && !k->r->rig->device.lost; i++) {
        bool better = false;
        k->use = &found[i];
        if (found[i].state || found[i].workspace > KB_WORKSPACE) continue;
        status = kb_try(k->r, issue, k, best_us, &better, diag);
        if (better) tell(k, transposed, i);
    }
    return *best_us > 0 ? ZC_OK : status;
}

static zc_status try_layout(kb_run *r, bool transposed, double *best_us, zc_diag *diag)
{
    struct kb_cublaslt *lt = r->rig->cublaslt;
    call k = {.r = r, .lt = lt};
    zc_status status = describe(&k, transposed, diag);
    if (status == ZC_OK) status = try_offers(&k, transposed, best_us, diag);
    if (k.desc) (void)lt->desc_destroy(k.desc);
    if (k.a) (void)lt->layout_destroy(k.a);
    if (k.b) (void)lt->layout_destroy(k.b);
    if (k.d) (void)lt->layout_destroy(k.d);
    if (k.preference) (void)lt->preference_destroy(k.preference);
    return status;
}

zc_status kb_cublaslt_product(kb_run *r, zc_diag *diag)
{
    double best_us = 0;
    if (!r->rig->cublaslt)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, "cublasLt", "%s", r->rig->no_cublaslt);
    zc_status status = try_layout(r, r->c->transposed, &best_us, diag);
    /* Who keeps constant weights may keep them as they are fastest. */
    if (!r->c->variable && !r->rig->device.lost)
        status = try_layout(r, !r->c->transposed, &best_us, diag);
    if (best_us > 0) return ZC_OK;
    return status == ZC_OK ? zc_fail(diag, ZC_ERR_UNSUPPORTED, "cublasLt", "it offers nothing")
                           : status;
}
