/* ai.onnx.ml: decision trees become TreeEnsemble, whatever form the model gives them in. */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "import/ml.h"
#include "import/steps.h"
#include "op/trees.h"

/* A node as the model lists it. */
typedef struct tree_node {
    int64_t tree, id; /* its name; TreeEnsemble: 0 and its index */
    int64_t feature;
    int mode; /* ZC_TREE_... */
    bool nan_true;
    double split;
    size_t is_true, is_false; /* rows; of a leaf: none */
    size_t first, count;      /* of a leaf: its weights */
    int32_t number;           /* in the operation's table */
    char state;               /* of the walk that numbers them */
} tree_node;
enum { UNSEEN, OPEN, NUMBERED };

typedef struct weight {
    size_t leaf; /* row */
    size_t order;
    int64_t target;
    double value;
} weight;

typedef struct forest {
    zc_imp *im;
    zc_inode *n;
    ZC_VEC(tree_node) nodes;
    ZC_VEC(weight) weights;
    ZC_VEC(size_t) roots;
    ZC_VEC(size_t) order; /* nodes, those of the operation's table from its end on */
    int64_t targets;
    zc_dtype dtype;
} forest;

static void forest_fini(forest *f)
{
    ZC_VEC_FINI(&f->nodes);
    ZC_VEC_FINI(&f->weights);
    ZC_VEC_FINI(&f->roots);
    ZC_VEC_FINI(&f->order);
}

#define fail(f, ...) zc_imp_fail((f)->im, (f)->n, ZC_ERR_MODEL, __VA_ARGS__)

/* ---- the order: every node before those that it leads to ---- */

/* Depth first without recursion: a node is numbered when all that it leads to is. */
static zc_status number_from(forest *f, size_t root)
{
    ZC_VEC(size_t) stack = {0};
    zc_status status = ZC_OK;
    bool ok = ZC_VEC_PUSH(&stack, root);
    while (ok && stack.len && status == ZC_OK) {
        size_t at = stack.data[stack.len - 1];
        tree_node *node = &f->nodes.data[at];
        if (node->state == OPEN || node->mode == ZC_TREE_LEAF || node->state == NUMBERED) {
            stack.len--;
            if (node->state != NUMBERED) ok = ZC_VEC_PUSH(&f->order, at);
            node->state = NUMBERED;
            continue;
        }
        node->state = OPEN;
        for (int side = 0; side < 2 && ok && status == ZC_OK; side++) {
            size_t to = side ? node->is_true : node->is_false;
            if (f->nodes.data[to].state == OPEN)
                status = fail(f, "node %lld of tree %lld leads back to node %lld: a cycle",
                              (long long)node->id, (long long)node->tree,
                              (long long)f->nodes.data[to].id);
            else if (f->nodes.data[to].state == UNSEEN)
                ok = ZC_VEC_PUSH(&stack, to);
        }
    }
    ZC_VEC_FINI(&stack);
    if (status != ZC_OK) return status;
    return ok ? ZC_OK : zc_imp_nomem(f->im, "trees");
}

static zc_status number_all(forest *f)
{
    for (size_t i = 0; i < f->roots.len; i++) ZC_TRY(number_from(f, f->roots.data[i]));
    for (size_t i = 0; i < f->order.len; i++)
        f->nodes.data[f->order.data[i]].number = (int32_t)(f->order.len - 1 - i);
    return ZC_OK;
}

/* ---- the operation ---- */

static zc_vid table(forest *f, const void *data, zc_dtype dtype, size_t rows, int columns)
{
    zc_tensor t = {.dtype = dtype,
                   .rank = columns > 1 ? 2 : 1,
                   .dims = {(int64_t)rows, columns},
                   .data = (void *)(uintptr_t)data};
    return zc_imp_const(f->im, NULL, &t);
}

