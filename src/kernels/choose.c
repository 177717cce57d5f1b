#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/choose.h"
#include "kernels/gen.h"
#include "kernels/place.h"
#include "op/dim_poly.h"

static const struct {
    const char *name, *template_name;
    zc_gen_fn gen;
} families[] = {
#define FAMILY(name, template) {#name, template, zc_gen_##name},
#include "kernels/kernels.def"
};

enum {
#define FAMILY(name, template) FAMILY_##name,
#include "kernels/kernels.def"
    FAMILY_COUNT
};

static const struct {
    zc_op op;
    int family;
} rows[] = {
#define KERNEL(op, family) {ZC_OP_##op, FAMILY_##family},
#include "kernels/kernels.def"
};

typedef struct lowering {
    zc_program *p;
    zc_arena *arena;
    zc_diag *diag;
    const char *only; /* the one family that may serve; NULL: any */
    zc_pstep *steps;
    zc_pkernel *kernels;
    uint32_t nkernels;
    zc_psource *sources; /* users' own, at most one a step */
    uint32_t nsources;
} lowering;

static void add_source(lowering *w, const zc_psource *s)
{
    for (uint32_t i = 0; i < w->nsources; i++)
        if (strcmp(w->sources[i].name, s->name) == 0) return;
    w->sources[w->nsources++] = *s;
}

/* ---- kernels: equal headers share one ---- */

static void kernel_name(const zc_gen *g, const char *family, char *out, size_t n)
{
    struct sha256_ctx ctx;
    uint8_t hash[4];
    sha256_init(&ctx);
    sha256_update(&ctx, strlen(family) + 1, (const uint8_t *)family);
    sha256_update(&ctx, g->spec.len, (const uint8_t *)g->spec.data);
    sha256_digest(&ctx, sizeof hash, hash);
    snprintf(out, n, "zc_%s_%02x%02x%02x%02x", g->label, hash[0], hash[1], hash[2], hash[3]);
}

static zc_status add_kernel(lowering *w, zc_gen *g, int family, uint32_t *out)
{
    char name[128];
    kernel_name(g, families[family].name, name, sizeof name);
    zc_buf whole = {0};
    zc_buf_printf(&whole, "#pragma once\n#define ZC_NAME %s\n", name);
    zc_buf_append(&whole, g->spec.data, g->spec.len);
    zc_status status =
        whole.failed || g->spec.failed ? zc_fail_nomem(w->diag, "kernel", whole.len) : ZC_OK;
    for (uint32_t i = 0; status == ZC_OK && i < w->nkernels; i++) {
        if (strcmp(w->kernels[i].family, families[family].name) != 0 ||
            strlen(w->kernels[i].spec) != whole.len ||
            memcmp(w->kernels[i].spec, whole.data, whole.len) != 0)
            continue;
        zc_buf_fini(&whole);
        *out = i + 1;
        return ZC_OK;
    }
    zc_pkernel k = {.family = families[family].name,
                    .template_name = families[family].template_name,
                    .name = zc_arena_strdup(w->arena, name),
                    .spec = zc_arena_strndup(w->arena, whole.data, whole.len),
                    .is_static = zc_gen_all_static(g)};
    zc_buf_fini(&whole);
    if (status == ZC_OK && (!k.name || !k.spec)) status = zc_fail_nomem(w->diag, "kernel", 0);
    if (status == ZC_OK) {
        w->kernels[w->nkernels++] = k;
        *out = w->nkernels;
    }
    return status;
}

/* ---- steps ---- */

static void lower_case(char *to, size_t n, const char *from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < n; i++)
        to[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] + 32 : from[i]);
    to[i] = '\0';
}

static bool ranks_known(const zc_gen *g)
{
    for (uint32_t i = 0; i < g->step->nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, (int)i);
        if (v && v->rank < 0) return false;
    }
    for (uint32_t i = 0; i < g->step->nout; i++) {
        const zc_pvalue *v = zc_gen_out(g, (int)i);
        if (v && v->rank < 0) return false;
    }
    return true;
}

/* Tries one family: sets s->kernel, or s->why. */
static zc_status try_family(lowering *w, zc_pstep *s, int family)
{
    zc_gen g = {.program = w->p,
                .step = s,
                .info = zc_op_get(s->op),
                .attrs = s->attrs,
                .arena = w->arena,
                .diag = w->diag};
    lower_case(g.label, sizeof g.label, g.info->name);
    if (!ranks_known(&g)) {
        s->why = "a rank is known only when run";
        return ZC_OK;
    }
    zc_status status = families[family].gen(&g);
    int extras;
    if (status == ZC_OK && !g.takes_prologue && zc_op_prologue(g.info, g.attrs, &extras))
        status = zc_gen_decline(&g, "pointwise work at the beginning of the operation");
    if (status == ZC_OK && !g.takes_epilogue && zc_op_epilogue(g.info, g.attrs))
        status = zc_gen_decline(&g, "pointwise work at the end of the operation");
    if (status == ZC_OK && g.declined[0]) {
        s->why = zc_arena_strdup(w->arena, g.declined);
        if (!s->why) status = zc_fail_nomem(w->diag, "reason", sizeof g.declined);
    } else if (status == ZC_OK) {
        status = add_kernel(w, &g, family, &s->kernel);
        s->why = "";
        if (g.source.name) add_source(w, &g.source);
    }
    zc_buf_fini(&g.spec);
    return status;
}

