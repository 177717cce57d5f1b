#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"
#include "cpu/random.h"
#include "support/expect.h"
#include "support/op_text.h"

#define OPERANDS_MAX 20

typedef struct bench {
    zc_arena arena;
    zc_dims dims;
    zc_diag *diag;
    uint64_t seed; /* of the next random operand */
    zc_op op;
    const zc_op_info *info;
    void *attrs;
} bench;

/* ---- reading ---- */

static const char *blanks(const char *p)
{
    while (*p == ' ') p++;
    return p;
}

static bool take(const char **p, char c)
{
    *p = blanks(*p);
    if (**p != c) return false;
    (*p)++;
    return true;
}

static zc_dtype read_dtype(const char **p)
{
    char name[16] = {0};
    size_t n = strspn(*p, "abcdefghijklmnopqrstuvwxyz0123456789");
    assert_in_range(n, 1, sizeof name - 1);
    memcpy(name, *p, n);
    *p += n;
    zc_dtype dtype = zc_dtype_parse(name);
    if (dtype == ZC_NONE) fail_msg("no element type: %s", name);
    return dtype;
}

/* A dimension; '?' is a fresh symbol. */
static zc_dim read_dim(bench *b, const char **p)
{
    zc_dim d;
    *p = blanks(*p);
    if (**p == '?') {
        (*p)++;
        return zc_dim_fresh(&b->dims);
    }
    size_t n = zc_dim_parse(&b->dims, *p, strlen(*p), &d);
    if (n == 0) fail_msg("no dimension: %s", *p);
    *p += n;
    return d;
}

/* "f32[2,n]" or "f32*". */
static zc_type read_type(bench *b, const char **p)
{
    zc_type t = {.dtype = read_dtype(p), .rank = -1};
    if (take(p, '*')) return t;
    assert_true(take(p, '['));
    t.rank = 0;
    while (!take(p, ']')) {
        assert_in_range(t.rank, 0, ZC_MAX_RANK - 1);
        t.dims[t.rank++] = read_dim(b, p);
        take(p, ',');
    }
    return t;
}

static void store(zc_tensor *t, int64_t i, const char **p)
{
    char *end;
    *p = blanks(*p);
    if (zc_dtype_class(t->dtype) == ZC_CLASS_UINT)
        zc_store_i64(t->dtype, t->data, i, (int64_t)strtoull(*p, &end, 10));
    else if (zc_dtype_is_float(t->dtype))
        zc_store_f64(t->dtype, t->data, i, strtod(*p, &end));
    else
        zc_store_i64(t->dtype, t->data, i, strtoll(*p, &end, 10));
    if (end == *p) fail_msg("no number: %s", *p);
    *p = end;
}

static void fill(bench *b, zc_tensor *t)
{
    uint64_t key = zc_random_key(b->seed++);
    for (int64_t i = 0, n = zc_tensor_numel(t); i < n; i++)
        zc_put(t, i, zc_random_normal(key, (uint64_t)i));
}

/* A type with constant dimensions and its elements. */
static zc_tensor read_tensor(bench *b, const char **p)
{
    zc_type type = read_type(b, p);
    zc_tensor t = {.dtype = type.dtype, .rank = type.rank};
    size_t bytes;
    for (int i = 0; i < type.rank; i++) {
        assert_true(zc_dim_is_const(type.dims[i]));
        t.dims[i] = type.dims[i].k;
    }
    assert_true(zc_tensor_bytes(&t, &bytes));
    t.data = zc_arena_alloc(&b->arena, bytes, 1);
    assert_non_null(t.data);
    take(p, ':');
    if (take(p, '~')) {
        fill(b, &t);
        return t;
    }
    for (int64_t i = 0, n = zc_tensor_numel(&t); i < n; i++) {
        store(&t, i, p);
        take(p, ',');
    }
    return t;
}

