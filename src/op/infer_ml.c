/* Shapes of decision trees. */
#include <string.h>

#include "op/infer_common.h"
#include "op/trees.h"

zc_status zc_infer_tree_ensemble(zc_infer *f);

static bool known_aggregate(const char *name)
{
    static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

zc_status zc_infer_tree_ensemble(zc_infer *f)
{
    const zc_attrs_TreeEnsemble *a = ZC_ATTRS(f, TreeEnsemble);
    const zc_type *x = zc_in(f, 0), *nodes = zc_in(f, 1), *targets = zc_in(f, 3);
    if (x->dtype != ZC_F32 && x->dtype != ZC_F64)
        return zc_infer_fail(f, "input 0 has the wrong type (got %s, need f32 or f64)",
                             zc_dtype_name(x->dtype));
    ZC_TRY(zc_infer_need_alike(f, 2, 0));
    ZC_TRY(zc_infer_need_alike(f, 4, 0));
    for (int i = 1; i < f->nin; i += 2)
        if (zc_in(f, i)->dtype != ZC_I32)
            return zc_infer_fail(f, "input %d has the wrong type (got %s, need i32)", i,
                                 zc_dtype_name(zc_in(f, i)->dtype));
    ZC_TRY(zc_infer_need_rank(f, 0, 2, 2));
    ZC_TRY(zc_infer_need_rank(f, 1, 2, 2));
    ZC_TRY(zc_infer_need_rank(f, 3, 1, 1));
    ZC_TRY(zc_infer_need_rank(f, 5, 1, 1));
    const zc_dim columns[2] = {nodes->dims[0], zc_dim_const(ZC_TREE_COLUMNS)};
    ZC_TRY(zc_infer_need_shape(f, 1, 2, columns, "nodes"));
    ZC_TRY(zc_infer_need_shape(f, 2, 1, nodes->dims, "splits"));
    ZC_TRY(zc_infer_need_shape(f, 4, 1, targets->dims, "weights"));
    if (a->n_targets < 1 || a->n_targets > INT32_MAX)
        return zc_infer_fail(f, "n_targets out of range (got %lld, need [1, %d])",
                             (long long)a->n_targets, INT32_MAX);
    if (!known_aggregate(a->aggregate_function))
        return zc_infer_fail(
            f, "no such aggregate_function (got " ZC_NAME ", need SUM, AVERAGE, MIN or MAX)",
            a->aggregate_function);
    const zc_dim dims[2] = {x->dims[0], zc_dim_const(a->n_targets)};
    return zc_infer_set(f, 0, 2, dims);
}
