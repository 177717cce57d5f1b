/* What a user kernel means, step by step on the CPU.
 *
 * The meaning is a text that the rule's loader wrote, words between spaces:
 *
 *   program := { Op RESULTS {operand} "{" {field value} "}" ";" } "=" {operand}
 *   operand := xN (an input) | tN (a result so far) | _ | #BITS (a number) | [ {integer} ] (i64)
 *   value   := integer | #BITS | "text" | [ {integer or #BITS} ] | dtype
 *
 * #BITS are a double's, in hexadecimal. A number takes the element type of the first operand that
 * has one, bool only when there is no other. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"

enum { VALUES_MAX = 256, OPERANDS_MAX = 64, LIST_MAX = 64, WORD_MAX = 64, OUTS_MAX = 8 };

typedef struct program {
    zc_kctx *k;
    const char *at;
    zc_tensor value[VALUES_MAX]; /* results so far: tN */
    int n;
} program;

static zc_status bad(program *p)
{
    return zc_fail(p->k->diag, ZC_ERR_INTERNAL, p->k->subject,
                   "the kernel's meaning is damaged at \"%.40s\"", p->at);
}

static zc_status no_memory(program *p)
{
    return zc_fail_nomem(p->k->diag, "meaning", 0);
}

/* ---- words ---- */

/* The next word, left in place; its length. */
static size_t peek(program *p)
{
    p->at += strspn(p->at, " ");
    return strcspn(p->at, " ");
}

