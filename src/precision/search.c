#include "precision/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* Of ZC_PRECISION_MEASURES_MAX: groups at first, measurements of groups in all, those among them
 * that are kept for another type, and those of points that are there for the front alone. Four
 * bisections, which take 6 each at most, the start and f32 are left. */
enum { GROUPS_FIRST = 16, GROUPS_MEASURES = 34, RANGE_MEASURES = 4, FRONT_MEASURES = 6 };

/* Neighbours among the parts that do not start at f32. */
typedef struct group {
    size_t first, count; /* of search.order */
    double error;        /* alone */
} group;

typedef struct search {
    const zc_precision_params *p;
    const zc_mixed *m;
    zc_precision_found *found;
    size_t *order; /* parts that do not start at f32, in running order */
    size_t count;
    zc_precision_type *types; /* work space */
    ZC_VEC(group) groups;
    size_t group_measures;
    bool left_range; /* did any part start at another type than was first thought? */
    zc_diag *diag;
} search;

static zc_status no_memory(const search *s)
{
    return zc_fail_nomem(s->diag, "precision", s->m->parts.len);
}

/* ---- the start ---- */

bool zc_precision_applies(const zc_precision_params *p, const zc_precision_part *part,
                          zc_precision_type type)
{
    return p->allowed[type] && (type != ZC_PRECISION_tf32 || part->is_product) &&
           (!zc_precision_code_bits(type) || part->codes) &&
           (type != ZC_PRECISION_fp8 || part->scales) &&
           (type != ZC_PRECISION_int8 || part->quantises) &&
           (type != ZC_PRECISION_sparse || part->prunes);
}

/* Is the type allowed, and faster? What makes an output has a result of f32, whatever its weights
 * are. */
static bool suits(const search *s, const zc_precision_part *part, zc_precision_type type)
{
    const bool *allowed = s->p->allowed;
    const bool half = allowed[ZC_PRECISION_f16] || allowed[ZC_PRECISION_bf16];
    if (part->keeps && !(part->keeps_result && zc_precision_code_bits(type))) return false;
    if (!zc_precision_applies(s->p, part, type)) return false;
    return (s->p->any_speed && type != ZC_PRECISION_int8) ||
           zc_precision_faster(&s->p->chips, part, type, half);
}

/* The type, or the first behind it that is something to the part. */
static zc_precision_type suited(const search *s, const zc_precision_part *part, int type)
{
    while (type < ZC_PRECISION_f32 && !suits(s, part, (zc_precision_type)type)) type++;
    return (zc_precision_type)type;
}

/* Groups that the caller asked for have to divide the sums; those of fp4 are what they are. */
static zc_status check_group(const search *s, const zc_precision_part *part, zc_precision_type type)
{
    if (!zc_precision_code_bits(type) || !s->m->group || part->forms[type].is_float ||
        part->forms[type].group == s->m->group)
        return ZC_OK;
    return zc_fail(s->diag, ZC_ERR_ARG, part->names,
                   "weights '%s' are not in groups of %lld (got sums of %lld)", part->codes,
                   (long long)s->m->group, (long long)part->forms[type].group);
}

static zc_precision_type half_of(const search *s)
{
    return s->p->allowed[ZC_PRECISION_f16] ? ZC_PRECISION_f16 : ZC_PRECISION_bf16;
}

/* On a GPU that may have convolutions of int8 and of 16 bits. */
static bool has_regions(const search *s)
{
    return s->p->chips.narchs && s->p->allowed[ZC_PRECISION_int8] && s->p->allowed[half_of(s)];
}

/* Types to start at, in s->types. */
static zc_status put_starts(search *s)
{
    for (size_t i = 0; i < s->m->parts.len; i++) s->types[i] = suited(s, &s->m->parts.data[i], 0);
    if (!has_regions(s)) return ZC_OK;
    return zc_precision_regions(s->p, s->m, half_of(s), s->types) ? ZC_OK : no_memory(s);
}

