/* SPDX-License-Identifier: Apache-2.0 */
/* The first frame of a WebP file: one that moves is a container of frames, which libwebpdemux knows. */
#include "image/inside.h"

#include <stdlib.h>
#include <webp/decode.h>
#include <webp/demux.h>

static int decode(const uint8_t *data, size_t len, struct image *image, struct err *err)
{
    int width = 0, height = 0;
    if (!WebPGetInfo(data, len, &width, &height) || width <= 0 || height <= 0)
        return err_set(err, ERR_FORMAT, "it is no WebP file");
    int r = image_make(image, (uint64_t)width, (uint64_t)height, err);
    if (r < 0)
        return r;
    const size_t pixels = (size_t)width * (size_t)height;
    unsigned char *rgba = malloc(4 * pixels);
    if (!rgba)
        return err_set(err, ERR_MEMORY, "no memory");
    if (!WebPDecodeRGBAInto(data, len, rgba, 4 * pixels, 4 * width))
        r = err_set(err, ERR_FORMAT, "it is a broken WebP file");
    for (size_t i = 0; r == 0 && i < pixels; i++)
        image_over_white(rgba + 4 * i, image->pixels + IMAGE_CHANNELS * i);
    free(rgba);
    return r;
}

int image_read_webp(const void *data, size_t len, struct image *ret, struct err *err)
{
    const WebPData file = {data, len};
    WebPIterator frame = {0};
    *ret = (struct image){0};
    WebPDemuxer *container = WebPDemux(&file);
    if (!container)
        return err_set(err, ERR_FORMAT, "it is no WebP file, or a broken one");
    const int r = WebPDemuxGetFrame(container, 1, &frame)
                      ? decode(frame.fragment.bytes, frame.fragment.size, ret, err)
                      : err_set(err, ERR_FORMAT, "it is a WebP file without a picture");
    WebPDemuxReleaseIterator(&frame);
    WebPDemuxDelete(container);
    if (r < 0)
        image_done(ret);
    return r;
}
