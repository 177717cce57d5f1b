/* Kernels to machine code: several at once, each taken from the disk cache when it is there. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "cuda/cache.h"

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
    for (uint32_t k = 0; k < p->nkernels; k++)
        ZC_TRY(add_source(&set, p->kernels[k].template_name, diag));
    for (uint32_t i = 0; i < set.n; i++) ZC_TRY(add_includes(&set, &set.v[i], diag));
    if (set.n) qsort(set.v, set.n, sizeof *set.v, by_name);
    p->sources = set.v;
    p->nsources = set.n;
    return ZC_OK;
}

/* ---- the pool ---- */

typedef struct job {
    const zc_rtc *rtc;
    const zc_program *p;
    const int *archs;
    uint32_t narchs;
    zc_buf *cubins; /* by kernel and architecture */
    zc_diag **diags;
    zc_status *statuses;
} job;

static void compile_one(void *arg, int i)
{
    const job *j = arg;
    const zc_pkernel *k = &j->p->kernels[(uint32_t)i / j->narchs];
    int arch = j->archs[(uint32_t)i % j->narchs];
    zc_cache_key key;
    zc_cache_make_key(j->rtc, k, j->p->sources, j->p->nsources, arch, &key);
    if (zc_cache_get(&key, &j->cubins[i])) return;
    j->cubins[i].len = 0;
    j->statuses[i] = zc_rtc_compile(j->rtc, k, j->p->sources, j->p->nsources, arch, &j->cubins[i],
                                    NULL, j->diags[i]);
    if (j->statuses[i] == ZC_OK)
        zc_cache_put(&key, j->cubins[i].data, j->cubins[i].len, ZC_CACHE_BYTES_MAX);
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
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].kernel == kernel + 1 && p->steps[i].op == ZC_OP_UserKernel)
            return ((const zc_attrs_UserKernel *)p->steps[i].attrs)->origin;
    return NULL;
}

static zc_status run_pool(job *j, int n, int threads, zc_diag *diag)
{
    zc_pool *pool;
    if (threads < 1) threads = cpu_count();
    ZC_TRY(zc_pool_create(threads < n ? threads : n, &pool, diag));
    zc_pool_run(pool, n, compile_one, j);
    zc_pool_destroy(&pool);
    for (int i = 0; i < n; i++) {
        if (j->statuses[i] == ZC_OK) continue;
        return zc_fail(diag, j->statuses[i], origin_of(j->p, (uint32_t)i / j->narchs), "%s",
                       zc_diag_text(j->diags[i], 0));
    }
    return ZC_OK;
}

static zc_status take_binaries(zc_program *p, const job *j, uint32_t n, zc_arena *arena,
                               zc_diag *diag)
{
    zc_pbinary *out = zc_arena_alloc(arena, n, sizeof *out);
    if (!out) return zc_fail_nomem(diag, "machine code", n);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (zc_pbinary){.kernel = i / j->narchs,
                              .arch = (uint32_t)j->archs[i % j->narchs],
                              .data = zc_arena_dup(arena, j->cubins[i].data, j->cubins[i].len, 1),
                              .bytes = j->cubins[i].len};
        if (!out[i].data) return zc_fail_nomem(diag, "machine code", j->cubins[i].len);
    }
    p->binaries = out;
    p->nbinaries = n;
    return ZC_OK;
}

static zc_status compile_all(zc_program *p, const zc_rtc *rtc,
                             const zc_codegen_build_params *params, zc_arena *arena, zc_diag *diag)
{
    uint32_t n = p->nkernels * (uint32_t)params->narchs;
    job j = {.rtc = rtc,
             .p = p,
             .archs = params->archs,
             .narchs = (uint32_t)params->narchs,
             .cubins = zc_calloc(n, sizeof(zc_buf)),
             .diags = zc_calloc(n, sizeof(zc_diag *)),
             .statuses = zc_calloc(n, sizeof(zc_status))};
    bool room = j.cubins && j.diags && j.statuses;
    for (uint32_t i = 0; room && i < n; i++) room = (j.diags[i] = zc_diag_create()) != NULL;
    zc_status status =
        room ? run_pool(&j, (int)n, params->threads, diag) : zc_fail_nomem(diag, "kernels", n);
    if (status == ZC_OK) status = take_binaries(p, &j, n, arena, diag);
    for (uint32_t i = 0; i < n; i++) {
        if (j.cubins) zc_buf_fini(&j.cubins[i]);
        if (j.diags) zc_diag_destroy(&j.diags[i]);
    }
    free(j.cubins);
    free(j.diags);
    free(j.statuses);
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
