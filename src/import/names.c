#include "import/names.h"

#include <stdio.h>
#include <stdlib.h>

/* Nodes of a cycle that a message shows. */
#define CYCLE_SHOWN 12
/* Longest name that a function's prefix is put before. */
#define PREFIXED_MAX 512

/* ---- string map: open addressing ---- */

static uint64_t hash_of(const char *s, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
}

static zc_smap_slot *slot_of(zc_smap_slot *slots, size_t cap, const char *key, size_t len)
{
    size_t i = hash_of(key, len) & (cap - 1);
    while (slots[i].key && (slots[i].len != len || memcmp(slots[i].key, key, len) != 0))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static bool smap_grow(zc_smap *map)
{
    size_t cap = map->cap ? map->cap * 2 : 16;
    zc_smap_slot *slots = zc_calloc(cap, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < map->cap; i++) {
        const zc_smap_slot *s = &map->slots[i];
        if (s->key) *slot_of(slots, cap, s->key, s->len) = *s;
    }
    free(map->slots);
    map->slots = slots;
    map->cap = cap;
    return true;
}

void zc_smap_fini(zc_smap *map)
{
    free(map->slots);
    *map = (zc_smap){0};
}

zc_smap_slot *zc_smap_find(const zc_smap *map, const char *key, size_t len)
{
    if (!map->cap) return NULL;
    zc_smap_slot *s = slot_of(map->slots, map->cap, key, len);
    return s->key ? s : NULL;
}

zc_smap_slot *zc_smap_add(zc_smap *map, const char *key, size_t len, size_t value, bool *added)
{
    if (map->count * 2 >= map->cap && !smap_grow(map)) return NULL;
    zc_smap_slot *s = slot_of(map->slots, map->cap, key, len);
    *added = !s->key;
    if (*added) {
        *s = (zc_smap_slot){.key = key, .len = len, .value = value};
        map->count++;
    }
    return s;
}

/* ---- scopes ---- */

void zc_scope_fini(zc_scope *scope)
{
    ZC_VEC_FINI(&scope->names);
    zc_smap_fini(&scope->index);
    zc_smap_fini(&scope->infos);
}

zc_name *zc_scope_own(const zc_scope *scope, const char *text)
{
    const zc_smap_slot *s = zc_smap_find(&scope->index, text, strlen(text));
    return s ? &scope->names.data[s->value] : NULL;
}

zc_name *zc_scope_find(const zc_scope *scope, const char *text)
{
    for (; scope; scope = scope->parent) {
        zc_name *name = zc_scope_own(scope, text);
        if (name) return name;
    }
    return NULL;
}

const char *zc_scope_node_name(const zc_scope *scope, size_t i, zc_arena *arena)
{
    const Onnx__NodeProto *node = scope->nodes[i];
    const char *own = zc_text(node->name);
    zc_buf buf = {0};
    bool prefixed = scope->prefix && strlen(scope->prefix) + strlen(own) < PREFIXED_MAX;
    if (prefixed) zc_buf_printf(&buf, "%s/", scope->prefix);
    if (*own)
        zc_buf_puts(&buf, own);
    else
        zc_buf_printf(&buf, ZC_NAME "_%zu", zc_text(node->op_type), i);
    const char *name = buf.failed ? NULL : zc_arena_strndup(arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    return name;
}

/* "node 'a'", "an input" into buf. */
static void describe(const zc_scope *scope, const char *kind, size_t producer, char *buf, size_t n)
{
    if (producer == ZC_NO_NODE) {
        snprintf(buf, n, "an %s", kind);
        return;
    }
    zc_arena arena;
    zc_arena_init(&arena, 0);
    const char *name = zc_scope_node_name(scope, producer, &arena);
    snprintf(buf, n, "node '" ZC_NAME "'", name ? name : "?");
    zc_arena_fini(&arena);
}

zc_status zc_scope_define(zc_scope *scope, const char *text, const char *kind, size_t producer,
                          zc_name **out, zc_diag *diag)
{
    bool added;
    zc_smap_slot *s = zc_smap_add(&scope->index, text, strlen(text), scope->names.len, &added);
    if (s && !added) {
        const zc_name *old = &scope->names.data[s->value];
        char first[300], second[300];
        describe(scope, old->kind, old->producer, first, sizeof first);
        describe(scope, kind, producer, second, sizeof second);
        return zc_fail(diag, ZC_ERR_MODEL, text, "defined twice (by %s and by %s)", first, second);
    }
    zc_name name = {.text = text, .kind = kind, .producer = producer};
    if (!s || !ZC_VEC_PUSH(&scope->names, name)) return zc_fail_nomem(diag, "names", 0);
    if (out) *out = &scope->names.data[scope->names.len - 1];
    return ZC_OK;
}

/* ---- why a name is not there ---- */

/* A path of nodes in depth-first search: node, and which of its inputs comes next. */
typedef struct step {
    size_t node, input;
} step;

/* The next node after `s` on the path: a producer that was not visited. ZC_NO_NODE at its end. */
static size_t next_producer(const zc_scope *scope, step *s, const bool *seen)
{
    const Onnx__NodeProto *node = scope->nodes[s->node];
    while (s->input < node->n_input) {
        const zc_name *name = zc_scope_own(scope, zc_text(node->input[s->input++]));
        if (name && name->producer != ZC_NO_NODE && !seen[name->producer]) return name->producer;
    }
    return ZC_NO_NODE;
}

/* Searches from path[0] back along inputs for node `goal`; the path's length, or 0. */
static size_t search(const zc_scope *scope, size_t goal, step *path, bool *seen)
{
    size_t depth = 1;
    seen[path[0].node] = true;
    if (path[0].node == goal) return depth;
    while (depth) {
        size_t next = next_producer(scope, &path[depth - 1], seen);
        if (next == ZC_NO_NODE) {
            depth--;
            continue;
        }
        seen[next] = true;
        path[depth++] = (step){.node = next};
        if (next == goal) return depth;
    }
    return 0;
}

static zc_status report_cycle(const zc_scope *scope, const step *path, size_t n,
                              const char *subject, zc_diag *diag)
{
    zc_arena arena;
    zc_arena_init(&arena, 0);
    zc_buf text = {0};
    /* The path runs against the data; path[n - 1] is the node that failed. */
    for (size_t i = n; i-- > 0;) {
        if (n - i > CYCLE_SHOWN) {
            zc_buf_puts(&text, "... -> ");
            break;
        }
        zc_buf_printf(&text, "%s -> ", zc_text(zc_scope_node_name(scope, path[i].node, &arena)));
    }
    zc_buf_puts(&text, zc_text(zc_scope_node_name(scope, path[n - 1].node, &arena)));
    zc_status status =
        zc_fail(diag, ZC_ERR_MODEL, subject, "nodes form a cycle: %s", text.data ? text.data : "?");
    zc_buf_fini(&text);
    zc_arena_fini(&arena);
    return status;
}

/* Node scope->at uses what node `producer`, later in the same scope, makes. */
static zc_status report_later(const zc_scope *scope, const zc_name *name, const char *subject,
                              zc_diag *diag)
{
    step *path = zc_calloc(scope->nnodes, sizeof *path);
    bool *seen = zc_calloc(scope->nnodes, sizeof *seen);
    zc_status status = ZC_OK;
    size_t n = 0;
    if (path && seen) {
        path[0].node = name->producer;
        n = search(scope, scope->at, path, seen);
    } else {
        status = zc_fail_nomem(diag, "nodes", scope->nnodes);
    }
    char definer[300];
    describe(scope, name->kind, name->producer, definer, sizeof definer);
    if (n)
        status = report_cycle(scope, path, n, subject, diag);
    else if (status == ZC_OK)
        status = zc_fail(diag, ZC_ERR_MODEL, subject,
                         "uses '" ZC_NAME "' before %s produces it (need nodes in topological "
                         "order)",
                         name->text, definer);
    free(path);
    free(seen);
    return status;
}

zc_status zc_scope_missing(const zc_scope *scope, const char *text, const char *subject,
                           zc_diag *diag)
{
    const zc_name *name = zc_scope_own(scope, text);
    if (name && name->producer != ZC_NO_NODE) return report_later(scope, name, subject, diag);
    for (const zc_scope *s = scope->parent; s; s = s->parent) {
        name = zc_scope_own(s, text);
        if (!name) continue;
        char definer[300];
        describe(s, name->kind, name->producer, definer, sizeof definer);
        return zc_fail(diag, ZC_ERR_MODEL, subject,
                       "uses '" ZC_NAME "' before %s of an enclosing graph produces it (need nodes "
                       "in topological order)",
                       text, definer);
    }
    return zc_fail(diag, ZC_ERR_MODEL, subject,
                   "uses '" ZC_NAME "', which no input, initialiser or node produces", text);
}
