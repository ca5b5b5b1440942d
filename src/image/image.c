/* SPDX-License-Identifier: Apache-2.0 */
/* libpng's simplified interface decodes and encodes; it checks lengths and sums, and reports every defect as an error. */
#include "image/image.h"

#include "base/limits.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 3 };

void image_done(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

static size_t bytes_of(uint32_t width, uint32_t height)
{
    return (size_t)width * height * CHANNELS;
}

int image_read(const void *data, size_t len, struct image *ret, struct err *err)
{
    const png_color white = {255, 255, 255};
    png_image png = {.version = PNG_IMAGE_VERSION};
    *ret = (struct image){0};
    if (!png_image_begin_read_from_memory(&png, data, len))
        return err_set(err, ERR_FORMAT, "it is no PNG file: %s", png.message);
    if ((uint64_t)png.width * png.height > LIMIT_IMAGE_PIXELS) {
        const unsigned long width = png.width, height = png.height;
        png_image_free(&png);
        return err_set(err, ERR_USAGE, "%lu x %lu are more than %llu pixels", width, height,
                       LIMIT_IMAGE_PIXELS);
    }
    png.format = PNG_FORMAT_RGB;
    ret->width = png.width;
    ret->height = png.height;
    ret->pixels = malloc(bytes_of(png.width, png.height));
    if (ret->pixels && png_image_finish_read(&png, &white, ret->pixels, 0, NULL))
        return 0;
    const bool memory = !ret->pixels;
    image_done(ret);
    png_image_free(&png);
    return memory ? err_set(err, ERR_MEMORY, "no memory")
                  : err_set(err, ERR_FORMAT, "it is a broken PNG file: %s", png.message);
}

/* The mean of the pixels of FROM that lie under pixel X, Y of a picture of WIDTH x HEIGHT. */
static void shrink_pixel(const struct image *from, const struct image *to, uint32_t x, uint32_t y)
{
    const uint64_t left = (uint64_t)x * from->width / to->width,
                   right = ((uint64_t)x + 1) * from->width / to->width,
                   top = (uint64_t)y * from->height / to->height,
                   bottom = ((uint64_t)y + 1) * from->height / to->height;
    uint64_t sum[CHANNELS] = {0};
    for (uint64_t row = top; row < bottom; row++)
        for (uint64_t column = left; column < right; column++)
            for (int c = 0; c < CHANNELS; c++)
                sum[c] += from->pixels[(row * from->width + column) * CHANNELS + (size_t)c];
    const uint64_t count = (right - left) * (bottom - top);
    base_assert(count); /* TO is not larger than FROM */
    for (int c = 0; c < CHANNELS; c++)
        to->pixels[((size_t)y * to->width + x) * CHANNELS + (size_t)c] =
            (unsigned char)(sum[c] / count);
}

int image_fit(struct image *image, uint32_t most, struct err *err)
{
    const uint32_t longer = image->width > image->height ? image->width : image->height;
    if (longer <= most)
        return 0;
    struct image to = {.width = (uint32_t)((uint64_t)image->width * most / longer),
                       .height = (uint32_t)((uint64_t)image->height * most / longer)};
    to.width += to.width == 0; /* a line of a pixel's width stays one */
    to.height += to.height == 0;
    to.pixels = malloc(bytes_of(to.width, to.height));
    if (!to.pixels)
        return err_set(err, ERR_MEMORY, "no memory");
    for (uint32_t y = 0; y < to.height; y++)
        for (uint32_t x = 0; x < to.width; x++)
            shrink_pixel(image, &to, x, y);
    image_done(image);
    *image = to;
    return 0;
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
