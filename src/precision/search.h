/* Which type each part of a graph gets, so that the error at the outputs keeps a bound.
 *
 * 1. Every part starts at the cheapest allowed type that is faster, on a GPU convolutions of int8
 *    and of 16 bits by regions; sensitive ones at f32, and those that make an output at f32 or
 *    weights of codes.
 * 2. Sensitivity: neighbouring parts in groups, each group alone in its types and all else in f32;
 *    the worst groups are split and measured again, down to single parts.
 * 3. The worst groups are raised to f32: as few as keep the bound, found by bisection.
 * 4. Of these, the least sensitive that were int4 or fp4 become w8, of the rest those that were
 *    int4, fp4, w8, int8, fp8 or sparse become f16 or bf16, and of the rest the least sensitive
 *    products tf32, where that is allowed, as many as keep it. Convolutions that remain int8 become
 *    f16 or bf16 where they gain too little among those.
 *
 * No more than ZC_PRECISION_MEASURES_MAX runs of the graph on all samples, whatever its size. The
 * same measurements give the same types. */
#ifndef ZC_PRECISION_SEARCH_H
#define ZC_PRECISION_SEARCH_H

#include "precision/calibration.h"
#include "precision/cost.h"

/* Most measurements of a search; and as many times smaller than the bound are errors to be on the
 * samples, as other inputs have other errors, and fused kernels other roundings. */
enum { ZC_PRECISION_MEASURES_MAX = 70, ZC_PRECISION_MARGIN = 2 };

typedef struct zc_precision_error {
    double error;  /* relative to the largest magnitude of the output; INFINITY: not comparable */
    size_t output; /* the worst one */
} zc_precision_error;

/* The worst error over all samples with these types by part; or any that is beyond `enough`. */
typedef zc_status (*zc_precision_measure_fn)(void *user, const zc_precision_type *types,
                                             double enough, zc_precision_error *out, zc_diag *diag);

typedef struct zc_precision_params {
    double max_error;
    bool allowed[ZC_PRECISION_COUNT]; /* f32 always is */
    bool any_speed;                   /* also types that are not known to be faster */
    bool wants_front;                 /* measure some more points for it */
    zc_precision_chips chips;
    const zc_calibration *calibration; /* what int8's and fp8's ranges are of; NULL: the samples */
    const char *const *outputs;        /* names */
    zc_precision_measure_fn measure;
    void *user;
} zc_precision_params;

/* How a part came to its type. */
typedef struct zc_precision_choice_of {
    zc_precision_type from, type; /* at the start, and in the end */
    double alone;     /* error of its group by itself, as it started; -1: not measured */
    uint32_t grouped; /* parts in its group */
    bool remained;    /* of int8, when others had been raised */
} zc_precision_choice_of;

/* One set of types that was measured. */
typedef struct zc_precision_point {
    double us, weights, error;
    size_t narrow; /* parts that are not f32 */
} zc_precision_point;

typedef struct zc_precision_found {
    ZC_VEC(zc_precision_choice_of) parts; /* by part */
    zc_precision_error error;
    size_t measures;
    ZC_VEC(zc_precision_point) points; /* in the order in which they were measured */
} zc_precision_found;

/* ZC_ERR_ACCURACY: f32 does not keep the bound either; out->error says by how much. The caller
 * frees *out, also after a failure. */
zc_status zc_precision_search(const zc_precision_params *p, const zc_mixed *m,
                              zc_precision_found *out, zc_diag *diag);
void zc_precision_found_fini(zc_precision_found *f);

/* Is the type allowed, and something to the part, however fast? */
bool zc_precision_applies(const zc_precision_params *p, const zc_precision_part *part,
                          zc_precision_type type);

/* ---- regions.c ---- */

/* Types that parts start at, by part: convolutions that may be int8 or `half` get what makes all of
 * them fastest together, with what stands between those of both. false: no memory. */
bool zc_precision_regions(const zc_precision_params *p, const zc_mixed *m, zc_precision_type half,
                          zc_precision_type *types);
/* The same of types that some parts were raised to: what remains of int8 becomes `half` unless
 * it is held to be a tenth faster. */
bool zc_precision_remains(const zc_precision_params *p, const zc_mixed *m, zc_precision_type half,
                          zc_precision_type *types);

/* ---- report.c ---- */

/* Lines that tell what was found, each ended by a newline. */
void zc_precision_report(const zc_precision_params *p, const zc_mixed *m,
                         const zc_precision_found *f, zc_buf *out);
/* The points that no other one beats in time, memory and error, by time and
 * memory: a text file. false: no memory. */
bool zc_precision_front(const zc_precision_found *f, zc_buf *out);

#endif
