/* A normalisation of rows without a pass over them, on Hopper: the product that makes
 * them leaves the sum and its rows' moments, the products that read the norm take the sum, weights
 * times gamma, and what mean and beta come to (LinearMoments). A LinearNorm that adds the norm
 * again computes it anew where it does; what else reads it gets a normalisation of the sum.
 *
 * gamma and beta go into the weights where those can be rounded again without losing more than
 * rounding once loses: no overflow, little underflow, in each column. */
#include <math.h>
#include <stdlib.h>

#include "ir/index.h"
#include "op/half.h"
#include "passes/passes.h"
#include "passes/query.h"

enum { FAMILY = ZC_FAMILY_gemm_few_sm90 }; /* that normalises by moments */

/* Products that are worth it: their rows, and the sides of their weights. */
typedef struct range {
    int64_t least, most, side;
} range;
/* Of any side for a step of decoding. More rows are faster in larger tiles, with a pass over their
 * sums; so were longer sides (a vocabulary) where there are more of them. */
static const range measured[] = {{1, 1024, 8192}, {1, 8, INT64_MAX}};
/* What has not run on a GPU, and more rows, slower where measured. */
static const range offered[] = {{9, 64, INT64_MAX}, {1025, INT32_MAX, 8192}};

/* Instead of a norm: sum 0, there is none. */
typedef struct unnormed {
    zc_vid sum, moments, gamma, beta;
    float epsilon;
    bool rms;
} unnormed;

typedef struct moments_pass {
    zc_index x;
    unnormed *of; /* by value */
    size_t values, *changes;
    bool offered; /* also what has not run on a GPU */
    zc_diag *diag;
    zc_status status;
} moments_pass;

typedef struct folded { /* operands of a product that reads rows as they are */
    zc_nid user;
    zc_vid w, sums, bias;
} folded;

/* ---- what fits ---- */

static bool is_constant(const zc_graph *g, zc_vid v)
{
    return v && zc_val(g, v)->kind == ZC_VALUE_CONST;
}

static bool is_in(const range *r, int64_t rows, const zc_type *w)
{
    if (rows < r->least || rows > r->most) return false;
    for (int d = 0; d < 2; d++)
        if (!zc_dim_is_const(w->dims[d]) || w->dims[d].k < 1 || w->dims[d].k % 8 ||
            w->dims[d].k > r->side)
            return false;
    return true;
}

static bool is_in_one(const range *ranges, size_t n, int64_t rows, const zc_type *w)
{
    for (size_t i = 0; i < n; i++)
        if (is_in(&ranges[i], rows, w)) return true;
    return false;
}

static bool is_worth(const moments_pass *m, int64_t rows, const zc_type *w)
{
    return is_in_one(measured, ZC_COUNTOF(measured), rows, w) ||
           (m->offered && is_in_one(offered, ZC_COUNTOF(offered), rows, w));
}

/* Is node n, a Linear or LinearNorm, a product that families with moments serve? */
static bool is_served(const moments_pass *m, const zc_node *n)
{
    const zc_graph *g = m->x.g;
    float alpha = n->op == ZC_OP_Linear ? ((const zc_attrs_Linear *)n->attrs)->alpha
                                        : ((const zc_attrs_LinearNorm *)n->attrs)->alpha;
    const zc_type *x = &zc_val(g, n->in[0])->type, *w = &zc_val(g, n->in[1])->type;
    int64_t rows = 1;
    if (!zc_family_makes(FAMILY, x->dtype) || alpha != 1 || x->rank < 2) return false;
    for (int d = 0; d + 1 < x->rank; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(rows, x->dims[d].k, &rows)) return false;
    return is_worth(m, rows, w) && is_constant(g, n->in[1]) &&
           !zc_op_epilogue(zc_op_get(n->op), n->attrs);
}

static bool reads_once(const zc_node *n, zc_op op, int at, zc_vid v)
{
    int uses = 0;
    for (int i = 0; i < n->nin; i++) uses += n->in[i] == v;
    return n->op == op && uses == 1 && zc_node_in(n, at) == v;
}

