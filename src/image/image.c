/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels, whatever file they came from: how many there may be, and how they are shrunk. */
#include "image/inside.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNELS = IMAGE_CHANNELS };

void image_done(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

static size_t bytes_of(uint32_t width, uint32_t height)
{
    return (size_t)width * height * CHANNELS;
}

int image_make(struct image *image, uint64_t width, uint64_t height, struct err *err)
{
    *image = (struct image){0};
    if (width == 0 || height == 0)
        return err_set(err, ERR_FORMAT, "it has no pixels");
    if (width > UINT32_MAX || height > UINT32_MAX || width * height > LIMIT_IMAGE_PIXELS)
        return err_set(err, ERR_USAGE, "%llu x %llu are more than %llu pixels",
                       (unsigned long long)width, (unsigned long long)height, LIMIT_IMAGE_PIXELS);
    image->pixels = malloc(bytes_of((uint32_t)width, (uint32_t)height));
    if (!image->pixels)
        return err_set(err, ERR_MEMORY, "no memory");
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    memset(image->pixels, 255, bytes_of(image->width, image->height));
    return 0;
}

void image_over_white(const unsigned char *rgba, unsigned char *out)
{
    for (int c = 0; c < CHANNELS; c++)
        out[c] = (unsigned char)((rgba[c] * rgba[3] + 255 * (255 - rgba[3])) / 255);
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
