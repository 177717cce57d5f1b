#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernels/choose.h"
#include "kernels/entries.h"
#include "kernels/host_steps.h"
#include "kernels/move_form.h"
#include "kernels/table.h"
#include "op/dim_poly.h"

/* Some symbols of the program with sizes, and the program with these sizes. */
typedef struct variant {
    zc_prange *ranges;
    uint32_t nranges; /* 0: the program as it is */
    zc_program program;
} variant;

typedef struct chooser {
    zc_program *p;
    const zc_choose_params *params;
    zc_arena *arena;
    zc_diag *diag;
    variant *variants; /* the last is the program as it is */
    size_t nvariants;
    ZC_VEC(zc_pkernel) kernels;
    ZC_VEC(zc_psource) sources; /* users' own */
    ZC_VEC(zc_pchoice) choices; /* of the step in hand */
} chooser;

static zc_status nomem(const chooser *w, const char *what)
{
    return zc_fail_nomem(w->diag, what, 0);
}

/* ---- kernels: equal headers share one ---- */

static zc_status add_source(chooser *w, const zc_psource *s)
{
    for (size_t i = 0; i < w->sources.len; i++)
        if (strcmp(w->sources.data[i].name, s->name) == 0) return ZC_OK;
    return ZC_VEC_PUSH(&w->sources, *s) ? ZC_OK : nomem(w, "sources");
}

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

static bool same_kernel(const zc_pkernel *a, const zc_pkernel *b)
{
    return strcmp(a->family, b->family) == 0 && strcmp(a->spec, b->spec) == 0 &&
           a->threads == b->threads && a->smem == b->smem && a->cluster == b->cluster;
}

static bool has(const uint32_t *values, uint32_t n, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] == v) return true;
    return false;
}

/* Is v, or does it hold, a part of another value? */
static bool is_joined(const zc_program *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *step = &p->steps[i];
        if (zc_moves_parts(step->op) &&
            (has(step->in, step->nin, v) || has(step->out, step->nout, v)))
            return true;
    }
    return false;
}

/* Only where there is a reason has an operand a pitch that the compiler does not know. */
static void forget_pitches(zc_gen *g)
{
    const zc_pstep *step = g->step;
    uint32_t kept = g->mapped;
    if (zc_moves_parts(step->op)) return;
    for (uint32_t i = 0; i < step->nin && i < ZC_PITCHED_INPUTS; i++)
        if (is_joined(g->program, step->in[i])) kept |= ZC_PITCHED_INPUT << i;
    for (uint32_t i = 0; i < step->nout; i++)
        if (is_joined(g->program, step->out[i])) kept |= ZC_PITCHED_RESULTS;
    g->pitched &= kept;
}

/* The numbers of the kernel's configuration as constants of the header, and which of its operands
 * have a pitch. */
static void put_config(zc_gen *g, int family)
{
    int n;
    zc_gen_entries(g, family);
    forget_pitches(g);
    if (g->pitched) zc_gen_define(g, "PITCHED", "0x%x", (unsigned)g->pitched);
    const char *const *names = zc_family_config(family, &n);
    for (int i = 0; i < n; i++) {
        char upper[32];
        size_t c = 0;
        for (; names[i][c] && c + 1 < sizeof upper; c++)
            upper[c] =
                (char)(names[i][c] >= 'a' && names[i][c] <= 'z' ? names[i][c] - 32 : names[i][c]);
        upper[c] = '\0';
        zc_gen_define(g, upper, "%lld", (long long)g->config[i]);
    }
}