static bool reads_as_skip(const moments_pass *m, const zc_node *n, zc_vid v)
{
    return reads_once(n, ZC_OP_LinearNorm, ZC_IN_LinearNorm_skip, v) && is_served(m, n);
}

/* ---- constants ---- */

typedef struct column {
    double sum, shift, error,
        size; /* of rounded weights; beta's part; squares of errors, of weights */
} column;

typedef struct weights {
    const zc_tensor *w, *gamma, *beta; /* of one type of 16 bits; beta may be NULL */
    zc_tensor out;
    bool along_k; /* a column lies along K */
    int64_t k, n;
} weights;

static float *floats_of(const zc_tensor *t, int64_t n)
{
    float *x = zc_calloc((size_t)n, sizeof *x);
    if (x) zc_floats_of_halves(t->dtype, t->data, x, n);
    return x;
}

/* What comes of elements [first, first + n) of a line, times gamma, for their columns. */
static void add_to_columns(const weights *f, column *columns, int64_t line, int64_t first,
                           int64_t n, const float *v, const float *kept)
{
    for (int64_t i = 0; i < n; i++) {
        column *c = &columns[f->along_k ? line : first + i];
        double error = (double)kept[i] - (double)v[i];
        c->sum += (double)kept[i];
        c->error += error * error;
        c->size += (double)v[i] * (double)v[i];
    }
}

static void add_shifts(const weights *f, column *columns, int64_t line, int64_t first, int64_t n,
                       const float *x, const float *beta)
{
    for (int64_t i = 0; i < n; i++)
        columns[f->along_k ? line : first + i].shift +=
            (double)x[i] * (double)beta[f->along_k ? first + i : line];
}

enum { PIECE = 512 }; /* elements that stay in the cache */

/* Weights times gamma into f->out; what comes of each column. Products of two elements are exact.
 */
static void scale_weights(const weights *f, const float *gamma, const float *beta, column *columns)
{
    zc_dtype t = f->w->dtype;
    float x[PIECE], v[PIECE], kept[PIECE];
    int64_t lines = f->along_k ? f->n : f->k, length = f->along_k ? f->k : f->n;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t first = 0; first < length; first += PIECE) {
            int64_t at = line * length + first, n = length - first;
            if (n > PIECE) n = PIECE;
            uint16_t *out = (uint16_t *)f->out.data + at;
            zc_floats_of_halves(t, (const uint16_t *)f->w->data + at, x, n);
            for (int64_t i = 0; i < n; i++) v[i] = x[i] * gamma[f->along_k ? first + i : line];
            zc_halves_of_floats(t, v, out, n);
            zc_floats_of_halves(t, out, kept, n);
            add_to_columns(f, columns, line, first, n, v, kept);
            if (beta) add_shifts(f, columns, line, first, n, x, beta);
        }
}

static bool is_safe(zc_dtype t, const column *c)
{
    double unit = t == ZC_F16 ? 0x1p-11 : 0x1p-8;
    return isfinite(c->sum) && c->error <= unit * unit * c->size;
}

static zc_vid row_constant(zc_graph *g, const char *name, zc_dtype t, int64_t n,
                           const column *columns, const zc_tensor *bias, bool *fits)
{
    zc_tensor out = {.dtype = t, .rank = 1, .dims = {n}};
    if (!(out.data = zc_calloc((size_t)n, 8))) return 0;
    for (int64_t c = 0; c < n; c++) {
        double v = t == ZC_F32 ? columns[c].sum
                               : columns[c].shift + (bias ? zc_load_f64(t, bias->data, c) : 0);
        zc_store_f64(t, out.data, c, v);
        *fits = *fits && isfinite(zc_load_f64(t, out.data, c));
    }
    return zc_graph_const(g, name, &out, true);
}

