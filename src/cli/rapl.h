/* What the processors' packages say of their energy (RAPL), through Linux's powercap files. */
#ifndef ZC_CLI_RAPL_H
#define ZC_CLI_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_POWERCAP "/sys/class/powercap"

enum { CLI_RAPL_ZONES = 64 };

typedef struct cli_rapl_zone {
    int number; /* of intel-rapl:NUMBER */
    uint64_t last, range;
} cli_rapl_zone;

typedef struct cli_rapl {
    const char *folder;
    cli_rapl_zone zones[CLI_RAPL_ZONES];
    size_t n; /* 0: there are none, or not all can be read, which mostly takes root */
    double joules;
} cli_rapl;

/* The zones in this folder, whose text stays; mostly CLI_POWERCAP. */
void cli_rapl_open(const char *folder, cli_rapl *out);
/* Joules of all packages since then; NAN: not known. A counter may begin anew once between two
 * calls, which takes minutes at full power. */
double cli_rapl_read(cli_rapl *r);

#endif
