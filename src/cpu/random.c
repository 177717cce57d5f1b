/* Random numbers and the operations on them. */
#include "cpu/random.h"

#include <math.h>
#include <string.h>

#include "cpu/copy.h"
#include "op/random.h"

/* ---- the generator ---- */

/* Four words of block `counter`. */
static void philox(uint64_t key, uint64_t counter, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * c[0], b = UINT64_C(0xcd9e8d57) * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    memcpy(out, c, sizeof c);
}

uint64_t zc_random_key(uint64_t seed)
{
    return zc_seed_key(seed);
}

uint64_t zc_random_key_of(const zc_kctx *k)
{
    return zc_name_key(k->subject);
}

uint64_t zc_random_bits(uint64_t key, uint64_t i)
{
    uint32_t w[4];
    philox(key, i / 2, w);
    return i % 2 ? (uint64_t)w[3] << 32 | w[2] : (uint64_t)w[1] << 32 | w[0];
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double zc_random_uniform(uint64_t key, uint64_t i)
{
    return unit(zc_random_bits(key, i));
}

/* Box and Muller's transform of both numbers of a block: the even element takes the cosine, the odd
 * one the sine. */
double zc_random_normal(uint64_t key, uint64_t i)
{
    double u = 1 - zc_random_uniform(key, i & ~UINT64_C(1));
    double angle = 2 * 3.14159265358979323846 * zc_random_uniform(key, i | 1);
    return sqrt(-2 * log(u)) * (i % 2 ? sin(angle) : cos(angle));
}

/* ---- filling ---- */

typedef struct fill_job {
    zc_tensor *y;
    uint64_t key;
    double offset, scale;
    bool normal;
} fill_job;

static void fill_part(void *arg, int64_t begin, int64_t end)
{
    const fill_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        double v = j->normal ? zc_random_normal(j->key, (uint64_t)i)
                             : zc_random_uniform(j->key, (uint64_t)i);
        zc_put(j->y, i, j->offset + v * j->scale);
    }
}

static uint64_t key_of_float(const zc_kctx *k, bool given, float seed)
{
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    return given ? zc_random_key(bits) : zc_random_key_of(k);
}

#define KEY(k, NAME, a) key_of_float(k, ZC_ATTR_GIVEN(NAME, a, seed), (a)->seed)

static zc_status fill(zc_kctx *k, uint64_t key, double offset, double scale, bool normal)
{
    fill_job j = {&k->out[0], key, offset, scale, normal};
    zc_parallel(k, zc_tensor_numel(&k->out[0]), 512, fill_part, &j);
    return ZC_OK;
}

zc_status zc_k_RandomNormal(zc_kctx *k)
{
    const zc_attrs_RandomNormal *a = ZC_ATTRS(k, RandomNormal);
    return fill(k, KEY(k, RandomNormal, a), a->mean, a->scale, true);
}

zc_status zc_k_RandomNormalLike(zc_kctx *k)
{
    const zc_attrs_RandomNormalLike *a = ZC_ATTRS(k, RandomNormalLike);
    return fill(k, KEY(k, RandomNormalLike, a), a->mean, a->scale, true);
}

zc_status zc_k_RandomUniform(zc_kctx *k)
{
    const zc_attrs_RandomUniform *a = ZC_ATTRS(k, RandomUniform);
    return fill(k, KEY(k, RandomUniform, a), a->low, (double)a->high - (double)a->low, false);
}

zc_status zc_k_RandomUniformLike(zc_kctx *k)
{
    const zc_attrs_RandomUniformLike *a = ZC_ATTRS(k, RandomUniformLike);
    return fill(k, KEY(k, RandomUniformLike, a), a->low, (double)a->high - (double)a->low, false);
}

/* ---- drawing ---- */

