#include "op/dim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/dim_poly.h"

/* References are 32 bits, and so are the entries of the hash index. */
#define NODES_MAX ((size_t)1 << 30)

static const zc_dim invalid = {.k = INT64_MIN, .e = 0};

void zc_dims_init(zc_dims *t)
{
    *t = (zc_dims){0};
    zc_arena_init(&t->arena, 0);
}

void zc_dims_fini(zc_dims *t)
{
    zc_arena_fini(&t->arena);
    free(t->nodes);
    free(t->table);
    *t = (zc_dims){0};
}

bool zc_dims_fork(zc_dims *t, const zc_dims *src)
{
    zc_dims_init(t);
    t->nodes = zc_calloc(src->count, sizeof *t->nodes);
    t->table = zc_calloc(src->table_cap, sizeof *t->table);
    if (!t->nodes || !t->table) {
        zc_dims_fini(t);
        return false;
    }
    if (src->count) memcpy(t->nodes, src->nodes, src->count * sizeof *t->nodes);
    if (src->table_cap) memcpy(t->table, src->table, src->table_cap * sizeof *t->table);
    t->count = t->cap = src->count;
    t->table_cap = src->table_cap;
    t->next_fresh = src->next_fresh;
    return true;
}

void zc_dims_reset(zc_dims *t)
{
    zc_arena_reset(&t->arena);
    if (t->count) memset(t->table, 0, t->table_cap * sizeof *t->table);
    t->count = 0;
    t->next_fresh = 0;
    t->failed = false;
}

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 0x100000001B3ull;
    return h;
}

static uint64_t hash_node(const zc_dim_node *node, size_t name_len)
{
    const int64_t key[] = {node->kind, node->a.k, node->a.e, node->b.k, node->b.e, node->is_input};
    const uint64_t h = hash_bytes(0xCBF29CE484222325ull, key, sizeof key);
    return node->name ? hash_bytes(h, node->name, name_len) : h;
}

/* The wanted node's name need not end in a NUL. */
static bool same_node(const zc_dim_node *have, const zc_dim_node *want, size_t name_len)
{
    if (have->kind != want->kind) return false;
    if (have->kind == ZC_DIM_SYM)
        return have->is_input == want->is_input && strlen(have->name) == name_len &&
               memcmp(have->name, want->name, name_len) == 0;
    return zc_dim_eq(have->a, want->a) && zc_dim_eq(have->b, want->b);
}

/* The slot of the node equal to *want, or the free slot where it belongs. */
static uint32_t *find_slot(const zc_dims *t, const zc_dim_node *want, size_t name_len)
{
    const size_t mask = t->table_cap - 1;
    size_t i = (size_t)(hash_node(want, name_len) >> 7) & mask;
    while (t->table[i] && !same_node(&t->nodes[t->table[i] - 1], want, name_len))
        i = (i + 1) & mask;
    return &t->table[i];
}

/* Room for one more node and an index that is at most half full. */
static bool reserve(zc_dims *t)
{
    if (t->count >= NODES_MAX) return false;
    void *nodes = t->nodes;
    if (!zc_vec_reserve(&nodes, &t->cap, t->count + 1, sizeof *t->nodes)) return false;
    t->nodes = nodes;
    if ((t->count + 1) * 2 <= t->table_cap) return true;
    const size_t cap = t->table_cap ? t->table_cap * 2 : 64;
    uint32_t *table = zc_calloc(cap, sizeof *table);
    if (!table) return false;
    free(t->table);
    t->table = table;
    t->table_cap = cap;
    for (size_t i = 0; i < t->count; i++) {
        const zc_dim_node *node = &t->nodes[i];
        *find_slot(t, node, node->name ? strlen(node->name) : 0) = (uint32_t)i + 1;
    }
    return true;
}

static zc_dim intern(zc_dims *t, zc_dim_node node, size_t name_len)
{
    if (t->failed || !reserve(t)) {
        t->failed = true;
        return invalid;
    }
    uint32_t *slot = find_slot(t, &node, name_len);
    if (*slot == 0) {
        if (node.name) node.name = zc_arena_strndup(&t->arena, node.name, name_len);
        if (node.kind == ZC_DIM_SYM && !node.name) {
            t->failed = true;
            return invalid;
        }
        t->nodes[t->count++] = node;
        *slot = (uint32_t)t->count;
    }
    return (zc_dim){.k = 0, .e = *slot};
}

zc_dim zc_dims_intern(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b)
{
    const zc_range r = zc_range_apply(kind, zc_range_of(t, a), zc_range_of(t, b));
    const zc_dim_node node = {.kind = kind,
                              .a = a,
                              .b = b,
                              .dynamic = zc_dim_dynamic(t, a) || zc_dim_dynamic(t, b),
                              .lo = r.lo,
                              .hi = r.hi};
    return intern(t, node, 0);
}

zc_dim zc_dims_symbol(zc_dims *t, const char *name, size_t n, bool is_input)
{
    const zc_dim_node node = {.kind = ZC_DIM_SYM,
                              .name = name,
                              .is_input = is_input,
                              .dynamic = !is_input,
                              .lo = 0,
                              .hi = INT64_MAX};
    return intern(t, node, n);
}

zc_dim zc_dim_input(zc_dims *t, const char *name)
{
    return zc_dims_symbol(t, name, strlen(name), true);
}

zc_dim zc_dim_fresh(zc_dims *t)
{
    /* A parsed text may have made "?N" already, so take the first number that makes a new node. */
    for (;;) {
        char name[16];
        const int n = snprintf(name, sizeof name, "?%u", t->next_fresh++);
        const size_t before = t->count;
        const zc_dim d = zc_dims_symbol(t, name, (size_t)n, false);
        if (t->failed || t->count > before) return d;
    }
}

