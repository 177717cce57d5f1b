/* What a GPU says of its energy, clocks and temperature, through NVIDIA's management library
 * (libnvidia-ml.so.1), which is opened where it is there. */
#ifndef ZC_CLI_NVML_H
#define ZC_CLI_NVML_H

#include <stdbool.h>
#include <stdint.h>

typedef struct nvmlDevice_st *nvml_device;

typedef struct cli_nvml {
    void *library; /* NULL: it is not there, or does not know the GPU */
    nvml_device device;
    char driver[80]; /* its version, "580.65.06"; "": not known */
#define NV(field, symbol, params) int(*field) params;
#include "cli/nvml.def"
#undef NV
} cli_nvml;

/* At one moment. NAN: not known. */
typedef struct cli_nvml_state {
    double joules; /* since the driver was loaded, brought up to date some ten times a second */
    double watts, sm_mhz, memory_mhz, celsius;
    uint64_t reasons; /* why clocks are held down, as cli_nvml_reason counts; 0 also: not known */
} cli_nvml_state;

/* The GPU at this address on the PCI bus; the caller closes *out. */
void cli_nvml_open(const char *bus, cli_nvml *out);
void cli_nvml_close(cli_nvml *n);
void cli_nvml_read(const cli_nvml *n, cli_nvml_state *out);
/* The reason of bit i; NULL past the last. */
const char *cli_nvml_reason(int i);

#endif
