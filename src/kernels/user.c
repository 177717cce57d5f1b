/* A user's own kernel: names and numbers of its rule file for templates/user.cu. */
/* A user's own kernel: its launch as the rule file computes it from the shapes. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "abi/user.h"
#include "cuda/nvrtc.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "kernels/launcher.h"
#include "op/sizes.h"

/* ---- the specialisation ---- */

/* The user's file under a name that says its content. */
static zc_status add_source(zc_gen *g, const char *text)
{
    struct sha256_ctx ctx;
    uint8_t hash[16];
    char name[64];
    size_t n = (size_t)snprintf(name, sizeof name, ZC_USER_SOURCE);
    sha256_init(&ctx);
    sha256_update(&ctx, strlen(text), (const uint8_t *)text);
    sha256_digest(&ctx, sizeof hash, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, "%02x", hash[i]);
    snprintf(name + n, sizeof name - n, ".cu");
    g->source = (zc_psource){.name = zc_arena_strdup(g->arena, name), .text = text};
    zc_gen_define(g, "SOURCE", "\"%s\"", name);
    return g->source.name ? ZC_OK : zc_fail_nomem(g->diag, "kernel", sizeof name);
}

/* "x y": #define TYPE_x f32 ... */
static void put_types(zc_gen *g, const char *names)
{
    uint32_t nin = g->step->nin;
    for (uint32_t i = 0; *names; i++) {
        size_t n = strcspn(names, " ");
        zc_dtype d = i < nin ? zc_gen_in_type(g, (int)i) : zc_gen_out_type(g, (int)(i - nin));
        zc_buf_printf(&g->spec, "#define TYPE_%.*s %s\n", (int)n, names, zc_gen_type_name(d));
        names += n + (names[n] == ' ');
    }
}

/* "BLOCK=128,256 V=1,4" with the chosen ones: #define BLOCK 128 ... */
static void put_tuned(zc_gen *g, const zc_attrs_UserKernel *a)
{
    const char *at = a->tuning ? a->tuning : "";
    for (int i = 0; i < a->tuned.n && *at; i++) {
        zc_buf_puts(&g->spec, "#define ");
        zc_buf_append(&g->spec, at, strcspn(at, "="));
        zc_buf_printf(&g->spec, " %lld\n", (long long)a->tuned.v[i]);
        at += strcspn(at, " ");
        at += *at == ' ';
    }
}

static void put_arguments(zc_gen *g, int nargs)
{
    const char *comma = "";
    zc_buf_puts(&g->spec, "#define Z_ARGUMENTS ");
    for (uint32_t i = 0; i < g->step->nin; i++, comma = ", ")
        zc_buf_printf(&g->spec, "%s(const %s *)p.in[%u]", comma,
                      zc_gen_type_name(zc_gen_in_type(g, (int)i)), i);
    for (uint32_t i = 0; i < g->step->nout; i++, comma = ", ")
        zc_buf_printf(&g->spec, "%s(%s *)p.out[%u]", comma,
                      zc_gen_type_name(zc_gen_out_type(g, (int)i)), i);
    for (int i = 0; i < nargs; i++) zc_buf_printf(&g->spec, "%sp.arg[%d]", comma, i);
    zc_buf_puts(&g->spec, "\n");
}

/* How many numbers the kernel gets: the list's length does not depend on the shapes' values. */
static int count_args(const char *text)
{
    int n = 0;
    for (const char *at = text ? text : ""; *at; at++) n += *at == ';';
    return n;
}

/* Threads of a block when no shape decides, else 1024. */
static zc_status put_block(zc_gen *g, const zc_attrs_UserKernel *a)
{
    zc_sizes_env env = {.tuned = a->tuned};
    zc_dim d = zc_dim_const(ZC_USER_BLOCK_MAX);
    int n = 1;
    if (!zc_sizes_eval(a->block, &env, 1, &d, &n)) d = zc_dim_const(ZC_USER_BLOCK_MAX);
    if (d.k < 1 || d.k > ZC_USER_BLOCK_MAX)
        return zc_fail(g->diag, ZC_ERR_FORMAT, a->origin,
                       "kernel %s: bad block (got %lld threads, need 1 to %d)", a->name,
                       (long long)d.k, ZC_USER_BLOCK_MAX);
    zc_gen_define(g, "BLOCK", "%lld", (long long)d.k);
    return ZC_OK;
}

static zc_status check_types(zc_gen *g)
{
    for (uint32_t i = 0; i < g->step->nin + g->step->nout && !g->declined[0]; i++) {
        zc_dtype d = i < g->step->nin ? zc_gen_in_type(g, (int)i)
                                      : zc_gen_out_type(g, (int)(i - g->step->nin));
        if (!zc_kernel_type(d)) zc_gen_decline(g, "element type %s", zc_dtype_name(d));
    }
    return ZC_OK;
}

