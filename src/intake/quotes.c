/* SPDX-License-Identifier: Apache-2.0 */
/* Three quotes begin and end a string of several lines in Python; comments and strings of one line may hold three quotes
 * that do neither. Nor do those behind a name or a backtick, or in a line that has two names next to each other: no program has
 * a string there, but sentences about quotes do. Behind `in`, `or` and `and` a string may begin in either; then what stands behind
 * its end tells: `""" again` and `""".` at the end of a line are no program. */
#include "intake/quotes.h"

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

static bool is_among(const char *list, const char *name, size_t len)
{
    while (*list) {
        const size_t n = strcspn(list, " ");
        if (n == len && memcmp(list, name, len) == 0)
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* Every word of Python that may stand beside a name, those of Python 2 too. */
static bool stands_beside(const char *name, size_t len)
{
    return is_among("and as assert async await case class def del elif else exec except for from "
                    "global if import in is lambda match nonlocal not or print raise return type "
                    "while with yield",
                    name, len);
}

/* Behind the end of a string: what a program never has there. A name right before quotes is the prefix of the next string. */
static bool goes_on_as_words(const char *line, size_t len, size_t at)
{
    size_t begin = at, end;
    if (at < len && line[at] == '.')
        return at + 1 == len;
    while (begin < len && (line[begin] == ' ' || line[begin] == '\t'))
        begin++;
    for (end = begin; end < len && in_name((unsigned char)line[end]);)
        end++;
    return begin > at && end > begin && (end == len || (line[end] != '"' && line[end] != '\'')) &&
           !is_among("and as async else for if in is not or", line + begin, end - begin);
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

/* What a line of a program, or a sentence, has had so far. */
struct seen {
    bool beside;   /* a name, and blanks behind it: another name makes it a sentence */
    bool sentence; /* no program has two names next to each other */
};

static size_t skip_name(const char *line, size_t len, size_t at, struct seen *seen)
{
    const size_t begin = at;
    while (at < len && in_name((unsigned char)line[at]))
        at++;
    const bool plain = !stands_beside(line + begin, at - begin);
    seen->sentence = seen->sentence || (plain && seen->beside);
    seen->beside = plain;
    return at;
}

/* Behind what stands AT in no string of several lines: a name, a short string, one character. */
static size_t skip_code(const char *line, size_t len, size_t at, struct seen *seen)
{
    if (in_name((unsigned char)line[at]))
        return skip_name(line, len, at, seen);
    seen->beside = seen->beside && (line[at] == ' ' || line[at] == '\t');
    return line[at] == '"' || line[at] == '\'' ? skip_short_string(line, len, at) : at + 1;
}

char intake_quotes_after(char state, const char *line, size_t len, bool *ret_words)
{
    struct seen seen = {.beside = false};
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
            *ret_words = *ret_words || (!state && goes_on_as_words(line, len, at));
        } else if (c == '#') {
            break;
        } else if (three && (seen.sentence || !may_begin(line, at))) {
            break; /* the line is a sentence: what follows says nothing either */
        } else if (three) {
            state = c;
            at += 3;
        } else {
            at = skip_code(line, len, at, &seen);
        }
    }
    return state;
}
