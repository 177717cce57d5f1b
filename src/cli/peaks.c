/* A file of the cache, a fact a line: "zc-peaks 2", the device, its driver, threads, zc's version,
 * then "NAME RATE": bytes, launch (seconds), and operations a second by type. The first five are
 * the key. */
#include "cli/peaks.h"

#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cuda/cache.h"
#include "tune/gpu_peaks.h"

#define FIRST_LINE "zc-peaks 2"
enum { FILE_MOST = 1024 };

/* false: the processor has no name. */
static bool key_text(const zc_device_info *device, int threads, char *buf, size_t n)
{
    char cpu[CLI_CPU_MAX];
    bool gpu = device->kind == ZC_DEVICE_CUDA;
    const char *name = gpu ? device->name : cli_cpu_name(cpu);
    int len = zc_snprintf(buf, n, FIRST_LINE "\n%s\n%d\n%d\n%s\n", name, device->driver,
                          gpu ? 0 : threads, zc_version());
    return *name && len > 0 && (size_t)len < n;
}

/* Cuts the next line off; NULL: there is none, or it is longer than a line of this file. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

static double *rate_named(zc_peaks *v, const char *name)
{
    if (strcmp(name, "bytes") == 0) return &v->bytes;
    if (strcmp(name, "launch") == 0) return &v->launch;
    for (int p = 0; p < ZC_PEAK_COUNT; p++)
        if (strcmp(name, zc_peak_name((zc_peak)p)) == 0) return &v->operations[p];
    return NULL;
}

static bool read_rate(char *line, zc_peaks *v)
{
    char *space = strchr(line, ' ');
    if (!space) return false;
    *space = '\0';
    double *rate = rate_named(v, line);
    return rate && !(*rate > 0) && cli_real(space + 1, rate) && *rate > 0;
}

bool cli_peaks_read(const zc_buf *bytes, cli_kept_peaks *out)
{
    char text[FILE_MOST], *at = text, *rate;
    const char *lines[5];
    int64_t driver, threads;
    *out = (cli_kept_peaks){.driver = 0};
    if (bytes->len >= sizeof text || memchr(bytes->data, '\0', bytes->len)) return false;
    memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    for (size_t i = 0; i < ZC_COUNTOF(lines); i++)
        if (!(lines[i] = next_line(&at))) return false;
    if (strcmp(lines[0], FIRST_LINE) != 0 || !cli_int(lines[2], 0, INT32_MAX, &driver) ||
        !cli_int(lines[3], 0, INT32_MAX, &threads))
        return false;
    while ((rate = next_line(&at)))
        if (!read_rate(rate, &out->v)) return false;
    out->driver = (int)driver;
    out->threads = (int)threads;
    snprintf(out->device, sizeof out->device, "%s", lines[1]);
    snprintf(out->version, sizeof out->version, "%s", lines[4]);
    return !*at && out->v.bytes > 0;
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
    zc_buf text = {0};
    zc_buf_printf(&text, "%sbytes %.17g\n", facts, v->bytes);
    if (v->launch > 0) zc_buf_printf(&text, "launch %.17g\n", v->launch);
    for (int p = 0; p < ZC_PEAK_COUNT; p++)
        if (v->operations[p] > 0)
            zc_buf_printf(&text, "%s %.17g\n", zc_peak_name((zc_peak)p), v->operations[p]);
    if (!text.failed) zc_cache_put(key, text.data, text.len, ZC_CACHE_BYTES_MAX);
    zc_buf_fini(&text);
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
    /* Without NVRTC a GPU's arithmetic is measured when there is one. */
    if (named && out->v.operations[ZC_PEAK_F32] > 0) keep(&key, facts, &out->v);
    return ZC_OK;
}

static void put_rate(FILE *out, double rate)
{
    if (rate > 0)
        fprintf(out, "%.0f", rate);
    else
        fputs("null", out);
}

void cli_peaks_json(FILE *out, const zc_peaks *v)
{
    const char *between = "";
    fputs("\"bytes_per_second\": ", out);
    put_rate(out, v->bytes);
    fputs(", \"f32_operations_per_second\": ", out);
    put_rate(out, v->operations[ZC_PEAK_F32]);
    fputs(", \"tensor_core_operations_per_second\": {", out);
    for (int p = ZC_PEAK_F32 + 1; p < ZC_PEAK_COUNT; p++) {
        if (!(v->operations[p] > 0)) continue;
        fprintf(out, "%s\"%s\": %.0f", between, zc_peak_name((zc_peak)p), v->operations[p]);
        between = ", ";
    }
    fputs("}, \"launch_us\": ", out);
    if (v->launch > 0)
        fprintf(out, "%.3f", v->launch * 1e6);
    else
        fputs("null", out);
}

void cli_peaks_print_cores(FILE *out, const zc_peaks *v)
{
    const char *between = "; tensor cores: ";
    for (int p = ZC_PEAK_F32 + 1; p < ZC_PEAK_COUNT; p++) {
        if (!(v->operations[p] > 0)) continue;
        fprintf(out, "%s%s %.1f TFLOP/s", between, zc_peak_name((zc_peak)p),
                v->operations[p] * 1e-12);
        between = ", ";
    }
    if (v->launch > 0) fprintf(out, "; an empty kernel takes %.2f us", v->launch * 1e6);
}
