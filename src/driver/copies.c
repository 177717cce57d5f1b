/* Says which weights a plan holds in two layouts. Who made the one of the other is not looked for:
 * sums over all elements do not depend on their order, nor on zeros that fill rows up. */
#include "driver/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LEAST_BYTES = 65536 };

typedef struct weight {
    const zc_pvalue *value;
    uint64_t sum; /* quick, and seldom the same by chance */
} weight;

/* Of its bytes, or of its elements' halves. */
static uint64_t quick_sum(const zc_pvalue *v)
{
    const int8_t *bytes = v->data;
    const int16_t *halves = v->data;
    const size_t size = zc_dtype_bits(v->dtype) == 8 ? sizeof *bytes : sizeof *halves;
    uint32_t sum = 0, squares = 0;
    for (uint64_t i = 0; i < v->bytes / size; i++) {
        const int x = size == sizeof *bytes ? bytes[i] : halves[i];
        sum += (uint32_t)x;
        squares += (uint32_t)(x * x);
    }
    return (uint64_t)squares << 32 | sum;
}

/* Of a hash of each element; zero's is 0. */
static uint64_t sure_sum(const zc_pvalue *v)
{
    const unsigned size = zc_dtype_bits(v->dtype) / 8;
    uint64_t sum = 0;
    for (uint64_t at = 0; at + size <= v->bytes; at += size) {
        uint64_t x = 0;
        memcpy(&x, (const char *)v->data + at, size);
        x *= 0xFF51AFD7ED558CCDu;
        x ^= x >> 33;
        sum += x * 0xC4CEB9FE1A85EC53u;
    }
    return sum;
}

static bool is_weight(const zc_pvalue *v)
{
    const unsigned bits = zc_dtype_bits(v->dtype);
    return v->kind == ZC_P_CONST && v->data && v->bytes >= LEAST_BYTES &&
           zc_dtype_class(v->dtype) != ZC_CLASS_BOOL &&
           (bits == 8 || (zc_dtype_is_float(v->dtype) && (bits == 16 || bits == 32)));
}

static int by_sum(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    if (x->value->dtype != y->value->dtype) return x->value->dtype < y->value->dtype ? -1 : 1;
    if (x->sum != y->sum) return x->sum < y->sum ? -1 : 1;
    return x->value < y->value ? -1 : 1;
}

static bool are_one(const weight *a, const weight *b)
{
    const zc_pvalue *x = a->value, *y = b->value;
    if (x->dtype != y->dtype || a->sum != b->sum || sure_sum(x) != sure_sum(y)) return false;
    return x->bytes != y->bytes || memcmp(x->data, y->data, (size_t)x->bytes) != 0;
}

zc_status zc_tell_copies(const zc_program *p, zc_diag *diag)
{
    size_t n = 0;
    weight *all = zc_calloc((size_t)p->nvalues + 1, sizeof *all);
    if (!all) return zc_fail_nomem(diag, "weights", p->nvalues);
    for (uint32_t i = 0; i < p->nvalues; i++)
        if (is_weight(&p->values[i]))
            all[n++] = (weight){.value = &p->values[i], .sum = quick_sum(&p->values[i])};
    qsort(all, n, sizeof *all, by_sum);
    for (size_t i = 1; i < n; i++)
        if (are_one(&all[i - 1], &all[i]))
            zc_warn(diag, all[i].value->name,
                    "has the elements of %s in another order (%llu bytes): two steps want two "
                    "layouts of one weight",
                    all[i - 1].value->name, (unsigned long long)all[i].value->bytes);
    free(all);
    return ZC_OK;
}
