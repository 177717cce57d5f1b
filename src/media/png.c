#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "media/image.h"

bool zc_png_is(const uint8_t *data, size_t len)
{
    return len >= 8 && png_sig_cmp((png_const_bytep)data, 0, 8) == 0;
}

static zc_status decode(png_image *png, int channels, zc_image *out, zc_diag *diag)
{
    static const png_color white = {255, 255, 255};
    if ((uint64_t)png->width * png->height > ZC_PIXELS_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "too large an image (got %u x %u, need at most %llu pixels)", png->width,
                       png->height, (unsigned long long)ZC_PIXELS_MAX);
    png->format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    uint8_t *data = zc_calloc((size_t)png->width * png->height, (size_t)channels);
    if (!data) return zc_fail_nomem(diag, "an image", PNG_IMAGE_SIZE(*png));
    if (!png_image_finish_read(png, &white, data, 0, NULL)) {
        free(data);
        return zc_fail(diag, ZC_ERR_FORMAT, NULL, "a damaged PNG image (%s)", png->message);
    }
    *out = (zc_image){(int)png->width, (int)png->height, channels, data};
    return ZC_OK;
}

zc_status zc_png_read(const uint8_t *data, size_t len, int channels, zc_image *out, zc_diag *diag)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, data, len))
        return zc_fail(diag, ZC_ERR_FORMAT, NULL, "a damaged PNG image (%s)", png.message);
    zc_status status = decode(&png, channels, out, diag);
    png_image_free(&png);
    return status;
}
