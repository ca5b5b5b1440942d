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
    bool shown =
        within(acting, sizeof acting / sizeof *acting, cp) || (v->plain && utf8_unseen(cp));
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
