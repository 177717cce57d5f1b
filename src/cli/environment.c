#include "cli/environment.h"

#include <math.h>
#include <string.h>

#include "cli/device.h"

static void put_real(FILE *out, double value)
{
    if (isnan(value))
        fputs("null", out);
    else
        fprintf(out, "%.6g", value);
}

/* "" is not known either. */
static void put_text(FILE *out, const char *member, const char *text)
{
    fprintf(out, ", \"%s\": ", member);
    if (text && *text)
        cli_json(out, text);
    else
        fputs("null", out);
}

/* ---- the device ---- */

static void put_reasons(FILE *out, uint64_t reasons)
{
    const char *text;
    bool first = true;
    for (int i = 0; (text = cli_nvml_reason(i)); i++) {
        if (!(reasons >> i & 1)) continue;
        if (!first) fputs(", ", out);
        cli_json(out, text);
        first = false;
    }
}

static void put_clocks(FILE *out, const cli_reading *r)
{
    const struct {
        const char *name;
        double value;
    } rows[] = {{"sm_low_mhz", r->sm_low},           {"sm_high_mhz", r->sm_high},
                {"memory_low_mhz", r->memory_low},   {"memory_high_mhz", r->memory_high},
                {"begin_celsius", r->celsius_begin}, {"end_celsius", r->celsius_end}};
    fputs(", \"clocks\": ", out);
    if (isnan(r->sm_low)) {
        fputs("null", out);
        return;
    }
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        fprintf(out, "%s\"%s\": ", i ? ", " : "{", rows[i].name);
        put_real(out, rows[i].value);
    }
    fprintf(out, ", \"moved\": %s, \"held_by\": [", cli_clocks_moved(r) ? "true" : "false");
    put_reasons(out, r->reasons);
    fputs("]}", out);
}

static void put_device(FILE *out, const cli_environment *e)
{
    zc_device_info device = {.name = NULL, .kind = ZC_DEVICE_CPU};
    char cpu[CLI_CPU_MAX], arch[16] = "", cuda[32] = "";
    (void)zc_session_device(e->session, &device);
    if (device.kind == ZC_DEVICE_CUDA) {
        snprintf(arch, sizeof arch, "sm_%d", device.arch);
        snprintf(cuda, sizeof cuda, "%d.%d", device.driver / 1000, device.driver % 1000 / 10);
    }
    put_text(out, "device", device.name);
    put_text(out, "arch", arch);
    put_text(out, "bus", device.bus);
    put_text(out, "driver", e->reading->driver);
    put_text(out, "cuda", cuda);
    put_clocks(out, e->reading);
    put_text(out, "cpu", cli_cpu_name(cpu));
    fprintf(out, ", \"threads\": %d, \"concurrency\": %d, \"transfers\": %s", e->threads,
            e->sessions,
            device.kind == ZC_DEVICE_CPU ? "null"
            : e->no_transfers            ? "false"
                                         : "true");
}

/* ---- the model ---- */

static void put_inputs(FILE *out, const cli_environment *e)
{
    fputs(", \"inputs\": [", out);
    for (size_t i = 0; i < e->values->n; i++) {
        char type[256];
        zc_io_info io;
        if (zc_plan_input(e->plan, i, &io, NULL) != ZC_OK) continue;
        fprintf(out, "%s{\"name\": ", i ? ", " : "");
        cli_json(out, io.name);
        fputs(", \"type\": ", out);
        cli_json(out, zc_tensor_type_text(&e->values->v[i], type, sizeof type));
        fputc('}', out);
    }
    fputc(']', out);
}

void cli_environment_json(FILE *out, const cli_environment *e)
{
    zc_plan_info info = {.zc_version = NULL};
    zc_model_info model = {.name = NULL};
    (void)zc_plan_info_get(e->plan, &info);
    (void)zc_plan_model(e->plan, &model);
    fputs("{\"plan\": ", out);
    cli_json(out, e->path);
    put_text(out, "model", model.name);
    put_text(out, "model_sha256", info.model_sha256);
    put_text(out, "compiled_by", info.zc_version);
    put_text(out, "zc", zc_version());
    put_device(out, e);
    put_inputs(out, e);
    fputc('}', out);
}

/* ---- text ---- */

static void put_range(FILE *out, const char *what, double low, double high)
{
    fprintf(out, "%s %.0f", what, low);
    if (high > low) fprintf(out, " to %.0f", high);
    fputs(" MHz", out);
}

void cli_put_clocks(FILE *out, const cli_reading *r)
{
    const char *text, *between = "; held down by: ";
    put_range(out, "SM", r->sm_low, r->sm_high);
    put_range(out, ", memory", r->memory_low, r->memory_high);
    if (!isnan(r->celsius_begin))
        fprintf(out, ", %.0f to %.0f C", r->celsius_begin, r->celsius_end);
    for (int i = 0; (text = cli_nvml_reason(i)); i++) {
        if (!(r->reasons >> i & 1)) continue;
        fprintf(out, "%s%s", between, text);
        between = ", ";
    }
}

void cli_print_clocks(const cli_reading *r)
{
    if (isnan(r->sm_low)) return;
    fputs("clocks", stdout);
    if (cli_clocks_moved(r)) printf(" moved by more than %.0f %%", 100 * CLI_CLOCK_BOUND);
    fputs(": ", stdout);
    cli_put_clocks(stdout, r);
    puts("");
}