/* false: no memory. *fits: can the weights be rounded again? */
static bool fold_values(zc_graph *g, const zc_node *user, const unnormed *rows, weights *f,
                        folded *out, bool *fits)
{
    zc_vid bias = zc_node_in(user, ZC_IN_Linear_bias), w = user->in[ZC_IN_Linear_w];
    column *columns = zc_calloc((size_t)f->n, sizeof *columns);
    float *gamma = floats_of(f->gamma, f->k), *beta = f->beta ? floats_of(f->beta, f->k) : NULL;
    bool room = columns && gamma && (beta || !f->beta);
    size_t bytes;
    f->out = *f->w;
    f->out.data = room && zc_tensor_bytes(f->w, &bytes) ? zc_calloc(bytes, 1) : NULL;
    if (f->out.data) {
        zc_dtype t = f->w->dtype;
        scale_weights(f, gamma, beta, columns);
        *fits = true;
        for (int64_t c = 0; c < f->n; c++) *fits = *fits && is_safe(t, &columns[c]);
        const zc_tensor *b = bias ? zc_val(g, bias)->data : NULL;
        out->w = zc_graph_const(g, zc_val(g, w)->name, &f->out, true);
        if (rows->beta || bias) out->bias = row_constant(g, "bias", t, f->n, columns, b, fits);
        if (!rows->rms) out->sums = row_constant(g, "sums", ZC_F32, f->n, columns, NULL, fits);
    }
    free(columns);
    free(gamma);
    free(beta);
    return out->w && (out->bias || !(rows->beta || bias)) && (out->sums || rows->rms);
}

/* What constants without bytes give has none. */
static bool fold_hollow(zc_graph *g, const zc_node *user, const unnormed *rows, int64_t n,
                        folded *out)
{
    zc_type w = zc_val(g, user->in[ZC_IN_Linear_w])->type;
    zc_type row = {.dtype = w.dtype, .rank = 1, .dims = {zc_dim_const(n)}};
    bool shifts = rows->beta || zc_node_in(user, ZC_IN_Linear_bias);
    out->w = zc_graph_hollow(g, "weights", &w);
    if (shifts) out->bias = zc_graph_hollow(g, "bias", &row);
    row.dtype = ZC_F32;
    if (!rows->rms) out->sums = zc_graph_hollow(g, "sums", &row);
    return out->w && (out->bias || !shifts) && (out->sums || rows->rms);
}

/* false: no memory. out->user 0: the user keeps the norm. */
static bool fold(zc_graph *g, zc_nid id, const unnormed *rows, folded *out)
{
    const zc_node *user = zc_node_at(g, id);
    zc_vid operands[] = {user->in[ZC_IN_Linear_w], zc_node_in(user, ZC_IN_Linear_bias), rows->gamma,
                         rows->beta};
    bool hollow = false, fits = true;
    *out = (folded){0};
    for (size_t i = 0; i < ZC_COUNTOF(operands); i++) {
        if (operands[i] && !is_constant(g, operands[i])) return true;
        hollow = hollow || (operands[i] && zc_graph_is_hollow(g, operands[i]));
    }
    bool along_k = ((const zc_attrs_Linear *)user->attrs)->transB;
    const zc_type *w = &zc_val(g, operands[0])->type;
    weights f = {.w = zc_val(g, operands[0])->data,
                 .gamma = zc_val(g, rows->gamma)->data,
                 .beta = rows->beta ? zc_val(g, rows->beta)->data : NULL,
                 .along_k = along_k,
                 .k = w->dims[along_k ? 1 : 0].k,
                 .n = w->dims[along_k ? 0 : 1].k};
    bool room =
        hollow ? fold_hollow(g, user, rows, f.n, out) : fold_values(g, user, rows, &f, out, &fits);
    if (fits) out->user = id;
    return room;
}

/* ---- nodes ---- */

