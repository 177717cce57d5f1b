/* Constants that are made of others once for several graphs (zc_graph_copy): what trials of types
 * round, prune and make codes of stays from one to the next. */
#ifndef ZC_PASSES_KEPT_H
#define ZC_PASSES_KEPT_H

#include "ir/graph.h"

typedef struct zc_kept_constant {
    const void *from; /* bytes that outlive the graphs */
    int form;         /* what was made of them */
    zc_tensor made;
} zc_kept_constant;

typedef struct zc_kept {
    size_t bytes, most; /* that are held, and may be; what is beyond is made again each time */
    ZC_VEC(zc_kept_constant) list;
} zc_kept;

void zc_kept_fini(zc_kept *k);

/* A constant of g, which was made of the constant v's bytes in this form. 0: it is not there, or no
 * memory. k may be NULL. */
zc_vid zc_kept_use(const zc_kept *k, zc_graph *g, zc_vid v, int form);
/* A constant of g that was made of v in this form, under v's name. The bytes, malloc'd, are taken,
 * and kept where v's are not g's own. 0: no memory. k may be NULL. */
zc_vid zc_kept_take(zc_kept *k, zc_graph *g, zc_vid v, int form, const zc_tensor *made);
/* Is it kept? */
bool zc_kept_has(const zc_kept *k, const zc_graph *g, zc_vid v, int form);

#endif
