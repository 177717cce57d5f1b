/* Every case's kernels through a real NVRTC, for any architectures and without a GPU: they must
 * compile, and keep nothing in local memory (spilled registers, arrays that are indexed by what is
 * known only when run).
 *
 * What a kernel keeps there is read from the assembler's report, which --ptxas-options=-v brings
 * into NVRTC's log:
 *   ptxas info    : Function properties for NAME
 *   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 40 registers, ...
 * The stack frame counts both kinds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "check.h"
#include "cuda/nvrtc.h"
#include "kernels/stamps.h"

typedef struct usage {
    zc_status status;
    char *why;                         /* it did not compile */
    int entries, functions, registers; /* entry points, and with them what was not inlined */
    long frame, spilled;               /* bytes: the worst function's */
} usage;

typedef struct unit {
    zc_pkernel kernel;
    const zc_psource *sources;
    uint32_t nsources;
    const kc_case *c;
    char name[96];
    bool wanted[ZC_TARGETS_MAX]; /* by target: is it chosen there? */
    usage by_arch[ZC_TARGETS_MAX];
} unit;

struct kc_compiler {
    const kc_options *o;
    zc_arena arena;
    zc_rtc rtc;
    ZC_VEC(unit) units;
};

/* ---- collecting ---- */

static bool fail(const kc_variant *v, const char *what)
{
    printf("FAIL %s/%s %s:%s: %s\n", v->c->op, v->c->family, v->t, v->u, what);
    return false;
}

/* What follows the name. */
static const char *meaning(const zc_pkernel *kernel)
{
    const char *name = strstr(kernel->spec, "#define ZC_NAME ");
    return name ? name + strcspn(name, "\n") : kernel->spec;
}

static unit *find_known(kc_compiler *k, const zc_pkernel *kernel)
{
    for (size_t i = 0; i < k->units.len; i++)
        if (strcmp(k->units.data[i].kernel.family, kernel->family) == 0 &&
            strcmp(meaning(&k->units.data[i].kernel), meaning(kernel)) == 0)
            return &k->units.data[i];
    return NULL;
}

static void want(const kc_compiler *k, const zc_program *p, uint32_t kernel, unit *u)
{
    for (int a = 0; a < k->o->targets.narchs; a++)
        u->wanted[a] |= zc_program_uses(p, kernel, (uint32_t)k->o->targets.archs[a]);
}

/* zc's own sources are constants; a user's lives as long as the program. */
static bool keep_sources(kc_compiler *k, const zc_program *p, unit *u)
{
    zc_psource *own = zc_arena_dup(&k->arena, p->sources, p->nsources, sizeof *own);
    bool ok = own;
    for (uint32_t i = 0; ok && i < p->nsources; i++) {
        if (zc_template_find(own[i].name)) continue;
        own[i].name = zc_arena_strdup(&k->arena, own[i].name);
        own[i].text = zc_arena_strdup(&k->arena, own[i].text);
        ok = own[i].name && own[i].text;
    }
    u->sources = own;
    u->nsources = p->nsources;
    return ok;
}

static bool add_kernel(kc_compiler *k, const kc_variant *v, const kc_program *p, uint32_t at)
{
    const zc_pkernel *kernel = &p->program.kernels[at];
    unit u = {.kernel = *kernel, .c = v->c}, *known = find_known(k, kernel);
    want(k, &p->program, at, known ? known : &u);
    if (known) return true;
    snprintf(u.name, sizeof u.name, "%s/%s/%s:%s", v->c->op, v->c->family, v->t, v->u);
    u.kernel.name = zc_arena_strdup(&k->arena, kernel->name);
    u.kernel.spec = zc_arena_strdup(&k->arena, kernel->spec);
    return (keep_sources(k, &p->program, &u) && u.kernel.name && u.kernel.spec &&
            ZC_VEC_PUSH(&k->units, u)) ||
           fail(v, "no memory");
}

static bool add_program(kc_compiler *k, const kc_variant *v, const kc_sizes *fixed)
{
    kc_program p;
    zc_diag *diag = zc_diag_create();
    zc_status status =
        kc_lower(v, fixed, 1, true, k->o->targets.archs, k->o->targets.narchs, &p, diag);
    if (status == ZC_OK) status = zc_codegen_sources(&p.program, &p.arena, diag);
    bool ok = status == ZC_OK || fail(v, zc_diag_text(diag, 0));
    for (uint32_t i = 0; ok && i < p.program.nkernels; i++) ok = add_kernel(k, v, &p, i);
    kc_program_free(&p);
    zc_diag_destroy(&diag);
    return ok;
}

typedef struct fixing {
    kc_compiler *k;
    const kc_variant *v;
    bool ok;
} fixing;

static bool with_sizes(void *arg, const char *item)
{
    fixing *f = arg;
    kc_sizes sizes;
    f->ok = kc_sizes_parse(item, &sizes) ? add_program(f->k, f->v, &sizes)
                                         : fail(f->v, "the case's sizes are wrong");
    return false; /* others give the same text with other numbers */
}

bool kc_compile_add(kc_compiler *k, const kc_variant *v)
{
    const kc_case *c = v->c;
    bool is_static = c->flags & KC_STATIC || !c->sizes;
    fixing f = {.k = k, .v = v, .ok = true};
    if (!is_static && !add_program(k, v, NULL)) return false;
    /* Constants in place of sizes: once a row will do. */
    if (is_static || (v->fixed && !k->o->rows && kc_row_number(c) == 0))
        (void)kc_each(c->sizes ? c->sizes : c->bench ? c->bench : "x=1", ';', with_sizes, &f);
    return f.ok;
}

