/* Newline and tab pass; everything else that a terminal would act on is shown instead of done.
 * Linear: each byte is looked at once, and at most three are held back between chunks. */
#include "output/visible.h"

#include "base/utf8.h"

#include <string.h>

static int wrong_byte(unsigned char c, struct buf *out)
{
    return buf_printf(out, "\\x%02x", c);
}

static int code_point(bool one_line, uint32_t cp, const unsigned char *s, size_t n, struct buf *out)
{
    if (cp < 0x20 && cp != '\t' && (cp != '\n' || one_line))
        return buf_printf(out, "^%c", (int)(cp + 64));
    if (cp == 0x7f)
        return buf_str(out, "^?");
    bool acts = (cp >= 0x80 && cp < 0xa0) || cp == 0x200e || cp == 0x200f || cp == 0x061c ||
                (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff ||
                (cp >= 0xe0000 && cp <= 0xe0fff) || cp == 0x2028 || cp == 0x2029;
    return acts ? buf_printf(out, "<U+%04X>", cp) : buf_add(out, s, n);
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
            r = code_point(v->one_line, cp, v->held, (size_t)n, out);
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
        r = n ? code_point(v->one_line, cp, s + i, (size_t)n, out) : wrong_byte(s[i], out);
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
