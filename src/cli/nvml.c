#include "cli/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

/* Numbers of nvml.h: a clock, a sensor, and a bit that says that nothing runs. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, REASON_IDLE = 1 };

static const char *const reasons[] = {
    "idle",          "application clocks", "power cap",          "hardware slowdown",
    "sync boost",    "thermal (software)", "thermal (hardware)", "power brake",
    "display clocks"};

const char *cli_nvml_reason(int i)
{
    return i >= 0 && (size_t)i < ZC_COUNTOF(reasons) ? reasons[i] : NULL;
}

static void bind(cli_nvml *n)
{
    static const struct {
        size_t offset;
        const char *symbol;
    } symbols[] = {
#define NV(field, symbol, params) {offsetof(cli_nvml, field), symbol},
#include "cli/nvml.def"
#undef NV
    };
    for (size_t i = 0; i < ZC_COUNTOF(symbols); i++) {
        void *at = dlsym(n->library, symbols[i].symbol);
        memcpy((char *)n + symbols[i].offset, &at, sizeof at);
    }
    if (!n->reasons) n->reasons = n->reasons_before_535;
}

void cli_nvml_open(const char *bus, cli_nvml *out)
{
    *out = (cli_nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!out->library) return;
    bind(out);
    bool begun = out->init && out->shutdown && out->init() == 0;
    if (begun && out->device_by_bus && out->device_by_bus(bus, &out->device) == 0) {
        if (!out->driver_version || out->driver_version(out->driver, sizeof out->driver) != 0)
            out->driver[0] = '\0';
        return;
    }
    if (begun) (void)out->shutdown();
    dlclose(out->library);
    *out = (cli_nvml){0};
}

void cli_nvml_close(cli_nvml *n)
{
    if (!n->library) return;
    (void)n->shutdown();
    dlclose(n->library);
    *n = (cli_nvml){0};
}

static double clock_of(const cli_nvml *n, int which)
{
    unsigned mhz;
    return n->clock && n->clock(n->device, which, &mhz) == 0 ? mhz : NAN;
}

void cli_nvml_read(const cli_nvml *n, cli_nvml_state *out)
{
    unsigned long long many;
    unsigned value;
    *out = (cli_nvml_state){NAN, NAN, NAN, NAN, NAN, 0};
    if (!n->library) return;
    if (n->energy && n->energy(n->device, &many) == 0) out->joules = (double)many * 1e-3;
    if (n->power && n->power(n->device, &value) == 0) out->watts = value * 1e-3;
    out->sm_mhz = clock_of(n, CLOCK_SM);
    out->memory_mhz = clock_of(n, CLOCK_MEMORY);
    if (n->temperature && n->temperature(n->device, SENSOR_GPU, &value) == 0) out->celsius = value;
    if (n->reasons && n->reasons(n->device, &many) == 0)
        out->reasons = many & ~(uint64_t)REASON_IDLE;
}