static zc_status start(search *s)
{
    size_t n = s->m->parts.len;
    s->order = zc_calloc(n + 1, sizeof *s->order);
    s->types = zc_calloc(n + 1, sizeof *s->types);
    if (!s->order || !s->types) return no_memory(s);
    ZC_TRY(put_starts(s));
    for (size_t i = 0; i < n; i++) {
        zc_precision_choice_of c = {.from = s->types[i], .type = s->types[i], .alone = -1};
        ZC_TRY(check_group(s, &s->m->parts.data[i], c.from));
        if (!ZC_VEC_PUSH(&s->found->parts, c)) return no_memory(s);
        if (c.from != ZC_PRECISION_f32) s->order[s->count++] = i;
    }
    return ZC_OK;
}

/* ---- measuring ---- */

static zc_precision_choice_of *choice(const search *s, size_t at)
{
    return &s->found->parts.data[s->order[at]];
}

static void all_f32(const search *s)
{
    for (size_t i = 0; i < s->m->parts.len; i++) s->types[i] = ZC_PRECISION_f32;
}

static void take_types(const search *s)
{
    for (size_t i = 0; i < s->m->parts.len; i++) s->types[i] = s->found->parts.data[i].type;
}

static double bound(const search *s)
{
    return s->p->max_error / ZC_PRECISION_MARGIN;
}

/* Of s->types; an error beyond `enough` need not be the worst, unless the front wants it. Every set
 * that is measured is a point. */
static zc_status measure(search *s, double enough, zc_precision_error *out)
{
    zc_precision_point point = {.us = 0};
    s->found->measures++;
    if (s->p->wants_front) enough = INFINITY;
    ZC_TRY(s->p->measure(s->p->user, s->types, enough, out, s->diag));
    for (size_t i = 0; i < s->m->parts.len; i++) {
        const zc_precision_part *part = &s->m->parts.data[i];
        point.us += zc_precision_us(&s->p->chips, part, s->types[i]);
        point.weights += zc_precision_weights(&s->p->chips, part, s->types[i]);
        point.narrow += s->types[i] != ZC_PRECISION_f32;
    }
    point.error = out->error;
    return ZC_VEC_PUSH(&s->found->points, point) ? ZC_OK : no_memory(s);
}

static bool keeps_bound(const search *s, const zc_precision_error *e)
{
    return e->error <= bound(s);
}

/* ---- sensitivity ---- */

static zc_status measure_group(search *s, group *g)
{
    zc_precision_error e;
    all_f32(s);
    for (size_t i = 0; i < g->count; i++)
        s->types[s->order[g->first + i]] = choice(s, g->first + i)->from;
    s->group_measures++;
    ZC_TRY(measure(s, INFINITY, &e));
    g->error = e.error;
    return ZC_OK;
}

static zc_status add_group(search *s, size_t first, size_t count)
{
    group g = {.first = first, .count = count};
    ZC_TRY(measure_group(s, &g));
    return ZC_VEC_PUSH(&s->groups, g) ? ZC_OK : no_memory(s);
}

static zc_status make_groups(search *s)
{
    size_t n = s->count < GROUPS_FIRST ? s->count : GROUPS_FIRST;
    for (size_t i = 0, first = 0; i < n; i++) {
        size_t end = s->count * (i + 1) / n;
        ZC_TRY(add_group(s, first, end - first));
        first = end;
    }
    return ZC_OK;
}

/* The worst group of several parts; NULL: none adds enough to be worth a look. */
static group *worst_divisible(const search *s)
{
    group *worst = NULL;
    const double least = bound(s) / 8;
    for (size_t i = 0; i < s->groups.len; i++) {
        group *g = &s->groups.data[i];
        if (g->count > 1 && g->error > least && (!worst || g->error > worst->error)) worst = g;
    }
    return worst;
}

static zc_status split_groups(search *s)
{
    group *g;
    while (s->group_measures + 2 <= GROUPS_MEASURES - RANGE_MEASURES && (g = worst_divisible(s))) {
        size_t half = g->count / 2, first = g->first + half, count = g->count - half;
        g->count = half;
        ZC_TRY(measure_group(s, g));
        ZC_TRY(add_group(s, first, count));
    }
    return ZC_OK;
}

