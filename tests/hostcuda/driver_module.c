/* Modules: shared objects made by the fake NVRTC; functions and their launch. */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_run.h"
#include "state.h"

#define EM_CUDA 190

/* The bytes of an ELF file: its section headers stand last. 0 if it is none of this machine. */
static size_t image_size(const unsigned char *image)
{
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    return h.e_type == ET_DYN ? h.e_shoff + (size_t)h.e_shnum * h.e_shentsize : 0;
}

static bool is_device_code(const unsigned char *image)
{
    Elf64_Ehdr h;
    if (memcmp(image, ELFMAG, SELFMAG) != 0) return false;
    memcpy(&h, image, sizeof h);
    return h.e_machine == EM_CUDA;
}

/* dlopen wants a file. */
static char *write_file(const void *bytes, size_t n)
{
    const char *dir = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/zc-hostcuda-XXXXXX", dir && *dir ? dir : "/tmp") < 0) return NULL;
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    bool ok = f && fwrite(bytes, 1, n, f) == n;
    if (f && fclose(f) != 0) ok = false;
    if (ok) return path;
    if (fd >= 0) unlink(path);
    free(path);
    return NULL;
}

static void unload(struct hc_module *m)
{
    for (unsigned i = 0; m->functions && i < m->info->kernel_count; i++)
        if (m->functions[i]) hc_delete(m->functions[i]);
    free(m->functions);
    if (m->library) dlclose(m->library);
    if (m->path) unlink(m->path);
    free(m->path);
    hc_delete(m);
}

/* The machine code of one architecture runs on the same major version from its minor version on. */
static bool runs_here(unsigned arch)
{
    return arch / 10 == hc_gpu.cc / 10 && arch % 10 <= hc_gpu.cc % 10;
}

static hc_result bind_module(struct hc_module *m)
{
    zc_host_bind_fn *bind = NULL;
    void *symbol = dlsym(m->library, ZC_HOST_BIND);
    memcpy(&bind, &symbol, sizeof symbol);
    if (!bind) return HC_CUDA_ERROR_INVALID_IMAGE;
    m->info = bind(&hc_kernel_api);
    if (m->info->abi != ZC_HOST_ABI_VERSION) return HC_CUDA_ERROR_INVALID_IMAGE;
    if (!runs_here(m->info->arch)) return HC_CUDA_ERROR_NO_BINARY_FOR_GPU;
    unsigned n = m->info->kernel_count;
    m->functions = calloc(n + 1, sizeof *m->functions);
    if (!m->functions) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < n; i++) {
        struct hc_function *f = hc_new(HC_FUNCTION, sizeof *f);
        if (!f) return HC_CUDA_ERROR_OUT_OF_MEMORY;
        f->module = m;
        f->kernel = &m->info->kernels[i];
        unsigned fixed = hc_static_smem(m), limit = 49152;
        f->max_dynamic = fixed < limit ? limit - fixed : 0;
        m->functions[i] = f;
    }
    return HC_CUDA_SUCCESS;
}

static hc_result load(hc_module_t *module, const void *image)
{
    if (!module || !image) return HC_CUDA_ERROR_INVALID_VALUE;
    if (is_device_code(image)) return HC_CUDA_ERROR_NO_BINARY_FOR_GPU;
    size_t n = image_size(image);
    if (!n) return HC_CUDA_ERROR_INVALID_IMAGE;
    struct hc_module *m = hc_new(HC_MODULE, sizeof *m);
    if (!m) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    m->path = write_file(image, n);
    hc_result r = m->path ? HC_CUDA_SUCCESS : HC_CUDA_ERROR_OPERATING_SYSTEM;
    if (r == HC_CUDA_SUCCESS) {
        m->library = dlopen(m->path, RTLD_NOW | RTLD_LOCAL);
        if (!m->library) hc_message("%s", dlerror());
        r = m->library ? bind_module(m) : HC_CUDA_ERROR_INVALID_IMAGE;
    }
#ifndef HC_SANITIZED /* whose reports read the file */
    if (m->path) unlink(m->path);
    free(m->path);
    m->path = NULL;
#endif
    if (r == HC_CUDA_SUCCESS)
        *module = m;
    else
        unload(m);
    return r;
}

hc_result cuModuleLoadData(hc_module_t *module, const void *image)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, load(module, image));
}

static hc_result module_unload(hc_module_t m)
{
    if (!hc_is(HC_MODULE, m)) return HC_CUDA_ERROR_INVALID_HANDLE;
    unload(m);
    return HC_CUDA_SUCCESS;
}

