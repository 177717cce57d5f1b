#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/mem.h"
#include "media/image.h"

/* libjpeg leaves by longjmp where it cannot go on. */
typedef struct reader {
    struct jpeg_decompress_struct jpeg; /* first: libjpeg's callbacks get its address */
    struct jpeg_error_mgr errors;
    jmp_buf leave;
    char message[JMSG_LENGTH_MAX];
    uint8_t *data;
} reader;

bool zc_jpeg_is(const uint8_t *data, size_t len)
{
    return len >= 3 && data[0] == 0xFF && data[1] == 0xD8 && data[2] == 0xFF;
}

static void leave(j_common_ptr jpeg)
{
    reader *r = (reader *)jpeg;
    r->errors.format_message(jpeg, r->message);
    longjmp(r->leave, 1);
}

/* Damage that libjpeg would paint over is an error, too. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0) leave(jpeg);
}

static zc_status decode(reader *r, int channels, zc_image *out, zc_diag *diag)
{
    struct jpeg_decompress_struct *j = &r->jpeg;
    jpeg_read_header(j, TRUE);
    if (j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, NULL,
                       "JPEG images for printing are not supported (got CMYK, need RGB or grey)");
    if ((uint64_t)j->image_width * j->image_height > ZC_PIXELS_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "too large an image (got %u x %u, need at most %llu pixels)", j->image_width,
                       j->image_height, (unsigned long long)ZC_PIXELS_MAX);
    j->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(j);
    size_t row = (size_t)j->output_width * (size_t)j->output_components;
    r->data = zc_calloc(j->output_height, row);
    if (!r->data) return zc_fail_nomem(diag, "an image", row);
    while (j->output_scanline < j->output_height) {
        JSAMPROW at = r->data + j->output_scanline * row;
        jpeg_read_scanlines(j, &at, 1);
    }
    *out = (zc_image){(int)j->output_width, (int)j->output_height, channels, r->data};
    jpeg_finish_decompress(j);
    return ZC_OK;
}

zc_status zc_jpeg_read(const uint8_t *data, size_t len, int channels, zc_image *out, zc_diag *diag)
{
    reader *r = zc_calloc(1, sizeof *r);
    zc_status status;
    if (!r) return zc_fail_nomem(diag, "an image", sizeof *r);
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = leave;
    r->errors.emit_message = on_message;
    if (setjmp(r->leave) == 0) {
        jpeg_create_decompress(&r->jpeg);
        jpeg_mem_src(&r->jpeg, data, len);
        status = decode(r, channels, out, diag);
    } else {
        status = zc_fail(diag, ZC_ERR_FORMAT, NULL, "a damaged JPEG image (%s)", r->message);
    }
    if (status != ZC_OK) free(r->data);
    jpeg_destroy_decompress(&r->jpeg);
    free(r);
    return status;
}