static int read_tensors(bench *b, const char *text, zc_tensor *out)
{
    int n = 0;
    for (const char *p = blanks(text); *p; take(&p, ';')) {
        assert_in_range(n, 0, OPERANDS_MAX - 1);
        p = blanks(p);
        bool absent = *p == '-';
        if (absent) p++;
        out[n++] = absent ? (zc_tensor){0} : read_tensor(b, &p);
        p = blanks(p);
        if (*p && *p != ';') fail_msg("more elements than the type has: %s", p);
    }
    return n;
}

static void read_vals(bench *b, const char **p, zc_operand *o)
{
    zc_dim *v = zc_arena_alloc(&b->arena, ZC_VALS_MAX, sizeof *v);
    assert_non_null(v);
    o->vals = (zc_vals){.n = 0, .v = v};
    while (**p && **p != ';') {
        v[o->vals.n++] = read_dim(b, p);
        take(p, ',');
        *p = blanks(*p);
    }
}

static int read_types(bench *b, const char *text, zc_operand *out)
{
    int n = 0;
    for (const char *p = blanks(text); *p; take(&p, ';')) {
        assert_in_range(n, 0, OPERANDS_MAX - 1);
        zc_operand *o = &out[n++];
        *o = (zc_operand){.vals = {.n = -1}};
        p = blanks(p);
        if (take(&p, '-')) continue;
        o->type = read_type(b, &p);
        if (take(&p, '=')) read_vals(b, &p, o);
        p = blanks(p);
    }
    return n;
}

/* ---- attributes ---- */

static void read_list(bench *b, const char **p, zc_attr_kind kind, void *at)
{
    int64_t *ints = zc_arena_alloc(&b->arena, strlen(*p) + 1, sizeof *ints);
    float *floats = zc_arena_alloc(&b->arena, strlen(*p) + 1, sizeof *floats);
    int n = 0;
    assert_non_null(ints);
    assert_non_null(floats);
    while (**p && **p != ' ') {
        char *end;
        if (kind == ZC_ATTR_INTS)
            ints[n++] = strtoll(*p, &end, 10);
        else
            floats[n++] = strtof(*p, &end);
        assert_ptr_not_equal(end, *p);
        *p = *end == ',' ? end + 1 : end;
    }
    if (kind == ZC_ATTR_INTS)
        *(zc_ints *)at = (zc_ints){n, ints};
    else
        *(zc_floats *)at = (zc_floats){n, floats};
}

static void read_value(bench *b, const char **p, zc_attr_kind kind, void *at)
{
    char *end = NULL;
    size_t n = strcspn(*p, " ");
    zc_tensor *t;
    switch (kind) {
    case ZC_ATTR_INT:
        *(int64_t *)at = strtoll(*p, &end, 10);
        break;
    case ZC_ATTR_FLOAT:
        *(float *)at = strtof(*p, &end);
        break;
    case ZC_ATTR_STR:
        *(const char **)at = zc_arena_strndup(&b->arena, *p, n);
        break;
    case ZC_ATTR_DTYPE:
        *(zc_dtype *)at = read_dtype(p);
        break;
    case ZC_ATTR_INTS:
    case ZC_ATTR_FLOATS:
        read_list(b, p, kind, at);
        break;
    case ZC_ATTR_TENSOR:
        t = zc_arena_alloc(&b->arena, 1, sizeof *t);
        assert_non_null(t);
        *t = read_tensor(b, p);
        *(const zc_tensor **)at = t;
        break;
    }
    if (end) *p = end;
    if (kind == ZC_ATTR_STR) *p += n;
}

static void read_attrs(bench *b, const char *text)
{
    b->attrs = zc_arena_alloc(&b->arena, 1, b->info->attrs_size);
    assert_non_null(b->attrs);
    zc_attrs_default(b->info, b->attrs);
    for (const char *p = blanks(text); *p; p = blanks(p)) {
        size_t n = strcspn(p, "=");
        int i = zc_attr_find(b->info, p, n);
        if (i < 0 || p[n] != '=') fail_msg("%s: no attribute %s", b->info->name, p);
        p += n + 1;
        *(uint64_t *)b->attrs |= (uint64_t)1 << i;
        read_value(b, &p, b->info->fields[i].kind, zc_attr_at(b->info, b->attrs, i));
    }
}

