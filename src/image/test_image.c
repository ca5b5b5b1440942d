/* SPDX-License-Identifier: Apache-2.0 */
/* A picture goes in, one of our own comes out: its pixels are those of the first, as large as asked for; what is no picture, is
 * broken or is too large is refused by name. */
#include "base/limits.h"
#include "base/tap.h"
#include "image/image.h"

#include <stdio.h>
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

static void slurp(const char *folder, const char *name, struct buf *file)
{
    char path[512], chunk[4096];
    size_t n;
    buf_init(file, LIMIT_IMAGE_FILE);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    while (f && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        if (buf_add(file, chunk, n) < 0)
            break;
    if (f)
        fclose(f);
}

/* Cut at a few hundred places, and with a byte changed at as many: it is read or refused, and the sanitizers watch. */
static void survives_damage(struct buf *file, const char *name)
{
    struct err err = ERR_INIT;
    struct image image;
    size_t whole = 0;
    const size_t step = file->len / 200 + 1;
    for (size_t at = 0; at < file->len; at += step) {
        const int r = image_read(file->data, at, &image, &err);
        whole += (r == 0) == (image.pixels != NULL);
        image_done(&image);
        file->data[at] ^= 0x41;
        const int s = image_read(file->data, file->len, &image, &err);
        whole += (s == 0) == (image.pixels != NULL);
        file->data[at] ^= 0x41;
        image_done(&image);
    }
    tap_ok(file->len && whole == 2 * ((file->len + step - 1) / step),
           "%s, cut or changed, is read or refused, never half", name);
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

/* The first pixel and the one in the middle of a file of tests/fuzz. */
static void reads_other_kinds(const char *folder)
{
    static const struct {
        const char *name;
        uint32_t width, height;
        int first[3], middle[3];
    } rows[] = {
        {"image_png/wide.png", 1600, 400, {255, 128, 0}, {255, 128, 0}},
        {"image_jpeg/wide.jpg", 1600, 400, {255, 128, 0}, {255, 128, 0}},
        {"image_jpeg/gray.jpg", 24, 16, {0, 0, 0}, {49, 49, 49}},
        {"image_gif/wide.gif", 1600, 400, {255, 128, 0}, {255, 128, 0}},
        {"image_gif/interlaced.gif", 24, 16, {20, 0, 45}, {115, 0, 165}},
        {"image_gif/transparent.gif", 24, 16, {255, 255, 255}, {255, 255, 255}},
        {"image_gif/animated.gif", 8, 8, {255, 0, 0}, {255, 0, 0}},
        {"image_webp/wide.webp", 1600, 400, {255, 128, 0}, {255, 128, 0}},
        {"image_webp/small.webp", 24, 16, {0, 0, 0}, {120, 0, 120}},
        {"image_webp/transparent.webp", 24, 16, {255, 255, 255}, {255, 255, 255}},
        {"image_webp/animated.webp", 8, 8, {255, 0, 0}, {255, 0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = ERR_INIT;
        struct buf file;
        struct image image = {0};
        slurp(folder, rows[i].name, &file);
        const int r = image_read(file.data ? file.data : "", file.len, &image, &err);
        const bool size = r == 0 && image.width == rows[i].width && image.height == rows[i].height;
        tap_ok(size, "%s is read: %u x %u %s", rows[i].name, image.width, image.height, err.msg);
        const unsigned char *middle =
            size ? image.pixels + ((size_t)image.height / 2 * image.width + image.width / 2) * 3
                 : NULL;
        int off = 0;
        for (int c = 0; middle && c < 3; c++) {
            const int a = abs(image.pixels[c] - rows[i].first[c]),
                      b = abs(middle[c] - rows[i].middle[c]);
            off = a > off ? a : off;
            off = b > off ? b : off;
        }
        tap_ok(middle && off <= 24, "the pixels of %s are its picture's (%d off)", rows[i].name,
               off);
        if (rows[i].width < 100) /* a large one takes a tenth of a second each time */
            survives_damage(&file, rows[i].name);
        image_done(&image);
        buf_done(&file);
    }
}

static void refuses_a_printers_colours(const char *folder)
{
    struct err err = ERR_INIT;
    struct buf file;
    struct image image;
    slurp(folder, "image_jpeg/cmyk.jpg", &file);
    tap_ok(image_read(file.data ? file.data : "", file.len, &image, &err) == ERR_FORMAT &&
               strstr(err.msg, "printer"),
           "a JPEG file in the colours of a printer is refused by name: %s", err.msg);
    buf_done(&file);
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
               "what is no picture is refused as such (%zu)", i);
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

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    reads_what_it_wrote();
    reads_other_kinds(argv[1]);
    refuses_a_printers_colours(argv[1]);
    shrinks();
    refuses();
    writes_sixels();
    return tap_done();
}
