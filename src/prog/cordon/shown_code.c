/* SPDX-License-Identifier: Apache-2.0 */
/* Code as a person must see it who answers for it: each line as the parser counts lines (a carriage return alone
 * ends one, so that nothing behind it looks like part of a comment), each character that cannot be seen
 * or acts on a terminal as its number, and, since letters of other scripts look like Latin ones, a list of all
 * characters beyond ASCII below it. */
#include "shown_code.h"

#include "base/utf8.h"
#include "output/visible.h"

#include <stdio.h>
#include <string.h>

#define FOREIGN_SHOWN 16

void shown_line(const char *before, const char *s, size_t len)
{
    struct output_visible v = {.one_line = true, .plain = true};
    struct buf text;
    buf_init(&text, len * 8 + 64);
    if (output_visible_add(&v, s, len, &text) == 0 && output_visible_end(&v, &text) == 0)
        printf("%s%s\n", before, text.data ? text.data : "");
    else
        printf("%s[not shown: out of memory]\n", before);
    buf_done(&text);
}

/* Up to and with what ends the line: \n, \r\n, or \r alone. */
static size_t line_length(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] == '\n' || s[i] == '\r')
            return i + 1 + (s[i] == '\r' && i + 1 < len && s[i + 1] == '\n');
    return len;
}

struct foreign {
    size_t count, shown;
    uint32_t seen[FOREIGN_SHOWN];
    size_t line[FOREIGN_SHOWN];
};

static void look_for_foreign(struct foreign *f, const char *s, size_t len, size_t line)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        int n = utf8_decode((const unsigned char *)s + i, len - i, &cp);
        i += n > 0 ? (size_t)n : 1;
        if (n <= 1)
            continue;
        f->count++;
        size_t k = 0;
        while (k < f->shown && f->seen[k] != cp)
            k++;
        if (k == f->shown && k < FOREIGN_SHOWN) {
            f->seen[k] = cp;
            f->line[f->shown++] = line;
        }
    }
}

static void put_foreign(const struct foreign *f)
{
    if (!f->count)
        return;
    printf("       (%zu character%s beyond ASCII, which may look like others:", f->count,
           f->count == 1 ? "" : "s");
    for (size_t i = 0; i < f->shown; i++)
        printf(" U+%04X in line %zu%s", f->seen[i], f->line[i], i + 1 < f->shown ? "," : "");
    puts(f->shown == FOREIGN_SHOWN ? " ...)" : ")");
}

void shown_code(const char *code, size_t len)
{
    struct foreign foreign = {0};
    size_t line = 1;
    for (size_t at = 0, n; at < len; at += n, line++) {
        char before[32];
        n = line_length(code + at, len - at);
        size_t text = n - (code[at + n - 1] == '\n'); /* a carriage return is shown */
        snprintf(before, sizeof before, "%6zu | ", line);
        shown_line(before, code + at, text);
        look_for_foreign(&foreign, code + at, n, line);
    }
    if (len && code[len - 1] != '\n')
        puts("       (no line feed at the end)");
    put_foreign(&foreign);
}
