/* SPDX-License-Identifier: Apache-2.0 */
/* The first frame of a GIF file, on its canvas. Giflib's reader of whole files keeps every frame, which a file of a few bytes
 * can have thousands of, so records are read one by one and the first frame is the last. */
#include "image/inside.h"

#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const unsigned char *data;
    size_t left;
};

static int take(GifFileType *gif, GifByteType *out, int len)
{
    struct source *s = gif->UserData;
    const size_t n = len < 0 ? 0 : (size_t)len < s->left ? (size_t)len : s->left;
    memcpy(out, s->data, n);
    s->data += n;
    s->left -= n;
    return (int)n;
}

static int broken(const GifFileType *gif, struct err *err)
{
    const char *why = GifErrorString(gif->Error);
    return err_set(err, ERR_FORMAT, "it is a broken GIF file: %s", why ? why : "it ends too early");
}

/* One row of the frame, at its place on the canvas; what lies outside of it is left out. */
static void put_row(const GifFileType *gif, const ColorMapObject *colours, int transparent,
                    const GifPixelType *row, int y, struct image *image)
{
    const GifImageDesc *d = &gif->Image;
    if (y < 0 || (uint32_t)y >= image->height)
        return;
    for (int x = 0; x < d->Width; x++) {
        const int64_t column = (int64_t)d->Left + x;
        if (column < 0 || column >= image->width || row[x] == transparent ||
            row[x] >= colours->ColorCount)
            continue;
        const GifColorType *c = &colours->Colors[row[x]];
        unsigned char *out =
            image->pixels + ((size_t)y * image->width + (size_t)column) * IMAGE_CHANNELS;
        out[0] = c->Red;
        out[1] = c->Green;
        out[2] = c->Blue;
    }
}

static int read_frame(GifFileType *gif, int transparent, struct image *image, struct err *err)
{
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2}; /* of interlaced rows */
    if (DGifGetImageDesc(gif) == GIF_ERROR)
        return broken(gif, err);
    const GifImageDesc *d = &gif->Image;
    const ColorMapObject *colours = d->ColorMap ? d->ColorMap : gif->SColorMap;
    if (!colours || d->Width <= 0 || d->Height <= 0)
        return err_set(err, ERR_FORMAT, "it is a GIF file without pixels or colours");
    int r = image_make(image, (uint64_t)gif->SWidth, (uint64_t)gif->SHeight, err);
    if (r < 0)
        return r;
    GifPixelType *row = malloc((size_t)d->Width);
    if (!row)
        return err_set(err, ERR_MEMORY, "no memory");
    for (int pass = 0; r == 0 && pass < (d->Interlace ? 4 : 1); pass++)
        for (int y = d->Interlace ? first[pass] : 0; r == 0 && y < d->Height;
             y += d->Interlace ? step[pass] : 1) {
            if (DGifGetLine(gif, row, d->Width) == GIF_ERROR)
                r = broken(gif, err);
            else
                put_row(gif, colours, transparent, row, d->Top + y, image);
        }
    free(row);
    return r;
}

/* Which colour is transparent, where the extension says so; -1: none. */
static int read_extension(GifFileType *gif, int *transparent, struct err *err)
{
    int code = 0;
    GifByteType *block = NULL;
    GraphicsControlBlock control;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
        return broken(gif, err);
    if (code == GRAPHICS_EXT_FUNC_CODE && block &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        *transparent = control.TransparentColor;
    while (block)
        if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
            return broken(gif, err);
    return 0;
}

static int read_records(GifFileType *gif, struct image *image, struct err *err)
{
    int transparent = NO_TRANSPARENT_COLOR, r = 0;
    for (GifRecordType type = UNDEFINED_RECORD_TYPE; r == 0;) {
        if (DGifGetRecordType(gif, &type) == GIF_ERROR)
            return broken(gif, err);
        if (type == IMAGE_DESC_RECORD_TYPE)
            return read_frame(gif, transparent, image, err);
        if (type != EXTENSION_RECORD_TYPE)
            return err_set(err, ERR_FORMAT, "it is a GIF file without a picture");
        r = read_extension(gif, &transparent, err);
    }
    return r;
}

int image_read_gif(const void *data, size_t len, struct image *ret, struct err *err)
{
    struct source s = {data, len};
    int error = 0;
    *ret = (struct image){0};
    GifFileType *gif = DGifOpen(&s, take, &error);
    if (!gif)
        return err_set(err, ERR_FORMAT, "it is no GIF file");
    const int r = read_records(gif, ret, err);
    (void)DGifCloseFile(gif, &error); /* it only frees: nothing is written */
    if (r < 0)
        image_done(ret);
    return r;
}
