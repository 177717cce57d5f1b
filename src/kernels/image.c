#include "kernels/image.h"
#include "kernels/entries.h"
#include "kernels/stamps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cache.h"
#include "kernels/choose.h"
#include "kernels/table.h"

enum { WEIGHT_ALIGN = 256, NOT_FOUND = 500, DEFAULT_SMEM = 48 * 1024 };

/* ---- machine code ---- */

/* Code for one chip runs on later ones of the same generation, unless it may use what that chip
 * alone has. */
static bool runs_on(uint32_t code, int device)
{
    if (code == (uint32_t)device) return true;
    return !zc_rtc_arch_alone((int)code) && code / 10 == (uint32_t)device / 10 &&
           code <= (uint32_t)device;
}

static const zc_pbinary *find_binary(const zc_program *p, uint32_t kernel, int arch)
{
    const zc_pbinary *best = NULL;
    for (uint32_t i = 0; i < p->nbinaries; i++) {
        const zc_pbinary *b = &p->binaries[i];
        if (b->kernel == kernel && runs_on(b->arch, arch) && (!best || b->arch > best->arch))
            best = b;
    }
    return best;
}

static void list_archs(const zc_program *p, char *out, size_t n)
{
    size_t at = 0;
    uint32_t last = 0, s = 0;
    out[0] = '\0';
    while (s < p->nsteps && !p->steps[s].nchoices) s++;
    for (uint32_t i = 0; s < p->nsteps && i < p->steps[s].nchoices && at + 8 < n; i++) {
        uint32_t arch = p->steps[s].choices[i].arch;
        if (arch != last) at += (size_t)snprintf(out + at, n - at, "%ssm_%u", at ? ", " : "", arch);
        last = arch;
    }
    if (!at) snprintf(out, n, "none");
}

static zc_status open_compiler(zc_rtc *rtc, const char *kernel, const char *built, int arch,
                               zc_diag *diag)
{
    zc_diag *why = zc_diag_create();
    zc_status status = zc_rtc_open(rtc, why);
    if (status != ZC_OK)
        status = zc_fail(diag, status, kernel,
                         "the plan has no code for this GPU (built for %s, need sm_%d), and none "
                         "can be made: %s",
                         built, arch, zc_diag_text(why, 0));
    zc_diag_destroy(&why);
    return status;
}

static zc_status rebuild(const zc_image *m, uint32_t kernel, zc_buf *out, zc_diag *diag)
{
    const zc_program *p = m->program;
    const char *built = m->built;
    int arch = m->device.arch;
    zc_rtc rtc;
    zc_cache_key key;
    if (!p->nsources)
        return zc_fail(diag, ZC_ERR_DEVICE, p->kernels[kernel].name,
                       "the plan has no code for this GPU and no sources to build it (built for "
                       "%s, need sm_%d)",
                       built, arch);
    ZC_TRY(open_compiler(&rtc, p->kernels[kernel].name, built, arch, diag));
    zc_cache_make_key(&rtc, &p->kernels[kernel], m->sources, p->nsources, arch, &key);
    zc_status status = ZC_OK;
    if (!zc_cache_get(&key, out)) {
        out->len = 0;
        status = zc_rtc_compile(&rtc, &p->kernels[kernel], m->sources, p->nsources, arch, out, NULL,
                                diag);
        if (status == ZC_OK) zc_cache_put(&key, out->data, out->len, ZC_CACHE_BYTES_MAX);
    }
    zc_rtc_close(&rtc);
    return status;
}

/* Lets launches use all the shared memory there is. Once, here: a function's attributes are shared
 * by all sessions. */
static zc_status open_shared_memory(zc_device *d, zc_cu_function function, const char *name,
                                    zc_diag *diag)
{
    int fixed = 0;
    ZC_TRY(zc_device_check(d, d->cu.function_get(&fixed, ZC_CU_FUNCTION_SHARED_BYTES, function),
                           name, diag));
    if (d->smem_max - fixed <= DEFAULT_SMEM) return ZC_OK;
    return zc_device_check(
        d, d->cu.function_set(function, ZC_CU_FUNCTION_MAX_DYNAMIC_SMEM, d->smem_max - fixed), name,
        diag);
}

static zc_status find_entries(zc_image *m, zc_image_kernel *k, const char *name, zc_diag *diag)
{
    bool any = false;
    for (int i = 0; i < ZC_ENTRIES_MAX; i++) {
        char entry[192];
        snprintf(entry, sizeof entry, "%s_%d", name, i);
        int code = m->device.cu.module_function(&k->entries[i], k->module, entry);
        if (code == NOT_FOUND) {
            k->entries[i] = NULL;
            continue;
        }
        ZC_TRY(zc_device_check(&m->device, code, name, diag));
        ZC_TRY(open_shared_memory(&m->device, k->entries[i], name, diag));
        any = true;
    }
    if (!any) return zc_fail(diag, ZC_ERR_FORMAT, name, "its machine code has no entry point");
    if (!m->stamped) return ZC_OK;
    return zc_device_check(&m->device,
                           m->device.cu.module_function(&k->stamp_end, k->module, ZC_STAMP_ENTRY),
                           name, diag);
}