static zc_status lower_step(lowering *w, zc_pstep *s, bool shapes)
{
    const zc_op_info *info = zc_op_get(s->op);
    s->kernel = 0;
    s->why = "";
    if (info->flags & (ZC_OPF_REGIONS | ZC_OPF_VIEW)) return ZC_OK;
    if (shapes) {
        s->why = ZC_WHY_SHAPES;
        return ZC_OK;
    }
    s->why = "no GPU kernel for this operation";
    if (info->flags & ZC_OPF_POINTWISE && s->op != ZC_OP_Pointwise)
        return try_family(w, s, FAMILY_pointwise);
    for (size_t r = 0; r < ZC_COUNTOF(rows) && !s->kernel; r++) {
        if (rows[r].op != s->op) continue;
        if (w->only && strcmp(families[rows[r].family].name, w->only) != 0) continue;
        ZC_TRY(try_family(w, s, rows[r].family));
    }
    return ZC_OK;
}

zc_status zc_codegen_lower(zc_program *p, zc_arena *arena, zc_diag *diag)
{
    return zc_codegen_lower_by(p, NULL, arena, diag);
}

zc_status zc_codegen_lower_by(zc_program *p, const char *family, zc_arena *arena, zc_diag *diag)
{
    lowering w = {.p = p,
                  .only = family,
                  .arena = arena,
                  .diag = diag,
                  .steps = zc_arena_dup(arena, p->steps, p->nsteps, sizeof *p->steps),
                  .kernels = zc_arena_alloc(arena, p->nsteps, sizeof *w.kernels),
                  .sources = zc_arena_alloc(arena, p->nsteps, sizeof *w.sources)};
    const bool *shapes = zc_place_shapes(p, arena);
    if (!w.steps || !w.kernels || !w.sources || !shapes)
        return zc_fail_nomem(diag, "kernels", p->nsteps);
    p->steps = w.steps;
    for (uint32_t i = 0; i < p->nsteps; i++) ZC_TRY(lower_step(&w, &w.steps[i], shapes[i]));
    p->kernels = w.kernels;
    p->nkernels = w.nkernels;
    p->sources = w.sources;
    p->nsources = w.nsources;
    p->target = "cuda";
    return ZC_OK;
}

/* ---- variants: the same steps with some symbols known ---- */

static zc_status find_symbol(const zc_program *p, const char *name, uint32_t *out, zc_diag *diag)
{
    for (uint32_t i = 0; i < p->ndims; i++) {
        const zc_dim_node *n = &p->dim_nodes[i];
        *out = i;
        if (n->kind == ZC_DIM_SYM && n->is_input && strcmp(n->name, name) == 0) return ZC_OK;
    }
    return zc_fail(diag, ZC_ERR_ARG, name, "no input has a dimension of this name");
}

/* Constants for the expressions that the variant's symbols decide. */
static zc_status known_dims(const zc_program *p, const zc_pvariant *v, zc_arena *arena,
                            zc_dim **out, zc_diag *diag)
{
    zc_dim *known = zc_arena_alloc(arena, p->ndims, sizeof *known);
    if (!known) return zc_fail_nomem(diag, "variant", p->ndims);
    for (uint32_t i = 0; i < p->ndims; i++) {
        const zc_dim_node *n = &p->dim_nodes[i];
        known[i] = (zc_dim){.e = i + 1};
        for (uint32_t s = 0; s < v->nsymbols; s++)
            if (v->symbols[s] == i) known[i] = zc_dim_const(v->values[s]);
        if (n->kind == ZC_DIM_SYM) continue;
        zc_dim a = n->a.e ? known[n->a.e - 1] : n->a, b = n->b.e ? known[n->b.e - 1] : n->b;
        int64_t k;
        if (!zc_dim_is_const(a) || !zc_dim_is_const(b)) continue;
        if (!zc_dim_apply(n->kind, a.k, b.k, &k))
            return zc_fail(diag, ZC_ERR_ARG, "profile",
                           "these sizes make a dimension overflow or divide by zero");
        known[i] = zc_dim_const(k);
    }
    *out = known;
    return ZC_OK;
}

