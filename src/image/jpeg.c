/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg leaves by a function of ours where a file is broken; a file that only ends too early is shown as far as it goes, as
 * everybody shows it. It calls back for each warning, and there is one for each broken byte: nothing is written. */
#include "image/inside.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct failing {
    struct jpeg_error_mgr manager; /* first: libjpeg knows no more of us */
    jmp_buf leave;
    char why[JMSG_LENGTH_MAX];
};

_Noreturn static void fail(j_common_ptr c)
{
    struct failing *f = (struct failing *)c->err;
    c->err->format_message(c, f->why);
    longjmp(f->leave, 1);
}

static void ignore(j_common_ptr c, int level)
{
    (void)c;
    (void)level;
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

/* Longjmp comes back here, so nothing that changes after setjmp is read afterwards but through a pointer. */
static int decode(struct jpeg_decompress_struct *c, struct failing *f, const void *data, size_t len,
                  struct image *image, struct err *err)
{
    if (setjmp(f->leave))
        return err_set(err, ERR_FORMAT, "it is a broken JPEG file: %s", f->why);
    jpeg_create_decompress(c);
    c->mem->max_memory_to_use = (long)(LIMIT_IMAGE_MEMORY / 2);
    jpeg_mem_src(c, data, len);
    if (jpeg_read_header(c, TRUE) != JPEG_HEADER_OK)
        return err_set(err, ERR_FORMAT, "it is no JPEG file");
    const int r = image_make(image, c->image_width, c->image_height, err);
    if (r < 0)
        return r;
    if (c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK)
        return err_set(
            err, ERR_FORMAT,
            "a JPEG file in the colours of a printer (CMYK) is not shown; save it as RGB");
    c->out_color_space = JCS_RGB;
    jpeg_start_decompress(c);
    while (c->output_scanline < c->output_height) {
        JSAMPROW row = image->pixels + (size_t)c->output_scanline * image->width * IMAGE_CHANNELS;
        if (jpeg_read_scanlines(c, &row, 1) != 1)
            return err_set(err, ERR_FORMAT, "it is a broken JPEG file");
    }
    return 0;
}

int image_read_jpeg(const void *data, size_t len, struct image *ret, struct err *err)
{
    struct jpeg_decompress_struct c = {0};
    struct failing f;
    *ret = (struct image){0};
    c.err = jpeg_std_error(&f.manager);
    f.manager.error_exit = fail;
    f.manager.emit_message = ignore;
    f.manager.output_message = say_nothing;
    const int r = decode(&c, &f, data, len, ret, err);
    if (c.mem)
        jpeg_destroy_decompress(&c);
    if (r < 0)
        image_done(ret);
    return r;
}