/* Kernels whose parameters this zc lays out otherwise would read them wrongly. */
static zc_status find_family(const zc_program *p, const zc_pkernel *kernel, zc_image_kernel *out,
                             zc_diag *diag)
{
    int f = zc_family_find(kernel->family), nconfig = 0;
    if (f < 0)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, kernel->name,
                       "this zc has no kernel family " ZC_NAME, kernel->family);
    (void)zc_family_config(f, &nconfig);
    if (kernel->abi != zc_family_abi(f) || kernel->nconfig != (uint32_t)nconfig)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, kernel->name,
                       "was compiled by zc " ZC_NAME " for parameters that this zc lays out "
                       "otherwise (family %s): compile the model again",
                       p->version, kernel->family);
    out->launch = zc_families[f].launch;
    out->processors = zc_entries_processors(f, kernel->config);
    return ZC_OK;
}

static zc_status load_kernel(zc_image *m, uint32_t i, zc_diag *diag)
{
    const zc_pkernel *source = &m->program->kernels[i];
    zc_image_kernel *k = &m->kernels[i];
    ZC_TRY(find_family(m->program, source, k, diag));
    const zc_pbinary *b = m->stamped ? NULL : find_binary(m->program, i, m->device.arch);
    zc_buf built = {0};
    zc_status status = ZC_OK;
    if (!b) {
        status = rebuild(m, i, &built, diag);
        m->rebuilt += !m->stamped;
    }
    if (status == ZC_OK)
        status = zc_device_check_memory(
            &m->device, m->device.cu.module_load(&k->module, b ? b->data : built.data),
            b ? b->bytes : built.len, source->name, diag);
    zc_buf_fini(&built);
    return status == ZC_OK ? find_entries(m, k, source->name, diag) : status;
}

/* ---- constants: those that a GPU step reads ---- */

static void mark_reads(const zc_program *p, bool *read)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *s = &p->steps[i];
        uint64_t host = zc_op_host_inputs(s->op);
        bool view = zc_op_get(s->op)->flags & ZC_OPF_VIEW;
        for (uint32_t n = 0; (s->nchoices || view) && n < s->nin; n++) {
            if (p->values[s->in[n]].kind != ZC_P_CONST || (view && n)) continue;
            if (n >= 64 || !(host >> n & 1)) read[s->in[n]] = true;
        }
    }
}

/* Gives each its offset plus one into the block; 0 stays for the others. */
static zc_status place_constants(const zc_program *p, zc_cu_ptr *offsets, size_t *total,
                                 zc_diag *diag)
{
    bool *read = zc_calloc(p->nvalues, sizeof *read);
    if (!read) return zc_fail_nomem(diag, "constants", p->nvalues);
    mark_reads(p, read);
    *total = 0;
    for (uint32_t v = 1; v < p->nvalues; v++) {
        if (!read[v]) continue;
        offsets[v] = *total + 1;
        *total += zc_align_up((size_t)p->values[v].bytes, WEIGHT_ALIGN);
    }
    free(read);
    return ZC_OK;
}

size_t zc_image_weight_bytes(const zc_program *program)
{
    size_t total = 0;
    zc_cu_ptr *offsets = zc_calloc(program->nvalues, sizeof *offsets);
    if (offsets) (void)place_constants(program, offsets, &total, NULL);
    free(offsets);
    return total;
}

static zc_status upload(zc_image *m, zc_diag *diag)
{
    const zc_program *p = m->program;
    zc_device *d = &m->device;
    ZC_TRY(place_constants(p, m->constants, &m->weight_bytes, diag));
    ZC_TRY(zc_device_alloc(d, m->weight_bytes, "the model's constants", &m->weights, diag));
    for (uint32_t v = 1; v < p->nvalues; v++) {
        if (!m->constants[v]) continue;
        m->constants[v] += m->weights - 1;
        if (!p->values[v].bytes) continue;
        ZC_TRY(zc_device_check(
            d, d->cu.copy_in(m->constants[v], p->values[v].data, (size_t)p->values[v].bytes, NULL),
            p->values[v].name, diag));
    }
    return zc_device_check(d, d->cu.stream_wait(NULL), "copying the constants", diag);
}

/* ---- the architecture ---- */