/* ---- compiling ---- */

static void read_line(const char *line, usage *out)
{
    long frame, stores, loads;
    const char *used = strstr(line, ": Used ");
    int registers;
    if (sscanf(line, "ptxas . %ld bytes stack frame, %ld bytes spill stores, %ld bytes", &frame,
               &stores, &loads) == 3) {
        if (frame > out->frame) out->frame = frame;
        if (stores > out->spilled) out->spilled = stores;
        if (loads > out->spilled) out->spilled = loads;
        out->functions++;
    } else if (used && sscanf(used, ": Used %d registers", &registers) == 1) {
        if (registers > out->registers) out->registers = registers;
        out->entries++;
    }
}

/* false: the log says nothing of what the kernels use. */
static bool read_log(char *log, usage *out)
{
    for (char *line = log, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = '\0';
        read_line(line, out);
    }
    return out->entries > 0 && out->functions >= out->entries;
}

static zc_status compile_unit(const kc_compiler *k, const unit *u, int arch, zc_buf *code,
                              zc_buf *log, zc_diag *diag)
{
    zc_arena arena;
    const zc_program p = {.sources = u->sources, .nsources = u->nsources};
    const zc_psource *sources = u->sources;
    zc_arena_init(&arena, 0);
    zc_status status = k->o->noted ? zc_stamped_sources(&p, &arena, &sources, diag) : ZC_OK;
    if (status == ZC_OK)
        status = zc_rtc_compile(&k->rtc, &u->kernel, sources, u->nsources, arch, code, log, diag);
    zc_arena_fini(&arena);
    return status;
}

static void compile_one(void *arg, int i)
{
    kc_compiler *k = arg;
    int n = k->o->targets.narchs;
    unit *u = &k->units.data[i / n];
    usage *r = &u->by_arch[i % n];
    zc_buf code = {0}, log = {0};
    if (!u->wanted[i % n]) return;
    zc_diag *diag = zc_diag_create();
    r->status = compile_unit(k, u, k->o->targets.archs[i % n], &code, &log, diag);
    if (r->status == ZC_OK && (!log.data || !read_log(log.data, r)))
        r->status = zc_fail(diag, ZC_ERR_INTERNAL, u->kernel.name,
                            "the compiler's log does not tell what the kernel uses");
    if (r->status != ZC_OK) r->why = strdup(zc_diag_text(diag, 0));
    zc_buf_fini(&code);
    zc_buf_fini(&log);
    zc_diag_destroy(&diag);
}

static bool judge(const kc_compiler *k, const unit *u, int a)
{
    char arch[32];
    const usage *r = &u->by_arch[a];
    bool allowed = u->c->local != NULL;
    bool ok = r->status == ZC_OK && (!r->frame || allowed);
    if (!u->wanted[a]) return true;
    zc_rtc_arch(k->o->targets.archs[a], arch, sizeof arch);
    if (r->status != ZC_OK)
        printf("FAIL %s %s: %s\n", u->name, arch, r->why ? r->why : "");
    else if (!ok || k->o->verbose)
        printf("%s %s %s (%s): %d registers, %ld bytes of local memory, %ld spilled%s%s\n",
               ok ? "pass" : "FAIL", u->name, arch, u->kernel.name, r->registers, r->frame,
               r->spilled, r->frame && allowed ? ": " : "", r->frame && allowed ? u->c->local : "");
    return ok;
}

static bool report(const kc_compiler *k)
{
    int n = k->o->targets.narchs, failed = 0;
    for (int a = 0; a < n; a++) {
        int most = 0, entries = 0, local = 0, spilled = 0, kernels = 0;
        char arch[32];
        for (size_t i = 0; i < k->units.len; i++) {
            const usage *r = &k->units.data[i].by_arch[a];
            failed += !judge(k, &k->units.data[i], a);
            kernels += k->units.data[i].wanted[a];
            entries += r->entries;
            local += r->frame > 0;
            spilled += r->spilled > 0;
            if (r->registers > most) most = r->registers;
        }
        printf("%s: %d kernels, %d entry points, at most %d registers, %d with local memory, %d "
               "with spills\n",
               zc_rtc_arch(k->o->targets.archs[a], arch, sizeof arch), kernels, entries, most,
               local, spilled);
    }
    return failed == 0;
}

bool kc_compile_all(kc_compiler *k)
{
    zc_diag *diag = zc_diag_create();
    zc_pool *pool = NULL;
    bool ok =
        zc_rtc_open(&k->rtc, diag) == ZC_OK && zc_pool_create(k->o->jobs, &pool, diag) == ZC_OK;
    if (ok) {
        zc_pool_run(pool, (int)k->units.len * k->o->targets.narchs, compile_one, k);
        ok = report(k);
    } else {
        printf("FAIL %s\n", zc_diag_text(diag, 0));
    }
    zc_pool_destroy(&pool);
    zc_rtc_close(&k->rtc);
    zc_diag_destroy(&diag);
    return ok;
}

/* ---- life ---- */

kc_compiler *kc_compile_create(const kc_options *o)
{
    kc_compiler *k = zc_calloc(1, sizeof *k);
    if (!k) return NULL;
    k->o = o;
    zc_arena_init(&k->arena, 0);
    return k;
}

void kc_compile_destroy(kc_compiler *k)
{
    if (!k) return;
    for (size_t i = 0; i < k->units.len; i++)
        for (int a = 0; a < ZC_TARGETS_MAX; a++) free(k->units.data[i].by_arch[a].why);
    ZC_VEC_FINI(&k->units);
    zc_arena_fini(&k->arena);
    free(k);
}
