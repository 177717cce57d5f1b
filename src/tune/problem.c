#include "tune/problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "op/expr.h"
#include "op/nhwc.h"

enum { TEXT_MOST = 1024 };

typedef struct shape {
    int rank;
    int64_t dims[ZC_MAX_RANK];
} shape;

typedef struct writer {
    const zc_program *p;
    const zc_pstep *step;
    const zc_op_info *info;
    void *attrs, *usual; /* the step's own, which the normal form may change, and the defaults */
    shape result;
    int64_t rows; /* of a product whose leading axes are all rows; 0: it is none */
    bool transposed;
    zc_buf *out;
} writer;

/* ---- sizes ---- */

/* false: a size is not certain. */
static bool shape_of(const zc_pvalue *v, shape *out)
{
    out->rank = v->rank;
    if (v->rank < 0) return false;
    for (int d = 0; d < v->rank; d++) {
        if (!zc_dim_is_const(v->dims[d])) return false;
        out->dims[d] = v->dims[d].k;
    }
    return true;
}

static void drop_leading_ones(shape *s)
{
    int ones = 0;
    while (ones < s->rank && s->dims[ones] == 1) ones++;
    s->rank -= ones;
    memmove(s->dims, s->dims + ones, (size_t)s->rank * sizeof *s->dims);
}

static void add_leading_ones(shape *s, int rank)
{
    int ones = rank - s->rank;
    if (ones <= 0) return;
    memmove(s->dims + ones, s->dims, (size_t)s->rank * sizeof *s->dims);
    for (int d = 0; d < ones; d++) s->dims[d] = 1;
    s->rank = rank;
}

/* [4,128,768] to [512,768], if these are the result's rows. */
static bool join_rows(const writer *w, shape *s)
{
    int leading = w->result.rank - 1;
    if (s->rank <= leading ||
        memcmp(s->dims, w->result.dims, (size_t)leading * sizeof *s->dims) != 0)
        return false;
    s->dims[0] = w->rows;
    s->rank -= leading - 1;
    memmove(s->dims + 1, s->dims + leading, (size_t)(s->rank - 1) * sizeof *s->dims);
    return true;
}

static bool is_product(zc_op op)
{
    return op == ZC_OP_Linear || op == ZC_OP_ScaledLinear || op == ZC_OP_PackedLinear ||
           op == ZC_OP_SparseLinear || op == ZC_OP_LinearNorm || op == ZC_OP_LinearMoments ||
           op == ZC_OP_GatedLinear;
}

static bool is_mask(zc_op op, uint32_t input)
{
    return op == ZC_OP_Attention &&
           (input == ZC_IN_Attention_mask || input == ZC_IN_Attention_bias);
}

static void normal_input(const writer *w, uint32_t i, shape *s)
{
    bool fused = (int)i >= zc_op_epilogue_first(w->info, w->step->attrs);
    if (w->rows && fused) {
        add_leading_ones(s, w->result.rank);
        if (!join_rows(w, s)) drop_leading_ones(s);
    } else if (w->rows && i == ZC_IN_Linear_w && w->transposed && s->rank == 2) {
        *s = (shape){2, {s->dims[1], s->dims[0]}};
    } else if (w->rows) {
        (void)join_rows(w, s);
    } else if (is_mask(w->step->op, i)) {
        drop_leading_ones(s);
    }
}

/* ---- values ---- */

static bool put_value(writer *w, uint32_t v, int input)
{
    const zc_pvalue *value = &w->p->values[v];
    shape s;
    if (!v) {
        zc_buf_puts(w->out, "_");
        return true;
    }
    if (!shape_of(value, &s)) return false;
    if (input >= 0)
        normal_input(w, (uint32_t)input, &s);
    else if (w->rows)
        (void)join_rows(w, &s);
    zc_buf_printf(w->out, "%s[", zc_dtype_name(value->dtype));
    for (int d = 0; d < s.rank; d++) zc_buf_printf(w->out, "%s%" PRId64, d ? "," : "", s.dims[d]);
    zc_buf_puts(w->out, value->kind == ZC_P_CONST ? "]=" : "]");
    return true;
}

static bool put_values(writer *w, const uint32_t *values, uint32_t n, bool inputs)
{
    while (n && !values[n - 1]) n--;
    for (uint32_t i = 0; i < n; i++) {
        if (i) zc_buf_puts(w->out, ", ");
        if (!put_value(w, values[i], inputs ? (int)i : -1)) return false;
    }
    return true;
}

/* ---- attributes ---- */

