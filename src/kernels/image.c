#include "kernels/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cache.h"

enum { WEIGHT_ALIGN = 256, NOT_FOUND = 500, DEFAULT_SMEM = 48 * 1024 };

static const struct {
    const char *name;
    zc_launch_fn launch;
} families[] = {
#define FAMILY(name, template) {#name, zc_launch_##name},
#include "kernels/kernels.def"
};

/* ---- machine code ---- */

/* Code for one chip runs on later ones of the same generation; the generation's own extensions do
 * not. */
static bool runs_on(uint32_t code, int device)
{
    if (code == (uint32_t)device) return true;
    return code != 90 && code / 10 == (uint32_t)device / 10 && code <= (uint32_t)device;
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
    out[0] = '\0';
    for (uint32_t i = 0; i < p->nbinaries && p->binaries[i].kernel == 0 && at + 8 < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%ssm_%u", at ? ", " : "", p->binaries[i].arch);
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

static zc_status rebuild(const zc_program *p, uint32_t kernel, int arch, zc_buf *out, zc_diag *diag)
{
    char built[128];
    zc_rtc rtc;
    zc_cache_key key;
    list_archs(p, built, sizeof built);
    if (!p->nsources)
        return zc_fail(diag, ZC_ERR_DEVICE, p->kernels[kernel].name,
                       "the plan has no code for this GPU and no sources to build it (built for "
                       "%s, need sm_%d)",
                       built, arch);
    ZC_TRY(open_compiler(&rtc, p->kernels[kernel].name, built, arch, diag));
    zc_cache_make_key(&rtc, &p->kernels[kernel], p->sources, p->nsources, arch, &key);
    zc_status status = ZC_OK;
    if (!zc_cache_get(&key, out)) {
        out->len = 0;
        status = zc_rtc_compile(&rtc, &p->kernels[kernel], p->sources, p->nsources, arch, out, NULL,
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
    return any ? ZC_OK : zc_fail(diag, ZC_ERR_FORMAT, name, "its machine code has no entry point");
}

static zc_status load_kernel(zc_image *m, uint32_t i, zc_diag *diag)
{
    const zc_pkernel *source = &m->program->kernels[i];
    zc_image_kernel *k = &m->kernels[i];
    for (size_t f = 0; f < ZC_COUNTOF(families); f++)
        if (strcmp(families[f].name, source->family) == 0) k->launch = families[f].launch;
    if (!k->launch)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, source->name,
                       "this zc has no kernel family " ZC_NAME, source->family);
    const zc_pbinary *b = find_binary(m->program, i, m->device.arch);
    zc_buf built = {0};
    zc_status status = ZC_OK;
    if (!b) {
        status = rebuild(m->program, i, m->device.arch, &built, diag);
        m->rebuilt++;
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
        for (uint32_t n = 0; (s->kernel || view) && n < s->nin; n++) {
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

/* ---- life ---- */

static zc_status fill(zc_image *m, zc_diag *diag)
{
    ZC_TRY(zc_device_enter(&m->device, diag));
    zc_status status = ZC_OK;
    for (uint32_t i = 0; status == ZC_OK && i < m->program->nkernels; i++)
        status = load_kernel(m, i, diag);
    if (status == ZC_OK) status = upload(m, diag);
    zc_device_leave(&m->device);
    return status;
}

zc_status zc_image_create(const zc_program *program, int ordinal, zc_image **out, zc_diag *diag)
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
    m->kernels = zc_calloc(program->nkernels, sizeof *m->kernels);
    m->constants = zc_calloc(program->nvalues, sizeof *m->constants);
    status = m->kernels && m->constants ? fill(m, diag)
                                        : zc_fail_nomem(diag, "device image", program->nvalues);
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
    free(m);
}
