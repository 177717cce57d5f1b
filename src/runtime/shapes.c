/* The latest sets of input shapes, so that a session that alternates between them plans each once:
 * found by hash, and in the order of their use. */
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"

bool zc_shapes_init(zc_shape_cache *c, size_t max)
{
    c->max = max;
    c->nbuckets = 16;
    while (c->nbuckets < max) c->nbuckets *= 2;
    c->buckets = zc_calloc(c->nbuckets, sizeof(zc_shapes *));
    c->bytes = c->buckets ? c->nbuckets * sizeof(zc_shapes *) : 0;
    return c->buckets != NULL;
}

static void free_entry(zc_shapes *e)
{
    free(e->dims);
    free(e->roots);
    free(e->subviews);
    free(e->external);
    free(e->items);
    free(e);
}

void zc_shapes_fini(zc_shape_cache *c)
{
    for (zc_shapes *e = c->newest, *older; e; e = older) {
        older = e->older;
        free_entry(e);
    }
    free(c->buckets);
    *c = (zc_shape_cache){0};
}

/* ---- keys ---- */

static uint64_t hash_dims(const zc_session *s)
{
    const zc_pblock *top = &s->program->blocks[0];
    uint64_t h = 0;
    for (uint32_t i = 0; i < top->nparams; i++) {
        const zc_tensor *t = &s->inputs[i].value;
        for (int d = 0; d < t->rank; d++) {
            h = (h ^ (uint64_t)t->dims[d]) * UINT64_C(0x9e3779b97f4a7c15);
            h ^= h >> 29;
        }
    }
    return h;
}

static bool same_dims(const zc_session *s, const zc_shapes *e)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++)
        if (memcmp(e->dims + (size_t)i * ZC_MAX_RANK, s->inputs[i].value.dims,
                   sizeof s->inputs[i].value.dims) != 0)
            return false;
    return true;
}

static void take_dims(const zc_session *s, zc_shapes *e)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++)
        memcpy(e->dims + (size_t)i * ZC_MAX_RANK, s->inputs[i].value.dims,
               sizeof s->inputs[i].value.dims);
}

/* ---- buckets, and the order of use ---- */

static zc_shapes **bucket(const zc_shape_cache *c, uint64_t hash)
{
    return &c->buckets[hash & (c->nbuckets - 1)];
}

static void leave_bucket(zc_shape_cache *c, const zc_shapes *e)
{
    zc_shapes **at = bucket(c, e->hash);
    while (*at != e) at = &(*at)->next;
    *at = e->next;
}

static void enter_bucket(zc_shape_cache *c, zc_shapes *e)
{
    zc_shapes **at = bucket(c, e->hash);
    e->next = *at;
    *at = e;
}

static void leave_order(zc_shape_cache *c, const zc_shapes *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void become_newest(zc_shape_cache *c, zc_shapes *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

/* ---- entries ---- */

/* All arrays have a session's size whatever the shapes: an entry that serves others later allocates
 * nothing. */
static zc_shapes *make_entry(zc_session *s)
{
    const size_t inputs = s->program->blocks[0].nparams, values = s->program->nvalues;
    zc_shapes *e = zc_calloc(1, sizeof *e);
    if (!e) return NULL;
    e->dims = zc_calloc(inputs, ZC_MAX_RANK * sizeof *e->dims);
    e->roots = zc_calloc(values, sizeof *e->roots);
    e->subviews = zc_calloc(values, sizeof *e->subviews);
    e->external = zc_calloc(values, sizeof *e->external);
    e->items = zc_calloc(values, sizeof *e->items);
    if (!e->dims || !e->roots || !e->subviews || !e->external || !e->items) {
        free_entry(e);
        return NULL;
    }
    s->shapes.len++;
    s->shapes.bytes +=
        sizeof *e + inputs * ZC_MAX_RANK * sizeof *e->dims +
        values * (sizeof *e->roots + sizeof *e->subviews + sizeof *e->external + sizeof *e->items);
    return e;
}

static zc_shapes *empty_oldest(zc_session *s)
{
    zc_shapes *e = s->shapes.oldest;
    leave_bucket(&s->shapes, e);
    leave_order(&s->shapes, e);
    if (s->gpu) zc_gpu_free_parts(s, e);
    e->planned = e->checked = false;
    return e;
}

zc_status zc_shapes_find(zc_session *s, zc_shapes **out, zc_diag *diag)
{
    zc_shape_cache *c = &s->shapes;
    const uint64_t hash = hash_dims(s);
    zc_shapes *e = *bucket(c, hash);
    while (e && !(e->hash == hash && same_dims(s, e))) e = e->next;
    if (e) {
        leave_order(c, e);
    } else {
        zc_count(&s->plan->counts.shapes, 1);
        e = c->len < c->max ? make_entry(s) : empty_oldest(s);
        if (!e) return zc_fail_nomem(diag, "shapes", s->program->nvalues);
        e->hash = hash;
        take_dims(s, e);
        enter_bucket(c, e);
    }
    become_newest(c, e);
    *out = e;
    return ZC_OK;
}

void zc_shapes_doubt(zc_shape_cache *c)
{
    for (zc_shapes *e = c->newest; e; e = e->older) e->checked = false;
}
