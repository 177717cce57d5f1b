/* Random values that are the same on every machine. */
#include <string.h>

#include "cli/fill.h"

/* Well-mixed bits of a number (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The tensor's stream, by seed and name alone. */
static uint64_t stream_of(uint64_t seed, const char *name)
{
    uint64_t h = mix(seed + UINT64_C(0x9E3779B97F4A7C15));
    for (; *name; name++) h = mix(h ^ (uint8_t)*name) + UINT64_C(0x9E3779B97F4A7C15);
    return h;
}

static uint64_t bits_at(uint64_t stream, int64_t i)
{
    return mix(stream + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15));
}

/* Mean 0, deviation 1: a sum of four uniform numbers is close to normal, has no far outliers, and
 * is the same on every machine, as it needs no function of the mathematical library. */
static double normal(uint64_t bits)
{
    int64_t sum =
        (int64_t)((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
    return (double)(sum - 131070) * (1 / 37837.227);
}

static double uniform(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static void make_floats(const piece *p, uint64_t stream, int64_t first, int64_t n, uint8_t *out)
{
    double mean = p->form == FORM_SCALE ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = bits_at(stream, first + i);
        double v =
            p->form == FORM_POSITIVE ? 0.5 + uniform(bits) : mean + p->deviation * normal(bits);
        if (p->dtype == ZC_F32)
            memcpy(out + 4 * i, &(float){(float)v}, 4);
        else
            zc_store_f64(p->dtype, out, i, v);
    }
}

static void make_ints(const piece *p, uint64_t stream, int64_t first, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++)
        zc_store_i64(p->dtype, out, i, p->dtype == ZC_BOOL || bits_at(stream, first + i) >> 63);
}

zc_status cli_fill_write_values(fill *f, const piece *p, zc_writer *w)
{
    uint64_t stream = stream_of(f->seed, p->name);
    for (int64_t first = 0; first < p->count; first += CHUNK_ELEMENTS) {
        int64_t n = p->count - first < CHUNK_ELEMENTS ? p->count - first : CHUNK_ELEMENTS;
        size_t bytes = 0;
        if (!zc_dtype_bytes(p->dtype, n, &bytes) || bytes > CHUNK_BYTES)
            return zc_fail(f->diag, ZC_ERR_INTERNAL, p->name,
                           "a chunk of values is too large (got %zu bytes)", bytes);
        if (zc_dtype_bits(p->dtype) < 8) memset(f->chunk, 0, bytes); /* padding bits */
        (zc_dtype_is_float(p->dtype) ? make_floats : make_ints)(p, stream, first, n, f->chunk);
        ZC_TRY(zc_writer_write(w, f->chunk, bytes, f->diag));
        f->bytes += bytes;
        cli_progress_set(&f->progress, "values: %.0f of %.0f MB", (double)f->bytes / 1e6,
                         (double)f->total / 1e6);
    }
    return ZC_OK;
}
