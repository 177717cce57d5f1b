/* What to compile for. */
#ifndef ZC_DRIVER_TARGET_H
#define ZC_DRIVER_TARGET_H

#include "base/diag.h"

enum { ZC_TARGETS_MAX = 8 };

/* Every architecture that `zc compile --target` takes, beside "cpu" and "native". */
#define ZC_ARCHS(X) X(80) X(86) X(89) X(90) X(100) X(120)

typedef struct zc_targets {
    int archs[ZC_TARGETS_MAX]; /* 90 for sm_90, ascending, each once */
    int narchs;                /* 0: the CPU alone */
} zc_targets;

zc_status zc_targets_parse(const char *const *names, size_t n, zc_targets *out, zc_diag *diag);

#endif
