/* A file of the cache, a fact a line: "zc-peaks 1", the processor, threads, zc's version, bytes and
 * operations a second. The first four are the key. */
#include "cli/peaks.h"

#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cuda/cache.h"

/* false: the processor has no name. */
static bool key_text(int threads, char *buf, size_t n)
{
    char cpu[CLI_CPU_MAX];
    if (!*cli_cpu_name(cpu)) return false;
    zc_snprintf(buf, n, "zc-peaks 1\n%s\n%d\n%s\n", cpu, threads, zc_version());
    return true;
}

/* Cuts the next line off; NULL: there is none, or it is longer than a line of this file. */
static const char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

bool cli_peaks_read(const zc_buf *bytes, cli_kept_peaks *out)
{
    char text[512], *at = text;
    const char *lines[6];
    int64_t threads;
    if (bytes->len >= sizeof text || memchr(bytes->data, '\0', bytes->len)) return false;
    memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    for (size_t i = 0; i < ZC_COUNTOF(lines); i++)
        if (!(lines[i] = next_line(&at))) return false;
    if (strcmp(lines[0], "zc-peaks 1") != 0 || !cli_int(lines[2], 1, INT32_MAX, &threads) ||
        !cli_real(lines[4], &out->v.bytes) || !cli_real(lines[5], &out->v.operations))
        return false;
    out->threads = (int)threads;
    snprintf(out->processor, sizeof out->processor, "%s", lines[1]);
    snprintf(out->version, sizeof out->version, "%s", lines[3]);
    return out->v.bytes > 0 && out->v.operations > 0;
}

static bool find(const zc_cache_key *key, zc_peaks *out)
{
    zc_buf bytes = {0};
    cli_kept_peaks kept;
    bool found = zc_cache_get(key, &bytes) && cli_peaks_read(&bytes, &kept);
    if (found) *out = kept.v;
    zc_buf_fini(&bytes);
    return found;
}

zc_status cli_peaks_get(int threads, cli_peaks *out, zc_diag *diag)
{
    char text[512];
    zc_cache_key key;
    bool named = key_text(threads, text, sizeof text);
    *out = (cli_peaks){.kept = false};
    if (named) zc_cache_key_of_text(ZC_CACHE_PEAKS, text, &key);
    if (named && (out->kept = find(&key, &out->v))) return ZC_OK;
    ZC_TRY(zc_probe_cpu(threads, &out->v, diag));
    size_t len = strlen(text);
    zc_snprintf(text + len, sizeof text - len, "%.0f\n%.0f\n", out->v.bytes, out->v.operations);
    if (named) zc_cache_put(&key, text, strlen(text), ZC_CACHE_BYTES_MAX);
    return ZC_OK;
}
