/* A file of the cache, a fact a line: "zc-peaks 1", the device, its driver, threads, zc's version,
 * bytes and operations a second. The first five are the key. */
#include "cli/peaks.h"

#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cuda/cache.h"

/* false: the processor has no name. */
static bool key_text(const zc_device_info *device, int threads, char *buf, size_t n)
{
    char cpu[CLI_CPU_MAX];
    bool gpu = device->kind == ZC_DEVICE_CUDA;
    const char *name = gpu ? device->name : cli_cpu_name(cpu);
    int len = zc_snprintf(buf, n, "zc-peaks 1\n%s\n%d\n%d\n%s\n", name, device->driver,
                          gpu ? 0 : threads, zc_version());
    return *name && len > 0 && (size_t)len < n;
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
    const char *lines[7];
    int64_t driver, threads;
    if (bytes->len >= sizeof text || memchr(bytes->data, '\0', bytes->len)) return false;
    memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    for (size_t i = 0; i < ZC_COUNTOF(lines); i++)
        if (!(lines[i] = next_line(&at))) return false;
    if (strcmp(lines[0], "zc-peaks 1") != 0 || !cli_int(lines[2], 0, INT32_MAX, &driver) ||
        !cli_int(lines[3], 0, INT32_MAX, &threads) || !cli_real(lines[5], &out->v.bytes) ||
        !cli_real(lines[6], &out->v.operations))
        return false;
    out->driver = (int)driver;
    out->threads = (int)threads;
    snprintf(out->device, sizeof out->device, "%s", lines[1]);
    snprintf(out->version, sizeof out->version, "%s", lines[4]);
    return out->v.bytes > 0 && out->v.operations >= 0;
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

static void keep(const zc_cache_key *key, const char *facts, const zc_peaks *v)
{
    char text[512];
    int len = zc_snprintf(text, sizeof text, "%s%.0f\n%.0f\n", facts, v->bytes, v->operations);
    if (len > 0 && (size_t)len < sizeof text)
        zc_cache_put(key, text, (size_t)len, ZC_CACHE_BYTES_MAX);
}

zc_status cli_peaks_get(const zc_device_info *device, int ordinal, int threads, cli_peaks *out,
                        zc_diag *diag)
{
    char facts[400];
    zc_cache_key key;
    bool named = key_text(device, threads, facts, sizeof facts);
    *out = (cli_peaks){.kept = false};
    if (named) zc_cache_key_of_text(ZC_CACHE_PEAKS, facts, &key);
    if (named && (out->kept = find(&key, &out->v))) return ZC_OK;
    ZC_TRY(device->kind == ZC_DEVICE_CUDA ? zc_probe_gpu(ordinal, &out->v, diag)
                                          : zc_probe_cpu(threads, &out->v, diag));
    if (named) keep(&key, facts, &out->v);
    return ZC_OK;
}
