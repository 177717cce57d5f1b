#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "cuda/ptx_check.h"

enum { MINIMAL_SINCE = 13 }; /* the oldest NVRTC that was seen to know the option */

static const char *const library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                            "/usr/local/cuda/lib64/libnvrtc.so"};

static const struct {
    size_t offset;
    const char *symbol;
} symbols[] = {
#define RTC(result, field, symbol, params) {offsetof(zc_rtc, field), symbol},
#include "cuda/nvrtc.def"
#undef RTC
};

static zc_status bind(zc_rtc *rtc, const char *path, zc_diag *diag)
{
    for (size_t i = 0; i < ZC_COUNTOF(symbols); i++) {
        void *at = dlsym(rtc->library, symbols[i].symbol);
        if (!at)
            return zc_fail(diag, ZC_ERR_DEVICE, path, "NVRTC is too old: it has no %s",
                           symbols[i].symbol);
        memcpy((char *)rtc + symbols[i].offset, &at, sizeof at);
    }
    if (rtc->version(&rtc->major, &rtc->minor) != 0)
        return zc_fail(diag, ZC_ERR_DEVICE, path, "NVRTC does not tell its version");
    return ZC_OK;
}

zc_status zc_rtc_open(zc_rtc *rtc, zc_diag *diag)
{
    *rtc = (zc_rtc){0};
    size_t i = 0;
    for (; i < ZC_COUNTOF(library_names) && !rtc->library; i++)
        rtc->library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!rtc->library)
        return zc_fail(diag, ZC_ERR_DEVICE, "nvrtc",
                       "NVRTC, CUDA's run-time compiler, is not installed (tried %s, %s, %s, %s)",
                       library_names[0], library_names[1], library_names[2], library_names[3]);
    static atomic_bool closes;
    zc_status status = zc_gate_close_at_exit(&closes) == ZC_OK
                           ? bind(rtc, library_names[i - 1], diag)
                           : zc_fail_nomem(diag, "nvrtc", 0);
    if (status != ZC_OK) zc_rtc_close(rtc);
    return status;
}

void zc_rtc_close(zc_rtc *rtc)
{
    if (rtc->library) dlclose(rtc->library);
    *rtc = (zc_rtc){0};
}

bool zc_rtc_arch_alone(int arch)
{
    return arch == 90 || arch == 100;
}

const char *zc_rtc_arch(int arch, char *buf, size_t n)
{
    snprintf(buf, n, "sm_%d%s", arch, zc_rtc_arch_alone(arch) ? "a" : "");
    return buf;
}

static bool is_user(const zc_pkernel *kernel)
{
    return strcmp(kernel->family, "user") == 0;
}

int zc_rtc_options(const zc_rtc *rtc, const zc_pkernel *kernel, int arch, char arch_option[64],
                   const char *options[ZC_RTC_OPTIONS])
{
    int n = 0;
    char name[32];
    snprintf(arch_option, 64, "--gpu-architecture=%s", zc_rtc_arch(arch, name, sizeof name));
    options[n++] = "--std=c++17";
    options[n++] = "--disable-warnings";
    options[n++] = "--ptxas-options=-v";
    options[n++] = arch_option;
    /* zc's kernels read nothing of CUDA's own headers, which NVRTC reads first otherwise. */
    if (rtc->major >= MINIMAL_SINCE && !is_user(kernel)) options[n++] = "--minimal";
    return n;
}

static void append_log(const zc_rtc *rtc, zc_rtc_program program, zc_buf *out)
{
    size_t size = 0;
    if (rtc->log_size(program, &size) != 0 || size <= 1) return;
    size_t at = zc_buf_grow(out, size);
    if (!out->failed && rtc->log(program, out->data + at) == 0)
        out->len = at + strlen(out->data + at);
}

