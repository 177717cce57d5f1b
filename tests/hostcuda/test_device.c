/* The device's ptx.cuh and hopper.cuh through the real NVRTC, where there is one: every function
 * must assemble, of ptx.cuh for the oldest, a middle and the newest architecture. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIP 77

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t n = f && text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f) fclose(f);
    if (n) return text;
    free(text);
    return NULL;
}

static void *open_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "/usr/local/cuda/lib64/libnvrtc.so.12"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static struct {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*cubin_size)(void *, size_t *);
    int (*destroy)(void **);
} nvrtc;

static int find(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

#define HEADERS 5

static const char *const header_names[HEADERS] = {"zc/ptx.cuh", "zc/hopper.cuh", "zc/wgmma.cuh",
                                                  "zc/wgmma_tile.cuh", "abi/tensor_map.h"};
static char *headers[HEADERS];

/* 0 when it assembles. */
static int check(const char *source, const char *arch)
{
    const char *options[] = {arch, "-std=c++17"};
    void *program;
    size_t n = 0, size = 0;
    if (nvrtc.create(&program, source, "every.cu", HEADERS, (const char *const *)headers,
                     header_names) != 0)
        return 1;
    int r = nvrtc.compile(program, 2, options);
    char *log = nvrtc.log_size(program, &n) == 0 ? calloc(1, n + 1) : NULL;
    if (log && nvrtc.log(program, log) == 0 && log[0]) printf("%s\n", log);
    free(log);
    if (r == 0 && (nvrtc.cubin_size(program, &size) != 0 || size == 0)) r = 1;
    printf("%s: %s, cubin of %zu bytes\n", arch, r == 0 ? "ok" : "FAILED", size);
    nvrtc.destroy(&program);
    return r;
}

/* How many do not assemble. */
static int check_all(void)
{
    static const struct {
        const char *path, *arch;
    } cases[] = {{HC_TEST_DIR "/every.cu", "-arch=sm_80"},
                 {HC_TEST_DIR "/every.cu", "-arch=sm_90a"},
                 {HC_TEST_DIR "/every.cu", "-arch=sm_120"},
                 {HC_TEST_DIR "/every_hopper.cu", "-arch=sm_90a"}};
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *source = read_file(cases[i].path);
        failed += !source || check(source, cases[i].arch);
        free(source);
    }
    return failed;
}

int main(void)
{
    void *library = open_nvrtc();
    if (!library) {
        printf("skipped: no NVRTC\n");
        return SKIP;
    }
    if (!find(library, "nvrtcCreateProgram", &nvrtc.create) ||
        !find(library, "nvrtcCompileProgram", &nvrtc.compile) ||
        !find(library, "nvrtcGetProgramLogSize", &nvrtc.log_size) ||
        !find(library, "nvrtcGetProgramLog", &nvrtc.log) ||
        !find(library, "nvrtcGetCUBINSize", &nvrtc.cubin_size) ||
        !find(library, "nvrtcDestroyProgram", &nvrtc.destroy))
        return 1;
    int failed = 0;
    for (int i = 0; i < HEADERS; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", ZC_TEMPLATES, header_names[i]);
        headers[i] = read_file(path);
        failed += !headers[i];
    }
    if (!failed) failed = check_all();
    for (int i = 0; i < HEADERS; i++) free(headers[i]);
    return failed ? 1 : 0;
}
