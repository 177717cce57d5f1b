#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"

const cli_exit *cli_exit_at(size_t i)
{
    static const cli_exit exits[] = {
#define X(name, code, meaning) {code, meaning},
        CLI_EXITS(X)
#undef X
    };
    return i < ZC_COUNTOF(exits) ? &exits[i] : NULL;
}

static int exit_code(zc_status status)
{
    switch (status) {
    case ZC_OK:
        return EXIT_OK;
    case ZC_ERR_ARG: /* names and values that options gave */
        return EXIT_USAGE;
    case ZC_ERR_ACCURACY:
        return EXIT_ACCURACY;
    case ZC_ERR_DEVICE:
    case ZC_ERR_DEVICE_LOST:
        return EXIT_DEVICE;
    default:
        return EXIT_REFUSED;
    }
}

int cli_report(const zc_diag *diag, zc_status status)
{
    size_t count = zc_diag_count(diag);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "zc: %s: %s\n", zc_diag_status(diag, i) == ZC_OK ? "warning" : "error",
                zc_diag_text(diag, i));
    if (zc_diag_dropped(diag)) fprintf(stderr, "zc: error: %zu more\n", zc_diag_dropped(diag));
    if (count == 0 && status != ZC_OK) fprintf(stderr, "zc: error: %s\n", zc_status_name(status));
    zc_status newest = count ? zc_diag_status(diag, count - 1) : ZC_OK;
    return exit_code(newest == ZC_ERR_DEVICE ? newest : status);
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;
    zc_buf text = {0};
    char line[1024];
    va_start(args, fmt);
    zc_vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    zc_buf_escape(&text, line, strlen(line));
    fprintf(stderr, "zc %s: %s\nTry 'zc %s --help'.\n", command, text.data ? text.data : "",
            command);
    zc_buf_fini(&text);
    return EXIT_USAGE;
}

int cli_check_needs(const char *command, const cli_need *needs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (needs[i].given && !needs[i].met)
            return cli_usage(command, "%s does nothing without %s", needs[i].option, needs[i].need);
    return EXIT_OK;
}

bool cli_int(const char *text, int64_t least, int64_t most, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < least || v > most) return false;
    *out = v;
    return true;
}

bool cli_real(const char *text, double *out)
{
    char *end;
    *out = zc_strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

void cli_put(FILE *out, const char *text)
{
    zc_buf b = {0};
    zc_buf_escape(&b, text, strlen(text));
    fputs(b.data ? b.data : "", out);
    zc_buf_fini(&b);
}

void cli_put_short(FILE *out, const char *text, const char *quote)
{
    enum { MOST = 200 };
    size_t len = strlen(text), n = len;
    if (len > MOST)
        for (n = MOST; n && ((unsigned char)text[n] & 0xC0) == 0x80;) n--; /* no part of a letter */
    zc_buf b = {0};
    zc_buf_escape(&b, text, n);
    fprintf(out, "%s%s%s", quote, b.data ? b.data : "", quote);
    if (n < len) fprintf(out, " ... (%zu bytes more)", len - n);
    zc_buf_fini(&b);
}

void cli_json(FILE *out, const char *text)
{
    zc_buf b = {0};
    zc_buf_escape(&b, text, strlen(text));
    fputc('"', out);
    for (const char *c = b.data ? b.data : ""; *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
    zc_buf_fini(&b);
}

void cli_json_texts(FILE *out, const char *key, const char *const *texts, size_t n)
{
    fprintf(out, "\"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        if (i) fputs(", ", out);
        cli_json(out, texts[i]);
    }
    fputc(']', out);
}

double cli_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cli_now(void)
{
    return cli_clock(CLOCK_MONOTONIC);
}
