/* SPDX-License-Identifier: Apache-2.0 */
/* Three quotes begin and end a string of several lines in Python; comments and strings of one line may hold three quotes
 * that do neither. Nor do those behind a name or a backtick: no program has a string there, but sentences about quotes do. */
#include "intake/quotes.h"

#include <stdbool.h>
#include <string.h>

static bool in_name(unsigned char c)
{
    return c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* The words of Python that a string may follow, but for those where it makes no sense and a sentence often has them (`with`,
 * `from`); `print` is that of Python 2, which is told as such later. */
static bool is_keyword(const char *name, size_t len)
{
    static const char *const words[] = {"and", "assert", "elif",  "else",   "if",   "in",
                                        "not", "or",     "print", "return", "yield"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && memcmp(words[i], name, len) == 0)
            return true;
    return false;
}

/* r, f, Rb and their like stand right before the quotes. */
static bool is_prefix(const char *name, size_t len)
{
    return len == strspn(name, "rRbBuUfFtT") && len <= 2;
}

/* Whether a string of Python may begin AT. */
static bool may_begin(const char *line, size_t at)
{
    size_t end = at, begin = 0;
    while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t'))
        end--;
    if (end > 0 && line[end - 1] == '`')
        return false;
    for (begin = end; begin > 0 && in_name((unsigned char)line[begin - 1]);)
        begin--;
    return begin == end || (end == at && is_prefix(line + begin, end - begin)) ||
           is_keyword(line + begin, end - begin);
}

static size_t skip_short_string(const char *line, size_t len, size_t at)
{
    const char quote = line[at++];
    while (at < len && line[at] != quote)
        at += line[at] == '\\' ? 2 : 1;
    return at + 1;
}

char intake_quotes_after(char state, const char *line, size_t len)
{
    size_t at = 0;
    while (at < len) {
        const char c = line[at];
        const int three =
            (c == '"' || c == '\'') && at + 2 < len && line[at + 1] == c && line[at + 2] == c;
        if (state && c == '\\') {
            at += 2;
        } else if (state) {
            at += three && c == state ? 3 : 1;
            state = three && c == state ? 0 : state;
        } else if (c == '#') {
            break;
        } else if (three && !may_begin(line, at)) {
            break; /* the line is a sentence: what follows says nothing either */
        } else if (three) {
            state = c;
            at += 3;
        } else {
            at = c == '"' || c == '\'' ? skip_short_string(line, len, at) : at + 1;
        }
    }
    return state;
}
