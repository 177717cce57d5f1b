/* Products of bytes, one a channel: four taps at a time of 64 channels, or with AVX2 two of 32. */
#include <string.h>

#include "cpu/bytes_avx2.h"
#include "cpu/bytes_finish.h"

enum { BLOCK = 64, DEEP = 4, LANE = 16, VECTORS = 4 };

static int64_t blocks_of(int64_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

/* Taps at a time. */
static int64_t deep(void)
{
    return zc_bytes_by_avx2() ? 2 : DEEP;
}

static int64_t rounds_of(int64_t taps)
{
    return (taps + deep() - 1) / deep();
}

/* Sums of all channels, then blocks; in them some taps at a time, four vectors. A vector has four
 * channels of each sixteen, as interleaving within 16 bytes brings them. */
static int64_t place_of(int64_t taps, int64_t channel, int64_t tap)
{
    const int64_t n = deep(), block = LANE * n, c = channel % block;
    const int64_t vector = (channel / block * rounds_of(taps) + tap / n) * VECTORS + c % LANE / 4;
    return vector * block / VECTORS * n + (c / LANE * 4 + c % 4) * n + tap % n;
}

/* Bytes of a weight: AVX2 reads 16 bits. */
static size_t weight_bytes(void)
{
    return zc_bytes_by_avx2() ? sizeof(int16_t) : sizeof(int8_t);
}

static int weight_at(const void *w, int64_t place)
{
    return zc_bytes_by_avx2() ? ((const int16_t *)w)[place] : ((const int8_t *)w)[place];
}

static void put_weight(void *w, int64_t place, int v)
{
    if (zc_bytes_by_avx2())
        ((int16_t *)w)[place] = (int16_t)v;
    else
        ((int8_t *)w)[place] = (int8_t)v;
}

typedef struct format {
    zc_pack_format base;
    int64_t channels, taps;
    bool is_signed;
} format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const format *a = (const void *)fa, *b = (const void *)fb;
    return fa->pack == fb->pack && a->channels == b->channels && a->taps == b->taps;
}

static bool pack(const zc_pack_format *base, const void *plain, void *to)
{
    const format *f = (const void *)base;
    const uint8_t *from = plain, flip = f->is_signed ? 0x80 : 0;
    int32_t *sums = to;
    void *w = sums + blocks_of(f->channels) * BLOCK;
    memset(to, 0, base->bytes);
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t t = 0; t < f->taps; t++) {
            const int v = (from[c * f->taps + t] ^ flip) - 128;
            put_weight(w, place_of(f->taps, c, t), v);
            sums[c] += v;
        }
    return true;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    return false;
}

zc_status zc_bytes_packed_each(zc_kctx *k, int input, int64_t channels, int64_t taps,
                               const void **out)
{
    const zc_tensor *t = &k->in[input];
    const size_t channel = (size_t)(rounds_of(taps) * deep()) * weight_bytes() + sizeof(int32_t);
    format f = {.channels = channels, .taps = taps, .is_signed = t->dtype == ZC_I8};
    f.base = (zc_pack_format){0, same_format, pack, NULL, gives_back, NULL};
    if (!zc_mul_size((size_t)(blocks_of(channels) * BLOCK), channel, &f.base.bytes))
        return zc_fail_nomem(k->diag, "packed bytes", 0);
    if (k->packs && (k->const_in >> input & 1))
        return zc_packs_get_plain(k->packs, t->data, &f.base, sizeof f, out, k->diag);
    void *room = zc_scratch_get(k->scratch, f.base.bytes);
    if (!room) return zc_fail_nomem(k->diag, "packed bytes", f.base.bytes);
    pack(&f.base, t->data, room);
    *out = room;
    return ZC_OK;
}

static void *result_at(const zc_byte_each *e, void *y, int64_t channel)
{
    return (uint8_t *)y + (size_t)channel * (e->s.scale ? 1 : sizeof(int32_t));
}

