#include "cli/meter.h"

#include <math.h>
#include <stdio.h>

#include "cli/cli.h"

#define TICK     0.1 /* seconds between looks */
#define SHORTEST 1.0 /* seconds over which energy is told */

/* A reading of nothing. */
static cli_reading unknown(void)
{
    return (cli_reading){.gpu_joules = NAN,
                         .cpu_joules = NAN,
                         .gpu_watts = NAN,
                         .cpu_watts = NAN,
                         .sm_low = NAN,
                         .sm_high = NAN,
                         .memory_low = NAN,
                         .memory_high = NAN,
                         .celsius_begin = NAN,
                         .celsius_end = NAN};
}

/* fmin and fmax leave out what is not a number. */
static void note(cli_meter *m)
{
    cli_reading *r = &m->reading;
    r->sm_low = fmin(r->sm_low, m->now.sm_mhz);
    r->sm_high = fmax(r->sm_high, m->now.sm_mhz);
    r->memory_low = fmin(r->memory_low, m->now.memory_mhz);
    r->memory_high = fmax(r->memory_high, m->now.memory_mhz);
    r->reasons |= m->now.reasons;
}

void cli_meter_begin(cli_meter *m)
{
    m->reading = unknown();
    m->samples = 0;
    m->cpu_first = m->cpu_now = cli_rapl_read(&m->rapl);
    cli_nvml_read(&m->nvml, &m->first);
    m->now = m->first;
    m->begin = m->last = cli_now();
    note(m);
}

void cli_meter_open(const zc_device_info *device, const char *powercap, cli_meter *out)
{
    *out = (cli_meter){.begin = 0};
    cli_rapl_open(powercap, &out->rapl);
    if (device->kind == ZC_DEVICE_CUDA && device->bus) cli_nvml_open(device->bus, &out->nvml);
    cli_meter_begin(out);
}

static void look(cli_meter *m, double now)
{
    double watts = m->now.watts;
    m->cpu_now = cli_rapl_read(&m->rapl);
    cli_nvml_read(&m->nvml, &m->now);
    m->samples += (watts + m->now.watts) / 2 * (now - m->last);
    m->last = now;
    note(m);
}

void cli_meter_tick(cli_meter *m)
{
    double now = cli_now();
    if (now - m->last >= TICK) look(m, now);
}

void cli_meter_end(cli_meter *m, cli_reading *out)
{
    look(m, cli_now());
    double seconds = m->last - m->begin, counted = m->now.joules - m->first.joules;
    *out = m->reading;
    out->celsius_begin = m->first.celsius;
    out->celsius_end = m->now.celsius;
    snprintf(out->driver, sizeof out->driver, "%s", m->nvml.driver);
    if (seconds < SHORTEST) return;
    out->gpu_joules = isnan(counted) ? m->samples : counted;
    out->cpu_joules = m->cpu_now - m->cpu_first;
    out->gpu_watts = out->gpu_joules / seconds;
    out->cpu_watts = out->cpu_joules / seconds;
}

void cli_meter_close(cli_meter *m)
{
    cli_nvml_close(&m->nvml);
}

static bool moved(double low, double high)
{
    return high - low > CLI_CLOCK_BOUND * high;
}

bool cli_clocks_moved(const cli_reading *r)
{
    return moved(r->sm_low, r->sm_high) || moved(r->memory_low, r->memory_high);
}