static zc_status make_kernel(chooser *w, zc_gen *g, int family, zc_pkernel *out)
{
    char name[128];
    int nconfig;
    zc_buf whole = {0};
    (void)zc_family_config(family, &nconfig);
    kernel_name(g, zc_families[family].name, name, sizeof name);
    zc_buf_printf(&whole, "#pragma once\n#define ZC_NAME %s\n#define Z_REST %s\n", name,
                  zc_entries_processors(family, g->config) ? "ZC_NO_ENTRY" : "ZC_ENTRY");
    zc_buf_append(&whole, g->spec.data, g->spec.len);
    bool ok = !whole.failed && !g->spec.failed;
    *out = (zc_pkernel){.family = zc_families[family].name,
                        .template_name = zc_families[family].template_name,
                        .name = zc_arena_strdup(w->arena, name),
                        .products = zc_arena_strdup(w->arena, g->products),
                        .spec = ok ? zc_arena_strndup(w->arena, whole.data, whole.len) : NULL,
                        .is_static = zc_gen_all_static(g),
                        .abi = zc_family_abi(family),
                        .pitched = g->pitched,
                        .threads = g->threads,
                        .smem = g->smem,
                        .cluster = g->cluster,
                        .nconfig = (uint32_t)nconfig,
                        .config =
                            zc_arena_dup(w->arena, g->config, (size_t)nconfig, sizeof *g->config)};
    zc_buf_fini(&whole);
    return out->name && out->products && out->spec && out->config ? ZC_OK : nomem(w, "kernel");
}

static zc_status add_kernel(chooser *w, zc_gen *g, int family, uint32_t *out)
{
    zc_pkernel k;
    ZC_TRY(make_kernel(w, g, family, &k));
    for (size_t i = 0; i < w->kernels.len; i++)
        if (same_kernel(&w->kernels.data[i], &k)) {
            *out = (uint32_t)i;
            return ZC_OK;
        }
    *out = (uint32_t)w->kernels.len;
    return ZC_VEC_PUSH(&w->kernels, k) ? ZC_OK : nomem(w, "kernels");
}

/* ---- choices ---- */

/* The variant's ranges, and that of the sizes the generator asked for. */
static zc_status put_ranges(chooser *w, const variant *v, const zc_gen_sizes *s, zc_pchoice *out)
{
    bool own = s->nfactors && s->now < s->nbounds;
    zc_prange *ranges = zc_arena_alloc(w->arena, v->nranges + own, sizeof *ranges);
    if (!ranges) return nomem(w, "ranges");
    if (v->nranges) memcpy(ranges, v->ranges, v->nranges * sizeof *ranges);
    if (own) {
        zc_prange *r = &ranges[v->nranges];
        *r = (zc_prange){.nfactors = (uint32_t)s->nfactors, .high = s->bounds[s->now]};
        r->factors = zc_arena_dup(w->arena, s->factors, (size_t)s->nfactors, sizeof *s->factors);
        if (!r->factors) return nomem(w, "ranges");
    }
    out->nranges = v->nranges + own;
    out->ranges = ranges;
    return ZC_OK;
}

static zc_status add_choice(chooser *w, const variant *v, int family, zc_gen *g)
{
    zc_pchoice c = {.arch = (uint32_t)g->arch, .why = zc_arena_strdup(w->arena, g->why)};
    if (!c.why) return nomem(w, "choice");
    ZC_TRY(add_kernel(w, g, family, &c.kernel));
    ZC_TRY(put_ranges(w, v, &g->sizes, &c));
    c.nliterals = (uint32_t)g->nliterals;
    c.literals = zc_arena_dup(w->arena, g->literals, (size_t)g->nliterals, sizeof *g->literals);
    if (!c.literals) return nomem(w, "choice");
    if (g->source.name) ZC_TRY(add_source(w, &g->source));
    return ZC_VEC_PUSH(&w->choices, c) ? ZC_OK : nomem(w, "choices");
}

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

int zc_usual_processors(int arch)
{
    static const struct {
        int arch, count;
    } chips[] = {{80, 108}, {86, 84}, {89, 128}, {90, 132}, {100, 148}, {120, 170}};
    for (size_t i = 0; i < ZC_COUNTOF(chips); i++)
        if (chips[i].arch == arch) return chips[i].count;
    return 108;
}

