/* A fake of NVIDIA's management library (libnvidia-ml.so.1) beside the fake driver: GPUs that take
 * 300 W, found by their address alone. ZC_HOSTNVML changes what it says:
 *   falling    each look at the SM clock finds it lower, held down by the power cap
 *   power      no counter of energy, power alone
 *   broken     it does not start */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bus.h"

/* Declares a function for those who open the library, and begins it. */
#define API(name, params)                                                                          \
    __attribute__((visibility("default"))) int name params;                                        \
    int name params

enum {
    OK = 0,
    INVALID = 2,
    UNSUPPORTED = 3,
    NOT_FOUND = 6,
    UNKNOWN = 999,
    DEVICES = 8,
    WATTS = 300
};

static char devices[DEVICES];
static unsigned sm_mhz = 1980;

static int says(const char *what)
{
    const char *text = getenv("ZC_HOSTNVML");
    return text && strcmp(text, what) == 0;
}

static int is_device(const void *device)
{
    return (const char *)device >= devices && (const char *)device < devices + DEVICES;
}

API(nvmlInit_v2, (void))
{
    return says("broken") ? UNKNOWN : OK;
}

API(nvmlShutdown, (void))
{
    return OK;
}

API(nvmlSystemGetDriverVersion, (char *text, unsigned len))
{
    snprintf(text, len, "580.65.06");
    return OK;
}

API(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device))
{
    char own[32];
    for (unsigned i = 0; i < DEVICES; i++) {
        snprintf(own, sizeof own, HC_BUS_FORMAT, HC_FIRST_BUS + i);
        if (strcmp(bus, own) != 0) continue;
        *device = &devices[i];
        return OK;
    }
    return NOT_FOUND;
}

API(nvmlDeviceGetTotalEnergyConsumption, (void *device, unsigned long long *millijoules))
{
    struct timespec t;
    if (!is_device(device)) return INVALID;
    if (says("power")) return UNSUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *millijoules = (unsigned long long)t.tv_sec * 1000 * WATTS +
                   (unsigned long long)t.tv_nsec / 1000000 * WATTS;
    return OK;
}

API(nvmlDeviceGetPowerUsage, (void *device, unsigned *milliwatts))
{
    *milliwatts = WATTS * 1000;
    return is_device(device) ? OK : INVALID;
}

API(nvmlDeviceGetClockInfo, (void *device, int which, unsigned *mhz))
{
    if (!is_device(device)) return INVALID;
    if (which == 2) {
        *mhz = 2619;
        return OK;
    }
    *mhz = sm_mhz;
    if (says("falling")) sm_mhz -= sm_mhz / 5;
    return which == 1 ? OK : INVALID;
}

API(nvmlDeviceGetTemperature, (void *device, int sensor, unsigned *celsius))
{
    *celsius = 41;
    return is_device(device) && sensor == 0 ? OK : INVALID;
}

/* As drivers before 535 call it. Bit 0: nothing runs now; bit 2: the power cap. */
API(nvmlDeviceGetCurrentClocksThrottleReasons, (void *device, unsigned long long *bits))
{
    *bits = says("falling") ? 1 | 4 : 1;
    return is_device(device) ? OK : INVALID;
}
