/* Which convolutions are int8 from the start where they might be f16 or bf16: as bytes they gain
 * next to each other, and between others a step has to make bytes of what they read, and numbers of
 * what they give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/search.h"

/* More parts are judged as one region. */
enum { SWEEPS_MOST = 8, PARTS_MOST = 4096 };

/* Microseconds that a convolution of bytes takes longer than one of f16, whatever its size, and by
 * what part of all a region of bytes has to be held to be faster: so six networks come out as they
 * were measured (bench/NOTES.md). */
#define BYTES_START 1.0
#define MARGIN      1.1

typedef struct costs {
    double half, bytes; /* microseconds */
} costs;

typedef struct regions {
    const zc_precision_params *p;
    const zc_mixed *m;
    zc_precision_type half;
    zc_precision_type *types;
    costs *costs;             /* by part; of those that may be int8 */
    bool *may;                /* ... which these are */
    bool *gives;              /* bytes, to others; work space */
    zc_precision_edge *edges; /* by value */
    size_t *region;           /* by part: another one of its region, or itself; work space */
} regions;

static int by_value(const void *a, const void *b)
{
    const zc_precision_edge *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Are the part's results, and its image, bytes? A product's result is not. */
static bool has_bytes(const regions *r, size_t part)
{
    return r->types[part] == ZC_PRECISION_int8 && !r->m->parts.data[part].is_product;
}

/* Numbers that are joined to bytes make all of them numbers. */
static void find_joined(const regions *r)
{
    for (size_t i = 0; i < r->m->parts.len; i++) r->gives[i] = has_bytes(r, i);
    for (size_t i = 0; i < r->m->edges.len; i++)
        if (r->edges[i].joins && !has_bytes(r, r->edges[i].from)) r->gives[r->edges[i].to] = false;
}

/* What it takes to give those who read the value of these edges what they need: one step. */
static double crossing(const regions *r, const zc_precision_edge *e, size_t count)
{
    const bool bytes = r->gives[e->from];
    bool differs = false;
    for (size_t i = 0; i < count; i++)
        differs =
            differs || (e[i].joins ? bytes && !r->gives[e[i].to] : bytes != has_bytes(r, e[i].to));
    return differs ? zc_precision_crossing_us(&r->p->chips, e->bytes) : 0;
}

/* Of all parts that may be int8, and of all values. */
static double total(const regions *r)
{
    double us = 0;
    find_joined(r);
    for (size_t i = 0; i < r->m->parts.len; i++)
        if (r->may[i])
            us += r->types[i] == ZC_PRECISION_int8 ? r->costs[i].bytes : r->costs[i].half;
    for (size_t i = 0, end; i < r->m->edges.len; i = end) {
        for (end = i + 1; end < r->m->edges.len && r->edges[end].value == r->edges[i].value;) end++;
        us += crossing(r, &r->edges[i], end - i);
    }
    return us;
}

/* The part that stands for the region. */
static size_t region_of(const regions *r, size_t part)
{
    while (r->region[part] != part) part = r->region[part] = r->region[r->region[part]];
    return part;
}

/* Of all parts that may be int8 of the region that `part` stands for, or of this one. */
static void turn(const regions *r, size_t part, bool region)
{
    for (size_t i = 0; i < r->m->parts.len; i++)
        if (region ? r->may[i] && region_of(r, i) == part : i == part)
            r->types[i] = r->types[i] == ZC_PRECISION_int8 ? r->half : ZC_PRECISION_int8;
}

/* They get the other type, if that takes less than so many times what all take now. */
static bool flip(const regions *r, size_t part, bool region, double times, double *us)
{
    turn(r, part, region);
    const double other = total(r);
    const bool faster = other < times * *us;
    if (faster)
        *us = other;
    else
        turn(r, part, region);
    return faster;
}

static void sweep(const regions *r, double *us)
{
    bool any = true;
    for (int i = 0; i < SWEEPS_MOST && any; i++) {
        any = false;
        for (size_t part = 0; part < r->m->parts.len; part++)
            if (r->may[part]) any = flip(r, part, false, 1, us) || any;
    }
}

/* Convolutions of bytes that read each other are one region. */
static void find_regions(const regions *r)
{
    for (size_t i = 0; i < r->m->parts.len; i++) r->region[i] = i;
    for (size_t i = 0; i < r->m->edges.len; i++) {
        const zc_precision_edge *e = &r->edges[i];
        if (has_bytes(r, e->from) && has_bytes(r, e->to))
            r->region[region_of(r, e->from)] = region_of(r, e->to);
    }
}

static void settle_as_one(const regions *r)
{
    double us = total(r);
    memset(r->region, 0, r->m->parts.len * sizeof *r->region); /* the first stands for all */
    flip(r, 0, true, MARGIN, &us);
}

static void settle(const regions *r)
{
    double us = total(r);
    sweep(r, &us);
    find_regions(r);
    for (size_t i = 0; i < r->m->parts.len; i++)
        if (r->may[i] && has_bytes(r, i) && region_of(r, i) == i) flip(r, i, true, MARGIN, &us);
}

/* begins: convolutions of 16 bits may be int8, too, and all are at first. */
static void describe(regions *r, bool begins)
{
    for (size_t i = 0; i < r->m->parts.len; i++) {
        zc_precision_part part = r->m->parts.data[i];
        part.conversion = 0; /* a crossing */
        r->may[i] = !part.is_product && !part.keeps &&
                    zc_precision_applies(r->p, &part, ZC_PRECISION_int8) &&
                    (r->types[i] == ZC_PRECISION_int8 || (begins && r->types[i] == r->half));
        if (!r->may[i]) continue;
        r->costs[i] =
            (costs){zc_precision_us(&r->p->chips, &part, r->half),
                    zc_precision_us(&r->p->chips, &part, ZC_PRECISION_int8) + BYTES_START +
                        (part.wide > 0 ? zc_precision_crossing_us(&r->p->chips, part.wide) : 0)};
        r->may[i] = isfinite(r->costs[i].bytes);
        if (r->may[i]) r->types[i] = ZC_PRECISION_int8;
    }
    for (size_t i = 0; i < r->m->edges.len; i++) r->edges[i] = r->m->edges.data[i];
    qsort(r->edges, r->m->edges.len, sizeof *r->edges, by_value);
}

static bool decide(const zc_precision_params *p, const zc_mixed *m, zc_precision_type half,
                   zc_precision_type *types, bool begins)
{
    const size_t n = m->parts.len + 1;
    regions r = {.p = p,
                 .m = m,
                 .half = half,
                 .types = types,
                 .costs = zc_calloc(n, sizeof *r.costs),
                 .may = zc_calloc(n, sizeof *r.may),
                 .gives = zc_calloc(n, sizeof *r.gives),
                 .edges = zc_calloc(m->edges.len + 1, sizeof *r.edges),
                 .region = zc_calloc(n, sizeof *r.region)};
    const bool ok = r.costs && r.may && r.gives && r.edges && r.region;
    if (ok) {
        describe(&r, begins);
        if (begins && m->parts.len <= PARTS_MOST)
            settle(&r);
        else
            settle_as_one(&r);
    }
    free(r.costs);
    free(r.may);
    free(r.gives);
    free(r.edges);
    free(r.region);
    return ok;
}

bool zc_precision_regions(const zc_precision_params *p, const zc_mixed *m, zc_precision_type half,
                          zc_precision_type *types)
{
    return decide(p, m, half, types, true);
}

bool zc_precision_remains(const zc_precision_params *p, const zc_mixed *m, zc_precision_type half,
                          zc_precision_type *types)
{
    return decide(p, m, half, types, false);
}
