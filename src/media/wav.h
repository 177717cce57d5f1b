/* Sound from WAV files: PCM of 8 to 32 bits and floats. */
#ifndef ZC_MEDIA_WAV_H
#define ZC_MEDIA_WAV_H

#include "base/diag.h"
#include "op/tensor.h"

typedef struct zc_sound {
    uint32_t rate;
    int channels;
    int64_t frames;
} zc_sound;

bool zc_wav_is(const uint8_t *data, size_t len);
/* The mean of all channels, from -1 to 1, as f32 [frames]; the caller frees out->data. */
zc_status zc_wav_read(const uint8_t *data, size_t len, zc_tensor *out, zc_sound *about,
                      zc_diag *diag);

#endif