/* ---- the bench ---- */

static void open_bench(bench *b, const char *op, const char *attrs)
{
    b->seed = 1;
    zc_arena_init(&b->arena, 0);
    zc_dims_init(&b->dims);
    b->diag = zc_diag_create();
    assert_non_null(b->diag);
    b->op = zc_op_find(op, strlen(op));
    if (b->op == ZC_OP_NONE) fail_msg("no operation %s", op);
    b->info = zc_op_get(b->op);
    read_attrs(b, attrs);
}

static void close_bench(bench *b)
{
    assert_false(b->dims.failed);
    zc_diag_destroy(&b->diag);
    zc_dims_fini(&b->dims);
    zc_arena_fini(&b->arena);
}

static bool close_enough(double got, double want, double tol)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tol * (1 + fabs(want));
}

static void compare(const char *op, const zc_tensor *got, const zc_tensor *want, double tol)
{
    char a[256], b[256];
    zc_tensor_type_text(got, a, sizeof a);
    zc_tensor_type_text(want, b, sizeof b);
    if (strcmp(a, b) != 0) fail_msg("%s gives %s, need %s", op, a, b);
    for (int64_t i = 0, n = zc_tensor_numel(want); i < n; i++) {
        bool same = zc_dtype_is_float(want->dtype)
                        ? close_enough(zc_get(got, i), zc_get(want, i), tol)
                        : zc_geti(got, i) == zc_geti(want, i);
        if (!same)
            fail_msg("%s: element %lld is %.9g, need %.9g", op, (long long)i, zc_get(got, i),
                     zc_get(want, i));
    }
}

void op_eval(const char *op, const char *attrs, const char *in, const char *want, double tol)
{
    bench b;
    zc_tensor ins[OPERANDS_MAX], wants[OPERANDS_MAX];
    open_bench(&b, op, attrs);
    int nin = read_tensors(&b, in, ins), nout = read_tensors(&b, want, wants);
    for (int reference = 0; reference < 2; reference++) {
        zc_tensor outs[OPERANDS_MAX];
        memcpy(outs, wants, sizeof outs);
        zc_status status =
            zc_cpu_eval(b.op, b.attrs, nin, ins, nout, outs, reference, "node", b.diag);
        expect_ok(b.diag, status);
        for (int i = 0; i < nout; i++) {
            if (wants[i].dtype != ZC_NONE) compare(op, &outs[i], &wants[i], tol);
            free(outs[i].data);
        }
    }
    close_bench(&b);
}

void op_eval_fails(const char *op, const char *attrs, const char *in, int nout, zc_status status,
                   const char *text)
{
    bench b;
    zc_tensor ins[OPERANDS_MAX], outs[OPERANDS_MAX];
    open_bench(&b, op, attrs);
    int nin = read_tensors(&b, in, ins);
    for (int reference = 0; reference < 2; reference++) {
        for (int i = 0; i < nout; i++) outs[i] = (zc_tensor){.dtype = ZC_F32};
        zc_status got = zc_cpu_eval(b.op, b.attrs, nin, ins, nout, outs, reference, "node", b.diag);
        expect_fail(b.diag, got, status, text);
    }
    close_bench(&b);
}

/* ---- fast kernels ---- */

static zc_status cannot_resize(zc_kctx *k, int i, int rank, const int64_t *dims)
{
    (void)i, (void)rank, (void)dims;
    return zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject, "a result of another shape");
}

/* What a session keeps for one step. */
typedef struct session {
    zc_scratch scratch;
    zc_packs packs;
    zc_pool *pool;
    zc_kstate states[3];
} session;

static void open_session(session *s, int threads, zc_diag *diag)
{
    *s = (session){0};
    zc_packs_init(&s->packs);
    expect_ok(diag, zc_pool_create(threads, &s->pool, diag));
}

