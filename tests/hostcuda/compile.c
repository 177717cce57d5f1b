/* Compiles a kernel for the host: preprocess, find the kernels, compile with a table of them. */
#include "compile.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler.h" /* HC_CXX, HC_CXX_FLAGS, HC_LEVEL, HC_LEVEL_HOPPER, HC_SOURCE_DIR */
#include "kernel_table.h"

extern char **environ;

static const char own_header[] = HC_SOURCE_DIR "/ptx.cuh";

/* ---- Files ---- */

static bool write_text(const char *dir, const char *name, const char *text, size_t n)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0) return false;
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(text, 1, n, f) == n;
    if (f && fclose(f) != 0) ok = false;
    free(path);
    return ok;
}

/* The whole file with a NUL behind it; NULL if it cannot be read. */
static char *read_file(const char *dir, const char *name, size_t *size)
{
    char *path = NULL, *text = NULL;
    struct stat st;
    if (asprintf(&path, "%s/%s", dir, name) < 0) return NULL;
    FILE *f = fopen(path, "rb");
    free(path);
    if (!f) return NULL;
    if (fstat(fileno(f), &st) == 0 && (text = malloc((size_t)st.st_size + 1))) {
        *size = fread(text, 1, (size_t)st.st_size, f);
        text[*size] = '\0';
    }
    fclose(f);
    return text;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static char *temporary_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/zc-hostcuda-XXXXXX", base && *base ? base : "/tmp") < 0) return NULL;
    if (mkdtemp(dir)) return dir;
    free(dir);
    return NULL;
}

/* ---- Cache: ZC_HOSTCUDA_CACHE names a folder ---- */

typedef struct hc_key {
    uint64_t a, b;
} hc_key;

static void mix(hc_key *k, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        k->a = (k->a ^ (unsigned char)text[i]) * 0x100000001b3u;
        k->b = (k->b + (unsigned char)text[i]) * 0x9E3779B97F4A7C15u;
        k->b ^= k->b >> 29;
    }
    k->a = (k->a ^ n) * 0x100000001b3u;
    k->b ^= n;
}

static void mix_text(hc_key *k, const char *text)
{
    mix(k, text, strlen(text));
}

static void mix_file(hc_key *k, const char *name)
{
    size_t n = 0;
    char *text = read_file(HC_SOURCE_DIR, name, &n);
    if (text) mix(k, text, n);
    free(text);
}

/* The headers that have a host version, and that. */
static const struct {
    const char *name, *own;
} own_headers[] = {
    {"zc/ptx.cuh", "ptx.cuh"}, {"zc/hopper.cuh", "hopper.cuh"}, {"zc/wgmma.cuh", "hopper.cuh"}};

/* NULL for the others. */
static const char *own_version(const char *name)
{
    for (size_t i = 0; i < sizeof own_headers / sizeof *own_headers; i++)
        if (strcmp(name, own_headers[i].name) == 0) return own_headers[i].own;
    return NULL;
}

static hc_key key_of(const hc_source *s)
{
    static const char *const flags[] = {HC_CXX, HC_CXX_FLAGS, HC_LEVEL, HC_LEVEL_HOPPER};
    hc_key k = {0xcbf29ce484222325u, 1};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) mix_text(&k, flags[i]);
    mix_file(&k, "ptx.cuh");
    mix_file(&k, "hopper.cuh");
    mix_file(&k, "abi.h");
    mix_text(&k, s->name);
    mix_text(&k, s->text);
    for (int i = 0; i < s->header_count; i++) {
        mix_text(&k, s->headers[i].name);
        if (own_version(s->headers[i].name)) continue;
        mix_text(&k, s->headers[i].text);
    }
    for (int i = 0; i < s->define_count; i++) {
        mix(&k, &s->defines[i].letter, 1);
        mix_text(&k, s->defines[i].text);
    }
    mix(&k, (const char *)&s->arch, sizeof s->arch);
    return k;
}

static void cache_name(hc_key k, char name[48])
{
    snprintf(name, 48, "%016llx%016llx.so", (unsigned long long)k.a, (unsigned long long)k.b);
}

static const char *cache_folder(void)
{
    const char *dir = getenv("ZC_HOSTCUDA_CACHE");
    return dir && *dir ? dir : NULL;
}

static void cache_store(const char *folder, const char *name, const hc_compiled *c)
{
    char temporary[64], *from = NULL, *to = NULL;
    snprintf(temporary, sizeof temporary, "%s.%ld.%p", name, (long)getpid(), (const void *)c);
    mkdir(folder, 0777);
    if (asprintf(&from, "%s/%s", folder, temporary) < 0) return;
    if (asprintf(&to, "%s/%s", folder, name) >= 0) {
        if (!write_text(folder, temporary, c->image, c->size) || rename(from, to) != 0)
            unlink(from);
        free(to);
    }
    free(from);
}

/* ---- The compiler ---- */

#define MAX_ARGS 256

typedef struct hc_command {
    const char *args[MAX_ARGS];
    int count;
    char *owned[HC_MAX_DEFINES + 2];
    int owned_count;
} hc_command;

static void add(hc_command *c, const char *arg)
{
    if (c->count < MAX_ARGS - 1) c->args[c->count++] = arg;
}

static void add_owned(hc_command *c, char *arg)
{
    if (!arg) return;
    c->owned[c->owned_count++] = arg;
    add(c, arg);
}

