/* The lock, the registry of everything that lives, and fault injection. */
#include "state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
hc_device_state hc_gpu;

void hc_message(const char *format, ...)
{
    va_list args;
    fputs("hostcuda: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ---- Registry: sorted by address ---- */

static struct {
    hc_range *items;
    size_t count, capacity;
} live;

/* The first range that begins after p. */
static size_t upper(uintptr_t p)
{
    size_t low = 0, high = live.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (live.items[mid].begin <= p)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool hc_register(hc_kind kind, const void *p, size_t size)
{
    if (live.count == live.capacity) {
        size_t capacity = live.capacity ? live.capacity * 2 : 64;
        hc_range *items = realloc(live.items, capacity * sizeof *items);
        if (!items) return false;
        live.items = items;
        live.capacity = capacity;
    }
    size_t at = upper((uintptr_t)p);
    memmove(live.items + at + 1, live.items + at, (live.count - at) * sizeof *live.items);
    live.items[at] = (hc_range){(uintptr_t)p, size, kind};
    live.count++;
    return true;
}

void hc_unregister(const void *p)
{
    size_t at = upper((uintptr_t)p);
    if (at == 0 || live.items[at - 1].begin != (uintptr_t)p) return;
    memmove(live.items + at - 1, live.items + at, (live.count - at) * sizeof *live.items);
    live.count--;
}

const hc_range *hc_lookup(uintptr_t p)
{
    size_t at = upper(p);
    if (at == 0) return NULL;
    const hc_range *r = &live.items[at - 1];
    return p - r->begin < r->size || p == r->begin ? r : NULL;
}

bool hc_is(hc_kind kind, const void *p)
{
    const hc_range *r = p ? hc_lookup((uintptr_t)p) : NULL;
    return r && r->kind == kind && r->begin == (uintptr_t)p;
}

void *hc_new(hc_kind kind, size_t size)
{
    void *p = calloc(1, size);
    if (p && !hc_register(kind, p, size)) {
        free(p);
        p = NULL;
    }
    return p;
}

void hc_delete(void *p)
{
    hc_unregister(p);
    free(p);
}

bool hc_on_device(hc_ptr p, size_t n)
{
    const hc_range *r = hc_lookup((uintptr_t)p);
    return r && r->kind == HC_DEVICE_MEMORY && n <= r->size - ((uintptr_t)p - r->begin);
}

void hc_for_each(hc_kind kind, void (*f)(void *p, size_t size))
{
    for (size_t i = live.count; i > 0; i--) {
        if (i > live.count) continue; /* f removed some */
        hc_range r = live.items[i - 1];
        if (r.kind == kind) f((void *)r.begin, r.size);
    }
}

unsigned hc_count(hc_kind kind)
{
    unsigned n = 0;
    for (size_t i = 0; i < live.count; i++) n += live.items[i].kind == kind;
    return n;
}

void hc_registry_clear(void)
{
    free(live.items);
    memset(&live, 0, sizeof live);
}

/* ---- Fault injection and trace ---- */

#define MAX_FAULTS 16

/* ZC_HOSTCUDA_FAIL: name:call:code, comma between; name "*" counts every driver call, and call 0 is
 * every one. */
typedef struct hc_fault {
    char name[48];
    unsigned long at, seen;
    hc_result code;
} hc_fault;

static struct {
    bool read;
    hc_fault faults[MAX_FAULTS];
    unsigned fault_count;
    unsigned long calls;
    char failed[48];
    FILE *trace;
} settings;

static size_t env_number(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void read_faults(const char *text)
{
    while (text && *text && settings.fault_count < MAX_FAULTS) {
        hc_fault f = {0};
        unsigned code = 0;
        if (sscanf(text, "%47[^:]:%lu:%u", f.name, &f.at, &code) != 3) {
            hc_message("ZC_HOSTCUDA_FAIL is not name:call:code: %s", text);
            return;
        }
        f.code = code;
        settings.faults[settings.fault_count++] = f;
        text = strchr(text, ',');
        if (text) text++;
    }
}

static void read_settings(void)
{
    if (settings.read) return;
    settings.read = true;
    settings.fault_count = 0;
    read_faults(getenv("ZC_HOSTCUDA_FAIL"));
    const char *trace = getenv("ZC_HOSTCUDA_TRACE");
    settings.trace = trace && *trace ? fopen(trace, "a") : NULL;
    if (settings.trace) setvbuf(settings.trace, NULL, _IOLBF, 0);
    hc_gpu.count = (int)env_number("ZC_HOSTCUDA_DEVICES", 1);
    hc_gpu.cc = (unsigned)env_number("ZC_HOSTCUDA_CC", 90);
    hc_gpu.memory = env_number("ZC_HOSTCUDA_MEMORY", (size_t)16 << 30);
    hc_gpu.shuffle = (unsigned)env_number("ZC_HOSTCUDA_SHUFFLE", 0);
}

hc_result hc_break(hc_result code)
{
    if (hc_gpu.broken == HC_CUDA_SUCCESS) hc_gpu.broken = code;
    return code;
}

static bool counts_for_all(const char *name)
{
    return strncmp(name, "cu", 2) == 0 && strncmp(name, "cuGetError", 10) != 0;
}

static bool counts_for(const hc_fault *f, const char *name)
{
    return strcmp(f->name, "*") == 0 ? counts_for_all(name) : strcmp(f->name, name) == 0;
}

static hc_result injected(const char *name)
{
    hc_result code = HC_CUDA_SUCCESS;
    settings.calls += counts_for_all(name);
    for (unsigned i = 0; i < settings.fault_count; i++) {
        hc_fault *f = &settings.faults[i];
        if (!counts_for(f, name) || (f->at && ++f->seen != f->at)) continue;
        code = f->code;
        snprintf(settings.failed, sizeof settings.failed, "%s", name);
        if (code == HC_CUDA_ERROR_ILLEGAL_ADDRESS || code == HC_CUDA_ERROR_LAUNCH_FAILED ||
            code == HC_CUDA_ERROR_UNKNOWN)
            hc_break(code);
    }
    return code;
}

static hc_result check_context(void)
{
    if (hc_gpu.broken != HC_CUDA_SUCCESS) return hc_gpu.broken;
    if (!hc_current_context()) return HC_CUDA_ERROR_INVALID_CONTEXT;
    return hc_gpu.ctx_refs ? HC_CUDA_SUCCESS : HC_CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

hc_result hc_enter(const char *name, unsigned needs)
{
    pthread_mutex_lock(&lock);
    read_settings();
    hc_result r = injected(name);
    if (r != HC_CUDA_SUCCESS) return r;
    if (needs & (HC_NEEDS_INIT | HC_NEEDS_CONTEXT) && !hc_gpu.initialised)
        return HC_CUDA_ERROR_NOT_INITIALIZED;
    if (needs & HC_NEEDS_CONTEXT) r = check_context();
    if (r == HC_CUDA_SUCCESS && needs & HC_UNSAFE) r = hc_capture_check_unsafe();
    return r;
}

void hc_pause(void)
{
    pthread_mutex_unlock(&lock);
}

void hc_resume(void)
{
    pthread_mutex_lock(&lock);
}

hc_result hc_leave(const char *name, hc_result result)
{
    if (settings.trace) fprintf(settings.trace, "%s %u\n", name, result);
    pthread_mutex_unlock(&lock);
    return result;
}

static void free_memory(void *p, size_t size)
{
    (void)size;
    hc_unregister(p);
    free(p);
}

void zc_hostcuda_counts(hc_counts *out)
{
    pthread_mutex_lock(&lock);
    *out = (hc_counts){.calls = settings.calls, .live = live.count, .device_bytes = hc_gpu.used};
    memcpy(out->failed, settings.failed, sizeof out->failed);
    pthread_mutex_unlock(&lock);
}

void zc_hostcuda_reset(void)
{
    pthread_mutex_lock(&lock);
    hc_graphs_clear();
    hc_streams_clear();
    hc_modules_clear();
    hc_for_each(HC_DEVICE_MEMORY, free_memory);
    hc_for_each(HC_HOST_MEMORY, free_memory);
    hc_registry_clear();
    hc_threads_clear();
    if (settings.trace) fclose(settings.trace);
    memset(&settings, 0, sizeof settings);
    memset(&hc_gpu, 0, sizeof hc_gpu);
    pthread_mutex_unlock(&lock);
}
