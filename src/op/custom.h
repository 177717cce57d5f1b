/* The caller's own operators: a node of theirs is the operation Custom. */
#ifndef ZC_OP_CUSTOM_H
#define ZC_OP_CUSTOM_H

#include "op/op.h"
#include "zc/custom.h"

/* Those that a compilation or a session knows; the caller's memory. */
typedef struct zc_custom_set {
    const zc_custom_op *const *ops;
    size_t n;
} zc_custom_set;

/* Are they well-formed, and no two the same? */
zc_status zc_custom_check(const zc_custom_set *set, zc_diag *diag);
/* NULL: it has none; set may be NULL. */
const zc_custom_op *zc_custom_find(const zc_custom_set *set, const char *domain, const char *name);
/* The node's operator, or an error that names it. */
zc_status zc_custom_need(const zc_custom_set *set, const zc_attrs_Custom *a, const char *subject,
                         const zc_custom_op **out, zc_diag *diag);

struct zc_kctx;
struct zc_custom_node {
    const zc_attrs_Custom *attrs;
    const char *subject;
    zc_diag *diag;
    bool failed;             /* and has said why */
    const struct zc_kctx *k; /* of `run` */
};
/* Calls one of the operator's functions, `what`, and says so when it fails without a reason. */
zc_status zc_custom_call(const zc_custom_op *op, zc_custom_node *node, const zc_custom_value *in,
                         size_t nin, zc_custom_value *out, size_t nout);

/* Attributes of a node, as fields of zc_attrs_Custom: `keys` lists them as "<kind> <count> <name>"
 * lines in order, a text's followed by its bytes and a line's end; numbers are in `ints` and
 * `floats`, one after the other. */
enum { ZC_CUSTOM_INT = 'i', ZC_CUSTOM_FLOAT = 'f', ZC_CUSTOM_TEXT = 's' };
enum { ZC_CUSTOM_INTS = 'I', ZC_CUSTOM_FLOATS = 'F' };

#endif
