/* The device's ptx.cuh through the real NVRTC, where there is one: every function must assemble for
 * the oldest, a middle and the newest architecture. */
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

/* 0 when it assembles. */
static int check(const char *source, const char *header, const char *arch)
{
    const char *options[] = {arch, "-std=c++17"};
    const char *name = "zc/ptx.cuh";
    void *program;
    size_t n = 0, size = 0;
    if (nvrtc.create(&program, source, "every.cu", 1, &header, &name) != 0) return 1;
    int r = nvrtc.compile(program, 2, options);
    char *log = nvrtc.log_size(program, &n) == 0 ? calloc(1, n + 1) : NULL;
    if (log && nvrtc.log(program, log) == 0 && log[0]) printf("%s\n", log);
    free(log);
    if (r == 0 && (nvrtc.cubin_size(program, &size) != 0 || size == 0)) r = 1;
    printf("%s: %s, cubin of %zu bytes\n", arch, r == 0 ? "ok" : "FAILED", size);
    nvrtc.destroy(&program);
    return r;
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
    char *source = read_file(HC_TEST_DIR "/every.cu");
    char *header = read_file(ZC_TEMPLATES "/zc/ptx.cuh");
    int failed = !source || !header;
    static const char *const archs[] = {"-arch=sm_80", "-arch=sm_90a", "-arch=sm_120"};
    for (int i = 0; !failed && i < 3; i++) failed = check(source, header, archs[i]);
    free(source);
    free(header);
    return failed ? 1 : 0;
}