zc_status zc_gen_user(zc_gen *g)
{
    const zc_attrs_UserKernel *a = ZC_ATTRS(g, UserKernel);
    if (!a->name || !a->source || !a->entry || !a->params || count_args(a->args) > ZC_USER_ARGS)
        return zc_gen_decline(g, "a kernel without source");
    ZC_TRY(check_types(g));
    if (g->declined[0]) return ZC_OK;
    snprintf(g->label, sizeof g->label, "%s", a->name);
    put_types(g, a->params);
    put_tuned(g, a);
    ZC_TRY(add_source(g, a->source));
    zc_gen_define(g, "FUNCTION", "%s", a->entry);
    put_arguments(g, count_args(a->args));
    return put_block(g, a);
}

/* ---- the launch ---- */

enum { GRID_YZ_MAX = 65535 };

typedef struct job {
    zc_launch *l;
    const zc_attrs_UserKernel *a;
    zc_type types[ZC_USER_INPUTS + ZC_USER_OUTPUTS];
    zc_sizes_env env;
} job;

static void add_type(job *j, const zc_tensor *t)
{
    zc_type *type = &j->types[j->env.ntypes++];
    *type = (zc_type){.dtype = t->dtype, .rank = t->rank};
    for (int d = 0; d < t->rank; d++) type->dims[d] = zc_dim_const(t->dims[d]);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

#define fail(j, what, ...)                                                                         \
    zc_fail((j)->l->diag, ZC_ERR_INPUT, (j)->l->subject, "kernel %s (%s): " what,                  \
            text_of((j)->a->name), text_of((j)->a->origin), __VA_ARGS__)

/* The list of a text, each in [low, high]. */
static zc_status evaluate(job *j, const char *what, const char **text, int most, int64_t low,
                          int64_t high, int64_t *out, int *n)
{
    zc_dim v[ZC_USER_ARGS];
    *text = zc_sizes_eval(*text, &j->env, most, v, n);
    if (!*text)
        return fail(j,
                    "%s cannot be computed for these shapes (it overflows, divides by zero, or "
                    "asks for a dimension that is not there)",
                    what);
    for (int i = 0; i < *n; i++) {
        out[i] = v[i].k;
        if (out[i] < low || out[i] > high)
            return fail(j, "bad %s (got %lld, need %lld to %lld)", what, (long long)out[i],
                        (long long)low, (long long)high);
    }
    return ZC_OK;
}

static zc_status find_grid(job *j, zc_dim3 *grid)
{
    int64_t v[3] = {1, 1, 1};
    int n;
    const char *text = j->a->grid;
    ZC_TRY(evaluate(j, "grid", &text, 3, 1, INT32_MAX, v, &n));
    if (v[1] > GRID_YZ_MAX || v[2] > GRID_YZ_MAX)
        return fail(j, "bad grid (got %lld and %lld in y and z, need at most %d)", (long long)v[1],
                    (long long)v[2], GRID_YZ_MAX);
    *grid = (zc_dim3){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
    return ZC_OK;
}

static zc_status find_args(job *j, struct zc_user_params *p)
{
    const char *text = j->a->args ? j->a->args : "";
    for (int i = 0, n; *text && i < ZC_USER_ARGS; i++) {
        int64_t v = 0;
        ZC_TRY(evaluate(j, "argument", &text, 1, INT64_MIN + 1, INT64_MAX, &v, &n));
        p->arg[i] = v;
    }
    return ZC_OK;
}

static zc_status one(job *j, const char *what, const char *text, int64_t low, int64_t high,
                     uint32_t *out)
{
    int64_t v = low;
    int n;
    ZC_TRY(evaluate(j, what, &text, 1, low, high, &v, &n));
    *out = (uint32_t)v;
    return ZC_OK;
}

static bool is_empty(const zc_launch *l)
{
    for (int i = 0; i < l->nout; i++)
        if (zc_tensor_numel(&l->out[i]) > 0) return false;
    return true;
}

zc_status zc_launch_user(zc_launch *l)
{
    struct zc_user_params p;
    job j = {.l = l, .a = ZC_ATTRS(l, UserKernel)};
    uint32_t block, shared;
    zc_dim3 grid;
    if (l->nin > ZC_USER_INPUTS || l->nout > ZC_USER_OUTPUTS)
        return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject, "too many operands");
    if (is_empty(l)) return ZC_OK;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < l->nin; i++) add_type(&j, &l->in[i]);
    for (int i = 0; i < l->nout; i++) add_type(&j, &l->out[i]);
    j.env.types = j.types;
    j.env.tuned = j.a->tuned;
    for (int i = 0; i < l->nin; i++) p.in[i] = l->in[i].data;
    for (int i = 0; i < l->nout; i++) p.out[i] = l->out[i].data;
    const zc_image *image = l->launcher->image;
    ZC_TRY(find_grid(&j, &grid));
    ZC_TRY(one(&j, "block", j.a->block, 1, ZC_USER_BLOCK_MAX, &block));
    ZC_TRY(one(&j, "amount of shared memory", j.a->shared, 0,
               image ? image->device.smem_max : INT32_MAX, &shared));
    ZC_TRY(find_args(&j, &p));
    return zc_launch_kernel(l, 0, grid, block, shared, &p, sizeof p);
}
