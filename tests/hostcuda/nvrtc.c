/* The fake NVRTC: programs, options, logs. compile.c runs the host's compiler. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile.h"
#include "state.h"

struct hc_program {
    hc_source source;
    hc_compiled result;
};

hc_result nvrtcVersion(int *major, int *minor)
{
    if (!major || !minor) return HC_NVRTC_ERROR_INVALID_INPUT;
    *major = 13;
    *minor = 0;
    return HC_NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(hc_result result)
{
    switch (result) {
#define X(name, value)                                                                             \
    case value:                                                                                    \
        return #name;
        HC_NVRTC_RESULTS(X)
#undef X
    default:
        return "NVRTC_ERROR unknown";
    }
}

static const int archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

hc_result nvrtcGetNumSupportedArchs(int *count)
{
    if (!count) return HC_NVRTC_ERROR_INVALID_INPUT;
    *count = (int)(sizeof archs / sizeof *archs);
    return HC_NVRTC_SUCCESS;
}

hc_result nvrtcGetSupportedArchs(int *out)
{
    if (!out) return HC_NVRTC_ERROR_INVALID_INPUT;
    memcpy(out, archs, sizeof archs);
    return HC_NVRTC_SUCCESS;
}

static bool is_supported(int arch)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (archs[i] == arch) return true;
    return false;
}

/* ---- Programs ---- */

static void delete_program(struct hc_program *p)
{
    for (int i = 0; i < p->source.header_count; i++) {
        free(p->source.headers[i].name);
        free(p->source.headers[i].text);
    }
    free(p->source.headers);
    free(p->source.name);
    free(p->source.text);
    free(p->result.log);
    free(p->result.image);
    hc_delete(p);
}

static hc_result create(hc_program_t *program, const char *source, const char *name, int n,
                        const char *const *headers, const char *const *names)
{
    if (!program || !source || n < 0 || (n && (!headers || !names)))
        return HC_NVRTC_ERROR_INVALID_INPUT;
    struct hc_program *p = hc_new(HC_PROGRAM, sizeof *p);
    if (!p) return HC_NVRTC_ERROR_OUT_OF_MEMORY;
    p->source.text = strdup(source);
    p->source.name = strdup(name ? name : "default_program");
    p->source.headers = calloc((size_t)n + 1, sizeof *p->source.headers);
    bool ok = p->source.text && p->source.name && p->source.headers;
    for (int i = 0; ok && i < n; i++) {
        p->source.header_count++;
        p->source.headers[i].name = strdup(names[i]);
        p->source.headers[i].text = strdup(headers[i]);
        ok = p->source.headers[i].name && p->source.headers[i].text;
    }
    if (!ok) {
        delete_program(p);
        return HC_NVRTC_ERROR_OUT_OF_MEMORY;
    }
    *program = p;
    return HC_NVRTC_SUCCESS;
}

/* An option and what it needs, in one form "-x" or "--y", value behind '=' or joined. */
static const char *const known_options[] = {"-D",
                                            "-U",
                                            "-I",
                                            "-w",
                                            "-G",
                                            "-lineinfo",
                                            "-std=",
                                            "-arch=",
                                            "-fmad=",
                                            "-ftz=",
                                            "-prec-div=",
                                            "-prec-sqrt=",
                                            "-use_fast_math",
                                            "-default-device",
                                            "-maxrregcount=",
                                            "-diag-",
                                            "-opt-info=",
                                            "--define-macro=",
                                            "--undefine-macro=",
                                            "--include-path=",
                                            "--device-debug",
                                            "--generate-line-info",
                                            "--std=",
                                            "--gpu-architecture=",
                                            "--fmad=",
                                            "--ftz=",
                                            "--prec-div=",
                                            "--prec-sqrt=",
                                            "--use_fast_math",
                                            "--device-as-default-execution-space",
                                            "--extra-device-vectorization",
                                            "--maxrregcount=",
                                            "--ptxas-options",
                                            "--disable-warnings",
                                            "--diag-",
                                            "--display-error-number",
                                            "--no-display-error-number",
                                            "--no-source-include",
                                            "--no-cache",
                                            "--minimal",
                                            "--split-compile",
                                            "--fdevice-",
                                            "--restrict",
                                            "-restrict"};

static bool is_known(const char *option)
{
    for (size_t i = 0; i < sizeof known_options / sizeof *known_options; i++)
        if (strncmp(option, known_options[i], strlen(known_options[i])) == 0) return true;
    return false;
}

static const char *after(const char *option, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(option, prefix, n) == 0 ? option + n : NULL;
}

/* sm_90, sm_90a, compute_90: the number, or 0. */
static int parse_arch(const char *text, bool *machine_code)
{
    const char *digits = after(text, "sm_");
    *machine_code = digits != NULL;
    if (!digits) digits = after(text, "compute_");
    if (!digits) return 0;
    char *end;
    long arch = strtol(digits, &end, 10);
    if (*end == 'a' || *end == 'f') end++;
    return *end == '\0' && arch < 1000 && is_supported((int)arch) ? (int)arch : 0;
}

static bool add_define(hc_source *s, char letter, const char *text)
{
    if (s->define_count == HC_MAX_DEFINES) return false;
    s->defines[s->define_count++] = (hc_define){letter, text};
    return true;
}