zc_status zc_k_Bernoulli(zc_kctx *k)
{
    const zc_attrs_Bernoulli *a = ZC_ATTRS(k, Bernoulli);
    uint64_t key = KEY(k, Bernoulli, a);
    for (int64_t i = 0, n = zc_tensor_numel(&k->in[0]); i < n; i++)
        zc_put(&k->out[0], i, zc_random_uniform(key, (uint64_t)i) < zc_get(&k->in[0], i));
    return ZC_OK;
}

/* The class at which the running sum of the weights exp(x - max) passes u times their sum. */
static int64_t draw(const zc_tensor *x, int64_t at, int64_t classes, double max, double sum,
                    double u)
{
    double passed = 0;
    int64_t last = 0;
    for (int64_t c = 0; c < classes; c++) {
        double w = exp(zc_get(x, at + c) - max);
        if (w > 0) last = c;
        passed += w;
        if (passed > u * sum) return c;
    }
    return last;
}

zc_status zc_k_Multinomial(zc_kctx *k)
{
    const zc_attrs_Multinomial *a = ZC_ATTRS(k, Multinomial);
    const zc_tensor *x = &k->in[0];
    uint64_t key = KEY(k, Multinomial, a);
    int64_t batch = x->dims[0], classes = x->dims[1], samples = k->out[0].dims[1];
    if (classes == 0 && batch && samples) return zc_kernel_fail(k, "there are no classes");
    for (int64_t b = 0; b < batch; b++) {
        double max = -(double)INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++) max = fmax(max, zc_get(x, b * classes + c));
        for (int64_t c = 0; c < classes; c++) sum += exp(zc_get(x, b * classes + c) - max);
        if (!(sum > 0))
            return zc_kernel_fail(k, "row %lld has no class of positive weight", (long long)b);
        for (int64_t s = b * samples; s < (b + 1) * samples; s++)
            zc_puti(&k->out[0], s,
                    draw(x, b * classes, classes, max, sum, zc_random_uniform(key, (uint64_t)s)));
    }
    return ZC_OK;
}

/* ---- dropout ---- */

typedef struct dropout_job {
    const zc_tensor *x;
    zc_tensor *y, *mask; /* mask NULL: not wanted */
    uint64_t key;
    double ratio;
} dropout_job;

static void drop(void *arg, int64_t begin, int64_t end)
{
    const dropout_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        bool keep = zc_random_uniform(j->key, (uint64_t)i) >= j->ratio;
        if (zc_present(j->y)) zc_put(j->y, i, keep ? zc_get(j->x, i) / (1 - j->ratio) : 0);
        if (j->mask) zc_puti(j->mask, i, keep);
    }
}

static bool scalar_input(const zc_kctx *k, int i)
{
    return zc_input(k, i) && zc_tensor_numel(&k->in[i]) == 1;
}

zc_status zc_k_Dropout(zc_kctx *k)
{
    const zc_attrs_Dropout *a = ZC_ATTRS(k, Dropout);
    const zc_tensor *x = &k->in[0];
    int64_t n = zc_tensor_numel(x);
    dropout_job j = {.x = x, .y = &k->out[0], .mask = zc_output(k, 1)};
    bool training = scalar_input(k, 2) && zc_geti(&k->in[2], 0);
    j.ratio = scalar_input(k, 1) ? zc_get(&k->in[1], 0) : 0.5;
    if (!training) j.ratio = 0;
    if (!(j.ratio >= 0 && j.ratio < 1))
        return zc_kernel_fail(k, "ratio out of range (got %g, need [0, 1))", j.ratio);
    if (j.ratio == 0) {
        static const uint8_t kept = 1;
        if (zc_present(j.y)) zc_copy_flat(k, n, zc_elem_size(x), j.y->data, x->data);
        if (j.mask) zc_copy_fill(k, n, 1, j.mask->data, &kept);
        return ZC_OK;
    }
    bool seeded = ZC_ATTR_GIVEN(Dropout, a, seed);
    j.key = seeded ? zc_random_key((uint64_t)a->seed) : zc_random_key_of(k);
    zc_parallel(k, n, 512, drop, &j);
    return ZC_OK;
}