static zc_status specialise(const zc_program *p, const zc_pvariant *v, zc_arena *arena,
                            zc_program *out, zc_diag *diag)
{
    zc_dim *known;
    zc_pvalue *values = zc_arena_dup(arena, p->values, p->nvalues, sizeof *values);
    ZC_TRY(known_dims(p, v, arena, &known, diag));
    if (!values) return zc_fail_nomem(diag, "variant", p->nvalues);
    for (uint32_t i = 0; i < p->nvalues; i++) {
        if (values[i].rank <= 0 || values[i].kind == ZC_P_CONST) continue;
        zc_dim *dims = zc_arena_dup(arena, values[i].dims, (size_t)values[i].rank, sizeof *dims);
        if (!dims) return zc_fail_nomem(diag, "variant", (size_t)values[i].rank);
        for (int d = 0; d < values[i].rank; d++)
            if (dims[d].e) dims[d] = known[dims[d].e - 1];
        values[i].dims = dims;
    }
    *out = *p;
    out->values = values;
    return ZC_OK;
}

static zc_status add_variant(lowering *w, const zc_program *base, zc_pvariant *v)
{
    zc_program p;
    uint32_t *kernels = zc_arena_alloc(w->arena, base->nsteps, sizeof *kernels);
    if (!kernels) return zc_fail_nomem(w->diag, "variant", base->nsteps);
    ZC_TRY(specialise(base, v, w->arena, &p, w->diag));
    lowering own = *w;
    own.p = &p;
    for (uint32_t i = 0; i < base->nsteps; i++) {
        zc_pstep s = base->steps[i];
        if (!s.kernel) continue;
        ZC_TRY(lower_step(&own, &s, false));
        kernels[i] = s.kernel;
    }
    w->nkernels = own.nkernels;
    v->kernels = kernels;
    return ZC_OK;
}

/* The combination number `c` of the profiles' values. */
static zc_status combine(const zc_program *p, const zc_codegen_profile *profiles, size_t n,
                         size_t c, zc_arena *arena, zc_pvariant *out, zc_diag *diag)
{
    uint32_t *symbols = zc_arena_alloc(arena, n, sizeof *symbols);
    int64_t *values = zc_arena_alloc(arena, n, sizeof *values);
    if (!symbols || !values) return zc_fail_nomem(diag, "variant", n);
    for (size_t i = 0; i < n; i++) {
        ZC_TRY(find_symbol(p, profiles[i].name, &symbols[i], diag));
        values[i] = profiles[i].values[c % profiles[i].count];
        c /= profiles[i].count;
    }
    *out = (zc_pvariant){.nsymbols = (uint32_t)n, .symbols = symbols, .values = values};
    return ZC_OK;
}

static zc_status check_profile(const zc_codegen_profile *all, size_t i, zc_diag *diag)
{
    for (size_t earlier = 0; earlier < i; earlier++)
        if (strcmp(all[earlier].name, all[i].name) == 0)
            return zc_fail(diag, ZC_ERR_ARG, all[i].name, "has two profiles");
    for (size_t v = 0; v < all[i].count; v++)
        if (all[i].values[v] < 0)
            return zc_fail(diag, ZC_ERR_ARG, all[i].name,
                           "a profile's size cannot be negative (got %lld)",
                           (long long)all[i].values[v]);
    return ZC_OK;
}

zc_status zc_codegen_variants(zc_program *p, const zc_codegen_profile *profiles, size_t n,
                              zc_arena *arena, zc_diag *diag)
{
    size_t total = n ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        if (!profiles[i].count || profiles[i].count > ZC_VARIANTS_MAX ||
            total * profiles[i].count > ZC_VARIANTS_MAX)
            return zc_fail(diag, ZC_ERR_ARG, profiles[i].name,
                           "profiles need 1 to %d combinations of sizes", ZC_VARIANTS_MAX);
        ZC_TRY(check_profile(profiles, i, diag));
        total *= profiles[i].count;
    }
    zc_pvariant *variants = zc_arena_alloc(arena, total, sizeof *variants);
    zc_pkernel *kernels = zc_arena_alloc(arena, (total + 1) * p->nsteps, sizeof *kernels);
    if (!variants || !kernels) return zc_fail_nomem(diag, "variants", total);
    if (p->nkernels) memcpy(kernels, p->kernels, p->nkernels * sizeof *kernels);
    /* The steps are the same, so no source is new. */
    zc_psource *sources = zc_arena_dup(arena, p->sources, p->nsources, sizeof *sources);
    if (!sources) return zc_fail_nomem(diag, "variants", total);
    lowering w = {.arena = arena,
                  .diag = diag,
                  .kernels = kernels,
                  .nkernels = p->nkernels,
                  .sources = sources,
                  .nsources = p->nsources};
    for (size_t c = 0; c < total; c++) {
        ZC_TRY(combine(p, profiles, n, c, arena, &variants[c], diag));
        ZC_TRY(add_variant(&w, p, &variants[c]));
    }
    p->kernels = kernels;
    p->nkernels = w.nkernels;
    p->variants = variants;
    p->nvariants = (uint32_t)total;
    return ZC_OK;
}
