#include "media/wav.h"

#include <string.h>

#include "base/mem.h"

enum { PCM = 1, FLOATS = 3, EXTENSIBLE = 0xFFFE, CHANNELS_MAX = 64 };

typedef struct format {
    unsigned kind, channels, bits;
    uint32_t rate;
} format;

static uint32_t u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

bool zc_wav_is(const uint8_t *data, size_t len)
{
    return len >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WAVE", 4) == 0;
}

/* Chunks are padded to even lengths. The last one may be cut short: recorders that are stopped, and
 * pipes, leave it so. */
static const uint8_t *find_chunk(const uint8_t *data, size_t len, const char *id, size_t *size)
{
    for (size_t at = 12; zc_range_ok(at, 8, len);) {
        size_t n = u32(data + at + 4), left = len - at - 8;
        if (memcmp(data + at, id, 4) == 0) {
            *size = n < left ? n : left;
            return data + at + 8;
        }
        if (n + (n & 1) > left) return NULL;
        at += 8 + n + (n & 1);
    }
    return NULL;
}

static zc_status read_format(const uint8_t *data, size_t len, format *f, zc_diag *diag)
{
    size_t n = 0;
    const uint8_t *p = find_chunk(data, len, "fmt ", &n);
    if (!p || n < 16) return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the WAV file lacks its format");
    *f = (format){.kind = u16(p), .channels = u16(p + 2), .rate = u32(p + 4), .bits = u16(p + 14)};
    if (f->kind == EXTENSIBLE && n >= 26) f->kind = u16(p + 24);
    bool known = f->kind == PCM ? f->bits == 8 || f->bits == 16 || f->bits == 24 || f->bits == 32
                                : f->kind == FLOATS && (f->bits == 32 || f->bits == 64);
    if (!known)
        return zc_fail(
            diag, ZC_ERR_UNSUPPORTED, NULL,
            "unknown WAV encoding (got format %u of %u bits, need PCM of 8, 16, 24 or 32 "
            "bits or floats)",
            f->kind, f->bits);
    if (f->channels >= 1 && f->channels <= CHANNELS_MAX) return ZC_OK;
    return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the WAV file has %u channels (need 1 to %d)",
                   f->channels, CHANNELS_MAX);
}

static double sample(const format *f, const uint8_t *p)
{
    if (f->kind == FLOATS) return zc_load_f64(f->bits == 32 ? ZC_F32 : ZC_F64, p, 0);
    if (f->bits == 8) return (p[0] - 128) / 128.0;
    if (f->bits == 16) return (int16_t)u16(p) / 32768.0;
    if (f->bits == 24) return (int32_t)(u16(p) << 8 | (uint32_t)p[2] << 24) / 2147483648.0;
    return (int32_t)u32(p) / 2147483648.0;
}

zc_status zc_wav_read(const uint8_t *data, size_t len, zc_tensor *out, zc_sound *about,
                      zc_diag *diag)
{
    format f;
    size_t n = 0;
    _Alignas(double) uint8_t one[8];
    ZC_TRY(read_format(data, len, &f, diag));
    const uint8_t *p = find_chunk(data, len, "data", &n);
    if (!p) return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the WAV file has no sound");
    size_t width = f.bits / 8, frames = n / (width * f.channels);
    *out = (zc_tensor){.dtype = ZC_F32, .rank = 1, .dims = {(int64_t)frames}};
    float *to = out->data = zc_calloc(frames, sizeof(float));
    if (!to) return zc_fail_nomem(diag, "sound", frames * sizeof(float));
    for (size_t i = 0; i < frames; i++) {
        double sum = 0;
        for (size_t c = 0; c < f.channels; c++, p += width) {
            memcpy(one, p, width);
            sum += sample(&f, one);
        }
        to[i] = (float)(sum / f.channels);
    }
    *about = (zc_sound){f.rate, (int)f.channels, (int64_t)frames};
    return ZC_OK;
}
