/* SPDX-License-Identifier: Apache-2.0 */
/* A picture goes in, one of our own comes out: its pixels are those of the first, as large as asked for; what is no picture, is
 * broken or is too large is refused by name. */
#include "base/limits.h"
#include "base/tap.h"
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

/* Red to the right, green downwards. */
static struct image ramp(uint32_t width, uint32_t height)
{
    struct image image = {.width = width, .height = height};
    image.pixels = calloc((size_t)width * height, 3);
    for (uint32_t y = 0; image.pixels && y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            unsigned char *at = image.pixels + ((size_t)y * width + x) * 3;
            at[0] = (unsigned char)(x * 255 / width);
            at[1] = (unsigned char)(y * 255 / height);
        }
    return image;
}

static void write_of(const struct image *image, struct buf *file)
{
    struct err err = ERR_INIT;
    buf_init(file, LIMIT_IMAGE_SENT);
    tap_ok(image_write_png(image, file, &err) == 0 && file->len > 8, "a picture is written: %s",
           err.msg);
}

static void reads_what_it_wrote(void)
{
    struct err err = ERR_INIT;
    struct buf file;
    struct image first = ramp(300, 200), again;
    write_of(&first, &file);
    tap_ok(image_read(file.data, file.len, &again, &err) == 0 && again.width == 300 &&
               again.height == 200 && memcmp(first.pixels, again.pixels, 300 * 200 * 3) == 0,
           "a PNG file is read to the pixels it was made of");
    image_done(&first);
    image_done(&again);
    buf_done(&file);
}

static void shrinks(void)
{
    struct err err = ERR_INIT;
    struct image image = ramp(1000, 500);
    tap_ok(image_fit(&image, 100, &err) == 0 && image.width == 100 && image.height == 50,
           "a picture is shrunk in its own shape to the side that was asked for");
    const unsigned char *middle = image.pixels + (25 * 100 + 50) * 3;
    tap_ok(abs(middle[0] - 128) < 4 && abs(middle[1] - 128) < 4,
           "a pixel of a shrunk picture is the mean of those it stands for");
    tap_ok(image_fit(&image, 800, &err) == 0 && image.width == 100,
           "a picture that fits stays as large as it is");
    image_done(&image);
    image = ramp(5000, 2);
    tap_ok(image_fit(&image, 100, &err) == 0 && image.width == 100 && image.height == 1,
           "a line stays a pixel high when it is shrunk");
    image_done(&image);
}

static void refuses(void)
{
    struct err err = ERR_INIT;
    struct buf file;
    struct image first = ramp(64, 64), image;
    static const char *const strange[] = {"", "GIF89a", "\x89PNG\r\n\x1a\n", "<svg/>"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        tap_ok(image_read(strange[i], strlen(strange[i]), &image, &err) == ERR_FORMAT &&
                   !image.pixels,
               "what is no PNG file is refused as such (%zu)", i);
    write_of(&first, &file);
    size_t read = 0;
    for (size_t len = 0; len < file.len; len++) {
        read += image_read(file.data, len, &image, &err) == 0;
        image_done(&image);
    }
    tap_ok(read <= 12, "a file that was cut before its end mark is refused (%zu were read)", read);
    for (size_t i = 8; i < file.len; i++) {
        file.data[i] ^= 0x41; /* whatever comes of it, it is within bounds: the sanitizers watch */
        (void)!image_read(file.data, file.len, &image, &err);
        image_done(&image);
        file.data[i] ^= 0x41;
    }
    /* 16384 x 16384, said by its header alone, whose check sum is right */
    memcpy(file.data + 16, "\0\0\x40\0\0\0\x40\0", 8);
    memcpy(file.data + 29, "\x26\xaa\x87\xd3", 4);
    tap_ok(image_read(file.data, file.len, &image, &err) == ERR_USAGE && !image.pixels,
           "a header that promises 268 million pixels is refused: %s", err.msg);
    image_done(&first);
    buf_done(&file);
}

static void writes_sixels(void)
{
    struct err err = ERR_INIT;
    struct buf out;
    struct image image = ramp(120, 60);
    buf_init(&out, LIMIT_IMAGE_SENT);
    tap_ok(image_write_sixel(&image, &out, &err) == 0 && out.len > 100 &&
               memcmp(out.data, "\033P", 2) == 0 &&
               memcmp(out.data + out.len - 2, "\033\\", 2) == 0,
           "sixels begin and end as one device control string: %s", err.msg);
    size_t strange = 0;
    for (size_t i = 2; i + 2 < out.len; i++)
        strange += out.data[i] < ' ' || out.data[i] > '~';
    tap_ok(strange == 0, "sixels are printable characters only (%zu are not)", strange);
    image_done(&image);
    buf_done(&out);
}

int main(void)
{
    reads_what_it_wrote();
    shrinks();
    refuses();
    writes_sixels();
    return tap_done();
}
