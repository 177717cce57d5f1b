/* Numbers for operands. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cpu/random.h"
#include "op/conv_band.h"

double kc_unit(kc_random *r)
{
    return zc_random_uniform(r->key, r->count++);
}

static double normal(kc_random *r)
{
    double u = 1 - kc_unit(r), v = kc_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double smallest(zc_dtype t)
{
    return t == ZC_F16    ? 0x1p-24
           : t == ZC_BF16 ? 0x1p-133
           : t == ZC_F64  ? 0x1p-1074
           : t == ZC_F32  ? 0x1p-149
                          : 0x1p-9;
}

/* Element i of an operand whose last dimension is `row`. */
static double draw(kc_kind kind, zc_dtype t, int64_t i, int64_t row, kc_random *r)
{
    double n = normal(r), u = kc_unit(r);
    switch (kind) {
    case KC_BIG:
        return (n < 0 ? -1 : 1) * (1e4 + 5e4 * u);
    case KC_CANCEL:
        return i % 3 == 2 ? n * 0.01 : (i % 3 ? -1 : 1) * (500 + (double)(i / 3 % 7));
    case KC_EQUAL:
        return 1.5;
    case KC_TINY:
        return floor(n * 40) * smallest(t);
    case KC_MASKED:
        return u < 0.3 || (row > 0 && i / row % 3 == 1) ? -INFINITY : n;
    case KC_SPECIAL:
        return u < 0.02 ? NAN : u < 0.04 ? INFINITY : u < 0.06 ? -INFINITY : u < 0.1 ? -0.0 : n;
    default:
        return n;
    }
}

static int64_t draw_integer(kc_kind kind, kc_random *r)
{
    double u = kc_unit(r);
    if (kind == KC_BIG) return (int64_t)zc_random_bits(r->key, r->count++);
    if (kind == KC_EQUAL) return 3;
    return (int64_t)floor(u * 201) - 100;
}

/* Whether a mask of keys, a row a sequence, hides element i: rows that hide nothing, what follows a
 * length, what is in front of it, everything. */
static bool hides(int64_t i, int64_t row, kc_random *r)
{
    int64_t at = i % row,
            length = (int64_t)(zc_random_uniform(r->key, (uint64_t)(i / row)) * (double)row);
    switch (i / row % 4) {
    case 0:
        return at >= length;
    case 1:
        return at < length;
    case 2:
        return false;
    default:
        return true;
    }
}

/* Rows by turns hide with minus infinity and with what is left of it in f16. */
static double padding(int64_t i, int64_t row, kc_random *r)
{
    return !hides(i, row, r) ? 0 : i / row / 4 % 2 ? -65504 : -INFINITY;
}

/* Is element i of weights [out][taps][depth] in its group's part of the band? */
static bool in_band(const zc_tensor *t, int64_t i, int64_t columns, int64_t groups, int64_t in)
{
    const int64_t out = t->dims[0], depth = t->dims[t->rank - 1],
                  m = i / (zc_tensor_numel(t) / out);
    const zc_conv_band b = {columns, groups, in / groups, out / groups,
                            128 / zc_dtype_bits(t->dtype)};
    const int64_t first = m / b.out * b.in - zc_conv_band_from(&b, m), at = i % depth;
    return at >= first && at < first + b.in;
}

static void fill_float(kc_operand *o, kc_kind kind, kc_random *r)
{
    const zc_tensor *t = &o->t;
    const char *k = o->kind;
    int64_t n = zc_tensor_numel(t), row = t->rank ? t->dims[t->rank - 1] : 1;
    long long columns, groups, in;
    double low, high;
    for (int64_t i = 0; i < n; i++) {
        double v;
        if (!*k)
            v = draw(kind, t->dtype, i, row, r);
        else if (strcmp(k, "pos") == 0)
            v = 0.5 + 1.5 * kc_unit(r);
        else if (strcmp(k, "unit") == 0)
            v = kc_unit(r);
        else if (strcmp(k, "padding") == 0)
            v = padding(i, row, r);
        else if (strcmp(k, "small") == 0)
            v = 0.1 * normal(r);
        else if (sscanf(k, "band(%lld,%lld,%lld)", &columns, &groups, &in) == 3)
            v = in_band(t, i, columns, groups, in) ? 0.1 * normal(r) : 0;
        else if (strcmp(k, "rising") == 0)
            v = normal(r) + 8 * (double)i / (double)n;
        else if (strcmp(k, "angle") == 0)
            v = (2 * kc_unit(r) - 1) * 3.14159;
        else if (sscanf(k, "in(%lf,%lf)", &low, &high) == 2)
            v = low + (high - low) * kc_unit(r);
        else if (sscanf(k, "int(%lf,%lf)", &low, &high) == 2)
            v = floor(low + (high - low + 1) * kc_unit(r));
        else
            v = normal(r);
        zc_store_f64(t->dtype, t->data, i, v);
    }
}