static int by_leaf(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    if (x->leaf != y->leaf) return x->leaf < y->leaf ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The weights of a leaf stand together. */
static void collect_weights(forest *f)
{
    if (f->weights.len) qsort(f->weights.data, f->weights.len, sizeof *f->weights.data, by_leaf);
    for (size_t i = 0; i < f->weights.len; i++) {
        tree_node *leaf = &f->nodes.data[f->weights.data[i].leaf];
        if (!leaf->count++) leaf->first = i;
    }
}

static void put_row(const forest *f, const tree_node *node, int32_t *row, void *splits)
{
    if (node->mode == ZC_TREE_LEAF) {
        row[ZC_TREE_MODE] = ZC_TREE_LEAF;
        row[ZC_TREE_FIRST] = (int32_t)node->first;
        row[ZC_TREE_COUNT] = (int32_t)node->count;
        return;
    }
    row[ZC_TREE_MODE] = node->mode | (node->nan_true ? ZC_TREE_NAN_TRUE : 0);
    row[ZC_TREE_FEATURE] = (int32_t)node->feature;
    row[ZC_TREE_TRUE] = f->nodes.data[node->is_true].number;
    row[ZC_TREE_FALSE] = f->nodes.data[node->is_false].number;
    zc_store_f64(f->dtype, splits, node->number, node->split);
}

/* x through the trees; the scores [N, targets]. */
static zc_vid build(forest *f, zc_vid x, const char *aggregate)
{
    const size_t count = f->order.len, weights = f->weights.len;
    zc_arena *arena = f->n->arena;
    int32_t *nodes = zc_arena_alloc(arena, count, ZC_TREE_COLUMNS * sizeof *nodes);
    int32_t *targets = zc_arena_alloc(arena, weights, sizeof *targets);
    int32_t *roots = zc_arena_alloc(arena, f->roots.len, sizeof *roots);
    double *splits = zc_arena_alloc(arena, count, sizeof *splits); /* or floats */
    double *values = zc_arena_alloc(arena, weights, sizeof *values);
    aggregate = zc_arena_strdup(&f->im->g->arena, aggregate);
    if (!nodes || !targets || !roots || !splits || !values || !aggregate) {
        zc_imp_nomem(f->im, "trees");
        return 0;
    }
    collect_weights(f);
    for (size_t i = 0; i < count; i++) {
        const tree_node *node = &f->nodes.data[f->order.data[i]];
        put_row(f, node, nodes + node->number * ZC_TREE_COLUMNS, splits);
    }
    for (size_t i = 0; i < weights; i++) {
        targets[i] = (int32_t)f->weights.data[i].target;
        zc_store_f64(f->dtype, values, (int64_t)i, f->weights.data[i].value);
    }
    for (size_t i = 0; i < f->roots.len; i++) roots[i] = f->nodes.data[f->roots.data[i]].number;
    const zc_vid in[] = {
        zc_imp_cast(f->im, f->n, x, f->dtype),  table(f, nodes, ZC_I32, count, ZC_TREE_COLUMNS),
        table(f, splits, f->dtype, count, 1),   table(f, targets, ZC_I32, weights, 1),
        table(f, values, f->dtype, weights, 1), table(f, roots, ZC_I32, f->roots.len, 1)};
    zc_nid id = zc_imp_node(f->im, f->n, ZC_OP_TreeEnsemble, 6, in, 1);
    ZC_IMP_SET(f->im, TreeEnsemble, id, n_targets, f->targets);
    ZC_IMP_SET(f->im, TreeEnsemble, id, aggregate_function, aggregate);
    return zc_imp_done(f->im, f->n, id);
}

/* The features that x has bound those of the nodes; scores [N, targets] of x [N, F] or [F]. */
static zc_vid finish_trees(forest *f, const char *aggregate)
{
    zc_vid x = zc_ml_rows(f->im, f->n, f->n->in[0]);
    if (f->im->status != ZC_OK) return 0;
    const zc_dim features = zc_val(f->im->g, x)->type.dims[1];
    for (size_t i = 0; i < f->nodes.len; i++) {
        const tree_node *node = &f->nodes.data[i];
        int64_t end = zc_dim_is_const(features) ? features.k : INT32_MAX;
        if (node->mode == ZC_TREE_LEAF || (node->feature >= 0 && node->feature < end)) continue;
        fail(f, "node %lld of tree %lld: feature out of range (got %lld, need [0, %lld])",
             (long long)node->id, (long long)node->tree, (long long)node->feature,
             (long long)end - 1);
        return 0;
    }
    for (size_t i = 0; i < f->weights.len; i++) {
        int64_t target = f->weights.data[i].target;
        if (target >= 0 && target < f->targets) continue;
        fail(f, "weight %zu: target out of range (got %lld, need [0, %lld])", i, (long long)target,
             (long long)f->targets - 1);
        return 0;
    }
    if (number_all(f) != ZC_OK) return 0;
    return build(f, x, aggregate);
}

/* ---- the form of TreeEnsembleRegressor and TreeEnsembleClassifier ---- */

static const char *const mode_names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};

