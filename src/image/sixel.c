/* SPDX-License-Identifier: Apache-2.0 */
/* Sixel, for terminals that take no file: libsixel chooses at most 256 colours and writes the rows. */
#include "image/image.h"

#include <sixel.h>

struct sink {
    struct buf *out;
    bool full;
};

static int add(char *data, int len, void *sink)
{
    struct sink *s = sink;
    if (len > 0 && buf_add(s->out, data, (size_t)len) < 0)
        s->full = true;
    return len;
}

int image_write_sixel(const struct image *image, struct buf *out, struct err *err)
{
    struct sink sink = {.out = out};
    sixel_output_t *output = NULL;
    sixel_dither_t *colours = NULL;
    const int width = (int)image->width, height = (int)image->height;
    SIXELSTATUS s = sixel_output_new(&output, add, &sink, NULL);
    if (SIXEL_SUCCEEDED(s))
        s = sixel_dither_new(&colours, SIXEL_PALETTE_MAX, NULL);
    if (SIXEL_SUCCEEDED(s))
        s = sixel_dither_initialize(colours, image->pixels, width, height, SIXEL_PIXELFORMAT_RGB888,
                                    SIXEL_LARGE_NORM, SIXEL_REP_CENTER_BOX, SIXEL_QUALITY_HIGH);
    if (SIXEL_SUCCEEDED(s))
        s = sixel_encode(image->pixels, width, height, 8, colours, output);
    if (colours)
        sixel_dither_unref(colours);
    if (output)
        sixel_output_unref(output);
    return SIXEL_FAILED(s)
               ? err_set(err, ERR_STATE, "write sixels: %s", sixel_helper_format_error(s))
           : sink.full ? err_set(err, ERR_USAGE, "the picture is too large to be sent")
                       : 0;
}