static hc_result parse_options(hc_source *s, int n, const char *const *options)
{
    s->arch = 75;
    s->machine_code = false;
    s->define_count = 0;
    for (int i = 0; i < n; i++) {
        const char *o = options[i], *text = NULL;
        if (!o || !is_known(o)) return HC_NVRTC_ERROR_INVALID_OPTION;
        if ((text = after(o, "-arch=")) || (text = after(o, "--gpu-architecture=")))
            s->arch = parse_arch(text, &s->machine_code);
        bool ok = s->arch != 0;
        if ((text = after(o, "--define-macro=")) || (text = after(o, "-D")))
            ok = add_define(s, 'D', text);
        if ((text = after(o, "--undefine-macro=")) || (text = after(o, "-U")))
            ok = add_define(s, 'U', text);
        if (!ok) return HC_NVRTC_ERROR_INVALID_OPTION;
    }
    return HC_NVRTC_SUCCESS;
}

static void on_signal(int number)
{
    (void)number;
    _exit(9);
}

/* As the real one: handlers of its own for some signals while it compiles, then the old ones, but
 * not their flags. */
static hc_result compile_with_signals(const hc_source *source, hc_compiled *result)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    void (*before[COUNT])(int);
    for (int i = 0; i < COUNT; i++) before[i] = signal(numbers[i], on_signal);
    hc_result r = hc_compile(source, result);
    for (int i = 0; i < COUNT; i++) (void)signal(numbers[i], before[i]);
    return r;
}

/* ZC_HOSTCUDA_REMARK="<text>:<remark>": where a header has this text, the log is that line. */
static void remark(const hc_source *s, hc_compiled *result)
{
    const char *fault = getenv("ZC_HOSTCUDA_REMARK"), *line = fault ? strchr(fault, ':') : NULL;
    if (!line) return;
    char *text = strndup(fault, (size_t)(line - fault));
    bool has = false;
    for (int i = 0; text && i < s->header_count; i++)
        has |= strstr(s->headers[i].text, text) != NULL;
    free(text);
    if (!has) return;
    free(result->log);
    result->log = strdup(line + 1);
}

static hc_result compile(hc_program_t p, int n, const char *const *options)
{
    if (!hc_is(HC_PROGRAM, p)) return HC_NVRTC_ERROR_INVALID_PROGRAM;
    if (n < 0 || (n && !options)) return HC_NVRTC_ERROR_INVALID_INPUT;
    free(p->result.log);
    free(p->result.image);
    p->result = (hc_compiled){0};
    hc_result r = parse_options(&p->source, n, options);
    if (r != HC_NVRTC_SUCCESS) return r;
    hc_pause(); /* threads compile side by side */
    r = compile_with_signals(&p->source, &p->result);
    hc_resume();
    if (r == HC_NVRTC_SUCCESS) remark(&p->source, &p->result);
    return r;
}

static hc_result destroy(hc_program_t *program)
{
    if (!program || !hc_is(HC_PROGRAM, *program)) return HC_NVRTC_ERROR_INVALID_PROGRAM;
    delete_program(*program);
    *program = NULL;
    return HC_NVRTC_SUCCESS;
}

hc_result nvrtcCreateProgram(hc_program_t *program, const char *source, const char *name,
                             int header_count, const char *const *headers,
                             const char *const *include_names)
{
    HC_CALL(0, create(program, source, name, header_count, headers, include_names));
}

hc_result nvrtcDestroyProgram(hc_program_t *program)
{
    HC_CALL(0, destroy(program));
}

hc_result nvrtcCompileProgram(hc_program_t program, int option_count, const char *const *options)
{
    HC_CALL(0, compile(program, option_count, options));
}

/* ---- Results ---- */

static hc_result give_size(hc_program_t p, size_t *to, size_t size)
{
    if (!to) return HC_NVRTC_ERROR_INVALID_INPUT;
    *to = size;
    (void)p;
    return HC_NVRTC_SUCCESS;
}

static hc_result give_bytes(char *to, const char *bytes, size_t n)
{
    if (!to) return HC_NVRTC_ERROR_INVALID_INPUT;
    if (n) memcpy(to, bytes, n);
    return HC_NVRTC_SUCCESS;
}

static const char *log_of(hc_program_t p)
{
    return p->result.log ? p->result.log : "";
}

#define PROGRAM_CALL(p, work)                                                                      \
    HC_CALL(0, hc_is(HC_PROGRAM, p) ? (work) : (hc_result)HC_NVRTC_ERROR_INVALID_PROGRAM)

hc_result nvrtcGetProgramLogSize(hc_program_t program, size_t *size)
{
    PROGRAM_CALL(program, give_size(program, size, strlen(log_of(program)) + 1));
}

hc_result nvrtcGetProgramLog(hc_program_t program, char *log)
{
    PROGRAM_CALL(program, give_bytes(log, log_of(program), strlen(log_of(program)) + 1));
}

hc_result nvrtcGetCUBINSize(hc_program_t program, size_t *size)
{
    PROGRAM_CALL(program,
                 give_size(program, size, program->source.machine_code ? program->result.size : 0));
}

hc_result nvrtcGetCUBIN(hc_program_t program, char *cubin)
{
    PROGRAM_CALL(program, program->source.machine_code && program->result.image
                              ? give_bytes(cubin, program->result.image, program->result.size)
                              : (hc_result)HC_NVRTC_ERROR_INVALID_PROGRAM);
}

/* There is no PTX: the empty text. */
hc_result nvrtcGetPTXSize(hc_program_t program, size_t *size)
{
    PROGRAM_CALL(program, give_size(program, size, 1));
}

hc_result nvrtcGetPTX(hc_program_t program, char *ptx)
{
    PROGRAM_CALL(program, give_bytes(ptx, "", 1));
}
