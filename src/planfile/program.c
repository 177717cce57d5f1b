#include "planfile/program.h"

static bool holds(const zc_prange *r, const int64_t *dim_values)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < r->nfactors; i++)
        if (!zc_mul_i64(product, zc_dim_value(r->factors[i], dim_values), &product))
            product = INT64_MAX;
    return product >= r->low && product <= r->high;
}

const zc_pchoice *zc_program_choice(const zc_pstep *step, uint32_t arch, const int64_t *dim_values)
{
    for (uint32_t i = 0; i < step->nchoices; i++) {
        const zc_pchoice *c = &step->choices[i];
        bool all = c->arch == arch;
        for (uint32_t n = 0; all && n < c->nranges; n++) all = holds(&c->ranges[n], dim_values);
        if (all) return c;
    }
    return NULL;
}

bool zc_program_uses(const zc_program *p, uint32_t kernel, uint32_t arch)
{
    for (uint32_t s = 0; s < p->nsteps; s++)
        for (uint32_t i = 0; i < p->steps[s].nchoices; i++) {
            const zc_pchoice *c = &p->steps[s].choices[i];
            if (c->kernel == kernel && c->arch == arch) return true;
        }
    return false;
}

int zc_program_arch(const zc_program *p)
{
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].nchoices) return (int)p->steps[i].choices[0].arch;
    return 0;
}
