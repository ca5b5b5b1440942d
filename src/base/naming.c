/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns are the operator's, names are a program's and at most 255 bytes: the C library's expressions are enough for them, and need
 * no library in a program that is static. What a text exports is asked of its lines, since the languages' own parsers are elsewhere: a text that
 * hides its export from this only misses a rule about names. */
#include "base/naming.h"

#include <ctype.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

const char *naming_pattern_problem(const char *pattern)
{
    static char why[128];
    regex_t re;
    const int r = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB);
    if (r == 0) {
        regfree(&re);
        return NULL;
    }
    (void)regerror(r, &re, why, sizeof why);
    return why;
}

static bool matches(const char *pattern, const char *name)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    const bool yes = regexec(&re, name, 0, NULL, 0) == 0;
    regfree(&re);
    return yes;
}

/* ---- what a text exports ---- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* WORD stands in the LEN bytes at TEXT, as a word of its own. */
static bool has_word(const char *text, size_t len, const char *word)
{
    const size_t n = strlen(word);
    const char *end = text + len;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), word, n)); at++)
        if ((at == text || !in_word(at[-1])) && (at + n == end || !in_word(at[n])))
            return true;
    return false;
}

/* The line at TEXT begins with one of WORDS, which have a blank between two, and NAME comes next. */
static bool declares(const char *line, size_t len, const char *words, const char *name)
{
    const size_t n = strlen(name);
    for (const char *word = words; *word;) {
        const size_t w = strcspn(word, " ");
        size_t at = w;
        if (len > w && memcmp(line, word, w) == 0) {
            while (at < len && line[at] == ' ')
                at++;
            if (len - at >= n && at > w && memcmp(line + at, name, n) == 0 &&
                (at + n == len || !in_word(line[at + n])))
                return true;
        }
        word += w + (word[w] == ' ');
    }
    return false;
}

static bool exports_python(const char *line, size_t len, const char *name)
{
    const size_t n = strlen(name);
    if (declares(line, len, "def class", name))
        return true;
    if (len > 6 && memcmp(line, "async ", 6) == 0)
        return declares(line + 6, len - 6, "def", name);
    size_t at = n;
    while (at < len && line[at] == ' ')
        at++;
    return len > n && memcmp(line, name, n) == 0 && at < len && line[at] == '=';
}

static bool exports_ruby(const char *line, size_t len, const char *name)
{
    return declares(line, len, "def class module", name);
}

/* `export ... NAME`, in its line or in the braces that it opens, `exports.NAME` and `module.exports = NAME`. */
static bool exports_javascript(const char *line, size_t len, const char *name, const char *end)
{
    if (len >= 6 && memcmp(line, "export", 6) == 0 && (len == 6 || !in_word(line[6]))) {
        const char *open = memchr(line, '{', len);
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        const size_t all = close ? (size_t)(close - line) : len;
        return has_word(line, all, name) || has_word(line, len, name);
    }
    return (len > 14 && memcmp(line, "module.exports", 14) == 0) ||
                   (len > 8 && memcmp(line, "exports.", 8) == 0)
               ? has_word(line, len, name)
               : false;
}

static bool ends_in(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && endings[i]; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Of a file whose ending tells no language, nothing is known: true. */
static bool exports(const char *file, const char *text, size_t len)
{
    static const char *const python[] = {".py", NULL}, *const ruby[] = {".rb", NULL},
                             *const javascript[] = {".js", ".mjs", ".cjs", ".ts", ".mts", NULL};
    char name[256];
    const bool py = ends_in(file, python), rb = ends_in(file, ruby), js = ends_in(file, javascript);
    if (!py && !rb && !js)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(strrchr(file, '.') - file), file);
    const char *end = text + len;
    for (const char *line = text; *name && line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t n = stop ? (size_t)(stop - line) : (size_t)(end - line);
        if (py   ? exports_python(line, n, name)
            : rb ? exports_ruby(line, n, name)
                 : exports_javascript(line, n, name, end))
            return true;
        line += n + 1;
    }
    return false;
}

const struct naming_rule *naming_broken(const struct naming_rule *rules, size_t count,
                                        const char *path, const char *text, size_t len)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(rules[i].path, path, FNM_PATHNAME | FNM_PERIOD) != 0)
            continue;
        if (!matches(rules[i].pattern, file) || (rules[i].exports && !exports(file, text, len)))
            return &rules[i];
    }
    return NULL;
}

/* ---- between processes ---- */

int naming_pack(const struct naming_rule *rules, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *const texts[] = {rules[i].path, rules[i].pattern, rules[i].message,
                                     rules[i].exports ? "1" : ""};
        for (size_t k = 0; k < 4; k++)
            if (buf_add(out, texts[k], strlen(texts[k]) + 1) < 0)
                return ERR_MEMORY;
    }
    return 0;
}

int naming_unpack(const char *data, size_t len, struct naming_rule rules[NAMING_MAX],
                  size_t *ret_count)
{
    const char *texts[4];
    size_t at = 0, count = 0;
    while (at < len) {
        if (count == NAMING_MAX)
            return ERR_LIMIT;
        for (size_t k = 0; k < 4; k++) {
            const char *end = at < len ? memchr(data + at, 0, len - at) : NULL;
            if (!end)
                return ERR_FORMAT;
            texts[k] = data + at;
            at = (size_t)(end - data) + 1;
        }
        rules[count++] = (struct naming_rule){
            .path = texts[0], .pattern = texts[1], .message = texts[2], .exports = *texts[3] != 0};
    }
    *ret_count = count;
    return 0;
}