static bool floor_div(int64_t x, int64_t y, int64_t *out)
{
    if (y == 0 || (x == INT64_MIN && y == -1)) return false;
    const int64_t q = x / y;
    *out = q - (x % y != 0 && (x < 0) != (y < 0));
    return true;
}

static bool floor_mod(int64_t x, int64_t y, int64_t *out)
{
    if (y == 0) return false;
    const int64_t r = y == -1 ? 0 : x % y;
    *out = r != 0 && (r < 0) != (y < 0) ? r + y : r;
    return true;
}

bool zc_dim_apply(zc_dim_kind kind, int64_t x, int64_t y, int64_t *out)
{
    int64_t rest;
    switch (kind) {
    case ZC_DIM_ADD:
        return zc_add_i64(x, y, out);
    case ZC_DIM_MUL:
        return zc_mul_i64(x, y, out);
    case ZC_DIM_DIV:
        return floor_div(x, y, out);
    case ZC_DIM_CDIV:
        if (!floor_div(x, y, out) || !floor_mod(x, y, &rest)) return false;
        *out += rest != 0;
        return true;
    case ZC_DIM_MOD:
        return floor_mod(x, y, out);
    case ZC_DIM_MAX:
        *out = x > y ? x : y;
        return true;
    case ZC_DIM_MIN:
        *out = x < y ? x : y;
        return true;
    case ZC_DIM_SYM:
        break;
    }
    return false;
}

bool zc_dims_eval(const zc_dim_node *nodes, size_t count, int64_t *values, size_t *bad)
{
    for (size_t i = 0; i < count; i++) {
        const zc_dim_node *node = &nodes[i];
        if (node->kind == ZC_DIM_SYM) continue;
        if (node->a.e > i || node->b.e > i ||
            !zc_dim_apply(node->kind, zc_dim_value(node->a, values), zc_dim_value(node->b, values),
                          &values[i])) {
            *bad = i;
            return false;
        }
    }
    return true;
}

bool zc_dim_known_ge(const zc_dims *t, zc_dim a, int64_t k)
{
    return zc_dim_is_const(a) ? a.k >= k : zc_range_of(t, a).lo >= k;
}

bool zc_dim_covers(const zc_dims *t, zc_dim a, zc_dim b)
{
    if (zc_dim_eq(a, b) || zc_dim_known_ge(t, a, 2)) return true;
    if (!a.e || t->nodes[a.e - 1].kind != ZC_DIM_MIN) return false;
    const zc_dim_node *n = &t->nodes[a.e - 1];
    return (zc_dim_eq(n->a, b) && zc_dim_known_ge(t, n->b, 2)) ||
           (zc_dim_eq(n->b, b) && zc_dim_known_ge(t, n->a, 2));
}

bool zc_dim_dynamic(const zc_dims *t, zc_dim d)
{
    return d.e && t->nodes[d.e - 1].dynamic;
}

bool zc_dims_settled(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b, zc_dim *out)
{
    int64_t k;
    if (zc_dim_is_const(a) && zc_dim_is_const(b)) {
        if (zc_dim_apply(kind, a.k, b.k, &k))
            *out = zc_dim_const(k);
        else
            *out = t ? zc_dim_fresh(t) : invalid;
        return true;
    }
    *out = invalid;
    return !t || t->failed;
}

/* a + scale*b */
static zc_dim add_scaled(zc_dims *t, zc_dim a, zc_dim b, int64_t scale)
{
    const zc_term factor = {.coef = scale};
    zc_poly p, q;
    zc_poly_of(t, a, &p);
    zc_poly_of(t, b, &q);
    if (zc_poly_add_scaled(&p, &q, &factor)) return zc_poly_dim(t, &p);
    if (scale != 1) b = zc_dims_intern(t, ZC_DIM_MUL, b, zc_dim_const(scale));
    return zc_dims_intern(t, ZC_DIM_ADD, a, b);
}

zc_dim zc_dim_add(zc_dims *t, zc_dim a, zc_dim b)
{
    zc_dim r;
    if (zc_dims_settled(t, ZC_DIM_ADD, a, b, &r)) return r;
    if (zc_dim_is(a, 0)) return b;
    if (zc_dim_is(b, 0)) return a;
    return add_scaled(t, a, b, 1);
}

zc_dim zc_dim_sub(zc_dims *t, zc_dim a, zc_dim b)
{
    int64_t k;
    if (zc_dim_is_const(b) && zc_mul_i64(b.k, -1, &k)) return zc_dim_add(t, a, zc_dim_const(k));
    if (zc_dim_is_const(a) && zc_dim_is_const(b)) { /* a - INT64_MIN */
        if (a.k < 0) return zc_dim_const(a.k - b.k);
        return t ? zc_dim_fresh(t) : invalid;
    }
    if (!t || t->failed) return invalid;
    return zc_dim_eq(a, b) ? zc_dim_const(0) : add_scaled(t, a, b, -1);
}

zc_dim zc_dim_mul(zc_dims *t, zc_dim a, zc_dim b)
{
    zc_dim r;
    if (zc_dims_settled(t, ZC_DIM_MUL, a, b, &r)) return r;
    if (zc_dim_is(a, 0) || zc_dim_is(b, 1)) return a;
    if (zc_dim_is(b, 0) || zc_dim_is(a, 1)) return b;
    zc_poly p, q, product;
    zc_poly_of(t, a, &p);
    zc_poly_of(t, b, &q);
    if (zc_poly_mul(&p, &q, &product)) return zc_poly_dim(t, &product);
    return zc_dims_intern(t, ZC_DIM_MUL, a, b);
}
