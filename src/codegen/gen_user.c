/* A user's own kernel: names and numbers of its rule file for templates/user.cu. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "abi/user.h"
#include "codegen/gen.h"
#include "cuda/nvrtc.h"
#include "op/sizes.h"

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
        if (!zc_gen_plain_type(d)) zc_gen_decline(g, "element type %s", zc_dtype_name(d));
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
