/* What the parts of the binding share. */
#ifndef ZC_RULES_BINDING_PARTS_H
#define ZC_RULES_BINDING_PARTS_H

#include "rules/check.h"

/* Reads a kernel's clauses. */
typedef struct zc_rl_reader {
    zc_rl_checker c;
    zc_rl_kernel *k;
    bool in_result; /* where results have no shape yet */
} zc_rl_reader;

/* The text in the set's memory; the buffer is gone. NULL: no memory, which the set knows. */
const char *zc_rl_keep(zc_rl_reader *d, zc_buf *text);
/* Is the expression right, and of that type? */
bool zc_rl_is_a(zc_rl_reader *d, zc_rl_expr *e, zc_rl_type need);

/* What a size may be. */
typedef struct zc_rl_range {
    int64_t least, most;
} zc_rl_range;

/* A size as the words of op/sizes.h. */
void zc_rl_put_size(zc_rl_reader *d, zc_buf *out, const zc_rl_expr *e);
/* A clause's values, 1 to `most` sizes, each with `end` behind it. */
const char *zc_rl_sizes(zc_rl_reader *d, const zc_rl_clause *c, int most, const char *end,
                        zc_rl_range of);

/* The first file that CUDA C++ text includes or asks for and that is no header of zc's: what stands
 * behind the directive. false: none, or out has failed. */
bool zc_rl_find_include(const char *text, zc_buf *out);
/* Does the text have the function's name, or make names? */
bool zc_rl_has_function(const char *text, const char *name, bool *nomem);

#endif
