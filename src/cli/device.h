/* --device: where a command runs. */
#ifndef ZC_CLI_DEVICE_H
#define ZC_CLI_DEVICE_H

#include "cli/options.h"

typedef struct cli_device {
    zc_device_kind kind;
    int ordinal;
} cli_device;

extern const char cli_device_help[];
cli_setter cli_set_device; /* cli_device: cpu, cuda, cuda:N or auto */

#define CLI_DEVICE_OPTION(state, field)                                                            \
    {                                                                                              \
        .name = "device", .arg = "DEVICE", .help = cli_device_help, .set = cli_set_device,         \
        .at = offsetof(state, field)                                                               \
    }

/* "on NVIDIA H200, 92 GPU steps, 2 CPU steps, ..." after a run. */
void cli_print_device(const zc_session *session);

/* What the processor calls itself; "" where the system does not say. Returns buf. */
#define CLI_CPU_MAX 128
const char *cli_cpu_name(char buf[CLI_CPU_MAX]);

#endif
