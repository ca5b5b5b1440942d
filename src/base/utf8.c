/* SPDX-License-Identifier: Apache-2.0 */
/* The second byte's range depends on the first (Unicode 15, table 3-7); the rest are 80..BF. */
#include "base/utf8.h"

#include <string.h>

int utf8_decode(const unsigned char *s, size_t len, uint32_t *ret_cp)
{
    unsigned char c = s[0], lo = 0x80, hi = 0xbf;
    int n;
    uint32_t cp;
    if (c < 0x80) {
        *ret_cp = c;
        return 1;
    }
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0) {
        n = 2;
        cp = c & 0x1f;
    } else if (c < 0xf0) {
        n = 3;
        cp = c & 0x0f;
        if (c == 0xe0)
            lo = 0xa0;
        if (c == 0xed)
            hi = 0x9f;
    } else {
        n = 4;
        cp = c & 0x07;
        if (c == 0xf0)
            lo = 0x90;
        if (c == 0xf4)
            hi = 0x8f;
    }
    for (int i = 1; i < n; i++) {
        if ((size_t)i >= len)
            return -1;
        if (s[i] < lo || s[i] > hi)
            return 0;
        cp = cp << 6 | (s[i] & 0x3f);
        lo = 0x80;
        hi = 0xbf;
    }
    *ret_cp = cp;
    return n;
}

int utf8_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        if (cp >= 0xd800 && cp <= 0xdfff)
            return 0;
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    if (cp > 0x10ffff)
        return 0;
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t utf8_valid_prefix(const void *p, size_t len)
{
    const unsigned char *s = p;
    size_t i = 0;
    while (i < len) {
        uint64_t eight; /* most text is ASCII: eight bytes at a time while none has its top bit */
        while (len - i >= sizeof eight) {
            memcpy(&eight, s + i, sizeof eight);
            if (eight & 0x8080808080808080ULL)
                break;
            i += sizeof eight;
        }
        if (i < len && s[i] < 0x80) {
            i++;
            continue;
        }
        if (i == len)
            break;
        uint32_t cp;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n <= 0)
            break;
        i += (size_t)n;
    }
    return i;
}

size_t utf8_count(const void *p, size_t len)
{
    const unsigned char *s = p;
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += (s[i] & 0xc0) != 0x80; /* every byte but those that go on with a code point */
    return count;
}

/* What cannot be seen, or looks like a space: Default_Ignorable_Code_Point, the categories Cf, Zs, Zl, Zp and Co but
 * for U+0020, and the blank pattern of braille. Unicode 15. */
static const struct {
    uint32_t first, last;
} unseen[] = {
    {0xa0, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},      {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x1680, 0x1680},    {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
    {0x2800, 0x2800},   {0x3000, 0x3000},   {0x3164, 0x3164},    {0xe000, 0xf8ff},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},    {0xfff0, 0xfffb},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},  {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
};

bool utf8_unseen(uint32_t cp)
{
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
        if (cp >= unseen[i].first && cp <= unseen[i].last)
            return true;
    return false;
}