/* A product that reads the norm reads the sum. */
static bool read_sum(moments_pass *m, const unnormed *rows, const folded *f)
{
    zc_graph *g = m->x.g;
    const zc_node *user = zc_node_at(g, f->user);
    const zc_vid inputs[] = {[ZC_IN_LinearMoments_x] = rows->sum,
                             [ZC_IN_LinearMoments_w] = f->w,
                             [ZC_IN_LinearMoments_bias] = f->bias,
                             [ZC_IN_LinearMoments_moments] = rows->moments,
                             [ZC_IN_LinearMoments_sums] = f->sums};
    bool along_k = ((const zc_attrs_Linear *)user->attrs)->transB;
    zc_nid made =
        zc_graph_node(g, NULL, ZC_OP_LinearMoments, user->name, rows->rms ? 4 : 5, inputs, 1);
    if (!made || !zc_graph_inherit(g, made, f->user)) return false;
    if (along_k) ZC_NODE_SET(g, LinearMoments, made, transB, 1);
    ZC_NODE_SET(g, LinearMoments, made, epsilon, rows->epsilon);
    if (rows->rms) ZC_NODE_SET(g, LinearMoments, made, rms, 1);
    zc_node_at(g, made)->out[0] = zc_node_at(g, f->user)->out[0];
    return zc_index_take_place(&m->x, made, f->user);
}

/* The product itself, which makes the sum; 0: no memory. */
static zc_nid make_sum(moments_pass *m, zc_nid id, const unnormed *skip, bool keeps)
{
    zc_graph *g = m->x.g;
    const zc_node *n = zc_node_at(g, id);
    const zc_attrs_LinearNorm *a = n->attrs;
    zc_vid sum = zc_node_out(n, 1);
    zc_vid inputs[9] = {[ZC_IN_LinearMoments_x] = n->in[ZC_IN_LinearNorm_x],
                        [ZC_IN_LinearMoments_w] = n->in[ZC_IN_LinearNorm_w],
                        [ZC_IN_LinearMoments_bias] = zc_node_in(n, ZC_IN_LinearNorm_bias),
                        [ZC_IN_LinearMoments_skip] = zc_node_in(n, ZC_IN_LinearNorm_skip)};
    if (skip) {
        inputs[ZC_IN_LinearMoments_skip] = skip->sum;
        inputs[ZC_IN_LinearMoments_skip_moments] = skip->moments;
        inputs[ZC_IN_LinearMoments_gamma] = skip->gamma;
        inputs[ZC_IN_LinearMoments_beta] = skip->beta;
    }
    zc_nid made =
        zc_graph_node(g, NULL, ZC_OP_LinearMoments, n->name, skip ? 9 : 6, inputs, keeps ? 2 : 1);
    if (!made || !zc_graph_inherit(g, made, id)) return 0;
    if (a->transB) ZC_NODE_SET(g, LinearMoments, made, transB, a->transB);
    if (skip) ZC_NODE_SET(g, LinearMoments, made, skip_epsilon, skip->epsilon);
    if (skip && skip->rms) ZC_NODE_SET(g, LinearMoments, made, skip_rms, 1);
    if (sum)
        zc_node_at(g, made)->out[0] = sum;
    else if (!zc_graph_out(g, made, 0, "sum"))
        return 0;
    if (keeps && !zc_graph_out(g, made, 1, "moments")) return 0;
    m->status = zc_graph_infer(g, made, m->diag);
    return made;
}

/* Behind node `after`: what else reads the norm. */
static bool make_norm(moments_pass *m, zc_nid after, const unnormed *rows, zc_vid y)
{
    zc_graph *g = m->x.g;
    const zc_vid inputs[] = {rows->sum, rows->gamma, rows->beta};
    zc_nid made =
        zc_graph_node(g, NULL, rows->rms ? ZC_OP_RMSNormalization : ZC_OP_LayerNormalization,
                      zc_node_at(g, after)->name, rows->rms ? 2 : 3, inputs, 1);
    if (!made || !zc_graph_inherit(g, made, after)) return false;
    if (rows->rms)
        ZC_NODE_SET(g, RMSNormalization, made, epsilon, rows->epsilon);
    else
        ZC_NODE_SET(g, LayerNormalization, made, epsilon, rows->epsilon);
    zc_node_at(g, made)->out[0] = y;
    zc_val(g, y)->producer = made;
    const zc_node_place *place = zc_index_place(&m->x, after);
    uint32_t block = place->block;
    zc_nid next = place->next;
    if (!zc_index_grow(&m->x) || !zc_index_add(&m->x, made)) return false;
    zc_index_link(&m->x, made, block, next);
    return true;
}

