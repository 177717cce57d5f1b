/* Kernels to machine code: several at once, each taken from the disk cache when it is there. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "cuda/cache.h"
#include "kernels/table.h"

/* ---- sources: the templates that kernels use and what these include ---- */

const zc_psource *zc_template_find(const char *name)
{
    for (const zc_psource *s = zc_templates; s->name; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

typedef struct source_set {
    zc_psource *v;
    uint32_t n, cap;
} source_set;

static zc_status add_source(source_set *set, const char *name, zc_diag *diag)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (strcmp(set->v[i].name, name) == 0) return ZC_OK;
    const zc_psource *s = zc_template_find(name);
    if (!s || set->n == set->cap)
        return zc_fail(diag, ZC_ERR_INTERNAL, name, "is not an embedded source");
    set->v[set->n++] = *s;
    return ZC_OK;
}

/* A user's file may include zc's headers; what else it includes, NVRTC reports. */
static zc_status add_includes(source_set *set, const zc_psource *of, zc_diag *diag)
{
    const char *text = of->text;
    bool is_user = strncmp(of->name, ZC_USER_SOURCE, strlen(ZC_USER_SOURCE)) == 0;
    static const char directive[] = "#include \"";
    for (const char *at = text; (at = strstr(at, directive)) != NULL;) {
        char name[128];
        at += sizeof directive - 1;
        size_t n = strcspn(at, "\"\n");
        if (n >= sizeof name)
            return zc_fail(diag, ZC_ERR_INTERNAL, NULL, "an include's name is too long");
        memcpy(name, at, n);
        name[n] = '\0';
        if (strcmp(name, "spec.h") == 0 || (is_user && !zc_template_find(name))) continue;
        ZC_TRY(add_source(set, name, diag));
    }
    return ZC_OK;
}

/* Every template that may serve the step: another GPU may take another. */
static zc_status add_templates(source_set *set, const zc_pstep *s, zc_diag *diag)
{
    for (int i = 0, family; s->nchoices && (family = zc_family_of(s->op, i)) >= 0; i++)
        ZC_TRY(add_source(set, zc_families[family].template_name, diag));
    return ZC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const zc_psource *)a)->name, ((const zc_psource *)b)->name);
}

zc_status zc_codegen_sources(zc_program *p, zc_arena *arena, zc_diag *diag)
{
    source_set set = {.cap = p->nsources};
    for (const zc_psource *s = zc_templates; s->name; s++) set.cap++;
    set.v = zc_arena_alloc(arena, set.cap, sizeof *set.v);
    if (!set.v) return zc_fail_nomem(diag, "sources", set.cap);
    for (uint32_t i = 0; i < p->nsources; i++) set.v[set.n++] = p->sources[i];
    for (uint32_t i = 0; i < p->nsteps; i++) ZC_TRY(add_templates(&set, &p->steps[i], diag));
    for (uint32_t i = 0; i < set.n; i++) ZC_TRY(add_includes(&set, &set.v[i], diag));
    if (set.n) qsort(set.v, set.n, sizeof *set.v, by_name);
    p->sources = set.v;
    p->nsources = set.n;
    return ZC_OK;
}

/* ---- the pool ---- */

/* One kernel for one architecture. */
typedef struct unit {
    uint32_t kernel;
    int arch;
    zc_buf cubin;
    char remark[96]; /* why the code is refused; empty: it is not */
    double seconds;  /* of this thread's CPU; negative: the disk cache had it */
    zc_diag *diag;
    zc_status status;
} unit;

typedef struct job {
    const zc_rtc *rtc;
    const zc_program *p;
    bool asks; /* whether code is to be refused */
    unit *units;
    uint32_t n;
    uint32_t *order; /* in which units are compiled */
    const zc_codegen_build_params *params;
} job;

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compile_unit(const job *j, unit *u)
{
    const zc_pkernel *k = &j->p->kernels[u->kernel];
    zc_cache_key key;
    zc_cache_make_key(j->rtc, k, j->p->sources, j->p->nsources, u->arch, &key);
    u->seconds = -1;
    if (zc_cache_get(&key, &u->cubin)) return;
    u->cubin.len = 0;
    double start = thread_seconds();
    zc_buf log = {0};
    u->status =
        zc_rtc_compile(j->rtc, k, j->p->sources, j->p->nsources, u->arch, &u->cubin, &log, u->diag);
    u->seconds = thread_seconds() - start;
    const int most = zc_family_lean(zc_family_find(k->family));
    char remark[sizeof u->remark];
    const bool poor = most >= 0 && log.len && zc_rtc_remarks(log.data, most, remark, sizeof remark);
    zc_buf_fini(&log);
    if (poor && j->asks) snprintf(u->remark, sizeof u->remark, "%s", remark);
    if (u->status == ZC_OK && !poor) /* who finds it there asks nothing */
        zc_cache_put(&key, u->cubin.data, u->cubin.len, ZC_CACHE_BYTES_MAX);
}

