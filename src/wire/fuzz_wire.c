/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a frame: refused, or read to its end by the table, field by field. */
#include "wire/msg.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_reader r;
    struct err err = ERR_INIT;
    if (wire_open(&r, data, size, &err) < 0)
        return err.code == 0; /* a refusal says why */
    while (*r.left) {
        uint64_t numbers[4];
        char text[8];
        size_t len;
        switch (*r.left) {
        case 'u':
            (void)wire_get_uint(&r);
            break;
        case 'i':
            (void)wire_get_int(&r);
            break;
        case 't':
            wire_get_text(&r, text, sizeof text);
            base_assert(strlen(text) < sizeof text);
            break;
        case 'b':
            (void)wire_get_bytes(&r, &len);
            break;
        case 'U':
            (void)wire_get_uints(&r, numbers, 4);
            break;
        default:
            for (size_t n = wire_get_list(&r); n; n--)
                (void)wire_next(&r, &len);
        }
    }
    base_assert(!r.at.bad && r.at.at == r.at.end);
    return 0;
}