/* `skip`: how many of the family's best configurations are left out. */
static zc_status generate(chooser *w, const variant *v, uint32_t step, int family, int arch,
                          int skip, bool regardless, const zc_gen_sizes *sizes, zc_gen *g)
{
    *g = (zc_gen){.program = &v->program,
                  .step = &w->p->steps[step],
                  .info = zc_op_get(w->p->steps[step].op),
                  .attrs = w->p->steps[step].attrs,
                  .arch = arch,
                  .sm_count = zc_usual_processors(arch),
                  .candidate = w->params->candidate,
                  .refused = skip,
                  .regardless = regardless,
                  .configurations = 1,
                  .cluster = 1,
                  .sizes = *sizes,
                  .arena = w->arena,
                  .diag = w->diag};
    zc_dtype made = zc_gen_out_type(g, 0), plain = zc_gen_plain_result(g);
    lower_case(g->label, sizeof g->label, g->info->name);
    if (!ranks_known(g)) return zc_gen_decline(g, "a rank is known only when run");
    if (!zc_family_makes(family, plain))
        return zc_gen_decline(g, "no results of %s", zc_dtype_name(plain));
    const unsigned others = ZC_OPF_QUANTISES | ZC_OPF_BYTES; /* every family makes them */
    if (made != plain && !zc_family_takes(family).widens && !(g->info->flags & others))
        return zc_gen_decline(g, "results of %s of operands of %s", zc_dtype_name(made),
                              zc_dtype_name(plain));
    ZC_TRY(zc_gen_takes(g, zc_family_takes(family)));
    return g->declined[0] ? ZC_OK : zc_families[family].gen(g);
}

/* Why code of this kernel is not taken; NULL: it is, as far as is known. */
static const char *refusal_of(const chooser *w, const zc_gen *g, int family)
{
    char name[128];
    const zc_refusals *r = w->params->refused;
    kernel_name(g, zc_families[family].name, name, sizeof name);
    for (size_t i = 0; r && i < r->n; i++)
        if (r->v[i].arch == g->arch && strcmp(r->v[i].kernel, name) == 0) return r->v[i].why;
    return NULL;
}

/* The family's best configuration whose code is not refused. */
static zc_status generate_accepted(chooser *w, const variant *v, uint32_t step, int family,
                                   int arch, const zc_gen_sizes *sizes, zc_gen *g)
{
    const char *why = NULL;
    for (int refused = 0;; refused++) {
        const char *before = why;
        ZC_TRY(generate(w, v, step, family, arch, refused, false, sizes, g));
        if (g->declined[0]) return ZC_OK;
        put_config(g, family);
        why = refusal_of(w, g, family);
        if (!why && before) {
            size_t at = strlen(g->why);
            zc_snprintf(g->why + at, sizeof g->why - at, "; %d refused: %s", refused, before);
        }
        if (!why) return ZC_OK;
        if (refused + 1 >= g->configurations)
            return zc_gen_decline(g, "its code is refused: %s", why);
        zc_buf_fini(&g->spec);
    }
}

/* Why a family does not serve goes to those `tried`, which the one that serves tells, too. */
static void tell_why(int family, zc_gen *g, char *tried, size_t n)
{
    char *to = g->declined[0] ? tried : g->why;
    size_t at = strlen(to);
    const char *separator = at ? "; " : "";
    if (g->declined[0])
        zc_snprintf(to + at, n - at, "%snot %s: %s", separator, zc_families[family].name,
                    g->declined);
    else if (*tried)
        zc_snprintf(to + at, n - at, "%s%s", separator, tried);
}

static bool has_row(zc_op op, const char *name)
{
    for (int i = 0, family; (family = zc_family_of(op, i)) >= 0; i++)
        if (strcmp(zc_families[family].name, name) == 0) return true;
    return false;
}

/* May it be taken by cost? A check of one row takes that row, where the operation has it. */
static bool is_open(const chooser *w, zc_op op, int family, int arch)
{
    const char *only = w->params->family;
    if (!zc_family_serves(family, arch)) return false;
    if (only && has_row(op, only)) return strcmp(zc_families[family].name, only) == 0;
    return w->params->offered || !zc_family_offered(op, family);
}

/* The first family that takes the step with sizes in this range; none leaves `why`. A family that
 * asks for sizes makes ranges for those behind it, too. */
