/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a GIF file: it is read to pixels that are all there, or refused in words. */
#include "image/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_image(image_read_gif, data, size);
}
