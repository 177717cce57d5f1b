/* Energy, clocks and temperature while runs are measured: nvml.h for a GPU, rapl.h for the
 * processors' packages. */
#ifndef ZC_CLI_METER_H
#define ZC_CLI_METER_H

#include "cli/nvml.h"
#include "cli/rapl.h"
#include "zc/rt.h"

/* How far a clock may move, as a share of its highest, before a measurement says so. */
#define CLI_CLOCK_BOUND 0.05

/* NAN: not known. */
typedef struct cli_reading {
    double gpu_joules, cpu_joules; /* of the whole GPU, and of all packages, whoever used them */
    double gpu_watts, cpu_watts;   /* on average */
    double sm_low, sm_high, memory_low, memory_high; /* MHz */
    double celsius_begin, celsius_end;
    uint64_t reasons; /* that held clocks down at some moment (cli_nvml_reason) */
    char driver[80];  /* "": not known */
} cli_reading;

typedef struct cli_meter {
    cli_nvml nvml;
    cli_rapl rapl;
    double begin, last; /* seconds, as cli_now gives them */
    cli_nvml_state first, now;
    double cpu_first, cpu_now; /* joules */
    double samples;            /* joules by power, from sample to sample */
    cli_reading reading;
} cli_meter;

/* Begins to measure the device; the caller closes *out. powercap: mostly CLI_POWERCAP. */
void cli_meter_open(const zc_device_info *device, const char *powercap, cli_meter *out);
/* Begins anew. */
void cli_meter_begin(cli_meter *m);
/* Between runs: looks again when the last look was a tenth of a second ago. */
void cli_meter_tick(cli_meter *m);
/* What was measured since the beginning; energy only over a second at least, as a GPU's counter is
 * brought up to date some ten times in it. */
void cli_meter_end(cli_meter *m, cli_reading *out);
void cli_meter_close(cli_meter *m);

/* Did a clock move by more than CLI_CLOCK_BOUND? */
bool cli_clocks_moved(const cli_reading *r);

#endif
