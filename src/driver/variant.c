#include "driver/variant.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "program/build.h"
#include "runtime/plan.h"

/* Of the bytes of the model's constants, so many times are kept of what is made of them: in two
 * types, as f16 and one more are usual. */
enum { KEPT_TIMES = 2 };

void zc_variants_init(zc_variants *all)
{
    *all = (zc_variants){.base = NULL};
    zc_packs_init(&all->packs);
}

/* Constants of less than 32 MB lie in glibc's heap, which keeps their pages: up to three times the
 * model's bytes while its plan is made. */
static void give_back_pages(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void zc_variants_fini(zc_variants *all)
{
    zc_packs_fini(&all->packs);
    zc_kept_fini(&all->kept);
    zc_graph_destroy(&all->base);
    give_back_pages();
}

void zc_variants_begin(zc_variants *all, zc_graph *base)
{
    size_t bytes, sum = 0;
    for (zc_vid v = 1; v < base->values.len; v++)
        if (zc_val(base, v)->data && zc_tensor_bytes(zc_val(base, v)->data, &bytes))
            (void)zc_add_size(sum, bytes, &sum);
    if (!zc_mul_size(sum, KEPT_TIMES, &all->kept.most)) all->kept.most = SIZE_MAX;
    all->base = base;
}

zc_status zc_variant_make(zc_variant *v, zc_variants *all, zc_diag *diag)
{
    v->all = all;
    zc_arena_init(&v->arena, 0);
    ZC_TRY(zc_graph_recheck(v->graph, diag));
    ZC_TRY(zc_program_build(v->graph, &v->arena, &v->program, diag));
    v->program.version = ZC_VERSION;
    v->program.target = "cpu";
    return zc_plan_of_program(&v->program, &all->packs, &v->plan, diag);
}

void zc_variant_end(zc_variant *v)
{
    zc_plan_destroy(&v->plan);
    if (v->all) zc_arena_fini(&v->arena);
    for (size_t i = 0; v->all && i < v->graph->buffers.len; i++)
        zc_packs_forget(&v->all->packs, v->graph->buffers.data[i]);
    zc_graph_destroy(&v->graph);
}