/* Where nothing finite comes of a type, the next of fewer digits and more range may do. */
static zc_status leave_range(search *s)
{
    for (size_t i = 0; i < s->groups.len; i++) {
        group *g = &s->groups.data[i];
        bool is_f16 = choice(s, g->first)->from == ZC_PRECISION_f16;
        if (!is_f16 || isfinite(g->error) || !s->p->allowed[ZC_PRECISION_bf16] ||
            s->group_measures >= GROUPS_MEASURES)
            continue;
        for (size_t k = 0; k < g->count; k++) {
            zc_precision_choice_of *c = choice(s, g->first + k);
            if (c->from == ZC_PRECISION_f16) c->from = c->type = ZC_PRECISION_bf16;
        }
        s->left_range = true;
        ZC_TRY(measure_group(s, g));
    }
    return ZC_OK;
}

static int by_error(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->error != y->error) return x->error > y->error ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void tell_groups(const search *s)
{
    for (size_t i = 0; i < s->groups.len; i++)
        for (size_t k = 0; k < s->groups.data[i].count; k++) {
            zc_precision_choice_of *c = choice(s, s->groups.data[i].first + k);
            c->alone = s->groups.data[i].error;
            c->grouped = (uint32_t)s->groups.data[i].count;
        }
}

static zc_status find_sensitivity(search *s, bool split)
{
    ZC_TRY(make_groups(s));
    if (split) ZC_TRY(split_groups(s));
    if (split) ZC_TRY(leave_range(s));
    if (s->groups.len) qsort(s->groups.data, s->groups.len, sizeof *s->groups.data, by_error);
    tell_groups(s);
    return ZC_OK;
}

/* ---- raising ---- */

enum { AS_STARTED = ZC_PRECISION_COUNT };

/* The groups from `first` to `end` get this type, or what parts started at if that is finer. */
static void set_groups(const search *s, size_t first, size_t end, int type)
{
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < s->groups.data[i].count; k++) {
            size_t at = s->groups.data[i].first + k;
            zc_precision_choice_of *c = choice(s, at);
            const int finer = type > (int)c->from ? type : (int)c->from;
            c->type =
                type == AS_STARTED ? c->from : suited(s, &s->m->parts.data[s->order[at]], finer);
        }
}

/* Of the groups before `end` the first `exact` get f32 and the others this type; those behind stay.
 */
static void split(const search *s, size_t exact, size_t end, int type)
{
    set_groups(s, 0, exact, ZC_PRECISION_f32);
    set_groups(s, exact, end, type);
}

static zc_status try_split(search *s, size_t exact, size_t end, int type, zc_precision_error *e)
{
    split(s, exact, end, type);
    take_types(s);
    return measure(s, bound(s), e);
}

/* The fewest groups before `end`, from the worst on, that have to be f32 while the others have this
 * type: 0 are known not to be enough, and all to be, with the error *best. */
static zc_status bisect(search *s, size_t end, int type, size_t *out, zc_precision_error *best)
{
    size_t high = end;
    for (size_t low = 0; high - low > 1;) {
        size_t middle = low + (high - low) / 2;
        zc_precision_error e;
        ZC_TRY(try_split(s, middle, end, type, &e));
        if (keeps_bound(s, &e)) {
            high = middle;
            *best = e;
        } else {
            low = middle;
        }
    }
    split(s, high, end, type);
    *out = high;
    return ZC_OK;
}

/* Is the type one that a group may have which was raised from another? w8 is to codes of 4 bits
 * alone. */
static bool is_finer(zc_precision_type from, zc_precision_type type)
{
    if (type == ZC_PRECISION_w8) return zc_precision_code_bits(from) == 4;
    return from < type && (type == ZC_PRECISION_tf32 || zc_precision_is_asked_for(from));
}

/* Of the first *raised groups, which are f32, as many as keep the bound get the type. */
static zc_status lower_again(search *s, zc_precision_type type, size_t *raised,
                             zc_precision_error *best)
{
    zc_precision_error e;
    bool any = false;
    for (size_t i = 0; i < *raised; i++)
        any |= is_finer(choice(s, s->groups.data[i].first)->from, type);
    if (!s->p->allowed[type] || !any) return ZC_OK;
    ZC_TRY(try_split(s, 0, *raised, type, &e));
    if (!keeps_bound(s, &e)) return bisect(s, *raised, type, raised, best);
    *best = e;
    *raised = 0;
    return ZC_OK;
}

