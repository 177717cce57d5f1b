/* lower_precision's values: each f32 value of the graph, and its form in the narrow type. */
#ifndef ZC_PASSES_PRECISION_H
#define ZC_PASSES_PRECISION_H

#include "passes/passes.h"

/* A conversion that stands right before one node. */
typedef struct zc_before {
    zc_nid user, cast;
} zc_before;

/* A constant of the narrow type without bytes, and what it is of. */
typedef struct zc_hollow_twin {
    zc_vid twin, of;
} zc_hollow_twin;
typedef ZC_VEC(zc_hollow_twin) zc_hollow_twins;

typedef struct zc_precision {
    zc_graph *g;
    zc_dtype narrow;
    zc_hollow_twins *hollow; /* NULL: constants get their bytes; else emulation rounds them */
    const zc_kept *kept;     /* may be NULL */
    struct zc_precision_value *values; /* by value id */
    size_t count;                      /* entries of values */
    ZC_VEC(zc_before) before;          /* in the order of their users */
    zc_diag *diag;
} zc_precision;

zc_status zc_precision_init(zc_precision *p, zc_graph *g, zc_dtype narrow, zc_diag *diag);
void zc_precision_fini(zc_precision *p);

/* Is v an f32 value of the model, whatever its type is by now? */
bool zc_precision_ours(const zc_precision *p, zc_vid v);
bool zc_precision_is_const(const zc_precision *p, zc_vid v);
/* Should operations that follow their operands take v in the narrow type? */
bool zc_precision_is_narrow(const zc_precision *p, zc_vid v);
/* v, until now f32, has the narrow type. */
void zc_precision_lower(zc_precision *p, zc_vid v);
/* v stays f32, and users are to take it in the narrow type. */
void zc_precision_prefer_narrow(zc_precision *p, zc_vid v);

/* May the constant v have the narrow type? Not when a finite element is beyond its range, and not
 * when v is one element other than 0 (an epsilon) that would become 0. */
bool zc_precision_in_range(zc_precision *p, zc_vid v);
bool zc_precision_vanishes(const zc_precision *p, zc_vid v);

/* v in the narrow type, the same for all its users. What is finite stays finite: beyond the type's
 * range it gets the largest value, so that a row of scores under a mask of -3.4e38 does not become
 * NaN; infinities stay. 0: no memory. */
zc_vid zc_precision_narrow(zc_precision *p, zc_vid v);
/* v in f32, the same for all its users. 0: no memory. */
zc_vid zc_precision_wide(zc_precision *p, zc_vid v);
/* v in f32 for the pointwise node `user`: a conversion of its own, which grouping makes part of it.
 * 0: no memory. */
zc_vid zc_precision_wide_for(zc_precision *p, zc_vid v, zc_nid user);

/* The f32 value that v is the narrow form of, by zc_precision_narrow; 0: it is none. */
zc_vid zc_precision_origin(const zc_graph *g, zc_vid v);

/* n elements in the narrow type; what is finite stays finite. */
void zc_precision_narrowed(zc_dtype narrow, const float *x, uint16_t *y, int64_t n);
/* In zc_kept: floats that are rounded to this type, or to tf32 (ZC_F32). */
int zc_precision_kept_form(zc_dtype d);

/* The expressions of these conversions, and of the same that give f32. */
const char *zc_precision_clamp_text(zc_dtype narrow);
const char *zc_precision_rounding_text(zc_dtype narrow);

/* Puts the conversions into the blocks. */
zc_status zc_precision_place(zc_precision *p);

/* Turns what was lowered back into f32, with roundings (zc_mixed.emulate). was[count]: the values'
 * types before. kept may be NULL. */
zc_status zc_precision_emulate(zc_graph *g, const zc_dtype *was, size_t count,
                               const zc_hollow_twins *hollow, zc_kept *kept, zc_diag *diag);

#endif
