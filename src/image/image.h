/* SPDX-License-Identifier: Apache-2.0 */
/* A picture that a guest left, read and written anew: what is shown to a terminal or sent to a client was made by us, pixel by
 * pixel, and is no larger than asked for.
 *
 * Takes:   the bytes of a PNG, JPEG, GIF or WebP file, a width and height to fit into.
 * Gives:   pixels; of those a new PNG file, or a sixel sequence.
 * Never:   hands on a byte of the file; allocates for more than LIMIT_IMAGE_PIXELS.
 * Runs in: cordon-image, which is confined.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Red, green, blue, a byte each, row after row. What was transparent is white. */
struct image {
    uint32_t width, height;
    unsigned char *pixels; /* NULL: none */
};

/* The kind is told by its first bytes. ERR_FORMAT: it is none of the four, or a broken one. ERR_USAGE: it has too many pixels. */
ERR_MUST_USE int image_read(const void *data, size_t len, struct image *ret, struct err *err);
void image_done(struct image *image);

/* Shrinks it, keeping its shape, until neither side is longer than MOST pixels. */
ERR_MUST_USE int image_fit(struct image *image, uint32_t most, struct err *err);

ERR_MUST_USE int image_write_png(const struct image *image, struct buf *out, struct err *err);
ERR_MUST_USE int image_write_sixel(const struct image *image, struct buf *out, struct err *err);

#endif
