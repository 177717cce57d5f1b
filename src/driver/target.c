#include "driver/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"

static const int archs[] = {
#define X(n) n,
    ZC_ARCHS(X)
#undef X
};

static zc_status add(zc_targets *t, int arch, zc_diag *diag)
{
    int at = 0;
    while (at < t->narchs && t->archs[at] < arch) at++;
    if (at < t->narchs && t->archs[at] == arch) return ZC_OK;
    if (t->narchs == ZC_TARGETS_MAX)
        return zc_fail(diag, ZC_ERR_ARG, "targets", "too many (need at most %d)", ZC_TARGETS_MAX);
    memmove(t->archs + at + 1, t->archs + at, (size_t)(t->narchs - at) * sizeof *t->archs);
    t->archs[at] = arch;
    t->narchs++;
    return ZC_OK;
}

static zc_status native(zc_targets *t, zc_diag *diag)
{
    int arch;
    ZC_TRY(zc_device_arch(0, &arch, diag));
    return add(t, arch, diag);
}

zc_status zc_targets_parse(const char *const *names, size_t n, zc_targets *out, zc_diag *diag)
{
    *out = (zc_targets){0};
    for (size_t i = 0; i < n; i++) {
        int arch = 0;
        for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
            char name[16];
            snprintf(name, sizeof name, "sm_%d", archs[a]);
            if (strcmp(name, names[i]) == 0) arch = archs[a];
        }
        if (strcmp(names[i], "cpu") == 0) continue;
        if (strcmp(names[i], "native") == 0)
            ZC_TRY(native(out, diag));
        else if (arch)
            ZC_TRY(add(out, arch, diag));
        else
            return zc_fail(
                diag, ZC_ERR_ARG, names[i],
                "is no target (need cpu, native, sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120)");
    }
    return ZC_OK;
}
