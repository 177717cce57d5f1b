/* Which constants are read packed by fast CPU kernels, and in no other way. */
#include <stdlib.h>

#include "cpu/matmul_panels.h"
#include "cpu/nhwc.h"
#include "runtime/plan.h"

/* A constant as a stretch of the plan file; `other` when something reads it as it is. */
typedef struct stretch {
    const uint8_t *data;
    uint64_t bytes;
    uint32_t value;
    bool packed, other;
} stretch;

typedef struct search {
    stretch *list; /* in ascending order */
    size_t n;
    stretch **by_value;
} search;

static int ascending(const void *pa, const void *pb)
{
    const stretch *a = pa, *b = pb;
    if (a->data != b->data) return a->data < b->data ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static int at_or_before(const void *key, const void *element)
{
    const uint8_t *data = key;
    const stretch *s = element;
    return data < s->data ? -1 : data > s->data;
}

static void list_constants(const zc_program *p, search *f)
{
    for (uint32_t v = 1; v < p->nvalues; v++)
        if (p->values[v].kind == ZC_P_CONST)
            f->list[f->n++] =
                (stretch){.data = p->values[v].data, .bytes = p->values[v].bytes, .value = v};
    if (f->n) qsort(f->list, f->n, sizeof *f->list, ascending);
    const uint8_t *end = NULL;
    stretch *last = NULL;
    for (size_t i = 0; i < f->n; i++) {
        stretch *s = &f->list[i];
        f->by_value[s->value] = s;
        if (last && s->data < end) s->other = last->other = true; /* they overlap */
        if (!last || s->data + s->bytes > end) {
            end = s->data + s->bytes;
            last = s;
        }
    }
}

static void read_attrs(const zc_pstep *step, search *f)
{
    const zc_op_info *info = zc_op_get(step->op);
    for (int i = 0; i < info->field_count; i++) {
        if (info->fields[i].kind != ZC_ATTR_TENSOR) continue;
        const zc_tensor *t =
            *(const zc_tensor *const *)((const char *)step->attrs + info->fields[i].offset);
        stretch *s = t && f->n ? bsearch(t->data, f->list, f->n, sizeof *s, at_or_before) : NULL;
        if (s) s->other = true;
    }
}

static bool reads_packed(const zc_program *p, const zc_pstep *step, uint32_t i)
{
    const zc_pvalue *a = &p->values[step->in[0]], *b = &p->values[step->in[i]];
    if (i != 1) return false;
    if (step->op == ZC_OP_ConvNhwc)
        return zc_conv_nhwc_packs(step->attrs, a->dtype, b->dtype, b->rank);
    return zc_matmul_packs(step->op, a->dtype, b->dtype, b->rank);
}

static void read_step(const zc_program *p, const zc_pstep *step, search *f)
{
    read_attrs(step, f);
    for (uint32_t i = 0; i < step->nin; i++) {
        stretch *s = f->by_value[step->in[i]];
        if (!s) continue;
        if (reads_packed(p, step, i))
            s->packed = true;
        else
            s->other = true;
    }
}

static zc_status keep_origins(zc_plan *plan, const search *f, zc_diag *diag)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) n += f->list[i].packed && !f->list[i].other;
    zc_pack_origin *origins = zc_arena_alloc(&plan->arena, n, sizeof *origins);
    if (!origins) return zc_fail_nomem(diag, "constants", n);
    n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const stretch *s = &f->list[i];
        if (!s->packed || s->other) continue;
        origins[n++] = (zc_pack_origin){.data = plan->bytes + (s->data - plan->bytes),
                                        .bytes = (size_t)s->bytes};
    }
    plan->packs->origins = origins;
    plan->packs->norigins = n;
    return ZC_OK;
}

zc_status zc_plan_find_packable(zc_plan *plan, zc_diag *diag)
{
    const zc_program *p = &plan->program;
    search f = {.list = zc_calloc(p->nvalues, sizeof *f.list),
                .by_value = zc_calloc(p->nvalues, sizeof *f.by_value)};
    zc_status status = ZC_OK;
    if (f.list && f.by_value) {
        list_constants(p, &f);
        for (uint32_t i = 0; i < p->nsteps; i++) read_step(p, &p->steps[i], &f);
        for (uint32_t b = 0; b < p->nblocks; b++)
            for (uint32_t i = 0; i < p->blocks[b].nouts; i++)
                if (f.by_value[p->blocks[b].outs[i]])
                    f.by_value[p->blocks[b].outs[i]]->other = true;
        status = keep_origins(plan, &f, diag);
    } else {
        status = zc_fail_nomem(diag, "constants", p->nvalues);
    }
    free(f.list);
    free(f.by_value);
    return status;
}