static int find_mode(const ProtobufCBinaryData *s)
{
    for (int i = 0; i < (int)ZC_COUNTOF(mode_names); i++)
        if (s->len == strlen(mode_names[i]) && memcmp(s->data, mode_names[i], s->len) == 0)
            return i;
    return -1;
}

/* The lists of attributes that describe the nodes. */
typedef struct node_lists {
    zc_ints tree, id, feature, is_true, is_false, missing;
    zc_reals split;
    const Onnx__AttributeProto *mode;
} node_lists;

static zc_status need_length(forest *f, const char *name, int64_t got, int64_t need)
{
    if (got == need) return ZC_OK;
    return fail(f, "attribute '%s' has a wrong length (got %lld, need %lld)", name, (long long)got,
                (long long)need);
}

static zc_status take_lists(forest *f, node_lists *l)
{
    zc_imp *im = f->im;
    zc_inode *n = f->n;
    zc_imp_take_ints(im, n, "nodes_treeids", &l->tree);
    zc_imp_take_ints(im, n, "nodes_nodeids", &l->id);
    zc_imp_take_ints(im, n, "nodes_featureids", &l->feature);
    zc_imp_take_ints(im, n, "nodes_truenodeids", &l->is_true);
    zc_imp_take_ints(im, n, "nodes_falsenodeids", &l->is_false);
    zc_imp_take_ints(im, n, "nodes_missing_value_tracks_true", &l->missing);
    zc_ml_reals(im, n, "nodes_values", &l->split);
    zc_ml_drop(im, n, "nodes_hitrates");
    l->mode = zc_imp_take(im, n, "nodes_modes", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    ZC_TRY(im->status);
    const int64_t count = l->tree.n;
    if (!count) return fail(f, "%s needs attribute 'nodes_treeids'", n->op_type);
    ZC_TRY(need_length(f, "nodes_nodeids", l->id.n, count));
    ZC_TRY(need_length(f, "nodes_featureids", l->feature.n, count));
    ZC_TRY(need_length(f, "nodes_truenodeids", l->is_true.n, count));
    ZC_TRY(need_length(f, "nodes_falsenodeids", l->is_false.n, count));
    ZC_TRY(need_length(f, "nodes_values", l->split.n, count));
    ZC_TRY(need_length(f, "nodes_modes", l->mode ? (int64_t)l->mode->n_strings : 0, count));
    if (l->missing.n)
        ZC_TRY(need_length(f, "nodes_missing_value_tracks_true", l->missing.n, count));
    return ZC_OK;
}

/* Rows by tree and id. */
typedef struct row_name {
    int64_t tree, id;
    size_t row;
} row_name;

static int by_name(const void *a, const void *b)
{
    const row_name *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef struct row_index {
    row_name *v;
    size_t n;
} row_index;

static zc_status make_index(forest *f, row_index *out)
{
    out->n = f->nodes.len;
    out->v = zc_arena_alloc(f->n->arena, out->n, sizeof *out->v);
    if (!out->v) return zc_imp_nomem(f->im, "trees");
    for (size_t i = 0; i < out->n; i++)
        out->v[i] = (row_name){f->nodes.data[i].tree, f->nodes.data[i].id, i};
    qsort(out->v, out->n, sizeof *out->v, by_name);
    for (size_t i = 1; i < out->n; i++)
        if (by_name(&out->v[i - 1], &out->v[i]) == 0)
            return fail(f, "node %lld of tree %lld is given twice", (long long)out->v[i].id,
                        (long long)out->v[i].tree);
    return ZC_OK;
}

static zc_status find_row(forest *f, const row_index *index, int64_t tree, int64_t id, size_t *out)
{
    const row_name key = {.tree = tree, .id = id};
    const row_name *hit = bsearch(&key, index->v, index->n, sizeof *index->v, by_name);
    if (!hit)
        return fail(f, "tree %lld has no node %lld, which is named", (long long)tree,
                    (long long)id);
    *out = hit->row;
    return ZC_OK;
}

static zc_status read_nodes(forest *f, const node_lists *l)
{
    for (int i = 0; i < l->tree.n; i++) {
        tree_node node = {.tree = l->tree.v[i],
                          .id = l->id.v[i],
                          .feature = l->feature.v[i],
                          .mode = find_mode(&l->mode->strings[i]),
                          .nan_true = l->missing.n && l->missing.v[i],
                          .split = zc_ml_real(&l->split, i)};
        if (node.mode < 0)
            return fail(f, "node %lld of tree %lld has no known mode", (long long)node.id,
                        (long long)node.tree);
        if (!ZC_VEC_PUSH(&f->nodes, node)) return zc_imp_nomem(f->im, "trees");
    }
    return ZC_OK;
}

/* The first node listed of a tree is its root. */
static zc_status find_roots(forest *f, const row_index *index)
{
    size_t *first = zc_arena_alloc(f->n->arena, index->n, sizeof *first);
    if (!first) return zc_imp_nomem(f->im, "trees");
    size_t trees = 0;
    for (size_t i = 0; i < index->n; i++) {
        if (!i || index->v[i].tree != index->v[i - 1].tree) first[trees++] = index->v[i].row;
        if (index->v[i].row < first[trees - 1]) first[trees - 1] = index->v[i].row;
    }
    for (size_t i = 0; i < trees; i++)
        if (!ZC_VEC_PUSH(&f->roots, first[i])) return zc_imp_nomem(f->im, "trees");
    return ZC_OK;
}

static zc_status read_classic(forest *f, const char *kind)
{
    node_lists l = {.mode = NULL};
    row_index index;
    char name[4][32];
    static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
    zc_ints tree, id, target;
    zc_reals value;
    ZC_TRY(take_lists(f, &l));
    for (int i = 0; i < 4; i++) zc_snprintf(name[i], sizeof name[i], "%s_%s", kind, parts[i]);
    zc_imp_take_ints(f->im, f->n, name[0], &tree);
    zc_imp_take_ints(f->im, f->n, name[1], &id);
    zc_imp_take_ints(f->im, f->n, name[2], &target);
    zc_ml_reals(f->im, f->n, name[3], &value);
    ZC_TRY(f->im->status);
    ZC_TRY(need_length(f, name[1], id.n, tree.n));
    ZC_TRY(need_length(f, name[2], target.n, tree.n));
    ZC_TRY(need_length(f, name[3], value.n, tree.n));
    ZC_TRY(read_nodes(f, &l));
    ZC_TRY(make_index(f, &index));
    for (int i = 0; i < l.tree.n; i++) {
        tree_node *node = &f->nodes.data[i];
        if (node->mode == ZC_TREE_LEAF) continue;
        ZC_TRY(find_row(f, &index, node->tree, l.is_true.v[i], &node->is_true));
        ZC_TRY(find_row(f, &index, node->tree, l.is_false.v[i], &node->is_false));
    }
    for (int i = 0; i < tree.n; i++) {
        weight w = {.order = (size_t)i, .target = target.v[i], .value = zc_ml_real(&value, i)};
        ZC_TRY(find_row(f, &index, tree.v[i], id.v[i], &w.leaf));
        if (!ZC_VEC_PUSH(&f->weights, w)) return zc_imp_nomem(f->im, "trees");
    }
    f->dtype =
        zc_imp_dtype(f->im, f->n->in[0]) == ZC_F64 || l.split.wide || value.wide ? ZC_F64 : ZC_F32;
    return find_roots(f, &index);
}

static zc_status regress(forest *f)
{
    zc_imp *im = f->im;
    zc_inode *n = f->n;
    zc_reals base;
    const char *aggregate = zc_imp_take_str(im, n, "aggregate_function", "SUM");
    const char *transform = zc_imp_take_str(im, n, "post_transform", "NONE");
    f->targets = zc_imp_take_int(im, n, "n_targets", 1);
    zc_ml_reals(im, n, "base_values", &base);
    ZC_TRY(im->status);
    ZC_TRY(read_classic(f, "target"));
    zc_vid y = finish_trees(f, aggregate);
    if (base.n) ZC_TRY(need_length(f, "base_values", base.n, f->targets));
    if (base.n) y = zc_imp_op2(im, n, ZC_OP_Add, y, zc_ml_real_const(im, n, &base, f->dtype));
    y = zc_ml_transform(im, n, y, transform);
    return zc_ml_finish(im, n, y, ZC_F32);
}

zc_status zc_step_tree_ensemble_regressor(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    forest f = {.im = im, .n = n};
    zc_status status = regress(&f);
    forest_fini(&f);
    return status;
}

/* Do all weights have one class? Then there are two: it, or not it. */
static bool one_class(const forest *f)
{
    for (size_t i = 0; i < f->weights.len; i++)
        if (f->weights.data[i].target != 0) return false;
    return f->targets == 2;
}

static bool all_positive(const forest *f)
{
    for (size_t i = 0; i < f->weights.len; i++)
        if (f->weights.data[i].value < 0) return false;
    return true;
}

static zc_status classify(forest *f)
{
    zc_imp *im = f->im;
    zc_inode *n = f->n;
    zc_reals base;
    zc_ml_labels labels;
    ZC_TRY(zc_ml_take_labels(im, n, &labels));
    const char *transform = zc_imp_take_str(im, n, "post_transform", "NONE");
    zc_ml_reals(im, n, "base_values", &base);
    f->targets = labels.n;
    ZC_TRY(im->status);
    ZC_TRY(read_classic(f, "class"));
    const bool binary = one_class(f), positive = all_positive(f);
    if (binary) f->targets = 1;
    zc_vid y = finish_trees(f, "SUM");
    ZC_TRY(im->status);
    if (base.n) ZC_TRY(need_length(f, "base_values", base.n, f->targets));
    if (base.n) y = zc_imp_op2(im, n, ZC_OP_Add, y, zc_ml_real_const(im, n, &base, f->dtype));
    return binary ? zc_ml_finish_binary(im, n, y, &labels, transform, positive ? 0.5 : 0, positive)
                  : zc_ml_finish_classes(im, n, y, &labels, transform);
}

zc_status zc_step_tree_ensemble_classifier(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    forest f = {.im = im, .n = n};
    zc_status status = classify(&f);
    forest_fini(&f);
    return status;
}

/* ---- the form of TreeEnsemble ---- */

enum { MODE_MEMBER = 6, MODES };

typedef struct table_lists {
    zc_ints roots, feature, is_true, is_false, true_leaf, false_leaf, missing, target;
    zc_reals mode, split, weight, members;
} table_lists;

static zc_status take_tables(forest *f, table_lists *l)
{
    zc_imp *im = f->im;
    zc_inode *n = f->n;
    zc_imp_take_ints(im, n, "tree_roots", &l->roots);
    zc_imp_take_ints(im, n, "nodes_featureids", &l->feature);
    zc_imp_take_ints(im, n, "nodes_truenodeids", &l->is_true);
    zc_imp_take_ints(im, n, "nodes_falsenodeids", &l->is_false);
    zc_imp_take_ints(im, n, "nodes_trueleafs", &l->true_leaf);
    zc_imp_take_ints(im, n, "nodes_falseleafs", &l->false_leaf);
    zc_imp_take_ints(im, n, "nodes_missing_value_tracks_true", &l->missing);
    zc_imp_take_ints(im, n, "leaf_targetids", &l->target);
    zc_ml_tensor_reals(im, n, "nodes_modes", &l->mode);
    zc_ml_tensor_reals(im, n, "nodes_splits", &l->split);
    zc_ml_tensor_reals(im, n, "leaf_weights", &l->weight);
    zc_ml_tensor_reals(im, n, "membership_values", &l->members);
    zc_ml_drop(im, n, "nodes_hitrates");
    ZC_TRY(im->status);
    const int64_t count = l->feature.n;
    ZC_TRY(need_length(f, "nodes_truenodeids", l->is_true.n, count));
    ZC_TRY(need_length(f, "nodes_falsenodeids", l->is_false.n, count));
    ZC_TRY(need_length(f, "nodes_trueleafs", l->true_leaf.n, count));
    ZC_TRY(need_length(f, "nodes_falseleafs", l->false_leaf.n, count));
    ZC_TRY(need_length(f, "nodes_modes", l->mode.n, count));
    ZC_TRY(need_length(f, "nodes_splits", l->split.n, count));
    ZC_TRY(need_length(f, "leaf_weights", l->weight.n, l->target.n));
    if (l->missing.n)
        ZC_TRY(need_length(f, "nodes_missing_value_tracks_true", l->missing.n, count));
    return ZC_OK;
}

/* The row of node or leaf `at`; leaves come after the nodes. */
static zc_status resolve(forest *f, const table_lists *l, int node, int64_t at, bool leaf,
                         size_t *out)
{
    const int64_t end = leaf ? l->target.n : l->feature.n;
    if (at < 0 || at >= end)
        return fail(f, "node %d leads to a %s out of range (got %lld, need [0, %lld])", node,
                    leaf ? "leaf" : "node", (long long)at, (long long)end - 1);
    *out = (size_t)at + (leaf ? (size_t)l->feature.n : 0);
    return ZC_OK;
}

/* "x is one of" as a chain of comparisons: further ones become rows of their own. */
static zc_status expand_member(forest *f, const table_lists *l, size_t row, int64_t *next)
{
    tree_node node = f->nodes.data[row];
    const size_t otherwise = node.is_false;
    node.mode = ZC_TREE_EQ;
    size_t at = row;
    bool any = false;
    for (; *next < l->members.n; ++*next) {
        double value = zc_ml_real(&l->members, (int)*next);
        if (isnan(value)) break;
        if (any) {
            f->nodes.data[at].is_false = f->nodes.len;
            at = f->nodes.len;
            if (!ZC_VEC_PUSH(&f->nodes, node)) return zc_imp_nomem(f->im, "trees");
        }
        node.split = value;
        node.is_false = otherwise;
        f->nodes.data[at] = node;
        any = true;
    }
    ++*next; /* the NaN */
    if (any) return ZC_OK;
    return fail(f, "node %lld asks for a member of no set", (long long)node.id);
}

static zc_status read_tables(forest *f)
{
    table_lists l = {.roots = {0}};
    int64_t members = 0;
    ZC_TRY(take_tables(f, &l));
    for (int i = 0; i < l.feature.n; i++) {
        double mode = zc_ml_real(&l.mode, i);
        tree_node node = {.id = i,
                          .feature = l.feature.v[i],
                          .nan_true = l.missing.n && l.missing.v[i],
                          .split = zc_ml_real(&l.split, i)};
        if (!(mode >= 0 && mode < MODES))
            return fail(f, "node %d has no known mode (got %g, need [0, %d])", i, mode, MODES - 1);
        node.mode = (int)mode;
        ZC_TRY(resolve(f, &l, i, l.is_true.v[i], l.true_leaf.v[i] != 0, &node.is_true));
        ZC_TRY(resolve(f, &l, i, l.is_false.v[i], l.false_leaf.v[i] != 0, &node.is_false));
        if (!ZC_VEC_PUSH(&f->nodes, node)) return zc_imp_nomem(f->im, "trees");
    }
    for (int i = 0; i < l.target.n; i++) {
        tree_node leaf = {.id = i, .mode = ZC_TREE_LEAF};
        weight w = {.leaf = f->nodes.len,
                    .order = (size_t)i,
                    .target = l.target.v[i],
                    .value = zc_ml_real(&l.weight, i)};
        if (!ZC_VEC_PUSH(&f->nodes, leaf) || !ZC_VEC_PUSH(&f->weights, w))
            return zc_imp_nomem(f->im, "trees");
    }
    for (int i = 0; i < l.feature.n; i++)
        if (zc_ml_real(&l.mode, i) == MODE_MEMBER)
            ZC_TRY(expand_member(f, &l, (size_t)i, &members));
    for (int i = 0; i < l.roots.n; i++) {
        size_t root;
        ZC_TRY(resolve(f, &l, -1, l.roots.v[i], false, &root));
        if (!ZC_VEC_PUSH(&f->roots, root)) return zc_imp_nomem(f->im, "trees");
    }
    f->dtype = l.split.wide || l.weight.wide ? ZC_F64 : ZC_F32;
    return ZC_OK;
}

static zc_status ensemble(forest *f)
{
    static const char *const aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    zc_imp *im = f->im;
    int64_t aggregate = zc_imp_take_int(im, f->n, "aggregate_function", 1);
    int64_t transform = zc_imp_take_int(im, f->n, "post_transform", 0);
    f->targets = zc_imp_take_int(im, f->n, "n_targets", 1);
    ZC_TRY(im->status);
    if (aggregate < 0 || aggregate >= (int64_t)ZC_COUNTOF(aggregates) || transform < 0 ||
        transform >= (int64_t)ZC_COUNTOF(transforms))
        return fail(f, "no such aggregate_function or post_transform (got %lld and %lld)",
                    (long long)aggregate, (long long)transform);
    const zc_dtype dtype = zc_imp_dtype(im, f->n->in[0]);
    ZC_TRY(read_tables(f));
    if (dtype == ZC_F64) f->dtype = ZC_F64;
    zc_vid y = finish_trees(f, aggregates[aggregate]);
    return zc_ml_finish(im, f->n, zc_ml_transform(im, f->n, y, transforms[transform]), dtype);
}

zc_status zc_step_tree_ensemble(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    forest f = {.im = im, .n = n};
    zc_status status = ensemble(&f);
    forest_fini(&f);
    return status;
}