static bool is_named(const zc_attr_field *f, const char *name)
{
    return strcmp(f->name, name) == 0;
}

static bool same_float(float a, float b)
{
    zc_buf x = {0}, y = {0};
    zc_expr_put_number((double)a, &x);
    zc_expr_put_number((double)b, &y);
    bool same = !x.failed && !y.failed && strcmp(x.data, y.data) == 0;
    zc_buf_fini(&x);
    zc_buf_fini(&y);
    return same;
}

static bool are_all(const zc_ints *list, int64_t value)
{
    for (int i = 0; i < list->n; i++)
        if (list->v[i] != value) return false;
    return true;
}

static bool is_usual_list(const writer *w, const zc_attr_field *f, const zc_ints *list)
{
    if (is_named(f, "pads")) return are_all(list, 0);
    if (is_named(f, "strides") || is_named(f, "dilations")) return are_all(list, 1);
    return is_named(f, "kernel_shape") && strncmp(w->info->name, "Conv", 4) == 0;
}

static bool is_usual(const writer *w, int i)
{
    const zc_attr_field *f = &w->info->fields[i];
    const void *value = zc_attr_at(w->info, w->attrs, i), *usual = zc_attr_at(w->info, w->usual, i);
    if (f->kind == ZC_ATTR_INT) return *(const int64_t *)value == *(const int64_t *)usual;
    if (f->kind == ZC_ATTR_FLOAT) return same_float(*(const float *)value, *(const float *)usual);
    if (f->kind == ZC_ATTR_DTYPE) return *(const zc_dtype *)value == *(const zc_dtype *)usual;
    if (f->kind == ZC_ATTR_INTS) return is_usual_list(w, f, value);
    if (f->kind != ZC_ATTR_STR) return false;
    const char *a = *(const char *const *)value, *b = *(const char *const *)usual;
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Numbers that every kernel computes with in the same time. */
static bool is_only_a_number(const zc_attr_field *f)
{
    static const char *const names[] = {"epsilon", "norm_epsilon", "scale", "skip_epsilon"};
    for (size_t i = 0; f->kind == ZC_ATTR_FLOAT && i < ZC_COUNTOF(names); i++)
        if (is_named(f, names[i])) return true;
    return false;
}

/* Heads are told by an axis of their own. */
static bool has_heads_axis(const writer *w, const zc_attr_field *f)
{
    uint32_t i = is_named(f, "q_num_heads")    ? ZC_IN_Attention_q
                 : is_named(f, "kv_num_heads") ? ZC_IN_Attention_k
                                               : w->step->nin;
    return w->step->op == ZC_OP_Attention && i < w->step->nin && w->step->in[i] &&
           w->p->values[w->step->in[i]].rank == 4;
}

/* Exporters write down what they like. */
static bool matters(const writer *w, int i)
{
    const zc_attr_field *f = &w->info->fields[i];
    return (*(const uint64_t *)w->attrs >> i & 1) && !is_usual(w, i) && !is_only_a_number(f) &&
           !has_heads_axis(w, f);
}

/* Scales and zero points of what becomes bytes differ from model to model, and in no kernel's time:
 * each is NaN. */
static void forget_scales(zc_expr *e)
{
    bool bytes = false;
    for (int i = 0; i < e->count; i++) {
        const zc_expr_node *n = &e->nodes[i];
        bytes =
            bytes || (n->op == ZC_EX_CAST && n->dtype != ZC_BOOL && zc_dtype_bits(n->dtype) == 8);
    }
    for (int i = 0; bytes && i < e->count; i++)
        if (e->nodes[i].op == ZC_EX_CONST && zc_dtype_is_float(e->nodes[i].dtype))
            e->nodes[i].f = NAN;
}

/* Work that was fused: over x0, which is a value of this type, and n inputs from `first` on. What
 * does not parse stays as it is. */
static void put_work(const writer *w, const char *text, zc_dtype x0, uint32_t first, uint32_t n,
                     zc_buf *out)
{
    zc_dtype types[ZC_EXPR_MAX_INPUTS] = {x0};
    zc_expr *e = zc_calloc(1, sizeof *e);
    bool ok = e && n < ZC_EXPR_MAX_INPUTS && (!n || first + n <= w->step->nin);
    for (uint32_t i = 0; ok && i < n; i++)
        types[i + 1] = w->p->values[w->step->in[first + i]].dtype;
    out->failed |= !e;
    ok = ok && zc_expr_parse(text, types, (int)n + 1, NULL, 0, e, NULL, NULL) == ZC_OK;
    if (ok) forget_scales(e);
    if (!ok || !zc_expr_print(e, out)) {
        out->len = 0;
        zc_buf_puts(out, text);
    }
    free(e);
}

static void put_string(const writer *w, const zc_attr_field *f, const char *text)
{
    zc_buf normal = {0};
    const zc_pvalue *values = w->p->values;
    int extras, like[2];
    uint32_t first = (uint32_t)zc_op_epilogue_first(w->info, w->step->attrs);
    if (text && text == zc_op_prologue(w->info, w->step->attrs, &extras))
        put_work(w, text, values[w->step->in[0]].dtype, (uint32_t)w->info->max_in, (uint32_t)extras,
                 &normal);
    else if (text && text == zc_op_epilogue(w->info, w->step->attrs))
        put_work(w, text, values[w->step->out[0]].dtype, first,
                 w->step->nin > first ? w->step->nin - first : 0, &normal);
    else if (text && text == zc_conv_sum(w->step->op, w->step->attrs, like))
        put_work(w, text, values[w->step->in[like[0]]].dtype, (uint32_t)like[1], 1, &normal);
    else if (text && text == zc_op_also(w->info, w->step->attrs))
        put_work(w, text, values[w->step->in[0]].dtype, 0, 0, &normal);
    const char *shown = normal.data ? normal.data : text;
    zc_attr_print(f, &shown, w->out);
    w->out->failed |= normal.failed;
    zc_buf_fini(&normal);
}

static void put_attrs(const writer *w)
{
    const char *separator = " {";
    for (int i = 0; i < w->info->field_count; i++) {
        const zc_attr_field *f = &w->info->fields[i];
        const void *value = zc_attr_at(w->info, w->attrs, i);
        if (!matters(w, i)) continue;
        zc_buf_printf(w->out, "%s%s = ", separator, f->name);
        if (f->kind == ZC_ATTR_FLOAT)
            zc_expr_put_number((double)*(const float *)value, w->out);
        else if (f->kind == ZC_ATTR_STR)
            put_string(w, f, *(const char *const *)value);
        else
            zc_attr_print(f, value, w->out);
        separator = ", ";
    }
    if (*separator == ',') zc_buf_puts(w->out, "}");
}

/* ---- the whole ---- */

/* false: too many. */
static bool count_rows(writer *w)
{
    w->rows = 1;
    for (int d = 0; d < w->result.rank - 1; d++)
        if (!zc_mul_i64(w->rows, w->result.dims[d], &w->rows)) return false;
    return true;
}

static bool transpose(writer *w)
{
    int i = zc_attr_find(w->info, "transB", strlen("transB"));
    if (!w->rows || i < 0) return false;
    int64_t *value = zc_attr_at(w->info, w->attrs, i);
    *value = !*value;
    zc_attr_mark(w->attrs, i);
    return true;
}

static bool put_problem(writer *w)
{
    const zc_pstep *s = w->step;
    if (!s->nout || !s->out[0] || !shape_of(&w->p->values[s->out[0]], &w->result)) return false;
    if (is_product(s->op) && w->result.rank > 1 && !count_rows(w)) return false;
    if (w->transposed && !transpose(w)) return false;
    zc_buf_printf(w->out, "%s(", w->info->name);
    if (!put_values(w, s->in, s->nin, true)) return false;
    zc_buf_puts(w->out, ") -> ");
    if (!put_values(w, s->out, s->nout, false)) return false;
    put_attrs(w);
    if (w->p->tf32 || s->tf32) zc_buf_puts(w->out, " tf32");
    return !w->out->failed && w->out->len <= TEXT_MOST;
}

static bool put(const zc_program *p, const zc_pstep *step, bool transposed, zc_buf *out)
{
    const zc_op_info *info = zc_op_get(step->op);
    writer w = {.p = p, .step = step, .info = info, .transposed = transposed, .out = out};
    if (step->op == ZC_OP_UserKernel) return false;
    w.attrs = zc_calloc(1, info->attrs_size);
    w.usual = zc_calloc(1, info->attrs_size);
    bool ok = w.attrs && w.usual;
    out->failed |= !ok;
    if (ok) {
        memcpy(w.attrs, step->attrs, info->attrs_size);
        zc_attrs_default(info, w.usual);
        ok = put_problem(&w);
    }
    free(w.attrs);
    free(w.usual);
    return ok;
}

bool zc_problem_text(const zc_program *p, const zc_pstep *step, zc_buf *out)
{
    return put(p, step, false, out);
}

bool zc_problem_transposed(const zc_program *p, const zc_pstep *step, zc_buf *out)
{
    return put(p, step, true, out);
}
