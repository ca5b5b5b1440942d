/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of image_read, one for each kind of file.
 *
 * Takes:   the bytes of a file.
 * Gives:   pixels, as image.h has them.
 * Never:   reads beyond the bytes; allocates for more than LIMIT_IMAGE_PIXELS.
 * Runs in: cordon-image, which is confined; fuzz targets.
 */
#ifndef IMAGE_INSIDE_H
#define IMAGE_INSIDE_H

#include "image/image.h"

enum { IMAGE_CHANNELS = 3 };

/* Pixels for WIDTH x HEIGHT, all white. ERR_USAGE: there are too many. */
ERR_MUST_USE int image_make(struct image *image, uint64_t width, uint64_t height, struct err *err);
/* A pixel of four bytes over white; OUT has three. */
void image_over_white(const unsigned char *rgba, unsigned char *out);

/* Each sets *RET, to no pixels where it fails. Of an animation the first frame is read. */
ERR_MUST_USE int image_read_png(const void *data, size_t len, struct image *ret, struct err *err);
ERR_MUST_USE int image_read_jpeg(const void *data, size_t len, struct image *ret, struct err *err);
ERR_MUST_USE int image_read_gif(const void *data, size_t len, struct image *ret, struct err *err);
ERR_MUST_USE int image_read_webp(const void *data, size_t len, struct image *ret, struct err *err);

#endif