static zc_status choose_range(chooser *w, const variant *v, uint32_t step, int arch,
                              zc_gen_sizes *sizes, bool *found, const char **why)
{
    zc_op op = w->p->steps[step].op;
    char tried[sizeof((zc_gen *)0)->why] = "";
    *found = false;
    for (int i = 0, family; !*found && (family = zc_family_of(op, i)) >= 0; i++) {
        zc_gen g;
        if (!is_open(w, op, family, arch)) continue;
        zc_status status = generate_accepted(w, v, step, family, arch, sizes, &g);
        *found = status == ZC_OK && !g.declined[0];
        *sizes = g.sizes;
        tell_why(family, &g, tried, sizeof tried);
        if (*found) status = add_choice(w, v, family, &g);
        zc_buf_fini(&g.spec);
        ZC_TRY(status);
        if (!*found && !(*why = zc_arena_strdup(w->arena, g.declined))) return nomem(w, "reason");
    }
    return ZC_OK;
}

/* Ranges only have an upper end: one with the kernel of the next says nothing. */
static void join_ranges(chooser *w, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < w->choices.len; i++)
        if (i + 1 == w->choices.len || w->choices.data[i].kernel != w->choices.data[i + 1].kernel)
            w->choices.data[kept++] = w->choices.data[i];
    w->choices.len = kept;
}

/* ---- what was measured ---- */

bool zc_config_text(const char *family, const int64_t *config, zc_buf *out)
{
    int n, f = zc_family_find(family);
    const char *const *names = f < 0 ? NULL : zc_family_config(f, &n);
    for (int i = 0; names && i < n; i++)
        zc_buf_printf(out, "%s%s=%lld", i ? " " : "", names[i], (long long)config[i]);
    return !out->failed;
}

/* Number `number` of the family's configurations, whether or not it is held to be the fastest. */
static zc_status generate_number(chooser *w, const variant *v, uint32_t step, int family, int arch,
                                 int number, zc_gen *g)
{
    static const zc_gen_sizes certain = {0};
    ZC_TRY(generate(w, v, step, family, arch, number, true, &certain, g));
    if (g->sizes.nfactors) return zc_gen_decline(g, "sizes that only a run knows");
    if (!g->declined[0]) put_config(g, family);
    if (!g->declined[0] && refusal_of(w, g, family)) return zc_gen_decline(g, "refused");
    return ZC_OK;
}

/* Of numbers behind those that a row names, which are newer than it, any will do. */
static bool has_config(const zc_gen *g, int family, const char *config)
{
    const size_t n = strlen(config);
    zc_buf text = {0};
    const bool some = zc_config_text(zc_families[family].name, g->config, &text) && text.len >= n;
    const bool same = some && (n == 0 || memcmp(text.data, config, n) == 0) &&
                      (text.len == n || text.data[n] == ' ');
    zc_buf_fini(&text);
    return same;
}

/* The row's family of this name; -1: none that serves. */
static int family_named(zc_op op, const char *name, int arch)
{
    for (int i = 0, family; (family = zc_family_of(op, i)) >= 0; i++)
        if (zc_family_serves(family, arch) && strcmp(zc_families[family].name, name) == 0)
            return family;
    return -1;
}

/* The kernel that was measured to be the fastest, if the family still has it. */
static zc_status choose_measured(chooser *w, const variant *v, uint32_t step, int arch, bool *found)
{
    zc_measured m;
    const zc_choose_params *p = w->params;
    *found = false;
    if (!p->measured || p->candidate || p->family) return ZC_OK;
    if (!p->measured(p->measured_user, &v->program, step, arch, &m)) return ZC_OK;
    int family = family_named(w->p->steps[step].op, m.family, arch);
    for (int n = 0, count = family >= 0; n < count && !*found; n++) {
        zc_gen g;
        zc_status status = generate_number(w, v, step, family, arch, n, &g);
        count = g.configurations;
        *found = status == ZC_OK && !g.declined[0] && has_config(&g, family, m.config);
        if (*found) {
            zc_snprintf(g.why, sizeof g.why, "%s", m.why);
            status = add_choice(w, v, family, &g);
        }
        zc_buf_fini(&g.spec);
        ZC_TRY(status);
    }
    return ZC_OK;
}

/* ---- to be measured ---- */

static zc_status add_alternative(chooser *w, const variant *v, int family, zc_gen *g,
                                 uint32_t chosen)
{
    static const zc_dim one = {.k = 1};
    static const zc_prange never = {.nfactors = 1, .factors = &one, .low = 2, .high = 2};
    ZC_TRY(add_choice(w, v, family, g));
    zc_pchoice *c = &w->choices.data[w->choices.len - 1];
    c->ranges = &never;
    c->nranges = 1;
    if (c->kernel == chosen) w->choices.len--;
    return ZC_OK;
}