/* ---- the search ---- */

typedef struct readers {
    ZC_VEC(folded) products;
    uint32_t skips;
} readers;

static bool find_readers(moments_pass *m, zc_vid y, const unnormed *rows, readers *out)
{
    zc_graph *g = m->x.g;
    for (uint32_t e = m->x.users.data[y]; e; e = m->x.edges.data[e].next) {
        folded f;
        zc_nid id = m->x.edges.data[e].node;
        if (!zc_use_live(&m->x, e, y)) continue;
        out->skips += reads_as_skip(m, zc_node_at(g, id), y);
        if (!reads_once(zc_node_at(g, id), ZC_OP_Linear, ZC_IN_Linear_x, y) ||
            !is_served(m, zc_node_at(g, id)))
            continue;
        if (!fold(g, id, rows, &f)) return false;
        if (f.user && !ZC_VEC_PUSH(&out->products, f)) return false;
    }
    return zc_index_grow(&m->x);
}

static bool replace(moments_pass *m, zc_nid id, unnormed *rows, const unnormed *skip,
                    const readers *r)
{
    zc_graph *g = m->x.g;
    zc_vid y = zc_node_out(zc_node_at(g, id), 0);
    uint32_t others = y ? m->x.uses.data[y] - r->skips - (uint32_t)r->products.len : 0;
    zc_nid made = make_sum(m, id, skip, r->products.len || r->skips);
    if (!made || m->status != ZC_OK) return made != 0;
    rows->sum = zc_node_out(zc_node_at(g, made), 0);
    rows->moments = zc_node_out(zc_node_at(g, made), 1);
    if (!zc_index_take_place(&m->x, made, id)) return false;
    for (size_t i = 0; i < r->products.len; i++)
        if (!read_sum(m, rows, &r->products.data[i])) return false;
    if (y && r->skips) m->of[y] = *rows;
    ++*m->changes;
    return others == 0 || make_norm(m, id, rows, y);
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    moments_pass *m = user;
    const zc_node *n = zc_node_at(g, id);
    if (n->op != ZC_OP_LinearNorm || !is_served(m, n) || m->status != ZC_OK) return true;
    const zc_attrs_LinearNorm *a = n->attrs;
    unnormed rows = {.gamma = n->in[ZC_IN_LinearNorm_gamma],
                     .beta = zc_node_in(n, ZC_IN_LinearNorm_beta),
                     .epsilon = a->epsilon,
                     .rms = a->rms};
    zc_vid y = zc_node_out(n, 0), added = zc_node_in(n, ZC_IN_LinearNorm_skip);
    unnormed *skip = added && added < m->values && m->of[added].sum && reads_as_skip(m, n, added)
                         ? &m->of[added]
                         : NULL;
    readers r = {0};
    bool room = !y || find_readers(m, y, &rows, &r);
    if (room && (skip || r.products.len)) room = replace(m, id, &rows, skip, &r);
    ZC_VEC_FINI(&r.products);
    return room;
}

static zc_status run(moments_pass *m, zc_graph *g)
{
    if (!(m->of = zc_calloc(m->values, sizeof *m->of))) return zc_fail_nomem(m->diag, "norms", 0);
    if (!zc_index_init(&m->x, g)) return zc_fail_nomem(m->diag, "uses", 0);
    zc_status status = zc_each_node(g, &g->top, visit, m, m->diag);
    if (status == ZC_OK) status = m->status;
    if (status == ZC_OK && !zc_index_finish(&m->x)) status = zc_fail_nomem(m->diag, "nodes", 0);
    zc_index_fini(&m->x);
    return status;
}

zc_status zc_pass_opt_moments(zc_pass *p)
{
    if (!zc_pass_has(p, FAMILY)) return ZC_OK;
    moments_pass m = {.values = p->g->values.len,
                      .changes = &p->changes,
                      .offered = p->options->offered,
                      .diag = p->diag};
    zc_status status = run(&m, p->g);
    free(m.of);
    return status;
}
