/* On GPUs, products by a constant matrix of which each four neighbours along the summed axis have
 * two elements at most that are not 0: these alone are stored, with where they stand, so that few
 * rows read 9/16 of the matrix's bytes, and of many rows tensor cores multiply twice as many in a
 * cycle. SparseLinear has the form.
 *
 * Behind lower_precision, which knows nothing of such matrices, and before what joins products and
 * normalisations: there are no such steps by sparse matrices. */
#include <stdlib.h>

#include "kernels/linear_cost.h"
#include "op/sparse.h"
#include "passes/passes.h"
#include "passes/quantised.h"
#include "passes/scaled.h"
#include "passes/sparse.h"

/* Less of a summed axis saves nothing (16384 x 3072 x 768 on an H100: 116 us, dense 113 to 116; x
 * 768 x 3072 98 and 113). Of many rows Hopper's products were measured and its models are not
 * asked; less work in all is less than a launch varies (a guess). */
enum { DEPTH_LEAST = 1024, HOPPER = 90 };
static const double work_least = 1 << 30;

/* Microseconds that others must gain by the models of cost: a normalisation, which a dense product
 * may have within it, takes some (a guess). */
static const double gain_least = 3;

/* ---- which ---- */

bool zc_sparse_product_of(const zc_graph *g, const zc_node *n, zc_sparse_product *out)
{
    zc_scalable s;
    if (!zc_product_of(g, n, &s)) return false;
    *out = (zc_sparse_product){.x = s.x,
                               .bias = s.bias,
                               .w = zc_known(g, s.w),
                               .along_k = s.along_k,
                               .alpha = s.alpha,
                               .finished = zc_op_epilogue(zc_op_get(n->op), n->attrs)};
    if (!out->w || out->w->rank != 2 || !zc_dtype_is_float(out->w->dtype)) return false;
    out->n = out->w->dims[s.along_k ? 0 : 1];
    out->k = out->w->dims[s.along_k ? 1 : 0];
    return true;
}

/* Those of column n's four from place k on that are not 0, a bit each. */
static unsigned kept_of(const zc_sparse_product *p, int64_t n, int64_t k)
{
    unsigned kept = 0;
    for (int i = 0; i < ZC_SPARSE_OF; i++)
        if (zc_load_f64(p->w->dtype, p->w->data, zc_sparse_from(p, n, k + i)) != 0) kept |= 1u << i;
    return kept;
}

static int count_of(unsigned kept)
{
    int count = 0;
    for (; kept; kept &= kept - 1) count++;
    return count;
}

bool zc_sparse_each(const zc_sparse_product *p, zc_sparse_four_fn *fn, void *user)
{
    const int64_t fours = p->k / ZC_SPARSE_OF;
    const int64_t lines = p->along_k ? p->n : fours, each = p->along_k ? fours : p->n;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = 0; i < each; i++)
            if (!fn(user, p->along_k ? line : i, (p->along_k ? i : line) * ZC_SPARSE_OF))
                return false;
    return true;
}

static bool is_sparse(void *user, int64_t n, int64_t k)
{
    return count_of(kept_of(user, n, k)) <= ZC_SPARSE_KEPT;
}

bool zc_sparse_has(const zc_sparse_product *p)
{
    zc_sparse_product of = *p;
    if (p->n <= 0 || p->k <= 0 || p->k % ZC_SPARSE_OF) return false;
    return zc_sparse_each(p, is_sparse, &of);
}

/* Microseconds that m rows are held to gain. */
static double gain_of(const zc_sparse_product *p, int64_t m, int arch)
{
    const zc_linear_work w = {.m = m, .n = p->n, .k = p->k};
    return zc_linear_dense_us(&w, arch) - zc_linear_sparse_us(&w, arch);
}

/* Rows that are not certain gain enough by the first range's kernel, a step of decoding, and lose
 * nothing by any other. */
static bool gains_anyhow(const zc_sparse_product *p, int arch)
{
    if (gain_of(p, zc_sparse_ranges[0], arch) < gain_least) return false;
    for (int i = 1; i < ZC_SPARSE_RANGES; i++)
        if (gain_of(p, zc_sparse_ranges[i], arch) < 0) return false;
    return true;
}

static const char *why_slow_on(int arch, const zc_sparse_product *p, int64_t rows)
{
    if (!rows) return gains_anyhow(p, arch) ? NULL : "rows that are not certain would be slower";
    if (arch != HOPPER || rows < ZC_MANY_ROWS)
        return gain_of(p, rows, arch) < gain_least ? "it is held to gain too little (need 3 us)"
                                                   : NULL;
    if ((double)rows * (double)p->n * (double)p->k < work_least)
        return "it has too few products to be faster (need 2^30)";
    return NULL;
}

static const char unknown[] = "not all targets are GPUs that are held to be faster";

static bool is_known(int arch)
{
    for (int i = 0; i < ZC_LINEAR_ARCHS; i++)
        if (zc_linear_archs[i] == arch) return true;
    return false;
}