/* Puts them in front of the one choice that there is. */
static zc_status add_alternatives(chooser *w, const variant *v, uint32_t step, int arch)
{
    zc_op op = w->p->steps[step].op;
    if (w->choices.len != 1) return ZC_OK;
    const zc_pchoice chosen = w->choices.data[--w->choices.len];
    for (int i = 0, family; (family = zc_family_of(op, i)) >= 0; i++) {
        if (!zc_family_serves(family, arch)) continue;
        for (int n = 0, count = 1; n < count && n < w->params->alternatives; n++) {
            zc_gen g;
            zc_status status = generate_number(w, v, step, family, arch, n, &g);
            count = g.configurations;
            if (status == ZC_OK && !g.declined[0])
                status = add_alternative(w, v, family, &g, chosen.kernel);
            zc_buf_fini(&g.spec);
            ZC_TRY(status);
        }
    }
    return ZC_VEC_PUSH(&w->choices, chosen) ? ZC_OK : nomem(w, "choices");
}

/* ---- steps ---- */

/* Choices for all ranges of sizes, or none. */
static zc_status choose_for(chooser *w, const variant *v, uint32_t step, int arch, const char **why)
{
    size_t before = w->choices.len;
    zc_gen_sizes sizes = {0};
    bool found = true, measured;
    ZC_TRY(choose_measured(w, v, step, arch, &measured));
    if (measured) return ZC_OK;
    for (; found && sizes.now <= sizes.nbounds; sizes.now++)
        ZC_TRY(choose_range(w, v, step, arch, &sizes, &found, why));
    if (!found) w->choices.len = before;
    join_ranges(w, before);
    return ZC_OK;
}

/* Of a variant whose one kernel is the program's own: nothing to choose. */
static void drop_repeated(chooser *w, size_t first)
{
    const zc_pchoice *last = &w->choices.data[w->choices.len - 1];
    size_t kept = first;
    for (size_t i = first; i < w->choices.len; i++)
        if (i + 1 == w->choices.len || w->choices.data[i].kernel != last->kernel)
            w->choices.data[kept++] = w->choices.data[i];
    w->choices.len = kept;
}