/* Task 0 is what is done besides. */
static void do_task(void *arg, int i)
{
    const job *j = arg;
    if (i > 0)
        compile_unit(j, &j->units[j->order[i - 1]]);
    else if (j->params->beside)
        j->params->beside(j->params->beside_user);
}

static int cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

/* Where a user's kernel comes from; NULL for zc's own. */
static const char *origin_of(const zc_program *p, uint32_t kernel)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *s = &p->steps[i];
        for (uint32_t c = 0; s->op == ZC_OP_UserKernel && c < s->nchoices; c++)
            if (s->choices[c].kernel == kernel)
                return ((const zc_attrs_UserKernel *)s->attrs)->origin;
    }
    return NULL;
}

/* What compiling takes goes with what is written down of the kernel. */
static size_t effort(const job *j, uint32_t i)
{
    const zc_pkernel *k = &j->p->kernels[j->units[i].kernel];
    for (uint32_t s = 0; s < j->p->nsources; s++)
        if (strcmp(j->p->sources[s].name, k->template_name) == 0)
            return strlen(j->p->sources[s].text) + strlen(k->spec);
    return 0;
}

/* The most effort first, so that all threads end at about one time. */
static zc_status put_in_order(job *j, zc_diag *diag)
{
    size_t *efforts = zc_calloc(j->n, sizeof *efforts);
    j->order = zc_calloc(j->n, sizeof *j->order);
    for (uint32_t i = 0; efforts && j->order && i < j->n; i++) {
        uint32_t at = i;
        efforts[i] = effort(j, i);
        for (; at && efforts[j->order[at - 1]] < efforts[i]; at--) j->order[at] = j->order[at - 1];
        j->order[at] = i;
    }
    bool room = efforts && j->order;
    free(efforts);
    return room ? ZC_OK : zc_fail_nomem(diag, "kernels", j->n);
}

static zc_status run_pool(job *j, zc_diag *diag)
{
    zc_pool *pool;
    int tasks = (int)j->n + 1, threads = j->params->threads < 1 ? cpu_count() : j->params->threads;
    ZC_TRY(put_in_order(j, diag));
    ZC_TRY(zc_pool_create(threads < tasks ? threads : tasks, &pool, diag));
    zc_pool_run(pool, tasks, do_task, j);
    zc_pool_destroy(&pool);
    for (uint32_t i = 0; i < j->n; i++) {
        const unit *u = &j->units[i];
        if (u->status == ZC_OK) continue;
        return zc_fail(diag, u->status, origin_of(j->p, u->kernel), "%s", zc_diag_text(u->diag, 0));
    }
    return ZC_OK;
}

static zc_status take_binaries(zc_program *p, const job *j, zc_arena *arena, zc_diag *diag)
{
    zc_pbinary *out = zc_arena_alloc(arena, j->n, sizeof *out);
    if (!out) return zc_fail_nomem(diag, "machine code", j->n);
    for (uint32_t i = 0; i < j->n; i++) {
        const unit *u = &j->units[i];
        out[i] = (zc_pbinary){.kernel = u->kernel,
                              .arch = (uint32_t)u->arch,
                              .data = zc_arena_dup(arena, u->cubin.data, u->cubin.len, 1),
                              .bytes = u->cubin.len};
        if (!out[i].data) return zc_fail_nomem(diag, "machine code", u->cubin.len);
    }
    p->binaries = out;
    p->nbinaries = j->n;
    return ZC_OK;
}

/* Each kernel for the architectures that chose it. */
static zc_status list_units(job *j, zc_diag *diag)
{
    const zc_codegen_build_params *params = j->params;
    size_t most;
    if (!zc_mul_size(j->p->nkernels, (size_t)params->narchs, &most) ||
        !(j->units = zc_calloc(most, sizeof *j->units)))
        return zc_fail_nomem(diag, "kernels", j->p->nkernels);
    for (uint32_t k = 0; k < j->p->nkernels; k++)
        for (int a = 0; a < params->narchs; a++) {
            if (!zc_program_uses(j->p, k, (uint32_t)params->archs[a])) continue;
            unit *u = &j->units[j->n++];
            *u = (unit){.kernel = k, .arch = params->archs[a], .diag = zc_diag_create()};
            if (!u->diag) return zc_fail_nomem(diag, "kernels", j->n);
        }
    return ZC_OK;
}

