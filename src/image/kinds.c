/* SPDX-License-Identifier: Apache-2.0 */
/* Which reader a file is for, by its first bytes: its name is the guest's. */
#include "image/inside.h"

#include <string.h>

int image_read(const void *data, size_t len, struct image *ret, struct err *err)
{
    static const struct {
        const char *begin;
        size_t at, len;
        int (*read)(const void *data, size_t len, struct image *ret, struct err *err);
    } kinds[] = {{"\x89PNG\r\n\x1a\n", 0, 8, image_read_png},
                 {"\xff\xd8\xff", 0, 3, image_read_jpeg},
                 {"GIF8", 0, 4, image_read_gif},
                 {"WEBP", 8, 4, image_read_webp}};
    *ret = (struct image){0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (len >= kinds[i].at + kinds[i].len &&
            memcmp((const char *)data + kinds[i].at, kinds[i].begin, kinds[i].len) == 0)
            return kinds[i].read(data, len, ret, err);
    return err_set(err, ERR_FORMAT, "it is no PNG, JPEG, GIF or WebP file");
}
