#include "cpu/byte_map.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cpu/simd.h"

/* Signed bytes are taken for unsigned ones, 128 more. */
typedef struct sum {
    float factor[2], addend;
    int32_t flip[3]; /* of the operands and the result: 128 where it is signed, else 0 */
} sum;

#define SIMD_SOURCE "cpu/byte_map_tmpl.h"
#include "cpu/simd_each.h"

enum { CODES = 256 };

struct zc_byte_map {
    int operands;
    bool is_sum;
    sum sum;
    uint8_t results[]; /* the table */
};

/* ---- finding the sum ---- */

/* All operands, and what the function gives. */
typedef struct truth {
    int64_t n;
    uint8_t *x, *y, *results;
} truth;

static void run_sum(const sum *s, const uint8_t *x, const uint8_t *y, int64_t n, uint8_t *to)
{
    SIMD_PICK(zc_simd_level(), byte_sum)(*s, x, y, n, to);
}

/* By the kernel itself, which rounds as the machine does. */
static bool is_right(const sum *s, const truth *t)
{
    uint8_t made[CODES];
    for (int64_t i = 0; i < t->n; i += CODES) {
        run_sum(s, t->x + i, t->y + i, CODES, made);
        if (memcmp(made, t->results + i, CODES) != 0) return false;
    }
    return true;
}

static bool find_sum(const zc_affine_line *line, bool result_signed, const truth *t, sum *out)
{
    enum { HALF = CODES / 2 };
    zc_affine_line l = *line;
    *out = (sum){.flip[2] = result_signed ? HALF : 0};
    for (int i = 0; i < 2; i++) {
        if (!l.is_signed[i]) continue;
        out->flip[i] = HALF;
        l.addend -= l.factor[i] * HALF;
    }
    for (int i = 0; i < ZC_AFFINE_CANDIDATES; i++) {
        const zc_affine a = zc_affine_candidate(&l, i);
        memcpy(out->factor, a.factor, sizeof out->factor);
        out->addend = a.addend;
        if (is_right(out, t)) return true;
    }
    return false;
}

/* ---- the map ---- */

static bool list_all(int operands, truth *t)
{
    t->n = zc_byte_map_all(operands);
    t->x = malloc((size_t)t->n * 3);
    if (!t->x) return false;
    t->y = t->x + t->n;
    t->results = t->y + t->n;
    for (int64_t i = 0; i < t->n; i++) {
        t->y[i] = (uint8_t)i;
        t->x[i] = operands == 2 ? (uint8_t)(i / CODES) : (uint8_t)i;
    }
    return true;
}

static zc_byte_map *map_of(int operands, const truth *t, const sum *s)
{
    const size_t room = s ? 0 : (size_t)t->n;
    zc_byte_map *m = malloc(sizeof *m + room);
    if (!m) return NULL;
    *m = (zc_byte_map){.operands = operands, .is_sum = s != NULL};
    if (s) m->sum = *s;
    memcpy(m->results, t->results, room);
    return m;
}

zc_byte_map *zc_byte_map_new(int operands, zc_byte_fn fn, void *arg, const zc_affine_line *line,
                             bool result_signed)
{
    truth t;
    sum s;
    if (!list_all(operands, &t)) return NULL;
    fn(arg, t.x, t.y, t.n, t.results);
    const bool is_sum = line && find_sum(line, result_signed, &t, &s);
    zc_byte_map *m = map_of(operands, &t, is_sum ? &s : NULL);
    free(t.x);
    return m;
}

size_t zc_byte_map_bytes(const zc_byte_map *m)
{
    return sizeof *m + (m->is_sum ? 0 : (size_t)zc_byte_map_all(m->operands));
}

void zc_byte_map_run(const zc_byte_map *m, const uint8_t *x, const uint8_t *y, int64_t n,
                     uint8_t *to)
{
    if (m->is_sum)
        run_sum(&m->sum, x, m->operands == 2 ? y : x, n, to);
    else if (m->operands == 2)
        for (int64_t i = 0; i < n; i++) to[i] = m->results[x[i] * CODES + y[i]];
    else
        for (int64_t i = 0; i < n; i++) to[i] = m->results[x[i]];
}
