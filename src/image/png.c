/* SPDX-License-Identifier: Apache-2.0 */
/* libpng's simplified interface decodes and encodes; it checks lengths and sums, and reports every defect as an error. */
#include "image/inside.h"

#include <png.h>
#include <stdlib.h>

int image_read_png(const void *data, size_t len, struct image *ret, struct err *err)
{
    const png_color white = {255, 255, 255};
    png_image png = {.version = PNG_IMAGE_VERSION};
    *ret = (struct image){0};
    if (!png_image_begin_read_from_memory(&png, data, len))
        return err_set(err, ERR_FORMAT, "it is no PNG file: %s", png.message);
    const int r = image_make(ret, png.width, png.height, err);
    if (r < 0) {
        png_image_free(&png);
        return r;
    }
    png.format = PNG_FORMAT_RGB;
    if (png_image_finish_read(&png, &white, ret->pixels, 0, NULL))
        return 0;
    image_done(ret);
    png_image_free(&png);
    return err_set(err, ERR_FORMAT, "it is a broken PNG file: %s", png.message);
}

int image_write_png(const struct image *image, struct buf *out, struct err *err)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = image->width,
                     .height = image->height,
                     .format = PNG_FORMAT_RGB};
    png_alloc_size_t len = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *file = malloc(len);
    if (!file)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = png_image_write_to_memory(&png, file, &len, 0, image->pixels, 0, NULL)
                ? buf_add(out, file, len)
                : err_set(err, ERR_STATE, "write a PNG file: %s", png.message);
    if (r < 0 && !err->msg[0])
        r = err_set(err, r, "the picture is too large to be sent");
    free(file);
    return r;
}