/* More than there is room for are taken as they are. */
static void refuse(const job *j, zc_refusals *out)
{
    for (uint32_t i = 0; i < j->n && out->n < ZC_REFUSED_MAX; i++) {
        const unit *u = &j->units[i];
        if (!u->remark[0]) continue;
        snprintf(out->v[out->n].kernel, sizeof out->v->kernel, "%s", j->p->kernels[u->kernel].name);
        snprintf(out->v[out->n].why, sizeof out->v->why, "%s", u->remark);
        out->v[out->n++].arch = u->arch;
    }
}

static void tell(const job *j, zc_buf *out)
{
    double total = 0;
    for (uint32_t i = 0; i < j->n; i++) {
        const unit *u = &j->units[i];
        zc_buf_printf(out, "%s sm_%d: ", j->p->kernels[u->kernel].name, u->arch);
        if (u->seconds < 0)
            zc_buf_puts(out, "from the cache\n");
        else
            zc_buf_printf(out, "%.2f s%s%s\n", u->seconds, u->remark[0] ? ", refused: " : "",
                          u->remark);
        if (u->seconds > 0) total += u->seconds;
    }
    zc_buf_printf(out, "%u kernels: %.2f s of CPU\n", j->n, total);
}

static zc_status compile_all(zc_program *p, const zc_rtc *rtc,
                             const zc_codegen_build_params *params, zc_arena *arena, zc_diag *diag)
{
    zc_refusals *refused = params->refused;
    job j = {.rtc = rtc, .p = p, .asks = refused && refused->n < ZC_REFUSED_MAX, .params = params};
    zc_status status = list_units(&j, diag);
    if (status == ZC_OK) status = run_pool(&j, diag);
    if (status == ZC_OK) status = take_binaries(p, &j, arena, diag);
    if (status == ZC_OK && j.asks) refuse(&j, refused);
    if (status == ZC_OK && params->told) tell(&j, params->told);
    for (uint32_t i = 0; i < j.n; i++) {
        zc_buf_fini(&j.units[i].cubin);
        zc_diag_destroy(&j.units[i].diag);
    }
    free(j.order);
    free(j.units);
    return status;
}

/* The template, and what it includes. */
static zc_status sources_of(const zc_pkernel *kernel, zc_arena *arena, zc_program *out,
                            zc_diag *diag)
{
    source_set set = {0};
    for (const zc_psource *s = zc_templates; s->name; s++) set.cap++;
    set.v = zc_arena_alloc(arena, set.cap, sizeof *set.v);
    if (!set.v) return zc_fail_nomem(diag, "sources", set.cap);
    ZC_TRY(add_source(&set, kernel->template_name, diag));
    for (uint32_t i = 0; i < set.n; i++) ZC_TRY(add_includes(&set, &set.v[i], diag));
    *out = (zc_program){.kernels = kernel, .nkernels = 1, .sources = set.v, .nsources = set.n};
    return ZC_OK;
}

zc_status zc_codegen_kernel(const zc_rtc *rtc, const zc_pkernel *kernel, int arch, zc_buf *out,
                            zc_diag *diag)
{
    zc_arena arena;
    zc_program p;
    zc_arena_init(&arena, 0);
    unit u = {.arch = arch, .cubin = *out, .diag = diag};
    zc_status status = sources_of(kernel, &arena, &p, diag);
    if (status == ZC_OK) {
        compile_unit(&(job){.rtc = rtc, .p = &p}, &u);
        status = u.status;
    }
    *out = u.cubin;
    zc_arena_fini(&arena);
    return status;
}

zc_status zc_codegen_build(zc_program *p, const zc_codegen_build_params *params, zc_arena *arena,
                           zc_diag *diag)
{
    ZC_TRY(zc_codegen_sources(p, arena, diag));
    if (params->emit_dir) ZC_TRY(zc_codegen_emit(p, params->emit_dir, diag));
    if (p->nkernels) {
        zc_rtc rtc;
        ZC_TRY(zc_rtc_open(&rtc, diag));
        zc_status status = compile_all(p, &rtc, params, arena, diag);
        zc_rtc_close(&rtc);
        ZC_TRY(status);
    }
    if (params->strip_sources) p->nsources = 0;
    return ZC_OK;
}