/* On any architecture from the least target to the greatest; without a GPU as on Hopper. */
static const char *why_slow(const zc_rule_target *t, const zc_sparse_product *p, int64_t rows)
{
    if (!t->cuda) return why_slow_on(HOPPER, p, rows);
    if (!is_known(t->sm) || !is_known(t->sm_most)) return unknown;
    for (int i = 0; i < ZC_LINEAR_ARCHS; i++) {
        const int arch = zc_linear_archs[i];
        const bool within = arch >= t->sm && arch <= t->sm_most;
        const char *why = within ? why_slow_on(arch, p, rows) : NULL;
        if (why) return why;
    }
    return NULL;
}

const char *zc_sparse_refused(const zc_graph *g, const zc_sparse_product *p,
                              const zc_rule_target *target)
{
    const zc_type *x = &zc_val(g, p->x)->type;
    if (!zc_sparse_fits(p->n, p->k)) return "its sides are no multiples of 64";
    if (p->k < DEPTH_LEAST) return "its summed axis is shorter than 1024";
    if (p->alpha != 1 || p->finished || x->rank < 1) return "there is more to the product";
    return why_slow(target, p, zc_certain_rows(x));
}

/* ---- the constants ---- */

/* Room for the constant's elements, all 0. */
static bool make_room(zc_tensor *t)
{
    size_t bytes;
    t->data = zc_tensor_bytes(t, &bytes) ? zc_calloc(bytes, 1) : NULL;
    return t->data != NULL;
}

/* Two of four in any case, as no tensor core knows fewer: those that are not 0, else the first. */
static unsigned two_of(unsigned kept)
{
    for (unsigned i = 0; count_of(kept) < ZC_SPARSE_KEPT; i++) kept |= 1u << i;
    return kept;
}

typedef struct packing {
    const zc_sparse_product *p;
    zc_sparse form;
    void *stored;
    uint32_t *places;
} packing;

static bool put_four(void *user, int64_t n, int64_t k)
{
    const packing *to = user;
    const zc_sparse_product *p = to->p;
    const unsigned kept = two_of(kept_of(p, n, k));
    const int64_t at = zc_sparse_at(&to->form, n, k);
    int shift, count = 0;
    const int64_t word = zc_sparse_word(&to->form, n, k, &shift);
    for (int i = 0; i < ZC_SPARSE_OF; i++) {
        if (!(kept >> i & 1)) continue;
        const double v = zc_load_f64(p->w->dtype, p->w->data, zc_sparse_from(p, n, k + i));
        zc_store_f64(p->w->dtype, to->stored, at + count, v);
        to->places[word] |= (uint32_t)i << (shift + 2 * count++);
    }
    return true;
}

/* false: no memory. */
static bool pack(zc_graph *g, const zc_sparse_product *p, const char *name, zc_vid *w,
                 zc_vid *places)
{
    zc_tensor stored = {.dtype = p->w->dtype,
                        .rank = 5,
                        .dims = {p->n / ZC_SPARSE_SIDE, p->k / ZC_SPARSE_SIDE, ZC_SPARSE_PIECES,
                                 ZC_SPARSE_SIDE, ZC_SPARSE_PIECE}};
    zc_tensor words = {
        .dtype = ZC_U32, .rank = 3, .dims = {stored.dims[0], stored.dims[1], ZC_SPARSE_WORDS}};
    packing to = {.p = p};
    if (!zc_sparse_of(&stored, &to.form) || !make_room(&stored)) return false;
    if (!make_room(&words)) {
        free(stored.data);
        return false;
    }
    to.stored = stored.data;
    to.places = words.data;
    (void)zc_sparse_each(p, put_four, &to);
    *w = zc_graph_const(g, name, &stored, true);
    *places = zc_graph_const(g, NULL, &words, true);
    return *w && *places;
}

/* ---- the node ---- */

static bool is_half(const zc_sparse_product *p)
{
    return p->w->dtype == ZC_F16 || p->w->dtype == ZC_BF16;
}

static const char *why_dense(const zc_pass *pass, const zc_sparse_product *p)
{
    if (zc_pass_on_cpu(pass)) return unknown;
    if (!is_half(p)) return "it is not f16 or bf16 (--precision)";
    return zc_sparse_refused(pass->g, p, pass->options->target);
}

static void tell(const zc_node *n, const char *why, zc_buf *told)
{
    zc_buf_printf(told, "%s '%s' has two zeros in each four weights and stays dense: %s\n",
                  zc_op_get(n->op)->name, n->name, why);
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    zc_pass *pass = user;
    zc_buf *told = pass->options->told;
    zc_sparse_product p;
    const zc_node *node = zc_node_at(g, n);
    if (!zc_sparse_product_of(g, node, &p)) return true;
    const char *why = why_dense(pass, &p);
    if ((why && !told) || !zc_sparse_has(&p)) return true;
    if (why) {
        tell(node, why, told);
        return true;
    }
    zc_vid in[] = {[ZC_IN_SparseLinear_x] = p.x, [ZC_IN_SparseLinear_bias] = p.bias};
    if (!pack(g, &p, zc_val(g, node->in[1])->name, &in[ZC_IN_SparseLinear_w],
              &in[ZC_IN_SparseLinear_places]))
        return false;
    ++pass->changes;
    return zc_graph_become(g, n, ZC_OP_SparseLinear, p.bias ? 4 : 3, in);
}

zc_status zc_pass_opt_sparse(zc_pass *p)
{
    if (zc_pass_on_cpu(p) && !p->options->told) return ZC_OK;
    return zc_each_node(p->g, &p->g->top, visit, p, p->diag);
}