static bool take(program *p, const char *word)
{
    size_t n = peek(p);
    if (strlen(word) != n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static bool next_word(program *p, char out[WORD_MAX])
{
    size_t n = peek(p);
    if (n == 0 || n >= WORD_MAX) return false;
    memcpy(out, p->at, n);
    out[n] = '\0';
    p->at += n;
    return true;
}

static bool to_int(const char *word, int64_t *out)
{
    char *end;
    *out = strtoll(word, &end, 10);
    return end != word && !*end;
}

static bool to_real(const char *word, double *out)
{
    char *end;
    if (word[0] != '#') return false;
    uint64_t bits = strtoull(word + 1, &end, 16);
    memcpy(out, &bits, sizeof bits);
    return end != word + 1 && !*end;
}

static bool next_int(program *p, int64_t *out)
{
    char word[WORD_MAX];
    return next_word(p, word) && to_int(word, out);
}

static bool next_real(program *p, double *out)
{
    char word[WORD_MAX];
    return next_word(p, word) && to_real(word, out);
}

/* "text" with \" and \\ inside. */
static bool next_text(program *p, const char **out)
{
    peek(p);
    size_t n = strlen(p->at), len = 0;
    char *text = *p->at == '"' ? zc_scratch_get(p->k->scratch, n + 1) : NULL;
    if (!text) return false;
    for (p->at++; *p->at && *p->at != '"'; p->at++) {
        if (*p->at == '\\' && p->at[1]) p->at++;
        text[len++] = *p->at;
    }
    text[len] = '\0';
    *out = text;
    if (*p->at != '"') return false;
    p->at++;
    return true;
}

static bool next_ints(program *p, zc_ints *out)
{
    int64_t *v = zc_scratch_get(p->k->scratch, LIST_MAX * sizeof *v);
    *out = (zc_ints){0, v};
    if (!v || !take(p, "[")) return false;
    while (!take(p, "]"))
        if (out->n == LIST_MAX || !next_int(p, &v[out->n++])) return false;
    return true;
}

static bool next_floats(program *p, zc_floats *out)
{
    float *v = zc_scratch_get(p->k->scratch, LIST_MAX * sizeof *v);
    *out = (zc_floats){0, v};
    if (!v || !take(p, "[")) return false;
    while (!take(p, "]")) {
        double d;
        if (out->n == LIST_MAX || !next_real(p, &d)) return false;
        v[out->n++] = (float)d;
    }
    return true;
}

static bool next_dtype(program *p, zc_dtype *out)
{
    char word[WORD_MAX];
    *out = next_word(p, word) ? zc_dtype_parse(word) : ZC_NONE;
    return *out != ZC_NONE;
}

/* ---- operands ---- */

/* A number, whose element type is found when the other operands are known. */
static bool number(program *p, const char *word, zc_tensor *out)
{
    double *v = zc_scratch_get(p->k->scratch, 2 * sizeof *v);
    *out = (zc_tensor){.dtype = ZC_NONE, .data = v};
    return v && to_real(word, v);
}

static bool type_numbers(zc_tensor *in, int n)
{
    zc_dtype d = ZC_NONE;
    for (int i = 0; i < n; i++)
        if (d == ZC_NONE || d == ZC_BOOL) d = in[i].dtype ? in[i].dtype : d;
    if (d == ZC_NONE) d = ZC_F32;
    for (int i = 0; i < n; i++) {
        if (in[i].dtype != ZC_NONE || !in[i].data) continue;
        double v = *(double *)in[i].data;
        if (zc_dtype_class(d) == ZC_CLASS_COMPLEX) return false;
        memset(in[i].data, 0, 2 * sizeof v);
        in[i].dtype = d;
        zc_store_f64(d, in[i].data, 0, v);
    }
    return true;
}

static bool list(program *p, zc_tensor *out)
{
    zc_ints v;
    if (!next_ints(p, &v)) return false;
    *out = (zc_tensor){.dtype = ZC_I64, .rank = 1, .dims = {v.n}, .data = (void *)(uintptr_t)v.v};
    return true;
}

static bool operand(program *p, zc_tensor *out)
{
    char word[WORD_MAX];
    int64_t i;
    if (peek(p) == 1 && *p->at == '[') return list(p, out);
    *out = (zc_tensor){.dtype = ZC_NONE};
    if (!next_word(p, word)) return false;
    if (strcmp(word, "_") == 0) return true;
    if (word[0] == 'x' && to_int(word + 1, &i) && i >= 0 && i < p->k->nin) {
        *out = p->k->in[i];
        return true;
    }
    if (word[0] == 't' && to_int(word + 1, &i) && i >= 0 && i < p->n) {
        *out = p->value[i];
        return true;
    }
    return number(p, word, out);
}

/* ---- statements ---- */

static bool set_field(program *p, const zc_attr_field *field, void *at)
{
    double v;
    switch (field->kind) {
    case ZC_ATTR_INT:
        return next_int(p, at);
    case ZC_ATTR_FLOAT:
        if (!next_real(p, &v)) return false;
        *(float *)at = (float)v;
        return true;
    case ZC_ATTR_STR:
        return next_text(p, at);
    case ZC_ATTR_INTS:
        return next_ints(p, at);
    case ZC_ATTR_FLOATS:
        return next_floats(p, at);
    case ZC_ATTR_DTYPE:
        return next_dtype(p, at);
    case ZC_ATTR_TENSOR:
        break;
    }
    return false;
}

static bool set_attrs(program *p, const zc_op_info *info, void *attrs)
{
    zc_attrs_default(info, attrs);
    if (!take(p, "{")) return false;
    while (!take(p, "}")) {
        char name[WORD_MAX];
        int i = next_word(p, name) ? zc_attr_find(info, name, strlen(name)) : -1;
        if (i < 0 || !set_field(p, &info->fields[i], zc_attr_at(info, attrs, i))) return false;
        zc_attr_mark(attrs, i);
    }
    return take(p, ";");
}

static zc_status run_statement(program *p)
{
    char name[WORD_MAX];
    zc_tensor in[OPERANDS_MAX];
    int64_t nout = 0;
    int nin = 0;
    zc_op op = next_word(p, name) ? zc_op_find(name, strlen(name)) : ZC_OP_NONE;
    const zc_op_info *info = zc_op_get(op);
    bool known = op != ZC_OP_NONE && op != ZC_OP_UserKernel && !(info->flags & ZC_OPF_REGIONS);
    if (!known || !next_int(p, &nout) || nout < 1 || nout > OUTS_MAX || p->n + nout > VALUES_MAX)
        return bad(p);
    while (peek(p) && *p->at != '{')
        if (nin == OPERANDS_MAX || !operand(p, &in[nin++])) return bad(p);
    if (!type_numbers(in, nin)) return bad(p);
    void *attrs = zc_scratch_get(p->k->scratch, info->attrs_size);
    if (!attrs) return no_memory(p);
    if (!set_attrs(p, info, attrs)) return bad(p);
    zc_tensor *out = &p->value[p->n];
    for (int i = 0; i < nout; i++)
        out[i] = (zc_tensor){.dtype = i < info->max_out ? ZC_F32 : ZC_NONE};
    ZC_TRY(zc_cpu_eval(op, attrs, nin, in, (int)nout, out, false, p->k->subject, p->k->diag));
    p->n += (int)nout;
    return ZC_OK;
}

static zc_status store_result(program *p, zc_tensor *out)
{
    zc_tensor t;
    size_t bytes;
    char got[200], need[200];
    if (!operand(p, &t)) return bad(p);
    if (!zc_present(out)) return ZC_OK;
    if (!zc_tensor_bytes(out, &bytes)) return bad(p);
    bool same = t.dtype == out->dtype && t.rank == out->rank &&
                memcmp(t.dims, out->dims, (size_t)t.rank * sizeof *t.dims) == 0;
    if (!same)
        return zc_kernel_fail(
            p->k, "the kernel's meaning has another type than its result (got %s, need %s)",
            zc_tensor_type_text(&t, got, sizeof got), zc_tensor_type_text(out, need, sizeof need));
    if (bytes) memcpy(out->data, t.data, bytes);
    return ZC_OK;
}

static zc_status run(program *p)
{
    while (!take(p, "=")) ZC_TRY(run_statement(p));
    for (int i = 0; i < p->k->nout; i++) ZC_TRY(store_result(p, &p->k->out[i]));
    return ZC_OK;
}

zc_status zc_k_UserKernel(zc_kctx *k)
{
    const zc_attrs_UserKernel *a = ZC_ATTRS(k, UserKernel);
    program *p = zc_scratch_get(k->scratch, sizeof *p);
    if (!p) return zc_fail_nomem(k->diag, "meaning", sizeof *p);
    p->k = k;
    p->at = a->meaning ? a->meaning : "";
    p->n = 0;
    zc_status status = run(p);
    for (int i = 0; i < p->n; i++) free(p->value[i].data);
    return status;
}
