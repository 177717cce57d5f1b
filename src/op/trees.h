/* The table of nodes of a TreeEnsemble, a row of four numbers for each node. */
#ifndef ZC_OP_TREES_H
#define ZC_OP_TREES_H

/* A branch: x[FEATURE] is compared with the node's split, then the walk goes on at row TRUE or
 * FALSE, which comes after the node's own. A leaf: COUNT weights from FIRST on. */
enum { ZC_TREE_MODE, ZC_TREE_FEATURE, ZC_TREE_TRUE, ZC_TREE_FALSE, ZC_TREE_COLUMNS };
enum { ZC_TREE_FIRST = ZC_TREE_TRUE, ZC_TREE_COUNT = ZC_TREE_FALSE };

/* What x must be to its split for TRUE; the numbers are ONNX's. */
enum { ZC_TREE_LEQ, ZC_TREE_LT, ZC_TREE_GTE, ZC_TREE_GT, ZC_TREE_EQ, ZC_TREE_NEQ, ZC_TREE_LEAF };
/* Added to the mode: NaN goes to TRUE, whatever the comparison says. */
#define ZC_TREE_NAN_TRUE 8

#endif
