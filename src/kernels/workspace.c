#include "kernels/workspace.h"

#include <stdlib.h>

#include "kernels/choose.h"
#include "kernels/entries.h"
#include "kernels/launcher.h"
#include "kernels/table.h"

/* Does the launch look at values that nobody knows, or learn its sizes as it goes? */
static bool needs_a_run(const zc_pstep *step, const zc_tensor *in)
{
    uint64_t host = zc_op_host_inputs(step->op);
    if (zc_op_get(step->op)->flags & ZC_OPF_DYNAMIC) return true;
    for (uint32_t i = 0; i < step->nin && i < 64; i++)
        if ((host >> i & 1) && in[i].dtype != ZC_NONE && !in[i].data) return true;
    return false;
}

static bool measure(const zc_pstep *step, const zc_pkernel *kernel, int arch, zc_tensor *all,
                    uint64_t *bytes)
{
    int family = zc_family_find(kernel->family), nconfig = 0;
    if (family < 0) return false;
    (void)zc_family_config(family, &nconfig);
    if (kernel->nconfig != (uint32_t)nconfig) return false;
    zc_launcher launcher;
    int processors = zc_entries_processors(family, kernel->config);
    if (!processors) processors = zc_usual_processors(arch);
    if (zc_launcher_dry(family, step, kernel, processors, all, &launcher) != ZC_OK) return false;
    *bytes = launcher.scratch_need;
    return true;
}

bool zc_step_workspace(const zc_pstep *step, const zc_pkernel *kernel, int arch,
                       const zc_tensor *in, const zc_tensor *out, uint64_t *bytes)
{
    const uint32_t nin = step->nin, nout = step->nout;
    if (needs_a_run(step, in)) return false;
    zc_tensor *all = zc_calloc(2 * (size_t)nin + nout + 1, sizeof *all);
    if (!all) return false;
    for (uint32_t i = 0; i < nin; i++) {
        all[i] = all[nin + nout + i] = in[i];
        all[i].data = ZC_SOMEWHERE;
    }
    for (uint32_t i = 0; i < nout; i++) {
        all[nin + i] = out[i];
        all[nin + i].data = ZC_SOMEWHERE;
    }
    bool known = measure(step, kernel, arch, all, bytes);
    free(all);
    return known;
}