hc_result cuModuleUnload(hc_module_t module)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, module_unload(module));
}

static hc_result get_function(hc_function_t *function, hc_module_t m, const char *name)
{
    if (!function || !name) return HC_CUDA_ERROR_INVALID_VALUE;
    if (!hc_is(HC_MODULE, m)) return HC_CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < m->info->kernel_count; i++) {
        if (strcmp(m->info->kernels[i].name, name) != 0) continue;
        *function = m->functions[i];
        return HC_CUDA_SUCCESS;
    }
    return HC_CUDA_ERROR_NOT_FOUND;
}

hc_result cuModuleGetFunction(hc_function_t *function, hc_module_t module, const char *name)
{
    HC_CALL(HC_NEEDS_CONTEXT, get_function(function, module, name));
}

/* ---- Functions ---- */

/* The module's shared variables are one section: only with one kernel are they that kernel's. */
unsigned hc_static_smem(const struct hc_module *m)
{
    if (m->info->kernel_count != 1) return 0;
    return (unsigned)(m->info->shared_end - m->info->shared_begin);
}

static hc_result set_attribute(hc_function_t f, unsigned attribute, int value)
{
    if (!hc_is(HC_FUNCTION, f)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (attribute == HC_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return value >= -1 && value <= 100 ? HC_CUDA_SUCCESS : HC_CUDA_ERROR_INVALID_VALUE;
    if (attribute != HC_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (unsigned)value + hc_static_smem(f->module) > hc_smem_optin())
        return HC_CUDA_ERROR_INVALID_VALUE;
    f->max_dynamic = (unsigned)value;
    return HC_CUDA_SUCCESS;
}

hc_result cuFuncSetAttribute(hc_function_t function, unsigned attribute, int value)
{
    HC_CALL(HC_NEEDS_CONTEXT, set_attribute(function, attribute, value));
}

static hc_result get_attribute(int *value, unsigned attribute, hc_function_t f)
{
    if (!hc_is(HC_FUNCTION, f)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!value) return HC_CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case HC_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)f->kernel->max_threads;
        return HC_CUDA_SUCCESS;
    case HC_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)hc_static_smem(f->module);
        return HC_CUDA_SUCCESS;
    case HC_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HC_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 0;
        return HC_CUDA_SUCCESS;
    case HC_CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return HC_CUDA_SUCCESS;
    case HC_CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case HC_CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)f->module->info->arch;
        return HC_CUDA_SUCCESS;
    case HC_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)f->max_dynamic;
        return HC_CUDA_SUCCESS;
    default:
        return HC_CUDA_ERROR_INVALID_VALUE;
    }
}

hc_result cuFuncGetAttribute(int *value, unsigned attribute, hc_function_t function)
{
    HC_CALL(HC_NEEDS_CONTEXT, get_attribute(value, attribute, function));
}

/* ---- Launch ---- */

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned hc_max_resident(const hc_launch *l)
{
    unsigned threads = (l->block.x * l->block.y * l->block.z + 31) / 32 * 32;
    const zc_host_module *m = l->function->module->info;
    unsigned memory = (unsigned)(m->shared_end - m->shared_begin) + l->smem + 1024;
    unsigned blocks = smaller(smaller(2048 / threads, (hc_smem_optin() + 1024) / memory), 32);
    return HC_MULTIPROCESSORS * (blocks ? blocks : 1);
}

/* Blocks of a cluster, up to the 8 that need no consent
 * (cudaFuncAttributeNonPortableClusterSizeAllowed). */
static hc_result check_cluster(const hc_launch *l)
{
    zc_host_dim c = l->cluster, g = l->grid;
    if (!c.x && !c.y && !c.z) return HC_CUDA_SUCCESS;
    if (!c.x || !c.y || !c.z) return HC_CUDA_ERROR_INVALID_VALUE;
    if (hc_gpu.cc < 90) return HC_CUDA_ERROR_NOT_SUPPORTED;
    if (c.x > HC_MAX_CLUSTER || c.y > HC_MAX_CLUSTER || c.z > HC_MAX_CLUSTER ||
        c.x * c.y * c.z > HC_MAX_CLUSTER || g.x % c.x || g.y % c.y || g.z % c.z)
        return HC_CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return HC_CUDA_SUCCESS;
}

