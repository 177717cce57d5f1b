/* What this machine's processor can do: measured once, then kept in the cache of kernels, by
 * processor, threads and version of zc. */
#ifndef ZC_CLI_PEAKS_H
#define ZC_CLI_PEAKS_H

#include <stdio.h>

#include "base/mem.h"
#include "cli/device.h"
#include "runtime/probe.h"

typedef struct cli_peaks {
    zc_peaks v; /* 0: not measured */
    bool kept;  /* they were measured by an earlier call */
} cli_peaks;

/* Of the device of a session, which is GPU number `ordinal` or so many threads. Where the system
 * does not say which processor it is, nothing is kept. */
zc_status cli_peaks_get(const zc_device_info *device, int ordinal, int threads, cli_peaks *out,
                        zc_diag *diag);

/* Members of a JSON object. */
void cli_peaks_json(FILE *out, const zc_peaks *v);
/* What a GPU has beside the ordinary cores and memory, as the end of a line. */
void cli_peaks_print_cores(FILE *out, const zc_peaks *v);

/* What a file of the cache says. */
typedef struct cli_kept_peaks {
    char device[CLI_CPU_MAX], version[32];
    int driver, threads; /* as zc_device_info has it, 0 on the CPU; 0 on a GPU */
    zc_peaks v;
} cli_kept_peaks;
/* false: it says something else. */
bool cli_peaks_read(const zc_buf *bytes, cli_kept_peaks *out);

#endif