static const void *weights_of(const zc_byte_each *e)
{
    return (const int32_t *)e->w + blocks_of(e->channels) * BLOCK;
}

/* Channels from `first` on. */
static void each_plainly(const zc_byte_each *e, const uint8_t *const *x, int64_t first, void *y)
{
    const void *w = weights_of(e);
    for (int64_t from = first; from < e->channels; from += BLOCK) {
        const int64_t n = e->channels - from < BLOCK ? e->channels - from : BLOCK;
        int32_t sums[BLOCK];
        for (int64_t c = from; c < from + n; c++) {
            sums[c - from] = e->offset[c];
            for (int64_t t = 0; t < e->taps; t++)
                sums[c - from] += x[t][c] * (weight_at(w, place_of(e->taps, c, t)) - e->w_zero);
        }
        zc_bytes_finish(&e->s, sums, from, n, result_at(e, y, from));
    }
}

#if SIMD_X86
/* The same pieces of 16 bytes, from four vectors' columns to rows. */
ZC_INLINE ZC_VNNI void turn_pieces(__m512i v[VECTORS])
{
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xdd);
    v[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[1] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[2] = _mm512_shuffle_i32x4(a, b, 0xdd);
    v[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

static ZC_VNNI void each_vnni(const zc_byte_each *e, const uint8_t *const *x, void *y)
{
    const int64_t quads = rounds_of(e->taps);
    const int8_t *w = weights_of(e);
    const zc_byte_range range = zc_bytes_range(&e->s);
    for (int64_t from = 0; from < e->channels; from += BLOCK) {
        const int64_t n = e->channels - from < BLOCK ? e->channels - from : BLOCK;
        const __mmask64 m = ~(__mmask64)0 >> (BLOCK - n);
        const __m512i none = _mm512_setzero_si512();
        __m512i sum[VECTORS] = {none, none, none, none};
        for (int64_t q = 0; q < quads; q++, w += VECTORS * BLOCK) {
            __m512i t[DEEP], s[VECTORS];
            SIMD_UNROLL
            for (int i = 0; i < DEEP; i++) { /* what is behind the last meets zeros */
                const int64_t tap = q * DEEP + i < e->taps ? q * DEEP + i : 0;
                t[i] = _mm512_maskz_loadu_epi8(m, x[tap] + from);
            }
            const __m512i a = _mm512_unpacklo_epi8(t[0], t[1]),
                          b = _mm512_unpackhi_epi8(t[0], t[1]);
            const __m512i c = _mm512_unpacklo_epi8(t[2], t[3]),
                          d = _mm512_unpackhi_epi8(t[2], t[3]);
            s[0] = _mm512_unpacklo_epi16(a, c);
            s[1] = _mm512_unpackhi_epi16(a, c);
            s[2] = _mm512_unpacklo_epi16(b, d);
            s[3] = _mm512_unpackhi_epi16(b, d);
            SIMD_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sum[v] = _mm512_dpbusd_epi32(sum[v], s[v], _mm512_loadu_si512(w + v * BLOCK));
        }
        turn_pieces(sum);
        SIMD_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const int64_t c = from + v * LANE;
            const __m512i s = _mm512_add_epi32(sum[v], _mm512_loadu_si512(e->offset + c));
            const __mmask16 there = zc_bytes_mask(n - v * LANE);
            if (there)
                zc_bytes_finish16(&e->s, &range, zc_bytes_scales16(&e->s, c, there), s, c, there,
                                  result_at(e, y, c));
        }
    }
}
#endif

void zc_bytes_each(const zc_byte_each *e, const uint8_t *const *x, void *y)
{
    int64_t done = 0;
#if SIMD_X86
    if (!e->w_zero && zc_has_vnni()) {
        each_vnni(e, x, y);
        return;
    }
#endif
    if (!e->w_zero && zc_bytes_by_avx2()) done = zc_avx2_each(e, weights_of(e), x, y);
    each_plainly(e, x, done, y);
}
