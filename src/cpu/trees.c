/* Decision trees. */
#include <math.h>
#include <string.h>

#include "cpu/kernel.h"
#include "op/trees.h"

/* Rows that a thread takes at least. */
#define GRAIN 16

typedef enum aggregate { SUM, AVERAGE, MIN, MAX } aggregate;

/* Values that are all f32 or all f64. */
typedef struct reals {
    const float *f32; /* or NULL */
    const double *f64;
} reals;

typedef struct forest {
    reals x, splits, weights;
    const int32_t *nodes, *targets, *roots;
    zc_tensor *y;
    int64_t features, count, leaves, nroots, ntargets;
    aggregate how;
    double *scores; /* ntargets of each row */
    bool *scored;
    bool broken; /* a table leads out of itself, or a feature or target does not exist */
} forest;

static reals reals_of(const zc_tensor *t)
{
    return t->dtype == ZC_F32 ? (reals){.f32 = t->data} : (reals){.f64 = t->data};
}

static inline double real(const reals *r, int64_t i)
{
    return r->f32 ? (double)r->f32[i] : r->f64[i];
}

static bool compare(int32_t mode, double x, double split)
{
    switch (mode & ~ZC_TREE_NAN_TRUE) {
    case ZC_TREE_LEQ:
        return x <= split;
    case ZC_TREE_LT:
        return x < split;
    case ZC_TREE_GTE:
        return x >= split;
    case ZC_TREE_GT:
        return x > split;
    case ZC_TREE_EQ:
        return x == split;
    default:
        return x != split;
    }
}

/* Where the walk from `node` ends for a row of x; -1: a table is broken. Each step goes forwards,
 * so that there is an end. */
static int64_t find_leaf(const forest *f, int64_t row, int64_t node)
{
    for (;;) {
        if (node < 0 || node >= f->count) return -1;
        const int32_t *n = f->nodes + node * ZC_TREE_COLUMNS;
        if (n[ZC_TREE_MODE] == ZC_TREE_LEAF) return node;
        if (n[ZC_TREE_FEATURE] < 0 || n[ZC_TREE_FEATURE] >= f->features) return -1;
        const double x = real(&f->x, row * f->features + n[ZC_TREE_FEATURE]);
        const bool is_true = (isnan(x) && (n[ZC_TREE_MODE] & ZC_TREE_NAN_TRUE)) ||
                             compare(n[ZC_TREE_MODE], x, real(&f->splits, node));
        const int64_t next = n[is_true ? ZC_TREE_TRUE : ZC_TREE_FALSE];
        if (next <= node) return -1;
        node = next;
    }
}

static void add(const forest *f, double weight, double *score, bool *scored)
{
    if (f->how == SUM || f->how == AVERAGE)
        *score += weight;
    else if (!*scored || (f->how == MIN ? weight < *score : weight > *score))
        *score = weight;
    *scored = true;
}

static bool add_leaf(const forest *f, int64_t leaf, double *scores, bool *scored)
{
    const int32_t *n = f->nodes + leaf * ZC_TREE_COLUMNS;
    const int64_t first = n[ZC_TREE_FIRST], count = n[ZC_TREE_COUNT];
    if (first < 0 || count < 0 || first > f->leaves || count > f->leaves - first) return false;
    for (int64_t i = first; i < first + count; i++) {
        const int32_t target = f->targets[i];
        if (target < 0 || target >= f->ntargets) return false;
        add(f, real(&f->weights, i), &scores[target], &scored[target]);
    }
    return true;
}

static bool score_row(const forest *f, int64_t row)
{
    double *scores = f->scores + row * f->ntargets;
    bool *scored = f->scored + row * f->ntargets;
    for (int64_t r = 0; r < f->nroots; r++) {
        const int64_t leaf = find_leaf(f, row, f->roots[r]);
        if (leaf < 0 || !add_leaf(f, leaf, scores, scored)) return false;
    }
    for (int64_t t = 0; t < f->ntargets; t++)
        zc_put(f->y, row * f->ntargets + t,
               f->how == AVERAGE && f->nroots ? scores[t] / (double)f->nroots : scores[t]);
    return true;
}

static void score_rows(void *arg, int64_t begin, int64_t end)
{
    forest *f = arg;
    for (int64_t row = begin; row < end; row++)
        if (!score_row(f, row)) __atomic_store_n(&f->broken, true, __ATOMIC_RELAXED);
}

static aggregate find_aggregate(const char *name)
{
    if (strcmp(name, "MIN") == 0) return MIN;
    if (strcmp(name, "MAX") == 0) return MAX;
    return strcmp(name, "AVERAGE") == 0 ? AVERAGE : SUM;
}

zc_status zc_k_TreeEnsemble(zc_kctx *k)
{
    const zc_attrs_TreeEnsemble *a = ZC_ATTRS(k, TreeEnsemble);
    forest f = {.x = reals_of(&k->in[0]),
                .nodes = k->in[1].data,
                .splits = reals_of(&k->in[2]),
                .targets = k->in[3].data,
                .weights = reals_of(&k->in[4]),
                .roots = k->in[5].data,
                .y = &k->out[0],
                .features = k->in[0].dims[1],
                .count = k->in[1].dims[0],
                .leaves = k->in[3].dims[0],
                .nroots = k->in[5].dims[0],
                .ntargets = a->n_targets,
                .how = find_aggregate(a->aggregate_function)};
    const int64_t rows = k->in[0].dims[0];
    const size_t cells = (size_t)zc_tensor_numel(f.y);
    size_t bytes;
    if (!cells) return ZC_OK;
    if (!zc_mul_size(cells, sizeof *f.scores + sizeof *f.scored, &bytes) ||
        !(f.scores = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, k->subject, cells);
    f.scored = (bool *)(f.scores + cells);
    memset(f.scores, 0, bytes);
    zc_parallel(k, rows, GRAIN, score_rows, &f);
    if (!f.broken) return ZC_OK;
    return zc_kernel_fail(k,
                          "a tree leads to a node, feature or target that does not exist (%lld "
                          "features, %lld targets)",
                          (long long)f.features, (long long)f.ntargets);
}
