#include "kernels/entries.h"

#include "base/number.h"
#include "kernels/launcher.h"
#include "kernels/table.h"

const char *const zc_config_entries[] = {"entries", "processors", NULL};

/* Is everything certain that a launch function looks at? */
static bool certain(const zc_gen *g)
{
    uint64_t host = zc_op_host_inputs(g->step->op);
    if (g->info->flags & ZC_OPF_DYNAMIC || !zc_gen_all_static(g)) return false;
    for (uint32_t i = 0; i < g->step->nin && i < 64; i++) {
        const zc_pvalue *v = zc_gen_in(g, (int)i);
        if (v && host >> i & 1 && v->kind != ZC_P_CONST) return false;
    }
    for (uint32_t i = 0; i < g->step->nout; i++) {
        const zc_pvalue *v = zc_gen_out(g, (int)i);
        if (v && !zc_gen_static(v)) return false;
    }
    return true;
}

static zc_tensor operand(const zc_pvalue *v, bool on_host)
{
    zc_tensor t = {.dtype = ZC_NONE};
    if (!v) return t;
    zc_gen_tensor(v, &t);
    t.data = !on_host ? ZC_SOMEWHERE : v->kind == ZC_P_CONST ? (void *)(uintptr_t)v->data : NULL;
    return t;
}

/* Bit i: entry i is issued; 0: it cannot be known. */
static uint32_t issued(const zc_gen *g, int family)
{
    uint32_t nin = g->step->nin, nout = g->step->nout;
    zc_tensor *in = zc_arena_alloc(g->arena, 2 * (size_t)nin + nout, sizeof *in);
    if (!in) return 0;
    zc_tensor *out = in + nin, *host = out + nout;
    for (uint32_t i = 0; i < nin; i++) {
        in[i] = operand(zc_gen_in(g, (int)i), false);
        host[i] = operand(zc_gen_in(g, (int)i), true);
    }
    for (uint32_t i = 0; i < nout; i++) out[i] = operand(zc_gen_out(g, (int)i), false);
    zc_pkernel kernel = {.is_static = true, .cluster = 1};
    zc_launcher launcher;
    if (zc_launcher_dry(family, g->step, &kernel, g->sm_count, in, &launcher) != ZC_OK) return 0;
    return launcher.issued ? launcher.issued : 1;
}

enum { ENTRIES, PROCESSORS };

static bool has_own(int family)
{
    int n;
    return zc_family_config(family, &n) != zc_config_entries;
}

int zc_entries_processors(int family, const int64_t *config)
{
    return !has_own(family) && config[ENTRIES] ? (int)config[PROCESSORS] : 0;
}

void zc_gen_entries(zc_gen *g, int family)
{
    if (has_own(family) || !certain(g)) return;
    g->config[ENTRIES] = issued(g, family);
    if (!g->config[ENTRIES]) return;
    g->config[PROCESSORS] = g->sm_count;
    for (int i = 0; i < ZC_ENTRIES_MAX; i++) {
        char name[32];
        zc_snprintf(name, sizeof name, "TAKES_%d", i);
        if (g->config[ENTRIES] >> i & 1) zc_gen_define(g, name, ",");
    }
}