/* All architectures, or none. */
static zc_status choose_step(chooser *w, zc_pstep *s, bool shapes)
{
    unsigned flags = zc_op_get(s->op)->flags;
    s->nchoices = 0;
    s->why = "";
    if (flags & (ZC_OPF_REGIONS | ZC_OPF_VIEW)) return ZC_OK;
    s->why = shapes ? ZC_WHY_SHAPES : "no GPU kernel for this operation";
    w->choices.len = 0;
    for (int a = 0; a < w->params->narchs && !shapes; a++) {
        size_t first = w->choices.len;
        for (size_t v = 0; v < w->nvariants; v++) {
            size_t before = w->choices.len;
            ZC_TRY(choose_for(w, &w->variants[v], (uint32_t)(s - w->p->steps), w->params->archs[a],
                              &s->why));
            if (v + 1 == w->nvariants && w->choices.len == before) return ZC_OK;
        }
        drop_repeated(w, first);
        if (w->params->alternatives)
            ZC_TRY(add_alternatives(w, &w->variants[w->nvariants - 1], (uint32_t)(s - w->p->steps),
                                    w->params->archs[a]));
    }
    if (shapes) return ZC_OK;
    s->why = "";
    s->nchoices = (uint32_t)w->choices.len;
    s->choices = zc_arena_dup(w->arena, w->choices.data, w->choices.len, sizeof *w->choices.data);
    return s->choices ? ZC_OK : nomem(w, "choices");
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
static zc_status known_dims(const zc_program *p, const variant *v, zc_arena *arena, zc_dim **out,
                            zc_diag *diag)
{
    zc_dim *known = zc_arena_alloc(arena, p->ndims, sizeof *known);
    if (!known) return zc_fail_nomem(diag, "variant", p->ndims);
    for (uint32_t i = 0; i < p->ndims; i++) {
        const zc_dim_node *n = &p->dim_nodes[i];
        known[i] = (zc_dim){.e = i + 1};
        for (uint32_t s = 0; s < v->nranges; s++)
            if (v->ranges[s].factors[0].e == i + 1) known[i] = zc_dim_const(v->ranges[s].low);
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

static zc_status specialise(const zc_program *p, variant *v, zc_arena *arena, zc_diag *diag)
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
    v->program = *p;
    v->program.values = values;
    return ZC_OK;
}

/* The combination number `c` of the profiles' values. */
static zc_status combine(chooser *w, size_t c, variant *out)
{
    size_t n = w->params->nprofiles;
    out->ranges = zc_arena_alloc(w->arena, n, sizeof *out->ranges);
    zc_dim *symbols = zc_arena_alloc(w->arena, n, sizeof *symbols);
    if (!out->ranges || !symbols) return nomem(w, "variant");
    for (size_t i = 0; i < n; i++) {
        const zc_choose_profile *profile = &w->params->profiles[i];
        uint32_t symbol;
        ZC_TRY(find_symbol(w->p, profile->name, &symbol, w->diag));
        symbols[i] = (zc_dim){.e = symbol + 1};
        int64_t size = profile->values[c % profile->count];
        out->ranges[i] =
            (zc_prange){.nfactors = 1, .factors = &symbols[i], .low = size, .high = size};
        c /= profile->count;
    }
    out->nranges = (uint32_t)n;
    return specialise(w->p, out, w->arena, w->diag);
}

static zc_status check_profile(const zc_choose_profile *all, size_t i, zc_diag *diag)
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

static zc_status make_variants(chooser *w)
{
    const zc_choose_profile *profiles = w->params->profiles;
    size_t total = w->params->nprofiles ? 1 : 0;
    for (size_t i = 0; i < w->params->nprofiles; i++) {
        if (!profiles[i].count || profiles[i].count > ZC_VARIANTS_MAX ||
            total * profiles[i].count > ZC_VARIANTS_MAX)
            return zc_fail(w->diag, ZC_ERR_ARG, profiles[i].name,
                           "profiles need 1 to %d combinations of sizes", ZC_VARIANTS_MAX);
        ZC_TRY(check_profile(profiles, i, w->diag));
        total *= profiles[i].count;
    }
    w->nvariants = total + 1;
    w->variants = zc_arena_alloc(w->arena, w->nvariants, sizeof *w->variants);
    if (!w->variants) return nomem(w, "variants");
    for (size_t c = 0; c < total; c++) ZC_TRY(combine(w, c, &w->variants[c]));
    w->variants[total] = (variant){.program = *w->p};
    if (w->params->alternatives && total) {
        w->variants += w->params->variant;
        w->variants->nranges = 0;
        w->nvariants = 1;
    }
    return ZC_OK;
}

/* ---- the program ---- */

static zc_status choose_all(chooser *w)
{
    zc_program *p = w->p;
    const bool *shapes = zc_host_steps(p, w->arena);
    zc_pstep *steps = zc_arena_dup(w->arena, p->steps, p->nsteps, sizeof *steps);
    if (!shapes || !steps) return nomem(w, "steps");
    p->steps = steps;
    ZC_TRY(make_variants(w));
    for (uint32_t i = 0; i < p->nsteps; i++) ZC_TRY(choose_step(w, &steps[i], shapes[i]));
    p->kernels = zc_arena_dup(w->arena, w->kernels.data, w->kernels.len, sizeof *p->kernels);
    p->sources = zc_arena_dup(w->arena, w->sources.data, w->sources.len, sizeof *p->sources);
    if (!p->kernels || !p->sources) return nomem(w, "kernels");
    p->nkernels = (uint32_t)w->kernels.len;
    p->nsources = (uint32_t)w->sources.len;
    p->target = "cuda";
    return ZC_OK;
}

zc_status zc_choose(zc_program *p, const zc_choose_params *params, zc_arena *arena, zc_diag *diag)
{
    chooser w = {.p = p, .params = params, .arena = arena, .diag = diag};
    zc_status status = choose_all(&w);
    ZC_VEC_FINI(&w.kernels);
    ZC_VEC_FINI(&w.sources);
    ZC_VEC_FINI(&w.choices);
    return status;
}