/* The plan's choices that serve this device; 0: none do. */
static uint32_t plan_arch(const zc_program *p, int device)
{
    uint32_t best = 0;
    for (uint32_t s = 0; s < p->nsteps; s++)
        for (uint32_t i = 0; i < p->steps[s].nchoices; i++) {
            uint32_t arch = p->steps[s].choices[i].arch;
            if (runs_on(arch, device) && arch > best) best = arch;
        }
    return best;
}

static bool has_gpu_steps(const zc_program *p)
{
    for (uint32_t s = 0; s < p->nsteps; s++)
        if (p->steps[s].nchoices) return true;
    return false;
}

/* Kernels are chosen anew for a device that the plan was not compiled for. Their sources have to be
 * this zc's, as the generators are. */
static zc_status choose_anew(zc_image *m, zc_diag *diag)
{
    zc_program *own = zc_arena_alloc(&m->arena, 1, sizeof *own);
    const zc_choose_params params = {.archs = &m->device.arch, .narchs = 1};
    const zc_program *p = m->program;
    if (!own) return zc_fail_nomem(diag, "kernels", sizeof *own);
    if (!p->nsources)
        return zc_fail(diag, ZC_ERR_DEVICE, p->kernels[0].name,
                       "the plan has no code for this GPU and no sources to build it (built for "
                       "%s, need sm_%d)",
                       m->built, m->device.arch);
    for (uint32_t i = 0; i < p->nsources; i++)
        if (!zc_source_is_own(&p->sources[i]))
            return zc_fail(diag, ZC_ERR_DEVICE, p->sources[i].name,
                           "the plan has no code for this GPU (built for %s, need sm_%d), and its "
                           "sources are of zc " ZC_NAME ": compile the model again",
                           m->built, m->device.arch, p->version);
    *own = *p;
    ZC_TRY(zc_choose(own, &params, &m->arena, diag));
    own->sources = p->sources;
    own->nsources = p->nsources;
    own->binaries = NULL;
    own->nbinaries = 0;
    for (uint32_t s = 0; s < p->nsteps; s++)
        if (!own->steps[s].nchoices != !p->steps[s].nchoices)
            return zc_fail(diag, ZC_ERR_DEVICE, p->steps[s].name,
                           "has no kernel for sm_%d (the plan is built for %s)", m->device.arch,
                           m->built);
    m->program = own;
    return ZC_OK;
}

/* ---- life ---- */

static zc_status fill(zc_image *m, zc_diag *diag)
{
    list_archs(m->program, m->built, sizeof m->built);
    m->arch = plan_arch(m->program, m->device.arch);
    if (!m->arch && has_gpu_steps(m->program)) {
        ZC_TRY(choose_anew(m, diag));
        m->arch = (uint32_t)m->device.arch;
    }
    m->sources = m->program->sources;
    if (m->stamped) ZC_TRY(zc_stamped_sources(m->program, &m->arena, &m->sources, diag));
    m->kernels = zc_calloc(m->program->nkernels, sizeof *m->kernels);
    m->constants = zc_calloc(m->program->nvalues, sizeof *m->constants);
    if (!m->kernels || !m->constants)
        return zc_fail_nomem(diag, "device image", m->program->nvalues);
    ZC_TRY(zc_device_enter(&m->device, diag));
    zc_status status = ZC_OK;
    for (uint32_t i = 0; status == ZC_OK && i < m->program->nkernels; i++)
        if (zc_program_uses(m->program, i, m->arch)) status = load_kernel(m, i, diag);
    if (status == ZC_OK) status = upload(m, diag);
    zc_device_leave(&m->device);
    return status;
}

zc_status zc_image_create(const zc_program *program, int ordinal, bool stamped, zc_image **out,
                          zc_diag *diag)
{
    *out = NULL;
    zc_image *m = zc_calloc(1, sizeof *m);
    if (!m) return zc_fail_nomem(diag, "device image", sizeof *m);
    zc_status status = zc_device_open(ordinal, &m->device, diag);
    if (status != ZC_OK) {
        free(m);
        return status;
    }
    m->program = program;
    m->stamped = stamped;
    zc_arena_init(&m->arena, 0);
    status = fill(m, diag);
    if (status == ZC_OK)
        *out = m;
    else
        zc_image_destroy(&m);
    return status;
}

void zc_image_destroy(zc_image **image)
{
    zc_image *m = *image;
    *image = NULL;
    if (!m) return;
    if (!m->device.lost && zc_device_enter(&m->device, NULL) == ZC_OK) {
        zc_device_free(&m->device, &m->weights);
        for (uint32_t i = 0; m->kernels && i < m->program->nkernels; i++)
            if (m->kernels[i].module) (void)m->device.cu.module_unload(m->kernels[i].module);
        zc_device_leave(&m->device);
    }
    zc_device_close(&m->device);
    free(m->kernels);
    free(m->constants);
    zc_arena_fini(&m->arena);
    free(m);
}
