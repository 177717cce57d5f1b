/* The bytes of an archive, an image or a recording. */
#include "fuzz.h"
#include "media/image.h"
#include "media/npz.h"
#include "media/wav.h"

/* What a small file may claim to hold takes long, and is nothing new. */
#define ENTRY_MAX ((uint32_t)1 << 24)

static void check_tensor(zc_tensor *t, zc_status status)
{
    size_t bytes;
    volatile uint8_t sum = 0;
    if (status != ZC_OK) return;
    FUZZ_CHECK(zc_tensor_bytes(t, &bytes));
    for (size_t i = 0; i < bytes; i++) sum = (uint8_t)(sum + ((uint8_t *)t->data)[i]);
    free(t->data);
}

static zc_status read_archive(const uint8_t *data, size_t size, zc_diag *diag)
{
    zc_zip zip;
    zc_status status = zc_zip_open(data, size, &zip, diag);
    FUZZ_CHECK(zc_npz_find(&zip, "x") <= zip.entries.len);
    for (size_t i = 0; status == ZC_OK && i < zip.entries.len; i++) {
        zc_tensor t;
        if (zip.entries.data[i].size > ENTRY_MAX) continue;
        status = zc_npz_read(&zip, i, &t, diag);
        check_tensor(&t, status);
    }
    zc_zip_close(&zip);
    return status;
}

static zc_status read_image(const uint8_t *data, size_t size, zc_diag *diag)
{
    zc_image image;
    zc_tensor t;
    const zc_image_form form = {.width = 3, .height = 5, .is_last = size % 2, .scale = {1, 1, 1}};
    int channels = size % 3 ? 3 : 1;
    ZC_TRY(zc_png_is(data, size) ? zc_png_read(data, size, channels, &image, diag)
                                 : zc_jpeg_read(data, size, channels, &image, diag));
    FUZZ_CHECK(image.width > 0 && image.height > 0 && image.channels == channels);
    zc_status status = zc_image_tensor(&image, &form, ZC_F32, &t, diag);
    check_tensor(&t, status);
    free(image.data);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_sound about;
    zc_tensor t;
    zc_diag *diag = zc_diag_create();
    zc_status status = ZC_OK;
    if (!diag) return 0;
    if (zc_zip_is(data, size)) {
        status = read_archive(data, size, diag);
    } else if (zc_png_is(data, size) || zc_jpeg_is(data, size)) {
        status = read_image(data, size, diag);
    } else if (zc_wav_is(data, size)) {
        status = zc_wav_read(data, size, &t, &about, diag);
        check_tensor(&t, status);
    }
    fuzz_check_words(diag, status);
    zc_diag_destroy(&diag);
    return 0;
}