/* Places of sparse matrices (op/sparse.h): of each four neighbours any two. */
static int64_t draw_places(kc_random *r)
{
    static const unsigned pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    int64_t word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 4 | pairs[(int)(kc_unit(r) * (double)ZC_COUNTOF(pairs))];
    return word;
}

static void fill_integer(kc_operand *o, kc_kind kind, kc_random *r)
{
    const zc_tensor *t = &o->t;
    int64_t n = zc_tensor_numel(t), row = t->rank ? t->dims[t->rank - 1] : 1;
    long long low = 0, high = 0, columns, groups, in;
    bool banded = sscanf(o->kind, "band(%lld,%lld,%lld)", &columns, &groups, &in) == 3;
    bool range = sscanf(o->kind, "int(%lld,%lld)", &low, &high) == 2,
         perm = strcmp(o->kind, "perm") == 0, padded = strcmp(o->kind, "padding") == 0,
         places = strcmp(o->kind, "places") == 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = draw_integer(kind, r);
        if (range) v = low + (int64_t)floor((double)(high - low + 1) * kc_unit(r));
        if (places) v = draw_places(r);
        if (banded && !in_band(t, i, columns, groups, in)) v = 0;
        if (perm)
            v = (i % row * 7 + 3) % row; /* each once a row, when 7 does not divide its length */
        if (t->dtype == ZC_BOOL) v = range ? v != 0 : padded ? !hides(i, row, r) : kc_unit(r) < 0.5;
        zc_store_i64(t->dtype, t->data, i, v);
    }
}

bool kc_fill(kc_operand *o, kc_kind kind, kc_random *r)
{
    size_t bytes;
    if (o->absent || o->constant || o->listed) return true;
    if (!zc_tensor_bytes(&o->t, &bytes)) return false;
    free(o->t.data);
    o->t.data = zc_calloc(bytes + 64, 1);
    if (!o->t.data) return false;
    if (zc_dtype_class(o->t.dtype) == ZC_CLASS_COMPLEX) {
        zc_tensor whole = o->t;
        o->t.dtype = whole.dtype == ZC_C64 ? ZC_F32 : ZC_F64;
        o->t.dims[o->t.rank++] = 2;
        fill_float(o, kind, r);
        o->t = whole;
    } else if (zc_dtype_is_float(o->t.dtype)) {
        fill_float(o, kind, r);
    } else {
        fill_integer(o, kind, r);
    }
    return true;
}

/* ---- NaN and infinity ---- */

static int64_t row_of(const zc_tensor *t)
{
    return t->rank ? t->dims[t->rank - 1] : 1;
}

static int64_t rows_of(const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    return n > 0 ? n / row_of(t) : 0;
}

int kc_plant_turns(const kc_case *c, const kc_operand *in, int i)
{
    const kc_operand *o = &in[i];
    if (o->absent || o->constant || o->listed || !zc_dtype_is_float(o->t.dtype)) return 0;
    if (c->finite >> i & 1) return 0;
    int64_t rows = rows_of(&o->t);
    return rows == 0 ? 0 : rows < 3 ? 9 : 3;
}

/* Place 0 begins the first of n, 1 lies in the middle, 2 ends the last. */
static int64_t placed(int place, int64_t n)
{
    return place == 0 ? 0 : place == 1 ? n / 2 : n - 1;
}

void kc_plant(kc_operand *o, int turn)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    zc_tensor *t = &o->t;
    int64_t row = row_of(t), rows = rows_of(t);
    for (int place = 0; place < 3; place++) {
        if (rows < 3 && place != (turn + turn / 3) % 3) continue;
        int64_t at = placed(place, rows) * row + placed(place, row);
        zc_store_f64(t->dtype, t->data, at, values[rows < 3 ? turn % 3 : (place + turn) % 3]);
    }
}