static void close_session(session *s)
{
    for (int i = 0; i < 3; i++)
        if (s->states[i].destroy) s->states[i].destroy(s->states[i].p);
    zc_pool_destroy(&s->pool);
    zc_packs_fini(&s->packs);
    zc_scratch_fini(&s->scratch);
}

static void run_step(bench *b, session *s, int nin, const zc_tensor *in, int nout, zc_tensor *out)
{
    zc_kctx k = {.op = b->op,
                 .info = b->info,
                 .attrs = b->attrs,
                 .nin = nin,
                 .nout = nout,
                 .in = in,
                 .const_in = ~UINT64_C(1),
                 .out = out,
                 .scratch = &s->scratch,
                 .pool = s->pool,
                 .state = &s->states[0],
                 .prologue_state = &s->states[1],
                 .epilogue_state = &s->states[2],
                 .packs = &s->packs,
                 .resize = cannot_resize,
                 .subject = "node",
                 .diag = b->diag};
    zc_scratch_reset(&s->scratch);
    expect_ok(b->diag, zc_kernel_run(&k, false));
}

static void same_bits(const bench *b, const zc_tensor *got, const zc_tensor *want, const char *what)
{
    const float *g = got->data, *w = want->data;
    for (int64_t i = 0, n = zc_tensor_numel(want); i < n; i++)
        if (memcmp(&g[i], &w[i], sizeof *g) != 0 && !(isnan(g[i]) && isnan(w[i])))
            fail_msg("%s: element %lld is %.9g %s, %.9g on one thread", b->info->name, (long long)i,
                     (double)g[i], what, (double)w[i]);
}

/* Room for results as `like`, full of what a run must overwrite. */
static void room_like(const zc_tensor *like, int n, zc_tensor *out)
{
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)zc_tensor_numel(&like[i]) * sizeof(float);
        out[i] = like[i];
        out[i].data = aligned_alloc(64, zc_align_up(bytes + 1, 64));
        assert_non_null(out[i].data);
        memset(out[i].data, 0x7b, bytes);
    }
}

static void free_all(zc_tensor *t, int n)
{
    for (int i = 0; i < n; i++) free(t[i].data);
}

/* Two runs on `threads` threads against the first on one thread. */
static void check_threads(bench *b, int threads, int nin, const zc_tensor *in, int nout,
                          const zc_tensor *one, zc_tensor *got)
{
    session s;
    open_session(&s, threads, b->diag);
    for (int again = 0; again < 2; again++) {
        char what[32];
        snprintf(what, sizeof what, "on %d threads, run %d", threads, again + 1);
        run_step(b, &s, nin, in, nout, got);
        for (int i = 0; i < nout; i++) same_bits(b, &got[i], &one[i], what);
    }
    close_session(&s);
}

static void check_fast(bench *b, int nin, const zc_tensor *in, int nout, int step, double tol)
{
    zc_tensor want[OPERANDS_MAX], one[OPERANDS_MAX], got[OPERANDS_MAX];
    session s;
    for (int i = 0; i < nout; i++) want[i] = (zc_tensor){.dtype = ZC_F32};
    expect_ok(b->diag, zc_cpu_eval(b->op, b->attrs, nin, in, nout, want, true, "node", b->diag));
    room_like(want, nout, one);
    room_like(want, nout, got);
    open_session(&s, 1, b->diag);
    run_step(b, &s, nin, in, nout, one);
    close_session(&s);
    for (int i = 0; i < nout; i++) compare(b->info->name, &one[i], &want[i], tol);
    for (int threads = 4; threads > 0; threads -= step)
        check_threads(b, threads, nin, in, nout, one, got);
    free_all(want, nout);
    free_all(one, nout);
    free_all(got, nout);
}

