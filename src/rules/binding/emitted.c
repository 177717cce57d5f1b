/* The kernels of a set of rules, and which rules emit them. */
#include "op/sizes.h"
#include "rules/ast.h"
#include "rules/rules.h"

size_t zc_rules_kernel_count(const zc_rules *r)
{
    return r->kernels.len;
}

zc_rule_kernel zc_rules_kernel_at(const zc_rules *r, size_t k)
{
    const zc_attrs_UserKernel *a = &r->kernels.data[k]->attrs;
    return (zc_rule_kernel){.name = a->name, .origin = a->origin, .tuning = a->tuning};
}

void zc_rules_kernel_choose(zc_rules *r, size_t k, size_t combination)
{
    zc_rl_kernel *kernel = r->kernels.data[k];
    (void)zc_tuning_values(kernel->attrs.tuning, combination, kernel->tuned, ZC_RL_TUNED_MAX);
}

/* k: NULL is any kernel. */
static bool emits(const zc_rl_pat *p, const zc_rl_kernel *k)
{
    for (int i = 0; p->kind == ZC_RP_NODE && i < p->args.n; i++)
        if (emits(zc_rl_pat_at(&p->args, i), k)) return true;
    return k ? p->kernel == k : p->kernel != NULL;
}

static bool rule_emits(const zc_rules *r, size_t i, const zc_rl_kernel *k)
{
    const zc_rl_list *emit = &r->rules.data[i]->emit;
    for (int s = 0; s < emit->n; s++)
        if (emits(zc_rl_stmt_at(emit, s)->pat, k)) return true;
    return false;
}

bool zc_rules_emits(const zc_rules *r, size_t i, size_t k)
{
    return rule_emits(r, i, r->kernels.data[k]);
}

bool zc_rules_has_kernels(const zc_rules *r, size_t i)
{
    return rule_emits(r, i, NULL);
}
