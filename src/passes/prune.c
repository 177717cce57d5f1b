/* Parts of type sparse: of each four weights the two of the greatest magnitude stay, of equal ones
 * the first. */
#include "passes/prune.h"

#include <math.h>
#include <string.h>

#include "op/sparse.h"
#include "passes/mixed.h"
#include "passes/quantised.h"
#include "passes/sparse.h"

bool zc_prunable_of(const zc_graph *g, const zc_node *n, const zc_rule_target *target,
                    zc_scalable *out)
{
    zc_sparse_product p;
    return zc_product_of(g, n, out) && zc_sparse_product_of(g, n, &p) && p.w->dtype == ZC_F32 &&
           zc_val(g, p.x)->type.dtype == ZC_F32 && !zc_sparse_refused(g, &p, target) &&
           zc_is_finite(p.w);
}

static int count_of(const float *w, const int64_t at[ZC_SPARSE_OF])
{
    int count = 0;
    for (int i = 0; i < ZC_SPARSE_OF; i++) count += w[at[i]] != 0;
    return count;
}

typedef struct pruning {
    const zc_sparse_product *p;
    float *w;
} pruning;

static bool prune_four(void *user, int64_t n, int64_t k)
{
    const pruning *of = user;
    int64_t at[ZC_SPARSE_OF];
    for (int i = 0; i < ZC_SPARSE_OF; i++) at[i] = zc_sparse_from(of->p, n, k + i);
    while (count_of(of->w, at) > ZC_SPARSE_KEPT) {
        int least = -1;
        for (int i = 0; i < ZC_SPARSE_OF; i++) {
            const float own = fabsf(of->w[at[i]]);
            if (own != 0 && (least < 0 || own <= fabsf(of->w[at[least]]))) least = i;
        }
        of->w[at[least]] = 0;
    }
    return true;
}

/* 0: no memory. */
static zc_vid pruned(const zc_parted *parts, const zc_sparse_product *p, const zc_scalable *s)
{
    const int form = zc_kept_form_of(ZC_PRECISION_sparse, s);
    zc_kept *all = parts->mixed->kept;
    const zc_vid kept = zc_kept_use(all, parts->g, s->w, form);
    zc_tensor t = *p->w;
    size_t bytes;
    if (kept) return kept;
    t.data = zc_tensor_bytes(&t, &bytes) ? zc_calloc(bytes, 1) : NULL;
    if (!t.data) return 0;
    memcpy(t.data, p->w->data, bytes);
    pruning of = {p, t.data};
    (void)zc_sparse_each(p, prune_four, &of);
    return zc_kept_take(all, parts->g, s->w, form, &t);
}

/* Is node n the product of a part that is pruned? */
static bool is_pruned(const zc_parted *p, zc_nid n, zc_scalable *s)
{
    const uint32_t number = n < p->nodes ? p->part_of[n] : 0;
    return number && p->mixed->types[number - 1] == ZC_PRECISION_sparse &&
           zc_prunable_of(p->g, zc_node_at(p->g, n), &p->mixed->target, s);
}

zc_status zc_parts_prune(const zc_parted *p)
{
    const zc_block *b = &p->g->top;
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_nid n = b->nodes.data[i];
        zc_scalable s;
        zc_sparse_product of;
        if (!is_pruned(p, n, &s) || !zc_sparse_product_of(p->g, zc_node_at(p->g, n), &of)) continue;
        const zc_vid w = pruned(p, &of, &s);
        if (!w) return zc_fail_nomem(p->diag, "precision", 0);
        zc_node_at(p->g, n)->in[1] = w;
    }
    return ZC_OK;
}