static zc_status raise(search *s, const zc_precision_error *exact)
{
    size_t raised;
    zc_precision_error best = *exact;
    const zc_precision_type half = half_of(s);
    if (s->left_range) {
        ZC_TRY(try_split(s, 0, s->groups.len, AS_STARTED, &s->found->error));
        if (keeps_bound(s, &s->found->error)) return ZC_OK;
    }
    ZC_TRY(bisect(s, s->groups.len, AS_STARTED, &raised, &best));
    ZC_TRY(lower_again(s, ZC_PRECISION_w8, &raised, &best));
    ZC_TRY(lower_again(s, half, &raised, &best));
    ZC_TRY(lower_again(s, ZC_PRECISION_tf32, &raised, &best));
    s->found->error = best;
    return ZC_OK;
}

/* Convolutions of int8 between raised ones. */
static zc_status look_at_remains(search *s)
{
    zc_precision_error e;
    bool any = false;
    if (!has_regions(s)) return ZC_OK;
    take_types(s);
    if (!zc_precision_remains(s->p, s->m, half_of(s), s->types)) return no_memory(s);
    for (size_t i = 0; i < s->count; i++) any |= s->types[s->order[i]] != choice(s, i)->type;
    if (!any) return ZC_OK;
    ZC_TRY(measure(s, bound(s), &e));
    if (!keeps_bound(s, &e)) return ZC_OK;
    for (size_t i = 0; i < s->count; i++) {
        zc_precision_choice_of *c = choice(s, i);
        c->remained = s->types[s->order[i]] != c->type;
        c->type = s->types[s->order[i]];
    }
    s->found->error = e;
    return ZC_OK;
}

/* Some more points between the start and f32. */
static zc_status measure_front(search *s)
{
    zc_precision_type *kept = zc_calloc(s->m->parts.len + 1, sizeof *kept);
    if (!kept) return no_memory(s);
    for (size_t i = 0; i < s->m->parts.len; i++) kept[i] = s->found->parts.data[i].type;
    zc_status status = ZC_OK;
    for (size_t i = 1; i <= FRONT_MEASURES && status == ZC_OK; i++) {
        zc_precision_error e;
        size_t n = s->groups.len * i / (FRONT_MEASURES + 1);
        if (n && n < s->groups.len) status = try_split(s, n, s->groups.len, AS_STARTED, &e);
    }
    for (size_t i = 0; i < s->m->parts.len; i++) s->found->parts.data[i].type = kept[i];
    free(kept);
    return status;
}

static zc_status refuse(const search *s, const zc_precision_error *e)
{
    s->found->error = *e;
    return zc_fail(s->diag, ZC_ERR_ACCURACY, s->p->outputs[e->output],
                   "the bound cannot be kept: f32 itself differs from the reference by %.3g (need "
                   "at most %.3g)",
                   e->error, s->p->max_error);
}

/* Where f32 alone leaves no room. */
static void stay_f32(search *s)
{
    for (size_t i = 0; i < s->count; i++) choice(s, i)->type = ZC_PRECISION_f32;
    s->count = 0;
}

static zc_status run(search *s)
{
    zc_precision_error exact, first;
    ZC_TRY(start(s));
    all_f32(s);
    ZC_TRY(measure(s, INFINITY, &exact));
    if (exact.error > s->p->max_error) return refuse(s, &exact);
    s->found->error = exact;
    if (!keeps_bound(s, &exact)) stay_f32(s);
    if (!s->count) return ZC_OK;
    take_types(s);
    ZC_TRY(measure(s, bound(s), &first));
    bool holds = keeps_bound(s, &first);
    ZC_TRY(find_sensitivity(s, !holds));
    if (holds) {
        s->found->error = first;
    } else {
        ZC_TRY(raise(s, &exact));
        ZC_TRY(look_at_remains(s));
    }
    return s->p->wants_front ? measure_front(s) : ZC_OK;
}

zc_status zc_precision_search(const zc_precision_params *p, const zc_mixed *m,
                              zc_precision_found *out, zc_diag *diag)
{
    search s = {.p = p, .m = m, .found = out, .diag = diag};
    *out = (zc_precision_found){.measures = 0};
    zc_status status = run(&s);
    free(s.order);
    free(s.types);
    ZC_VEC_FINI(&s.groups);
    return status;
}

void zc_precision_found_fini(zc_precision_found *f)
{
    ZC_VEC_FINI(&f->parts);
    ZC_VEC_FINI(&f->points);
}
