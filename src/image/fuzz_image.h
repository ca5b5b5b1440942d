/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of the readers share.
 *
 * Takes:   a reader, and any bytes.
 * Gives:   0; ends the process where the reader does not do what image/inside.h says.
 * Never:   keeps anything.
 * Runs in: fuzz targets.
 */
#ifndef IMAGE_FUZZ_IMAGE_H
#define IMAGE_FUZZ_IMAGE_H

#include "image/inside.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_image(int (*reader)(const void *, size_t, struct image *, struct err *),
                             const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct image image = {.width = 7};
    const int r = reader(data, size, &image, &err);
    if ((r == 0) != (image.pixels != NULL) || (r < 0 && !err.msg[0]))
        abort();
    if (r == 0 && (image_fit(&image, 16, &err) < 0 || image.width > 16 || image.height > 16))
        abort();
    image_done(&image);
    return 0;
}

#endif
