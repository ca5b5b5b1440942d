/* SPDX-License-Identifier: Apache-2.0 */
/* Newline and tab pass; everything else that a terminal would act on is shown instead of done.
 * Linear: each byte is looked at once, and at most three are held back between chunks. */
#include "output/visible.h"

#include "base/utf8.h"

#include <string.h>

static int wrong_byte(unsigned char c, struct buf *out)
{
    return buf_printf(out, "\\x%02x", c);
}

struct range {
    uint32_t first, last;
};

/* What a terminal acts on. */
static const struct range acting[] = {
    {0x80, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},   {0x2028, 0x202e},
    {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff},
};

/* What cannot be seen, or looks like a space: Default_Ignorable_Code_Point, the categories Cf, Zs, Zl, Zp and Co but
 * for U+0020, and the blank pattern of braille. Unicode 15. */
static const struct range unseen[] = {
    {0xa0, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},      {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x1680, 0x1680},    {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
    {0x2800, 0x2800},   {0x3000, 0x3000},   {0x3164, 0x3164},    {0xe000, 0xf8ff},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},    {0xfff0, 0xfffb},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},  {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
};

static bool within(const struct range *r, size_t count, uint32_t cp)
{
    for (size_t i = 0; i < count; i++)
        if (cp >= r[i].first && cp <= r[i].last)
            return true;
    return false;
}

static int code_point(const struct output_visible *v, uint32_t cp, const unsigned char *s, size_t n,
                      struct buf *out)
{
    if (cp < 0x20 && cp != '\t' && (cp != '\n' || v->one_line))
        return buf_printf(out, "^%c", (int)(cp + 64));
    if (cp == 0x7f)
        return buf_str(out, "^?");
    bool shown = within(acting, sizeof acting / sizeof *acting, cp) ||
                 (v->plain && within(unseen, sizeof unseen / sizeof *unseen, cp));
    return shown ? buf_printf(out, "<U+%04X>", cp) : buf_add(out, s, n);
}

int output_visible_add(struct output_visible *v, const void *data, size_t len, struct buf *out)
{
    const unsigned char *s = data;
    int r = 0;
    while (len && v->nheld && r == 0) { /* complete what was cut, byte by byte */
        uint32_t cp;
        v->held[v->nheld++] = *s;
        int n = utf8_decode(v->held, v->nheld, &cp);
        if (n < 0) {
            s++, len--;
        } else if (n > 0) {
            r = code_point(v, cp, v->held, (size_t)n, out);
            v->nheld = 0;
            s++, len--;
        } else { /* this byte does not belong to it: look at it anew */
            for (size_t i = 0; i + 1 < v->nheld && r == 0; i++)
                r = wrong_byte(v->held[i], out);
            v->nheld = 0;
        }
    }
    for (size_t i = 0; i < len && r == 0;) {
        uint32_t cp;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n < 0) {
            v->nheld = len - i;
            memcpy(v->held, s + i, v->nheld);
            break;
        }
        r = n ? code_point(v, cp, s + i, (size_t)n, out) : wrong_byte(s[i], out);
        i += n ? (size_t)n : 1;
    }
    return r;
}

int output_visible_end(struct output_visible *v, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < v->nheld && r == 0; i++)
        r = wrong_byte(v->held[i], out);
    v->nheld = 0;
    return r;
}