hc_result hc_check_launch(const hc_launch *l)
{
    if (!hc_is(HC_FUNCTION, l->function)) return HC_CUDA_ERROR_INVALID_HANDLE;
    zc_host_dim g = l->grid, b = l->block;
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z) return HC_CUDA_ERROR_INVALID_VALUE;
    if (g.x > 2147483647u || g.y > 65535 || g.z > 65535) return HC_CUDA_ERROR_INVALID_VALUE;
    if (b.x > 1024 || b.y > 1024 || b.z > 64) return HC_CUDA_ERROR_INVALID_VALUE;
    if (b.x * b.y * b.z > 1024) return HC_CUDA_ERROR_INVALID_VALUE;
    const zc_host_kernel *k = l->function->kernel;
    if (b.x * b.y * b.z > k->max_threads) return HC_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (l->smem > l->function->max_dynamic) return HC_CUDA_ERROR_INVALID_VALUE;
    if (k->count && !l->params) return HC_CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < k->count; i++)
        if (!l->params[i]) return HC_CUDA_ERROR_INVALID_VALUE;
    return check_cluster(l);
}

static hc_result launch(hc_launch l, hc_stream_t stream, void **extra)
{
    if (extra) return HC_CUDA_ERROR_NOT_SUPPORTED;
    hc_work w = {.type = HC_CU_GRAPH_NODE_TYPE_KERNEL, .launch = l};
    return hc_submit(stream, &w);
}

static hc_result take_attributes(const hc_launch_config *c, hc_launch *l)
{
    if (c->attr_count && !c->attrs) return HC_CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->attr_count; i++) {
        const hc_launch_attribute *a = &c->attrs[i];
        switch (a->id) {
        case HC_CU_LAUNCH_ATTRIBUTE_IGNORE:
        case HC_CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case HC_CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            break;
        case HC_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            l->cluster = (zc_host_dim){a->value.cluster.x, a->value.cluster.y, a->value.cluster.z};
            break;
        case HC_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            if (hc_gpu.cc < 90) return HC_CUDA_ERROR_NOT_SUPPORTED;
            l->overlaps = a->value.programmatic != 0;
            break;
        default:
            return HC_CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return HC_CUDA_SUCCESS;
}

static hc_result take_config(const hc_launch_config *c, hc_function_t f, void **params,
                             hc_launch *out)
{
    if (!c) return HC_CUDA_ERROR_INVALID_VALUE;
    *out = (hc_launch){.function = f,
                       .grid = {c->grid_x, c->grid_y, c->grid_z},
                       .block = {c->block_x, c->block_y, c->block_z},
                       .smem = c->smem,
                       .params = params};
    return take_attributes(c, out);
}

static hc_result launch_ex(const hc_launch_config *c, hc_function_t f, void **params, void **extra)
{
    hc_launch l;
    hc_result r = take_config(c, f, params, &l);
    if (r != HC_CUDA_SUCCESS) return r;
    return launch(l, c->stream, extra);
}

static hc_result most_clusters(int *count, hc_function_t f, const hc_launch_config *c)
{
    hc_launch l;
    hc_result r = take_config(c, f, NULL, &l);
    if (r != HC_CUDA_SUCCESS) return r;
    if (!count || !hc_is(HC_FUNCTION, f) || !l.cluster.x) return HC_CUDA_ERROR_INVALID_VALUE;
    r = check_cluster(&l);
    unsigned blocks = hc_max_resident(&l), of_one = l.cluster.x * l.cluster.y * l.cluster.z;
    *count = (int)(blocks > of_one ? blocks / of_one : 1);
    return r;
}

hc_result cuOccupancyMaxActiveClusters(int *count, hc_function_t f, const hc_launch_config *config)
{
    HC_CALL(HC_NEEDS_CONTEXT, most_clusters(count, f, config));
}

hc_result cuLaunchKernelEx(const hc_launch_config *config, hc_function_t f, void **params,
                           void **extra)
{
    HC_CALL(HC_NEEDS_CONTEXT, launch_ex(config, f, params, extra));
}

hc_result cuLaunchKernel(hc_function_t f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,
                         hc_stream_t stream, void **params, void **extra)
{
    hc_launch l = {.function = f,
                   .grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .smem = smem,
                   .params = params};
    HC_CALL(HC_NEEDS_CONTEXT, launch(l, stream, extra));
}

static void clear_module(void *p, size_t size)
{
    (void)size;
    unload(p);
}

void hc_modules_clear(void)
{
    hc_for_each(HC_MODULE, clear_module);
}