void op_fast(const char *op, const char *attrs, const char *in, int nout, unsigned specials,
             double tol)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    bench b;
    zc_tensor ins[OPERANDS_MAX];
    open_bench(&b, op, attrs);
    int nin = read_tensors(&b, in, ins);
    check_fast(&b, nin, ins, nout, 1, tol);
    for (int i = 0; i < nin; i++) {
        if (!(specials >> i & 1)) continue;
        assert_int_equal(ins[i].dtype, ZC_F32);
        float *at = (float *)ins[i].data + zc_tensor_numel(&ins[i]) / 2, before = *at;
        for (size_t v = 0; v < ZC_COUNTOF(odd); v++) {
            *at = odd[v];
            check_fast(&b, nin, ins, nout, 4, tol);
        }
        *at = before;
    }
    close_bench(&b);
}

/* ---- inference ---- */

static zc_status infer(bench *b, const char *in, int nout, zc_operand *outs)
{
    zc_operand ins[OPERANDS_MAX];
    zc_infer f = {.op = b->op,
                  .info = b->info,
                  .attrs = b->attrs,
                  .dims = &b->dims,
                  .arena = &b->arena,
                  .nout = nout,
                  .in = ins,
                  .out = outs,
                  .subject = "node",
                  .diag = b->diag};
    f.nin = read_types(b, in, ins);
    for (int i = 0; i < nout; i++) outs[i] = (zc_operand){.vals = {.n = -1}};
    return zc_infer_run(&f);
}

static void print_operand(const bench *b, const zc_operand *o, zc_buf *out)
{
    zc_buf_puts(out, zc_dtype_name(o->type.dtype));
    zc_buf_puts(out, o->type.rank < 0 ? "*" : "[");
    for (int i = 0; i < o->type.rank; i++) {
        if (i) zc_buf_puts(out, ",");
        zc_dim_print(&b->dims, o->type.dims[i], out);
    }
    zc_buf_puts(out, o->type.rank < 0 ? "" : "]");
    for (int i = 0; i < o->vals.n; i++) {
        zc_buf_puts(out, i ? "," : " = ");
        zc_dim_print(&b->dims, o->vals.v[i], out);
    }
    zc_buf_puts(out, "; ");
}

/* Any unknown is as good as another. */
static bool same_dim(const bench *b, zc_dim got, zc_dim want)
{
    return zc_dim_eq(got, want) ||
           (zc_dim_dynamic(&b->dims, got) && zc_dim_dynamic(&b->dims, want));
}

static bool same_operand(const bench *b, const zc_operand *got, const zc_operand *want)
{
    const zc_type *g = &got->type, *w = &want->type;
    bool same = g->dtype == w->dtype && g->rank == w->rank;
    for (int i = 0; same && i < w->rank; i++) same = same_dim(b, g->dims[i], w->dims[i]);
    bool empty = got->vals.n == 0 && want->vals.n < 0;
    same = same && (got->vals.n == want->vals.n || empty);
    for (int i = 0; same && i < want->vals.n; i++)
        same = same_dim(b, got->vals.v[i], want->vals.v[i]);
    return same;
}

void op_infer(const char *op, const char *attrs, const char *in, const char *want)
{
    bench b;
    zc_operand outs[OPERANDS_MAX], wants[OPERANDS_MAX];
    zc_buf text = {0};
    bool same = true;
    open_bench(&b, op, attrs);
    int nout = read_types(&b, want, wants);
    expect_ok(b.diag, infer(&b, in, nout, outs));
    for (int i = 0; i < nout; i++) {
        same = same && same_operand(&b, &outs[i], &wants[i]);
        print_operand(&b, &outs[i], &text);
    }
    if (!same) fail_msg("%s(%s) gives %s need %s", op, in, text.data, want);
    zc_buf_fini(&text);
    close_bench(&b);
}

void op_infer_fails(const char *op, const char *attrs, const char *in, int nout, const char *text)
{
    bench b;
    zc_operand outs[OPERANDS_MAX];
    open_bench(&b, op, attrs);
    expect_fail(b.diag, infer(&b, in, nout, outs), ZC_ERR_MODEL, text);
    close_bench(&b);
}