/* The largest number of bytes that the log names with this unit. */
static long most_bytes(const char *log, const char *unit)
{
    long most = 0;
    for (const char *at = log; (at = strstr(at, unit)) != NULL; at++) {
        const char *digits = at;
        while (digits > log && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        long n = strtol(digits, NULL, 10);
        if (n > most) most = n;
    }
    return most;
}

bool zc_rtc_remarks(const char *log, int most, char *why, size_t n)
{
    if (strstr(log, "(C75")) {
        snprintf(why, n, "the compiler serialises products of warpgroups");
        return true;
    }
    long frame = most_bytes(log, " bytes stack frame"),
         stores = most_bytes(log, " bytes spill stores"),
         loads = most_bytes(log, " bytes spill loads");
    if (frame <= most && stores <= most && loads <= most) return false;
    snprintf(why, n, "%ld bytes of stack, %ld of spilled registers", frame, stores);
    return true;
}

static zc_status take_cubin(const zc_rtc *rtc, zc_rtc_program program, const char *name,
                            zc_buf *out, zc_diag *diag)
{
    size_t size = 0;
    int code = rtc->cubin_size(program, &size);
    if (code)
        return zc_fail(diag, ZC_ERR_DEVICE, name, "NVRTC gives no machine code: %s",
                       rtc->error_string(code));
    size_t at = zc_buf_grow(out, size);
    if (out->failed) return zc_fail_nomem(diag, "machine code", size);
    code = rtc->cubin(program, out->data + at);
    return code ? zc_fail(diag, ZC_ERR_DEVICE, name, "NVRTC gives no machine code: %s",
                          rtc->error_string(code))
                : ZC_OK;
}

/* Chips before 90 start a kernel after the one in front of it: nothing to wait for. */
static zc_status check_waits(const zc_rtc *rtc, zc_rtc_program program, const char *name, int arch,
                             zc_diag *diag)
{
    size_t size = 0;
    char entry[160];
    zc_buf text = {0};
    if (arch < 90) return ZC_OK;
    int code = rtc->ptx_size(program, &size);
    if (code)
        return zc_fail(diag, ZC_ERR_DEVICE, name, "NVRTC gives no PTX: %s",
                       rtc->error_string(code));
    zc_buf_grow(&text, size + 1);
    if (text.failed) return zc_fail_nomem(diag, "PTX", size);
    code = rtc->ptx(program, text.data);
    zc_status status = ZC_OK;
    if (code)
        status =
            zc_fail(diag, ZC_ERR_DEVICE, name, "NVRTC gives no PTX: %s", rtc->error_string(code));
    else if (!zc_ptx_waits(text.data, entry, sizeof entry))
        status = zc_fail(diag, ZC_ERR_INTERNAL, name,
                         "entry %s touches memory before it waits for the kernel in front of it: "
                         "begin it with zc_begin()",
                         entry);
    zc_buf_fini(&text);
    return status;
}

bool zc_rtc_serves(const zc_psource *source, const zc_pkernel *kernel)
{
    bool is_user = strncmp(source->name, ZC_USER_SOURCE, strlen(ZC_USER_SOURCE)) == 0;
    return !is_user || strstr(kernel->spec, source->name);
}

/* A template that does not compile is zc's own mistake, and a user's kernel theirs; the rest is the
 * installation's. */
static zc_status failure(const zc_pkernel *kernel, int code)
{
    enum { OUT_OF_MEMORY = 1, COMPILATION = 6 };
    if (code == OUT_OF_MEMORY) return ZC_ERR_NOMEM;
    if (code != COMPILATION) return ZC_ERR_DEVICE;
    return is_user(kernel) ? ZC_ERR_FORMAT : ZC_ERR_INTERNAL;
}

/* While it compiles, NVRTC has handlers of its own for these signals, and puts the old ones back
 * without their flags and masks. The first of the compiles at one time keeps what the program set,
 * the last restores it. Handlers are the process's, and so is what is kept of them. */
static const int taken_signals[] = {SIGINT, SIGTERM, SIGXFSZ};
static struct {
    pthread_mutex_t lock;
    int compiles;
    struct sigaction actions[ZC_COUNTOF(taken_signals)];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put_back(void)
{
    for (size_t i = 0; i < ZC_COUNTOF(taken_signals); i++)
        sigaction(taken_signals[i], &kept.actions[i], NULL);
}

static void before_fork(void)
{
    pthread_mutex_lock(&kept.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&kept.lock);
}

/* A child has none of the threads that compile, but their handlers. */
static void in_child(void)
{
    if (kept.compiles) put_back();
    kept.compiles = 0;
    pthread_mutex_init(&kept.lock, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void handle_fork(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

static void keep_signals(void)
{
    pthread_once(&once, handle_fork);
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; kept.compiles == 0 && i < ZC_COUNTOF(taken_signals); i++)
        sigaction(taken_signals[i], NULL, &kept.actions[i]);
    kept.compiles++;
    pthread_mutex_unlock(&kept.lock);
}

static void restore_signals(void)
{
    pthread_mutex_lock(&kept.lock);
    if (--kept.compiles == 0) put_back();
    pthread_mutex_unlock(&kept.lock);
}

/* NVRTC's handlers would end the compilation, or the process, from within: the signals wait until
 * it is done. */
static int compile_apart(const zc_rtc *rtc, zc_rtc_program program, int n,
                         const char *const *options)
{
    sigset_t taken, before;
    sigemptyset(&taken);
    for (size_t i = 0; i < ZC_COUNTOF(taken_signals); i++) sigaddset(&taken, taken_signals[i]);
    pthread_sigmask(SIG_BLOCK, &taken, &before);
    keep_signals();
    const int code = rtc->compile(program, n, options);
    restore_signals();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* A compiler's messages in one line of ours. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *at = text; at && *at; at++) {
        bool is_space = *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t';
        if (is_space && (to == text || to[-1] == ' ')) continue;
        *to++ = is_space ? ' ' : *at;
    }
    while (to && to > text && to[-1] == ' ') to--;
    if (to) *to = 0;
}

static zc_status compile(const zc_rtc *rtc, zc_rtc_program program, const zc_pkernel *kernel,
                         int arch, zc_buf *out, zc_buf *log, zc_diag *diag)
{
    const char *name = kernel->name;
    char arch_option[64];
    const char *options[ZC_RTC_OPTIONS];
    int n = zc_rtc_options(rtc, kernel, arch, arch_option, options);
    int code = compile_apart(rtc, program, n, options);
    zc_buf text = {0};
    append_log(rtc, program, &text);
    zc_buf_append(&text, "", 1);
    if (code) join_lines(text.data);
    zc_status status = code ? zc_fail(diag, failure(kernel, code), name, "NVRTC: %s: %.1500s",
                                      rtc->error_string(code), text.data ? text.data : "")
                            : take_cubin(rtc, program, name, out, diag);
    if (status == ZC_OK) status = check_waits(rtc, program, name, arch, diag);
    if (log && text.data) zc_buf_puts(log, text.data);
    zc_buf_fini(&text);
    return status;
}

/* "spec.h" and the sources are handed over as headers; the source proper includes the template. */
zc_status zc_rtc_compile(const zc_rtc *rtc, const zc_pkernel *kernel, const zc_psource *sources,
                         uint32_t nsources, int arch, zc_buf *out, zc_buf *log, zc_diag *diag)
{
    enum { MOST = 256 };
    const char *names[MOST], *texts[MOST], *source = NULL;
    int n = 0;
    if (nsources >= MOST)
        return zc_fail(diag, ZC_ERR_LIMIT, kernel->name,
                       "too many sources (got %u, need at most %d)", nsources, MOST - 1);
    names[n] = "spec.h";
    texts[n++] = kernel->spec;
    for (uint32_t i = 0; i < nsources; i++) {
        if (!zc_rtc_serves(&sources[i], kernel)) continue;
        if (strcmp(sources[i].name, kernel->template_name) == 0) source = sources[i].text;
        names[n] = sources[i].name;
        texts[n++] = sources[i].text;
    }
    if (!source)
        return zc_fail(diag, ZC_ERR_INTERNAL, kernel->name,
                       "the source of template " ZC_NAME " is missing", kernel->template_name);
    if (zc_gate_enter(ZC_GATE_CUDA) != ZC_OK)
        return zc_fail(diag, ZC_ERR_CANCELLED, kernel->name, "the process is exiting");
    zc_rtc_program program = NULL;
    int code = rtc->create(&program, source, kernel->template_name, n, texts, names);
    zc_status status = code ? zc_fail(diag, failure(kernel, code), kernel->name, "NVRTC: %s",
                                      rtc->error_string(code))
                            : compile(rtc, program, kernel, arch, out, log, diag);
    if (!code) rtc->destroy(&program);
    zc_gate_leave(ZC_GATE_CUDA);
    return status;
}
