#include "op/custom.h"

#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "op/infer_common.h"

/* ---- the operators ---- */

static zc_status check_op(const zc_custom_op *given, zc_diag *diag)
{
    zc_custom_op op = {.size = sizeof op};
    if (!given) return zc_fail(diag, ZC_ERR_ARG, "custom_ops", "an operator is NULL");
    ZC_TRY(
        zc_sized_take(given, ZC_SIZE_UPTO(zc_custom_op, user), &op, sizeof op, "custom_ops", diag));
    if (!op.domain || !op.name || !*op.name)
        return zc_fail(diag, ZC_ERR_ARG, "custom_ops", "an operator has no %s",
                       op.domain ? "name" : "domain");
    if (op.infer && op.run) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, op.name, "its function `%s` is NULL",
                   op.infer ? "run" : "infer");
}

zc_status zc_custom_check(const zc_custom_set *set, zc_diag *diag)
{
    if (set->n && !set->ops) return zc_fail(diag, ZC_ERR_ARG, "custom_ops", "is NULL");
    for (size_t i = 0; i < set->n; i++) {
        ZC_TRY(check_op(set->ops[i], diag));
        const zc_custom_set before = {set->ops, i};
        if (zc_custom_find(&before, set->ops[i]->domain, set->ops[i]->name))
            return zc_fail(diag, ZC_ERR_ARG, set->ops[i]->name, "the operator is given twice");
    }
    return ZC_OK;
}

const zc_custom_op *zc_custom_find(const zc_custom_set *set, const char *domain, const char *name)
{
    for (size_t i = 0; set && i < set->n; i++)
        if (strcmp(set->ops[i]->name, name) == 0 && strcmp(set->ops[i]->domain, domain) == 0)
            return set->ops[i];
    return NULL;
}

zc_status zc_custom_need(const zc_custom_set *set, const zc_attrs_Custom *a, const char *subject,
                         const zc_custom_op **out, zc_diag *diag)
{
    const char *domain = a->domain ? a->domain : "", *name = a->name ? a->name : "";
    *out = zc_custom_find(set, domain, name);
    if (*out) return ZC_OK;
    return zc_fail(diag, ZC_ERR_UNSUPPORTED, subject,
                   "needs the operator " ZC_NAME "%s" ZC_NAME ", which is not among custom_ops",
                   domain, *domain ? "." : "", name);
}

static zc_status settle(const zc_custom_op *op, zc_custom_node *node, const char *what,
                        zc_status status)
{
    if (status == ZC_OK || node->failed) return status;
    return zc_fail(node->diag, status, node->subject, "%s of operator " ZC_NAME " fails", what,
                   op->name);
}

zc_status zc_custom_call(const zc_custom_op *op, zc_custom_node *node, const zc_custom_value *in,
                         size_t nin, zc_custom_value *out, size_t nout)
{
    if (node->k) return settle(op, node, "`run`", op->run(op->user, node, in, nin, out, nout));
    return settle(op, node, "`infer`", op->infer(op->user, node, in, nin, out, nout));
}

/* ---- what a node says ---- */

const char *zc_custom_name(const zc_custom_node *node)
{
    return node->subject ? node->subject : "";
}

zc_status zc_custom_fail(zc_custom_node *node, zc_status status, const char *reason)
{
    node->failed = true;
    return zc_fail(node->diag, status, node->subject, "%s", reason ? reason : "");
}

typedef struct attribute {
    const char *text;
    size_t at, n; /* of its numbers, in ints or floats */
} attribute;

/* Plans are the work of others: nothing is believed of the list. */
static bool find(const zc_custom_node *node, char kind, const char *name, attribute *out)
{
    const zc_attrs_Custom *a = node->attrs;
    size_t ints = 0, floats = 0;
    if (!name) return false;
    for (const char *s = a->keys ? a->keys : ""; *s;) {
        char *end;
        const char is = *s;
        const unsigned long long count = s[1] == ' ' ? strtoull(s + 2, &end, 10) : 0;
        const char *key = s[1] == ' ' && *end == ' ' ? end + 1 : NULL;
        const char *stop = key ? strchr(key, '\n') : NULL;
        if (!stop || count > INT32_MAX) return false;
        const bool is_text = is == ZC_CUSTOM_TEXT;
        if (is_text && strnlen(stop + 1, count + 1) <= count) return false;
        size_t *used = is == ZC_CUSTOM_INT || is == ZC_CUSTOM_INTS ? &ints : &floats;
        const bool found = is == kind && strlen(name) == (size_t)(stop - key) &&
                           memcmp(name, key, (size_t)(stop - key)) == 0;
        *out = (attribute){.text = stop + 1, .at = *used, .n = (size_t)count};
        if (found) return true;
        s = stop + 1;
        if (is_text)
            s += count + 1;
        else
            *used += (size_t)count;
    }
    return false;
}

static bool find_ints(const zc_custom_node *node, char kind, const char *name, const int64_t **out,
                      size_t *n)
{
    attribute a;
    const zc_ints *all = &node->attrs->ints;
    if (!find(node, kind, name, &a) || !zc_range_ok(a.at, a.n, (uint64_t)all->n)) return false;
    *out = all->v + a.at;
    *n = a.n;
    return true;
}

static bool find_floats(const zc_custom_node *node, char kind, const char *name, const float **out,
                        size_t *n)
{
    attribute a;
    const zc_floats *all = &node->attrs->floats;
    if (!find(node, kind, name, &a) || !zc_range_ok(a.at, a.n, (uint64_t)all->n)) return false;
    *out = all->v + a.at;
    *n = a.n;
    return true;
}

bool zc_custom_ints(const zc_custom_node *node, const char *name, const int64_t **out, size_t *n)
{
    return find_ints(node, ZC_CUSTOM_INTS, name, out, n);
}

bool zc_custom_floats(const zc_custom_node *node, const char *name, const float **out, size_t *n)
{
    return find_floats(node, ZC_CUSTOM_FLOATS, name, out, n);
}

bool zc_custom_int(const zc_custom_node *node, const char *name, int64_t *out)
{
    const int64_t *v;
    size_t n;
    if (!find_ints(node, ZC_CUSTOM_INT, name, &v, &n) || n != 1) return false;
    *out = *v;
    return true;
}

bool zc_custom_float(const zc_custom_node *node, const char *name, float *out)
{
    const float *v;
    size_t n;
    if (!find_floats(node, ZC_CUSTOM_FLOAT, name, &v, &n) || n != 1) return false;
    *out = *v;
    return true;
}

bool zc_custom_text(const zc_custom_node *node, const char *name, const char **out, size_t *n)
{
    attribute a;
    if (!find(node, ZC_CUSTOM_TEXT, name, &a)) return false;
    *out = a.text;
    *n = a.n;
    return true;
}
