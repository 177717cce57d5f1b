/* Pointwise nodes as one scalar expression (op/expr.h). */
#ifndef ZC_PASSES_COMPOSE_H
#define ZC_PASSES_COMPOSE_H

#include "ir/index.h"
#include "op/expr.h"
#include "passes/passes.h"

enum { ZC_PW_NODES = 32, ZC_PW_INPUTS = 16, ZC_PW_TEXT = 4096 };

/* Nodes whose composition is one expression over `inputs`, with `results`. They stand in the order
 * of their definitions. */
typedef struct zc_pw_group {
    zc_nid nodes[ZC_PW_NODES];
    int count;
    zc_vid inputs[ZC_PW_INPUTS];
    int ninputs;
    zc_vid literals[ZC_PW_INPUTS]; /* constants that the text has as numbers */
    int nliterals;
    zc_vid results[ZC_EXPR_MAX_RESULTS]; /* of its nodes; none given: that of the last */
    int nresults;
    bool widens; /* it must mean the same work where x0 is f32 (ZC_OPF_WIDENS) */
} zc_pw_group;

/* Has it an expression, over element types that expressions know? */
bool zc_pw_is(const zc_graph *g, const zc_node *n);
/* false: too many. */
bool zc_pw_add_input(zc_pw_group *gr, zc_vid v);
/* Inputs from `first` on that are constants of one element become literals, where the other inputs
 * still make up the shape of the result. */
void zc_pw_inline(const zc_graph *g, zc_pw_group *gr, int first);
/* The group's expression: input i is named xi. fits: it is within the limits of expressions, and
 * its results have their values' element types. */
zc_status zc_pw_compose(const zc_graph *g, const zc_pw_group *gr, zc_buf *text, bool *fits,
                        zc_diag *diag);
/* A Pointwise node with this text in the place of node `at` of the group, which the others leave.
 * false: no memory. */
bool zc_pw_replace(zc_index *x, const zc_pw_group *gr, zc_nid at, const char *text);
/* Nodes in the order of their block. */
void zc_pw_sort(const zc_index *x, zc_pw_group *gr);
bool zc_pw_has(const zc_pw_group *gr, zc_nid n);

#endif