static void begin_command(hc_command *c)
{
    static const char *const words[] = {HC_CXX, HC_CXX_FLAGS};
    c->count = c->owned_count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add(c, words[i]);
}

static void end_command(hc_command *c)
{
    for (int i = 0; i < c->owned_count; i++) free(c->owned[i]);
    c->args[c->count] = NULL;
}

/* In the folder, with what it says in the file "log". True if it succeeded. */
static bool run(const char *dir, hc_command *c)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    c->args[c->count] = NULL;
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    posix_spawn_file_actions_addchdir_np(&actions, dir);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "log", O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int error = posix_spawnp(&pid, c->args[0], &actions, NULL, (char *const *)c->args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        const char *text = strerror(error);
        write_text(dir, "log", text, strlen(text));
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char *option(char letter, const char *text)
{
    char *arg = NULL;
    return asprintf(&arg, "-%c%s", letter, text) < 0 ? NULL : arg;
}

static bool preprocess(const char *dir, const hc_source *s)
{
    hc_command c;
    char arch[16];
    snprintf(arch, sizeof arch, "%d0", s->arch);
    begin_command(&c);
    add_owned(&c, option('D', "__CUDACC_RTC__=1"));
    char *define = NULL;
    if (asprintf(&define, "-D__CUDA_ARCH__=%s", arch) >= 0) add_owned(&c, define);
    for (int i = 0; i < s->define_count; i++)
        add_owned(&c, option(s->defines[i].letter, s->defines[i].text));
    const char *const rest[] = {"-I.", "-include", own_header, "-E", "main.cpp", "-o", "main.ii"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) add(&c, rest[i]);
    bool ok = run(dir, &c);
    end_command(&c);
    return ok;
}

static bool build(const char *dir, bool hopper)
{
    /* No -lc: what it calls of libc is found in the process, and to read that takes the linker
     * longer than all else. */
    static const char *const rest[] = {
        "-x",   "c++-cpp-output",      "table.ii", "-shared", "-o", "main.so", "-x",
        "none", "-Wl,--build-id=none", "-lm",      "-lgcc"};
    hc_command c;
    begin_command(&c);
    add(&c, hopper ? HC_LEVEL_HOPPER : HC_LEVEL);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) add(&c, rest[i]);
    bool ok = run(dir, &c);
    end_command(&c);
    return ok;
}

/* ---- Sources ---- */

static bool is_plain_name(const char *name)
{
    return *name && *name != '/' && !strstr(name, "..");
}

/* Everything inside an unnamed namespace: what is unused goes, and no variable of shared memory is
 * one that the linker would merge. */
static bool write_main(const char *dir, const hc_source *s)
{
    char *text = NULL, *name = strdup(s->name);
    if (!name) return false;
    for (char *p = name; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ') *p = '_';
    int n = asprintf(&text, "namespace {\n#line 1 \"%s\"\n%s\n}\n", name, s->text);
    bool ok = n >= 0 && write_text(dir, "main.cpp", text, (size_t)n);
    if (n >= 0) free(text);
    free(name);
    return ok;
}

static bool write_sources(const char *dir, const hc_source *s)
{
    for (int i = 0; i < s->header_count; i++) {
        const hc_header *h = &s->headers[i];
        const char *own = own_version(h->name);
        char include[sizeof HC_SOURCE_DIR + 32];
        if (own) snprintf(include, sizeof include, "#include \"%s/%s\"\n", HC_SOURCE_DIR, own);
        const char *text = own ? include : h->text;
        if (!is_plain_name(h->name) || !write_text(dir, h->name, text, strlen(text))) return false;
    }
    return write_main(dir, s);
}

/* What is preprocessed, with a table of its kernels behind it. *hopper: it uses Hopper's copies and
 * products. */
static bool add_table(const char *dir, bool *hopper)
{
    size_t n = 0;
    char *text = read_file(dir, "main.ii", &n);
    char *table = text ? hc_kernel_table(text) : NULL;
    bool ok = table != NULL;
    *hopper = text && strstr(text, "\"" HC_SOURCE_DIR "/hopper.cuh\"");
    if (ok) {
        char *all = NULL;
        int size = asprintf(&all, "%s\n%s", text, table);
        ok = size >= 0 && write_text(dir, "table.ii", all, (size_t)size);
        if (size >= 0) free(all);
    }
    free(table);
    free(text);
    return ok;
}

static hc_result compile_in(const char *dir, const hc_source *s, hc_compiled *out)
{
    size_t n = 0;
    if (!write_sources(dir, s)) return HC_NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
    bool hopper;
    bool ok = preprocess(dir, s) && add_table(dir, &hopper) && build(dir, hopper);
    out->log = read_file(dir, "log", &n);
    if (!ok) return HC_NVRTC_ERROR_COMPILATION;
    out->image = read_file(dir, "main.so", &out->size);
    return out->image ? HC_NVRTC_SUCCESS : HC_NVRTC_ERROR_INTERNAL_ERROR;
}

hc_result hc_compile(const hc_source *s, hc_compiled *out)
{
    const char *folder = cache_folder();
    char name[48];
    if (folder) {
        cache_name(key_of(s), name);
        out->image = read_file(folder, name, &out->size);
        if (out->image) return HC_NVRTC_SUCCESS;
    }
    char *dir = temporary_folder();
    if (!dir) return HC_NVRTC_ERROR_INTERNAL_ERROR;
    hc_result r = compile_in(dir, s, out);
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
    if (r == HC_NVRTC_SUCCESS && folder) cache_store(folder, name, out);
    return r;
}
